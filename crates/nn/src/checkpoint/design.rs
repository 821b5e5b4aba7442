//! Which network a checkpoint holds.

use serde::{Deserialize, Serialize};

use crate::PolicyCnn;
use crate::arch::{Architecture, TensorSpec};
use crate::policy_cnn;

/// Which network a checkpoint holds.
///
/// # Stability
/// Stored in `checkpoint.json` under `architecture`: a residual network as its numbers, another by its name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Design {
    /// A residual network.
    ResNet(Architecture),
    /// A policy network of the alpha-beta engine.
    Policy(PolicyKind),
}

/// The policy networks of the alpha-beta engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// [`PolicyCnn`].
    PolicyCnn,
}

impl Design {
    /// A short name that differs whenever a tensor's shape or meaning does.
    pub fn id(&self) -> String {
        match self {
            Design::ResNet(architecture) => architecture.id(),
            Design::Policy(PolicyKind::PolicyCnn) => PolicyCnn::ID.to_owned(),
        }
    }

    /// Every tensor, in the order of the network.
    pub(crate) fn tensors(&self) -> Vec<TensorSpec> {
        match self {
            Design::ResNet(architecture) => architecture.tensors(),
            Design::Policy(PolicyKind::PolicyCnn) => policy_cnn::tensors(),
        }
    }
}

impl From<&Architecture> for Design {
    fn from(architecture: &Architecture) -> Self {
        Design::ResNet(architecture.clone())
    }
}
