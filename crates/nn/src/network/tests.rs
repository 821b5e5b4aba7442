use super::*;
use crate::testing::{SHAPES, Samples, lively, numbers, small};

#[test]
fn t3_the_seed_decides_the_weights() {
    let arch = small(SHAPES[0], true);
    let weights = |seed| Network::new(&arch, &Device::Cpu, seed).unwrap().weights().unwrap();
    assert_eq!(weights(1), weights(1));
    let (a, b) = (weights(1), weights(2));
    assert!(a.iter().filter(|(name, _)| name.contains("conv")).all(|(name, t)| b[name] != *t));
    assert!(a["stem.norm.weight"].data.iter().all(|x| *x == 1.0) && a["stem.norm.bias"].data.iter().all(|x| *x == 0.0));
    let conv = &a["blocks.0.conv1.weight"].data;
    let deviation = (conv.iter().map(|x| x * x).sum::<f32>() / conv.len() as f32).sqrt();
    assert!((deviation / (2.0f32 / 180.0).sqrt() - 1.0).abs() < 0.1);
}

#[test]
fn fresh_networks_know_nothing() {
    for shape in SHAPES {
        let network = Network::new(&small(shape, true), &Device::Cpu, 1).unwrap();
        let samples = Samples::random(shape, 8, 1);
        let (policy, value) = network.forward(&network.input(&samples.planes).unwrap(), Mode::Train).unwrap();
        assert!(numbers(&policy).iter().all(|x| x.abs() < 2.0));
        let value = numbers(&value);
        assert!(value.chunks(3).all(|v| (v[0] - v[2]).abs() < 0.6), "{value:?}");
    }
}

#[test]
fn logits_are_in_the_order_of_the_policy_index() {
    let shape = SHAPES[0];
    let network = lively(&small(shape, false), 1);
    let mut weights = network.weights().unwrap();
    // The bias tells the plane.
    let out = weights.get_mut("policy.out.weight").unwrap();
    out.data.fill(0.0);
    for (i, b) in weights.get_mut("policy.out.bias").unwrap().data.iter_mut().enumerate() {
        *b = i as f32;
    }
    let network = Network::from_weights(network.architecture(), &Device::Cpu, &weights, "test").unwrap();
    let x = network.input(&Samples::random(shape, 2, 1).planes).unwrap();
    let (policy, _) = network.forward(&x, Mode::Eval).unwrap();
    assert_eq!(policy.dims(), [2, shape.actions()]);
    assert!(numbers(&policy).iter().enumerate().all(|(i, l)| *l == (i % shape.policy_planes) as f32));
}

#[test]
fn wrong_inputs_are_errors() {
    let network = lively(&small(SHAPES[2], false), 1);
    assert!(network.input(&[0.0; 7]).unwrap_err().to_string().contains("7 numbers"));
    let x = Tensor::zeros((1, 64, 20), candle_core::DType::F32, &Device::Cpu).unwrap();
    assert!(network.forward(&x, Mode::Eval).is_err());
}
