use candle_core::Device;

use super::*;
use crate::network::Kernels;
use crate::optimizer::Method;
use crate::testing::{SHAPES, Samples, assert_close, small};

fn trainer(full: bool, config: TrainerConfig) -> Trainer {
    Trainer::new(Network::new(&small(SHAPES[1], full), &Device::Cpu, 7).unwrap(), config).unwrap()
}

fn run(trainer: &mut Trainer, steps: u64) -> Vec<StepReport> {
    let batches: Vec<Samples> = (0..4).map(|i| Samples::random(SHAPES[1], 48, i)).collect();
    let from = trainer.steps();
    (from..from + steps).map(|i| trainer.step(&batches[i as usize % 4].view(), 2e-3).unwrap()).collect()
}

#[test]
fn t3_same_seed_same_weights_whatever_the_threads() {
    let mut all = Vec::new();
    for method in [Method::Adamw, Method::Muon] {
        let optimizer = OptimizerConfig { method, ..OptimizerConfig::default() };
        for threads in [1, 1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            all.push(pool.install(|| {
                let mut trainer = trainer(true, TrainerConfig { optimizer, ..TrainerConfig::default() });
                run(&mut trainer, 5);
                trainer.network().weights().unwrap()
            }));
        }
    }
    for runs in all.chunks(4) {
        assert!(runs.iter().all(|w| *w == runs[0]));
    }
    assert_ne!(all[0], all[4], "Muon is another optimizer");
}

#[test]
fn a_fixed_set_is_learnt_by_both_kernels() {
    let methods = [Method::Adamw, Method::Muon];
    for (kernels, method) in [Kernels::Cpu, Kernels::Tensor].into_iter().flat_map(|k| methods.map(|m| (k, m))) {
        let network = Network::new(&small(SHAPES[1], true), &Device::Cpu, 7).unwrap().with_kernels(kernels).unwrap();
        let optimizer = OptimizerConfig { method, ..OptimizerConfig::default() };
        let mut trainer = Trainer::new(network, TrainerConfig { optimizer, ..TrainerConfig::default() }).unwrap();
        let reports = run(&mut trainer, 120);
        let (first, last) = (&reports[0], &reports[119]);
        assert!(last.loss < 0.85 * first.loss, "{first:?} {last:?}");
        assert!(last.top1 > first.top1 && last.value_abs_error < first.value_abs_error);
        assert_eq!((last.step, trainer.steps()), (120, 120));
        assert_eq!((last.policy_rows, last.value_rows), (39, 42));
        let mut report = EvalReport::default();
        let validator = trainer.validator().unwrap();
        (0..4).for_each(|i| report.add(&validator.evaluate(&Samples::random(SHAPES[1], 48, i).view()).unwrap()));
        assert_eq!((report.rows, report.policy_rows), (192, 156));
        assert!(report.policy_loss() < 0.9 * first.policy_loss, "running statistics have followed: {report:?}");
    }
}

#[test]
fn a_loss_that_is_not_finite_stops_before_anything_changes() {
    let mut trainer = trainer(true, TrainerConfig { ema: Some(0.9), ..TrainerConfig::default() });
    run(&mut trainer, 3);
    let before = (trainer.network().weights().unwrap(), trainer.candidate_weights().unwrap());
    for poison in [f32::NAN, f32::INFINITY, 1e38] {
        let mut samples = Samples::random(SHAPES[1], 8, 9);
        samples.planes[5] = poison;
        let error = trainer.step(&samples.view(), 1e-3).unwrap_err().to_string();
        assert!(error.contains("at step 4"), "{error}");
        assert_eq!(trainer.steps(), 3);
        assert_eq!(before, (trainer.network().weights().unwrap(), trainer.candidate_weights().unwrap()));
    }
    assert!(trainer.step(&Samples::random(SHAPES[1], 8, 9).view(), f64::NAN).is_err());
    run(&mut trainer, 1);
}

#[test]
fn bad_batches_are_refused_with_a_reason() {
    let mut trainer = trainer(false, TrainerConfig::default());
    let mut refused = |change: fn(&mut Samples), reason: &str| {
        let mut samples = Samples::random(SHAPES[1], 8, 9);
        change(&mut samples);
        let error = trainer.step(&samples.view(), 1e-3).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(|s| s.planes.truncate(7), "`planes`");
    refused(|s| s.legal[0] = 42, "policy index 42");
    refused(|s| s.target[0] = f32::NAN, "target NaN");
    refused(|s| s.value[0] = 2.0, "row 0 has the value 2");
    refused(|s| s.legal_offsets[3] = 0, "legal_offsets");
    refused(|s| s.rows = 0, "no rows");
}

#[test]
fn only_weights_decay() {
    let optimizer = OptimizerConfig { weight_decay: 10.0, ..OptimizerConfig::default() };
    let mut trainer = trainer(false, TrainerConfig { optimizer, ..TrainerConfig::default() });
    let before = trainer.network().weights().unwrap();
    // Without targets all gradients are 0, and the decay is alone.
    let mut samples = Samples::random(SHAPES[1], 8, 1);
    samples.target.fill(0.0);
    samples.value_weight.fill(0.0);
    let report = trainer.step(&samples.view(), 1e-2).unwrap();
    assert_eq!((report.policy_rows, report.value_rows, report.grad_norm), (0, 0, 0.0));
    for (name, tensor) in trainer.network().weights().unwrap() {
        let factor = match name.ends_with("weight") && !name.contains("norm") {
            true => 0.9,
            false if name.contains("running") => continue,
            false => 1.0,
        };
        let expected: Vec<f32> = before[&name].data.iter().map(|x| x * factor).collect();
        assert_close(&name, &tensor.data, &expected, 1e-6);
    }
}

#[test]
fn the_average_follows_and_is_what_is_evaluated() {
    let mut trainer = trainer(false, TrainerConfig { ema: Some(0.99), ..TrainerConfig::default() });
    let start = trainer.candidate_weights().unwrap();
    run(&mut trainer, 30);
    let (mean, raw) = (trainer.candidate_weights().unwrap(), trainer.network().weights().unwrap());
    let distance = |a: &Weights, b: &Weights| -> f32 {
        a.iter().map(|(name, t)| t.data.iter().zip(&b[name].data).map(|(x, y)| (x - y).powi(2)).sum::<f32>()).sum()
    };
    assert!(distance(&mean, &raw) > 0.0 && distance(&mean, &raw) < distance(&start, &raw));
    let samples = Samples::random(SHAPES[1], 16, 1);
    assert_eq!(
        trainer.validator().unwrap().evaluate(&samples.view()).unwrap(),
        Validator::new(trainer.candidate().unwrap()).unwrap().evaluate(&samples.view()).unwrap()
    );
}
