use games::Rng;

use super::*;
use crate::checkpoint::{Best, CheckpointInfo};
use crate::network::Mode;
use crate::testing::{SHAPES, assert_close, lively, numbers, small};

fn inputs(shape: games::Shape, count: usize) -> Vec<Packed> {
    let mut rng = Rng::new(11);
    (0..count).map(|_| Packed::random(shape, &mut rng)).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_position_is_bit_equal_in_any_batch() {
    for shape in SHAPES {
        for full in [true, false] {
            let model = Model::from_network(&lively(&small(shape, full), 2)).unwrap();
            let inputs = inputs(shape, 64);
            let mut one = model.executor(1);
            let alone: Vec<Evaluations> =
                inputs.iter().map(|x| one.evaluate(std::slice::from_ref(x)).unwrap().to_evaluations()).collect();
            for batch in [7, 64] {
                let mut executor = model.executor(batch);
                for (i, chunk) in inputs.chunks(batch).enumerate() {
                    let found = executor.evaluate(chunk).unwrap();
                    for (j, expected) in alone[i * batch..][..chunk.len()].iter().enumerate() {
                        let actions = shape.actions();
                        assert_eq!(bits(&found.policy[j * actions..][..actions]), bits(&expected.policy));
                        assert_eq!(found.value[j].to_bits(), expected.value[0].to_bits());
                        assert_eq!(found.wdl.map(|w| bits(&w[j * 3..][..3])), expected.wdl.as_deref().map(bits));
                    }
                }
            }
            let all = model.evaluate_all(&inputs).unwrap();
            assert_eq!(bits(&all.policy), alone.iter().flat_map(|e| bits(&e.policy)).collect::<Vec<_>>());
            assert_eq!(bits(&all.value), alone.iter().flat_map(|e| bits(&e.value)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_model_equals_the_network_it_was_made_of() {
    for shape in SHAPES {
        for full in [true, false] {
            let network = lively(&small(shape, full), 2);
            let inputs = inputs(shape, 19);
            let mut planes = vec![0.0; inputs.len() * shape.inputs()];
            for (input, planes) in inputs.iter().zip(planes.chunks_exact_mut(shape.inputs())) {
                input.write_channels_last(shape, planes);
            }
            let plain = network.copy().unwrap().with_kernels(Kernels::Tensor).unwrap();
            let (policy, value) = plain.forward(&plain.input(&planes).unwrap(), Mode::Eval).unwrap();
            for model in [Model::from_network(&network).unwrap(), Model::from_network(&plain).unwrap()] {
                let found = model.evaluate_all(&inputs).unwrap();
                assert_close("policy", &found.policy, &numbers(&policy), 1e-4);
                if full {
                    let value = candle_nn::ops::softmax(&value, 1).unwrap();
                    let wdl = found.wdl.unwrap();
                    assert_close("wdl", &wdl, &numbers(&value), 1e-4);
                    let mean: Vec<f32> = wdl.chunks(3).map(|p| p[0] - p[2]).collect();
                    assert_close("value", &found.value, &mean, 1e-6);
                } else {
                    assert!(found.wdl.is_none());
                    assert_close("value", &found.value, &numbers(&value), 1e-4);
                }
                assert!(found.value.iter().all(|v| (-1.0..=1.0).contains(v)));
            }
        }
    }
}

#[test]
fn a_model_does_not_follow_the_network_it_came_from() {
    let network = lively(&small(SHAPES[2], true), 2);
    for network in [network.copy().unwrap(), network.with_kernels(Kernels::Tensor).unwrap()] {
        let model = Model::from_network(&network).unwrap();
        let inputs = inputs(SHAPES[2], 3);
        let before = model.evaluate_all(&inputs).unwrap();
        for var in network.params().values() {
            var.set(&var.detach().affine(0.5, 0.1).unwrap()).unwrap();
        }
        assert_eq!(model.evaluate_all(&inputs).unwrap(), before);
    }
}

#[test]
fn batches_beyond_the_buffers_are_refused_and_empty_ones_are_empty() {
    let model = Model::from_network(&lively(&small(SHAPES[2], true), 2)).unwrap();
    let mut executor = model.executor(4);
    let error = executor.evaluate(&inputs(SHAPES[2], 5)).unwrap_err().to_string();
    assert!(error.contains("at most 4"), "{error}");
    assert!(executor.evaluate(&[]).unwrap().value.is_empty());
}

#[test]
fn candidate_and_best_come_from_a_checkpoint() {
    let store = Store::memory();
    let (candidate, best) = (lively(&small(SHAPES[2], true), 2), lively(&small(SHAPES[2], true), 3));
    let info = CheckpointInfo::default();
    Checkpoint::save_network(&store, &candidate, Best::Network(&best), &info).unwrap();
    let inputs = inputs(SHAPES[2], 2);
    let of = |model: Model| model.evaluate_all(&inputs).unwrap();
    assert_eq!(of(Model::load(&store).unwrap()), of(Model::from_network(&candidate).unwrap()));
    assert_eq!(of(Model::load_best(&store).unwrap()), of(Model::from_network(&best).unwrap()));
}

#[test]
fn executors_can_go_to_threads() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<Executor>();
    is_shared::<Model>();
}

/// Prints rates: `cargo test --release -p nn speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    use std::time::Instant;

    use crate::testing::Samples;
    use crate::{NetConfig, Trainer, TrainerConfig};

    let net = |blocks| NetConfig { blocks, channels: 64, ..NetConfig::default() }.architecture(SHAPES[0]);
    let network = Network::new(&net(5), &Device::Cpu, 1).unwrap();
    let mut trainer = Trainer::new(network, TrainerConfig::default()).unwrap();
    let samples = Samples::random(SHAPES[0], 256, 1);
    trainer.step(&samples.view(), 1e-3).unwrap();
    let start = Instant::now();
    let steps = 8;
    for _ in 0..steps {
        trainer.step(&samples.view(), 1e-3).unwrap();
    }
    let weights = trainer.network().weights().unwrap();
    let bytes: Vec<u8> = weights.values().flat_map(|t| &t.data).flat_map(|x| x.to_le_bytes()).collect();
    println!("weights after {} steps: {}", trainer.steps(), blake3::hash(&bytes).to_hex());
    println!("5x64 training, batch 256: {:.0} positions/s", 256.0 * f64::from(steps) / start.elapsed().as_secs_f64());

    let model = Model::from_network(&Network::new(&net(6), &Device::Cpu, 1).unwrap()).unwrap();
    let inputs = inputs(SHAPES[0], 64);
    for executors in [1, 2] {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..executors {
                scope.spawn(|| {
                    let mut executor = model.executor(64);
                    for _ in 0..20 {
                        executor.evaluate(&inputs).unwrap();
                    }
                });
            }
        });
        let rate = 64.0 * 20.0 * f64::from(executors) / start.elapsed().as_secs_f64();
        println!("6x64 inference, batch 64, {executors} executors: {rate:.0} positions/s");
    }
}
