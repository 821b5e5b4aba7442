use candle_core::{D, Device, Tensor};

use super::*;
use crate::loss::policy_loss;
use crate::testing::{Samples, assert_close, numbers};
use crate::{Best, Checkpoint, CheckpointInfo, Schedule};

const SHAPE: games::Shape = PolicyChess::SHAPE;

/// A network whose logits differ by several units, so that a test sees every part.
fn lively(seed: u64) -> PolicyCnn {
    let mut weights = PolicyCnn::new(seed).unwrap().weights().unwrap();
    let mut rng = games::Rng::new(seed);
    for (name, tensor) in &mut weights {
        for x in &mut tensor.data {
            match name.as_str() {
                "fc2.weight" => *x = 0.3 * rng.normal() as f32,
                _ if name.ends_with("bias") => *x = 0.1 * rng.normal() as f32,
                _ => {}
            }
        }
    }
    PolicyCnn::from_weights(&weights, "test").unwrap()
}

fn trainer(network: PolicyCnn) -> PolicyTrainer {
    PolicyTrainer::new(network, OptimizerConfig::default()).unwrap()
}

/// Logits `[rows, 4096]` by candle's own operations.
fn oracle(network: &PolicyCnn, planes: &[f32]) -> Tensor {
    let p = |name: &str| network.params()[name].as_tensor().clone();
    let rows = planes.len() / SHAPE.inputs();
    let x = Tensor::from_slice(planes, (rows, 8, 8, SHAPE.planes()), &Device::Cpu).unwrap();
    let mut x = x.permute((0, 3, 1, 2)).unwrap().contiguous().unwrap();
    for name in ["conv1", "conv2"] {
        let bias = p(&format!("{name}.bias")).reshape((1, (), 1, 1)).unwrap();
        x = x.conv2d(&p(&format!("{name}.weight")), 1, 1, 1, 1).unwrap().broadcast_add(&bias).unwrap().relu().unwrap();
    }
    let linear = |name: &str, x: &Tensor| {
        let w = p(&format!("{name}.weight")).t().unwrap();
        x.matmul(&w).unwrap().broadcast_add(&p(&format!("{name}.bias"))).unwrap()
    };
    let hidden = linear("fc1", &x.flatten_from(1).unwrap()).relu().unwrap();
    linear("fc2", &hidden)
}

#[test]
fn it_has_the_size_of_the_format() {
    assert_eq!(PolicyCnn::parameters(), 336_048);
    let network = lively(1);
    let bin = network.to_bin().unwrap();
    assert_eq!(bin.len(), 1_344_192);
    let first = network.weights().unwrap()["conv1.weight"].data[0];
    let last = *network.weights().unwrap()["fc2.bias"].data.last().unwrap();
    assert_eq!(bin[..4], first.to_le_bytes());
    assert_eq!(bin[bin.len() - 4..], last.to_le_bytes());
}

#[test]
fn losses_and_every_gradient_equal_candles() {
    for rows in [1, 11, 70] {
        let network = lively(3);
        let samples = Samples::random(SHAPE, rows, 5);
        let (loss, sums) = policy_loss(&oracle(&network, &samples.planes), &samples.view()).unwrap();
        let grads = loss.backward().unwrap();
        let mut pass = Pass::new();
        pass.prepare(network.params()).unwrap();
        // A run leaves nothing behind that the next one would see.
        pass.train(&Samples::random(SHAPE, 40, 6).view());
        let found = pass.train(&samples.view());
        assert_eq!((found.rows, found.top1, found.top5), (sums.rows, sums.top1, sums.top5));
        let mean = found.loss / found.rows as f64;
        assert!((mean - f64::from(loss.to_scalar::<f32>().unwrap())).abs() < 1e-4, "{mean}");
        assert!((pass.evaluate(&samples.view()).loss - found.loss).abs() < 1e-9);
        assert_eq!(pass.gradients().len(), network.params().len());
        for (name, var) in network.params() {
            let expected = numbers(grads.get(var).unwrap());
            assert_close(&format!("{rows} {name}"), &pass.gradients()[name], &expected, 1e-4);
        }
    }
}

fn steps(trainer: &mut PolicyTrainer, count: u64) -> Vec<StepReport> {
    let (from, schedule) = (trainer.steps(), Schedule::new(3e-3, 1e-4, 200));
    let batch = |i: u64| Samples::random(SHAPE, 48, i % 4);
    (from..from + count).map(|i| trainer.step(&batch(i).view(), schedule.lr(i)).unwrap()).collect()
}

