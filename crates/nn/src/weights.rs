//! Named tensors in main memory, and their safetensors form.

use std::collections::{BTreeMap, HashMap};

use candle_core::{Device, Tensor};
use games::Rng;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::NnError;
use crate::arch::{Role, TensorSpec};

/// The metadata key of every safetensors file that this program writes; its value is JSON.
const METADATA: &str = "tabiya";

/// A tensor of f32 in main memory.
#[derive(Clone, PartialEq, Debug)]
pub struct HostTensor {
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Numbers, last dimension fastest.
    pub data: Vec<f32>,
}

impl HostTensor {
    /// Copies a tensor from its device.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn of(tensor: &Tensor) -> Result<Self, NnError> {
        Ok(HostTensor { shape: tensor.dims().to_vec(), data: tensor.flatten_all()?.to_vec1()? })
    }

    /// Copies it to a device.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn to(&self, device: &Device) -> Result<Tensor, NnError> {
        Ok(Tensor::from_slice(&self.data, self.shape.as_slice(), device)?)
    }
}

/// Tensors by name, in the order of their names.
pub type Weights = BTreeMap<String, HostTensor>;

/// Fresh weights: normal with each tensor's deviation, scales 1, the rest 0. Each tensor's numbers are a function of the
/// seed and its name.
pub(crate) fn fresh(tensors: Vec<TensorSpec>, seed: u64) -> Weights {
    let fresh = tensors.into_iter().map(|spec| {
        let len = spec.shape.iter().product();
        let data = match spec.role {
            Role::Weight(deviation) => {
                let mut rng = Rng::from_parts(&[seed, Rng::part(&spec.name)]);
                (0..len).map(|_| (rng.normal() * deviation) as f32).collect()
            }
            Role::Scale | Role::Variance => vec![1.0; len],
            Role::Bias | Role::Mean => vec![0.0; len],
        };
        (spec.name, HostTensor { shape: spec.shape, data })
    });
    fresh.collect()
}

/// The bytes of a safetensors file; the same weights give the same bytes.
pub(crate) fn encode(weights: &Weights, metadata: &serde_json::Value) -> Result<Vec<u8>, NnError> {
    let error =
        |e: safetensors::SafeTensorError| NnError::File { file: "safetensors".to_owned(), reason: e.to_string() };
    let bytes: Vec<(&String, &HostTensor, Vec<u8>)> =
        weights.iter().map(|(name, t)| (name, t, t.data.iter().flat_map(|x| x.to_le_bytes()).collect())).collect();
    let mut views = Vec::with_capacity(bytes.len());
    for (name, tensor, bytes) in &bytes {
        views.push((name.as_str(), TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(error)?));
    }
    // One key: the format keeps metadata in a hash map, whose order would change the bytes.
    let metadata = HashMap::from([(METADATA.to_owned(), metadata.to_string())]);
    safetensors::serialize(views, Some(metadata)).map_err(error)
}

/// Reads a safetensors file of f32 tensors and its metadata (null if the file has none of this program).
pub(crate) fn decode(bytes: &[u8], file: &str) -> Result<(Weights, serde_json::Value), NnError> {
    let error = |reason: String| NnError::File { file: file.to_owned(), reason };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| error(format!("not a safetensors file: {e}")))?;
    let text = header.metadata().as_ref().and_then(|m| m.get(METADATA));
    let metadata = match text {
        Some(text) => serde_json::from_str(text).map_err(|e| error(format!("unreadable metadata: {e}")))?,
        None => serde_json::Value::Null,
    };
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| error(format!("not a safetensors file: {e}")))?;
    let mut weights = Weights::new();
    for (name, view) in tensors.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(error(format!("tensor `{name}` has numbers of type {:?}, expected F32", view.dtype())));
        }
        let data = view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        weights.insert(name.to_owned(), HostTensor { shape: view.shape().to_vec(), data });
    }
    Ok((weights, metadata))
}

/// Refuses weights that are not exactly the architecture's tensors, naming each that is missing, extra, of another
/// shape, or not finite.
pub(crate) fn check(weights: &Weights, expected: &[TensorSpec], file: &str) -> Result<(), NnError> {
    let mut problems = Vec::new();
    for spec in expected {
        match weights.get(&spec.name) {
            None => problems.push(format!("tensor `{}` is missing", spec.name)),
            Some(t) if t.shape != spec.shape => {
                problems.push(format!("tensor `{}` has the shape {:?}, expected {:?}", spec.name, t.shape, spec.shape));
            }
            Some(t) if t.data.iter().any(|x| !x.is_finite()) => {
                problems.push(format!("tensor `{}` holds a number that is not finite", spec.name));
            }
            Some(_) => {}
        }
    }
    let extra = weights.keys().filter(|name| !expected.iter().any(|spec| spec.name == **name));
    problems.extend(extra.map(|name| format!("tensor `{name}` is not part of the architecture")));
    if problems.is_empty() { Ok(()) } else { Err(NnError::Tensors { file: file.to_owned(), problems }) }
}

#[cfg(test)]
mod tests {
    use super::{HostTensor, Weights, decode, encode};

    #[test]
    fn same_weights_same_bytes() {
        let tensor = |n: usize| HostTensor { shape: vec![n, 2], data: (0..2 * n).map(|i| i as f32 / 7.0).collect() };
        let weights: Weights = (1..20).map(|n| (format!("t{n}"), tensor(n))).collect();
        let metadata = serde_json::json!({"step": 3});
        let bytes = encode(&weights, &metadata).unwrap();
        assert_eq!(bytes, encode(&weights, &metadata).unwrap());
        assert_eq!(decode(&bytes, "x").unwrap(), (weights, metadata));
        for cut in [0, 4, bytes.len() / 2, bytes.len() - 1] {
            assert!(decode(&bytes[..cut], "model.safetensors").unwrap_err().to_string().contains("model.safetensors"));
        }
    }
}
