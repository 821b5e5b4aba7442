use candle_core::backprop::GradStore;

use super::*;
use crate::loss::{policy_loss, value_loss};
use crate::testing::{SHAPES, Samples, assert_close, lively, numbers, small};

fn loss(network: &Network, samples: &Samples) -> (Tensor, Tensor, Tensor, BatchStats) {
    let view = samples.view();
    let (policy, value, stats) = network.forward_train(&network.input(view.planes).unwrap()).unwrap();
    let (a, _) = policy_loss(network.kernels(), &policy, &view).unwrap();
    let (b, _) = value_loss(&value, network.architecture().value, &view).unwrap();
    ((a + b).unwrap(), policy, value, stats)
}

fn gradient<'a>(grads: &'a GradStore, network: &Network, name: &str) -> &'a Tensor {
    grads.get(&network.params()[name]).unwrap_or_else(|| panic!("no gradient for {name}"))
}

#[test]
fn both_kernels_agree_in_logits_value_statistics_and_every_gradient() {
    for shape in SHAPES {
        for full in [true, false] {
            let ours = lively(&small(shape, full), 3);
            let plain = ours.copy().unwrap().with_kernels(Kernels::Tensor).unwrap();
            let samples = Samples::random(shape, 11, 5);
            let (a, b) = (loss(&ours, &samples), loss(&plain, &samples));
            assert_close("logits", &numbers(&a.1), &numbers(&b.1), 1e-4);
            assert_close("value", &numbers(&a.2), &numbers(&b.2), 1e-4);
            assert_close("loss", &numbers(&a.0), &numbers(&b.0), 1e-4);
            let (ga, gb) = (a.0.backward().unwrap(), b.0.backward().unwrap());
            for name in ours.params().keys() {
                let (x, y) = (gradient(&ga, &ours, name), gradient(&gb, &plain, name));
                assert_close(name, &numbers(x), &numbers(y), 1e-4);
            }
            ours.update_running(&a.3).unwrap();
            plain.update_running(&b.3).unwrap();
            for (name, var) in ours.running() {
                assert_close(name, &numbers(var), &numbers(&plain.running()[name]), 1e-4);
            }
            let x = ours.input(&samples.planes).unwrap();
            let (p, v) = ours.forward(&x, Mode::Eval).unwrap();
            let (q, w) = plain.forward(&x, Mode::Eval).unwrap();
            assert_close("eval logits", &numbers(&p), &numbers(&q), 1e-4);
            assert_close("eval value", &numbers(&v), &numbers(&w), 1e-4);
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let network = lively(&small(SHAPES[1], true), 4);
    let samples = Samples::random(SHAPES[1], 8, 6);
    let grads = loss(&network, &samples).0.backward().unwrap();
    // Along the gradient the loss changes by its squared norm.
    for name in [
        "stem.conv.weight",
        "blocks.1.conv2.weight",
        "blocks.0.norm2.weight",
        "blocks.0.se.fc1.weight",
        "policy.conv.weight",
        "policy.out.weight",
        "value.conv.weight",
        "value.fc1.bias",
    ] {
        let var = &network.params()[name];
        let (grad, start) = (gradient(&grads, &network, name).copy().unwrap(), var.copy().unwrap());
        let norm: f64 = numbers(&grad).iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt();
        let at = |h: f64| {
            var.set(&(&start + grad.affine(h / norm, 0.0).unwrap()).unwrap()).unwrap();
            f64::from(loss(&network, &samples).0.to_scalar::<f32>().unwrap())
        };
        let numeric = (at(3e-3) - at(-3e-3)) / 6e-3;
        var.set(&start).unwrap();
        assert!((numeric / norm - 1.0).abs() < 0.03, "{name}: {numeric} and {norm}");
    }
}

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
