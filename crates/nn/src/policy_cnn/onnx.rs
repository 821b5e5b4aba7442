//! The network as an ONNX file: `onnx.proto` is a dozen messages of which this needs eight, so that they are written
//! here by hand (field numbers from <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>).

use games::{Game, PolicyChess};

use super::tensors;
use crate::weights::Weights;

/// Version of the file format: the first with operator set 13.
const IR_VERSION: u64 = 7;
/// Version of the operators.
const OPSET: u64 = 13;
/// `TensorProto.DataType.FLOAT`.
const FLOAT: u64 = 1;

/// A message of Protocol Buffers in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    /// A field that is a whole number.
    fn number(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    /// A field that is a text, bytes or another message.
    fn bytes(self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        let mut out = self.varint(field << 3 | 2).varint(value.len() as u64);
        out.0.extend_from_slice(value);
        out
    }

    fn message(self, field: u64, value: Message) -> Self {
        self.bytes(field, value.0)
    }
}

/// The names of the values that an operator reads and writes, and its attributes.
fn node(operator: &str, inputs: &[&str], output: &str, attributes: Vec<Message>) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
    let node = node.bytes(2, output).bytes(3, format!("{operator}_{output}")).bytes(4, operator);
    attributes.into_iter().fold(node, |node, attribute| node.message(5, attribute))
}

/// An attribute of one number.
fn int(name: &str, value: u64) -> Message {
    Message::default().bytes(1, name).number(3, value).number(20, 2)
}

/// An attribute of several numbers.
fn ints(name: &str, values: &[u64]) -> Message {
    values.iter().fold(Message::default().bytes(1, name), |a, value| a.number(8, *value)).number(20, 7)
}

/// A float tensor `[N, ...]` at the graph's border.
fn border(name: &str, dimensions: &[u64]) -> Message {
    let batch = Message::default().message(1, Message::default().bytes(2, "N"));
    let shape = dimensions.iter().fold(batch, |shape, d| shape.message(1, Message::default().number(1, *d)));
    let tensor = Message::default().number(1, FLOAT).message(2, shape);
    Message::default().bytes(1, name).message(2, Message::default().message(1, tensor))
}

/// The file's bytes.
pub(super) fn model(weights: &Weights) -> Vec<u8> {
    let conv = || vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])];
    let gemm = || vec![int("transB", 1)];
    let nodes = [
        node("Conv", &["planes", "conv1.weight", "conv1.bias"], "z1", conv()),
        node("Relu", &["z1"], "y1", Vec::new()),
        node("Conv", &["y1", "conv2.weight", "conv2.bias"], "z2", conv()),
        node("Relu", &["z2"], "y2", Vec::new()),
        node("Flatten", &["y2"], "flat", vec![int("axis", 1)]),
        node("Gemm", &["flat", "fc1.weight", "fc1.bias"], "z3", gemm()),
        node("Relu", &["z3"], "hidden", Vec::new()),
        node("Gemm", &["hidden", "fc2.weight", "fc2.bias"], "logits", gemm()),
    ];
    let graph = nodes.into_iter().fold(Message::default(), |graph, node| graph.message(1, node));
    let graph = tensors().into_iter().fold(graph.bytes(2, "policy_cnn"), |graph, spec| {
        let raw: Vec<u8> = weights[&spec.name].data.iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensor = spec.shape.iter().fold(Message::default(), |tensor, d| tensor.number(1, *d as u64));
        graph.message(5, tensor.number(2, FLOAT).bytes(8, spec.name).bytes(9, raw))
    });
    let shape = PolicyChess::SHAPE;
    let input = border("planes", &[shape.planes() as u64, shape.height as u64, shape.width as u64]);
    let graph = graph.message(11, input).message(12, border("logits", &[shape.actions() as u64]));
    let operators = Message::default().bytes(1, "").number(2, OPSET);
    let model = Message::default().number(1, IR_VERSION).bytes(2, "tabiya").bytes(3, env!("CARGO_PKG_VERSION"));
    model.message(7, graph).message(8, operators).0
}
