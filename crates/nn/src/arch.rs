//! Which network: its settings, the game's geometry, and the list of its tensors that everything else goes by.

use games::Shape;
use serde::{Deserialize, Serialize};

use crate::NnError;

/// What the value head says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueHead {
    /// One number through tanh, taught with the squared error.
    Scalar,
    /// Logits of win, draw and loss (mover's view), taught with the cross-entropy.
    #[default]
    Wdl,
}

/// The `[net]` table of a config: a residual network, without the game.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetConfig {
    /// Residual blocks.
    pub blocks: usize,
    /// Channels of the trunk.
    pub channels: usize,
    /// Squeeze-and-excitation: the ratio of trunk channels to squeezed channels.
    pub se: Option<usize>,
    /// A 3x3 convolution before the policy head's 1x1.
    pub policy_conv: bool,
    /// Kind of value head.
    pub value: ValueHead,
    /// Channels of the value head's 1x1 convolution.
    pub value_channels: usize,
    /// Width of the value head's hidden layer.
    pub value_hidden: usize,
}

impl Default for NetConfig {
    fn default() -> Self {
        NetConfig {
            blocks: 6,
            channels: 64,
            se: None,
            policy_conv: false,
            value: ValueHead::Wdl,
            value_channels: 8,
            value_hidden: 64,
        }
    }
}

impl NetConfig {
    /// The network for a game.
    pub fn architecture(&self, shape: Shape) -> Architecture {
        Architecture {
            blocks: self.blocks,
            channels: self.channels,
            se: self.se,
            policy_conv: self.policy_conv,
            value: self.value,
            value_channels: self.value_channels,
            value_hidden: self.value_hidden,
            bit_planes: shape.bit_planes,
            scalar_planes: shape.scalar_planes,
            height: shape.height,
            width: shape.width,
            policy_planes: shape.policy_planes,
        }
    }
}

/// A residual network for one game's geometry.
///
/// Stem: 3x3 convolution, norm, ReLU. Block: convolution, norm, ReLU, convolution, norm, optional squeeze-and-
/// excitation, plus the block's input, ReLU. Policy head: optional 3x3 convolution, norm, ReLU, then 1x1 with bias to
/// the game's policy planes. Value head: 1x1, norm, ReLU, linear, ReLU, linear.
///
/// # Stability
/// Stored in `checkpoint.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Residual blocks.
    pub blocks: usize,
    /// Channels of the trunk.
    pub channels: usize,
    /// Squeeze-and-excitation: the ratio of trunk channels to squeezed channels.
    pub se: Option<usize>,
    /// A 3x3 convolution before the policy head's 1x1.
    pub policy_conv: bool,
    /// Kind of value head.
    pub value: ValueHead,
    /// Channels of the value head's 1x1 convolution.
    pub value_channels: usize,
    /// Width of the value head's hidden layer.
    pub value_hidden: usize,
    /// [`Shape::bit_planes`].
    pub bit_planes: usize,
    /// [`Shape::scalar_planes`].
    pub scalar_planes: usize,
    /// [`Shape::height`].
    pub height: usize,
    /// [`Shape::width`].
    pub width: usize,
    /// [`Shape::policy_planes`].
    pub policy_planes: usize,
}

/// What a tensor is, which decides how it starts and whether it decays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Role {
    /// Weight of a convolution or a linear layer; starts normal with this deviation.
    Weight(f64),
    /// Bias, or the norm's shift; starts at 0.
    Bias,
    /// The norm's scale; starts at 1.
    Scale,
    /// Running mean; starts at 0 and is no parameter.
    Mean,
    /// Running variance; starts at 1 and is no parameter.
    Variance,
}

impl Role {
    pub(crate) fn is_parameter(self) -> bool {
        !matches!(self, Role::Mean | Role::Variance)
    }
}

/// One tensor of a network.
#[derive(Clone, Debug)]
pub(crate) struct TensorSpec {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) role: Role,
}

impl Architecture {
    /// The game's geometry.
    pub fn shape(&self) -> Shape {
        Shape {
            bit_planes: self.bit_planes,
            scalar_planes: self.scalar_planes,
            height: self.height,
            width: self.width,
            policy_planes: self.policy_planes,
        }
    }

    /// A short name that differs whenever a tensor's shape or meaning does.
    pub fn id(&self) -> String {
        let se = self.se.map_or(String::new(), |r| format!("-se{r}"));
        let conv = if self.policy_conv { "-pc" } else { "" };
        let value = match self.value {
            ValueHead::Scalar => "scalar",
            ValueHead::Wdl => "wdl",
        };
        format!(
            "resnet-{}x{}{se}{conv}-{value}{}x{}-in{}+{}x{}x{}-out{}",
            self.blocks,
            self.channels,
            self.value_channels,
            self.value_hidden,
            self.bit_planes,
            self.scalar_planes,
            self.height,
            self.width,
            self.policy_planes
        )
    }

    /// Numbers that the value head gives: 1, or 3.
    pub fn value_outputs(&self) -> usize {
        match self.value {
            ValueHead::Scalar => 1,
            ValueHead::Wdl => 3,
        }
    }

    /// Channels after the squeeze; `None` without one.
    pub(crate) fn squeezed(&self) -> Option<usize> {
        self.se.map(|ratio| (self.channels / ratio.max(1)).max(1))
    }

    /// Trained numbers.
    pub fn parameters(&self) -> usize {
        let trained = self.tensors().into_iter().filter(|t| t.role.is_parameter());
        trained.map(|t| t.shape.iter().product::<usize>()).sum()
    }