#[test]
fn a_fixed_set_is_learnt_and_threads_change_nothing() {
    let mut all = Vec::new();
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        all.push(pool.install(|| {
            let mut trainer = trainer(PolicyCnn::new(7).unwrap());
            let reports = steps(&mut trainer, 100);
            let (first, last) = (&reports[0], &reports[99]);
            assert!(last.loss < 0.8 * first.loss && last.top1 > first.top1, "{first:?} {last:?}");
            let mut validator = trainer.validator().unwrap();
            let report = validator.evaluate(&Samples::random(SHAPE, 48, 0).view()).unwrap();
            assert!(report.policy_rows == first.policy_rows && report.policy_loss() < 0.9 * first.policy_loss);
            trainer.network().weights().unwrap()
        }));
    }
    assert!(all.iter().all(|w| *w == all[0]));
}

#[test]
fn t1_a_resumed_trainer_goes_on_with_the_same_bits() {
    let mut whole = trainer(PolicyCnn::new(7).unwrap());
    steps(&mut whole, 20);
    let (store, mut half) = (pipeline::Store::memory(), trainer(PolicyCnn::new(7).unwrap()));
    steps(&mut half, 10);
    Checkpoint::save_policy(&store, &half, Best::Candidate, &CheckpointInfo::default()).unwrap();
    let best = half.network().weights().unwrap();
    let mut half = Checkpoint::load(&store).unwrap().policy_trainer(OptimizerConfig::default()).unwrap();
    steps(&mut half, 10);
    assert_eq!(half.network().weights().unwrap(), whole.network().weights().unwrap());
    Checkpoint::save_policy(&store, &half, Best::Keep, &CheckpointInfo::default()).unwrap();
    let saved = Checkpoint::load(&store).unwrap();
    assert_eq!(saved.info.step, 20);
    assert_eq!(saved.best_policy().unwrap().weights().unwrap(), best);
}

/// A player of another game, or a residual network, is told from a policy network by name.
#[test]
fn t6_the_two_kinds_of_checkpoint_are_not_mistaken_for_each_other() {
    let store = pipeline::Store::memory();
    let trainer = trainer(PolicyCnn::new(7).unwrap());
    Checkpoint::save_policy(&store, &trainer, Best::Candidate, &CheckpointInfo::default()).unwrap();
    let saved = Checkpoint::load(&store).unwrap();
    for refused in [
        saved.best_network(&Device::Cpu).map(drop),
        saved.trainer(&Device::Cpu, Default::default()).map(drop),
        saved.expect_game(SHAPE),
    ] {
        assert!(refused.unwrap_err().to_string().contains(PolicyCnn::ID));
    }
    let store = pipeline::Store::memory();
    let arch = crate::testing::small(crate::testing::SHAPES[0], false);
    let network = crate::Network::new(&arch, &Device::Cpu, 1).unwrap();
    Checkpoint::save_network(&store, &network, Best::Candidate, &CheckpointInfo::default()).unwrap();
    let saved = Checkpoint::load(&store).unwrap();
    assert!(saved.best_policy().map(drop).unwrap_err().to_string().contains("resnet"));
}

#[test]
fn a_loss_that_is_not_finite_stops_before_anything_changes() {
    let mut trainer = trainer(PolicyCnn::new(7).unwrap());
    steps(&mut trainer, 3);
    let before = trainer.network().weights().unwrap();
    for poison in [f32::NAN, f32::INFINITY] {
        let mut samples = Samples::random(SHAPE, 8, 9);
        samples.planes[5] = poison;
        assert!(trainer.step(&samples.view(), 1e-3).unwrap_err().to_string().contains("at step 4"));
    }
    let mut samples = Samples::random(SHAPE, 8, 9);
    samples.legal[0] = 4096;
    assert!(trainer.step(&samples.view(), 1e-3).unwrap_err().to_string().contains("policy index 4096"));
    assert_eq!((trainer.steps(), before), (3, trainer.network().weights().unwrap()));
}

/// The likeliest of all 4096, as the oracle has it, is not what counts: only legal moves do.
#[test]
fn accuracy_is_over_the_legal_moves() {
    let network = lively(4);
    let mut samples = Samples::random(SHAPE, 40, 8);
    let logits = oracle(&network, &samples.planes);
    let first: Vec<u32> = logits.argmax(D::Minus1).unwrap().to_vec1().unwrap();
    let logits: Vec<Vec<f32>> = logits.to_vec2().unwrap();
    samples.target.fill(0.0);
    let mut illegal = 0;
    for row in 0..samples.rows {
        let span = samples.legal_offsets[row] as usize..samples.legal_offsets[row + 1] as usize;
        illegal += usize::from(!samples.legal[span.clone()].iter().any(|i| u32::from(*i) == first[row]));
        let value = |i: &usize| logits[row][usize::from(samples.legal[*i])];
        let best = span.max_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
        samples.target[best] = 1.0;
    }
    assert!(illegal > 30, "the likeliest of all is legal too often to tell: {illegal}");
    let report = trainer(network).validator().unwrap().evaluate(&samples.view()).unwrap();
    assert_eq!((report.policy_rows, report.top1), (40, 40));
}
