use std::collections::BTreeMap;

use candle_core::Device;

use super::{HostPass, Losses};
use crate::loss::{policy_loss, value_loss};
use crate::network::Network;
use crate::testing::{SHAPES, Samples, assert_close, lively, numbers, small};

const FACTOR: f64 = 0.7;

fn run(network: &Network, samples: &Samples) -> (HostPass, Losses) {
    let mut pass = HostPass::new(network.architecture());
    let losses = pass.run(network.params(), &samples.view(), FACTOR).unwrap();
    (pass, losses)
}

fn total(losses: &Losses) -> f64 {
    losses.policy.loss / losses.policy.rows as f64 + FACTOR * losses.value.loss / losses.value.rows as f64
}

type ByName = BTreeMap<String, Vec<f32>>;

/// What automatic differentiation of tensor operations says: the loss, statistics and gradients by name.
fn oracle(network: &Network, samples: &Samples) -> (f64, ByName, ByName) {
    let view = samples.view();
    let (policy, value, stats) = network.forward_train(&network.input(view.planes).unwrap()).unwrap();
    let (a, _) = policy_loss(&policy, &view).unwrap();
    let (b, _) = value_loss(&value, network.architecture().value, &view).unwrap();
    let loss = (a + b.affine(FACTOR, 0.0).unwrap()).unwrap();
    let grads = loss.backward().unwrap();
    let gradients = network.params().iter().map(|(name, var)| (name.clone(), numbers(grads.get(var).unwrap())));
    let copy = network.copy().unwrap();
    copy.update_running(&stats).unwrap();
    let running = copy.running().iter().map(|(name, var)| (name.clone(), numbers(var))).collect();
    (f64::from(loss.to_scalar::<f32>().unwrap()), running, gradients.collect())
}

#[test]
fn losses_statistics_and_every_gradient_equal_tensor_operations() {
    for shape in SHAPES {
        for full in [true, false] {
            for rows in [1, 11, 70] {
                let network = lively(&small(shape, full), 3);
                let samples = Samples::random(shape, rows, 5);
                let (pass, losses) = run(&network, &samples);
                let (loss, running, gradients) = oracle(&network, &samples);
                let what = format!("{} {rows}", network.architecture().id());
                assert!((total(&losses) - loss).abs() < 1e-4 * loss.abs().max(1.0), "{what}: {losses:?} {loss}");
                assert_eq!(pass.gradients().keys().collect::<Vec<_>>(), gradients.keys().collect::<Vec<_>>());
                for (name, expected) in &gradients {
                    assert_close(&format!("{what} {name}"), &pass.gradients()[name], expected, 1e-4);
                }
                let stats = crate::BatchStats::of_host(&network, pass.statistics(), rows).unwrap();
                network.update_running(&stats).unwrap();
                for (name, var) in network.running() {
                    assert_close(&format!("{what} {name}"), &numbers(var), &running[name], 1e-4);
                }
            }
        }
    }
}

/// The same at the size of real networks, where products go by tiles.
#[test]
fn gradients_of_a_wide_network_equal_tensor_operations() {
    let config = crate::NetConfig { blocks: 1, channels: 48, se: Some(4), policy_conv: true, ..Default::default() };
    let network = lively(&config.architecture(SHAPES[0]), 8);
    let samples = Samples::random(SHAPES[0], 9, 6);
    let (pass, _) = run(&network, &samples);
    for (name, expected) in &oracle(&network, &samples).2 {
        assert_close(name, &pass.gradients()[name], expected, 1e-4);
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let network = lively(&small(SHAPES[1], true), 4);
    let samples = Samples::random(SHAPES[1], 8, 6);
    let (pass, _) = run(&network, &samples);
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
        let (grad, start) = (pass.gradients()[name].clone(), numbers(var));
        let norm: f64 = grad.iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt();
        let set = |h: f64| {
            let moved: Vec<f32> = start.iter().zip(&grad).map(|(x, g)| x + (h / norm) as f32 * g).collect();
            var.set(&candle_core::Tensor::from_vec(moved, var.shape(), &Device::Cpu).unwrap()).unwrap();
        };
        let at = |h: f64| {
            set(h);
            total(&run(&network, &samples).1)
        };
        let numeric = (at(3e-3) - at(-3e-3)) / 6e-3;
        set(0.0);
        assert!((numeric / norm - 1.0).abs() < 0.03, "{name}: {numeric} and {norm}");
    }
}

/// A pass that has seen other batches gives what a new one gives.
#[test]
fn buffers_carry_nothing_over() {
    let network = lively(&small(SHAPES[0], true), 3);
    let batch = |rows| Samples::random(SHAPES[0], rows, rows as u64);
    let mut used = HostPass::new(network.architecture());
    for rows in [40, 3, 64, 33] {
        used.run(network.params(), &batch(rows).view(), FACTOR).unwrap();
        assert_eq!(used.gradients(), run(&network, &batch(rows)).0.gradients(), "{rows} rows");
    }
}