    /// Refuses numbers that make no network.
    ///
    /// # Errors
    /// [`NnError::Architecture`] names the field.
    pub fn check(&self) -> Result<(), NnError> {
        let shape = self.shape();
        let at_least_one = [
            ("channels", self.channels),
            ("value_channels", self.value_channels),
            ("value_hidden", self.value_hidden),
            ("height", self.height),
            ("width", self.width),
            ("policy_planes", self.policy_planes),
            ("bit_planes + scalar_planes", shape.planes()),
            ("se", self.se.unwrap_or(1)),
        ];
        if let Some((field, _)) = at_least_one.iter().find(|(_, n)| *n == 0) {
            return Err(NnError::Architecture(format!("`{field}` is 0; at least 1 is needed")));
        }
        if shape.squares() > 64 || self.channels > 4096 || self.blocks > 1000 {
            return Err(NnError::Architecture(format!(
                "{} is beyond 64 squares, 4096 channels, 1000 blocks",
                self.id()
            )));
        }
        Ok(())
    }

    /// Every tensor, in the order of the network.
    pub(crate) fn tensors(&self) -> Vec<TensorSpec> {
        let mut list = List(Vec::new());
        let (c, squares) = (self.channels, self.shape().squares());
        list.conv_norm("stem.conv", "stem.norm", c, self.shape().planes(), 3);
        for i in 0..self.blocks {
            for half in 1..=2 {
                list.conv_norm(&format!("blocks.{i}.conv{half}"), &format!("blocks.{i}.norm{half}"), c, c, 3);
            }
            if let Some(squeezed) = self.squeezed() {
                list.linear(&format!("blocks.{i}.se.fc1"), squeezed, c, 2.0);
                list.linear(&format!("blocks.{i}.se.fc2"), c, squeezed, 1.0);
            }
        }
        if self.policy_conv {
            list.conv_norm("policy.conv", "policy.norm", c, c, 3);
        }
        // The last layers start small: the first predictions are near uniform and near 0.
        list.push("policy.out.weight", &[self.policy_planes, c, 1, 1], Role::Weight(0.1 / (c as f64).sqrt()));
        list.push("policy.out.bias", &[self.policy_planes], Role::Bias);
        list.conv_norm("value.conv", "value.norm", self.value_channels, c, 1);
        list.linear("value.fc1", self.value_hidden, self.value_channels * squares, 2.0);
        list.linear("value.fc2", self.value_outputs(), self.value_hidden, 0.01);
        list.0
    }
}

struct List(Vec<TensorSpec>);

impl List {
    fn push(&mut self, name: &str, shape: &[usize], role: Role) {
        self.0.push(TensorSpec { name: name.to_owned(), shape: shape.to_vec(), role });
    }

    /// A convolution with He's deviation, `sqrt(2 / fan_in)`, and its norm.
    fn conv_norm(&mut self, conv: &str, norm: &str, outputs: usize, inputs: usize, kernel: usize) {
        let deviation = (2.0 / (inputs * kernel * kernel) as f64).sqrt();
        self.push(&format!("{conv}.weight"), &[outputs, inputs, kernel, kernel], Role::Weight(deviation));
        self.push(&format!("{norm}.weight"), &[outputs], Role::Scale);
        self.push(&format!("{norm}.bias"), &[outputs], Role::Bias);
        self.push(&format!("{norm}.running_mean"), &[outputs], Role::Mean);
        self.push(&format!("{norm}.running_var"), &[outputs], Role::Variance);
    }

    /// A linear layer with variance `gain / fan_in`.
    fn linear(&mut self, name: &str, outputs: usize, inputs: usize, gain: f64) {
        let deviation = (gain / inputs as f64).sqrt();
        self.push(&format!("{name}.weight"), &[outputs, inputs], Role::Weight(deviation));
        self.push(&format!("{name}.bias"), &[outputs], Role::Bias);
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game, TicTacToe};

    use super::{NetConfig, ValueHead};

    #[test]
    fn ids_differ_with_every_setting() {
        let base = NetConfig::default();
        let mut all = vec![base.architecture(Chess::SHAPE), base.architecture(TicTacToe::SHAPE)];
        for change in [
            |c: &mut NetConfig| c.blocks = 2,
            |c: &mut NetConfig| c.channels = 65,
            |c: &mut NetConfig| c.se = Some(8),
            |c: &mut NetConfig| c.policy_conv = true,
            |c: &mut NetConfig| c.value = ValueHead::Scalar,
            |c: &mut NetConfig| c.value_channels = 7,
            |c: &mut NetConfig| c.value_hidden = 7,
        ] {
            let mut config = base.clone();
            change(&mut config);
            all.push(config.architecture(Chess::SHAPE));
        }
        let ids: std::collections::HashSet<String> = all.iter().map(|a| a.id()).collect();
        assert_eq!(ids.len(), all.len());
    }

    #[test]
    fn impossible_numbers_are_refused_by_field() {
        let config = NetConfig { channels: 0, ..NetConfig::default() };
        assert!(config.architecture(Chess::SHAPE).check().unwrap_err().to_string().contains("`channels`"));
        assert!(NetConfig::default().architecture(Chess::SHAPE).check().is_ok());
    }

    #[test]
    fn settings_survive_json() {
        let arch = NetConfig { se: Some(4), ..NetConfig::default() }.architecture(Chess::SHAPE);
        let text = serde_json::to_string(&arch).unwrap();
        assert_eq!(serde_json::from_str::<super::Architecture>(&text).unwrap(), arch);
        let net: NetConfig = serde_json::from_str("{\"value\":\"scalar\",\"blocks\":3}").unwrap();
        assert_eq!((net.value, net.blocks, net.channels), (ValueHead::Scalar, 3, 64));
        assert!(serde_json::from_str::<NetConfig>("{\"block\":3}").is_err());
    }
}
