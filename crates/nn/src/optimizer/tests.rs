#![allow(clippy::needless_range_loop, reason = "the formula is written for element i of five lists")]

use super::*;

fn rates(config: OptimizerConfig, step: i32, lr: f64, decay: bool, clip: f64) -> Rates {
    Rates {
        clip,
        keep: 1.0 - if decay { lr * config.weight_decay } else { 0.0 },
        lr,
        correct_m: 1.0 - config.beta1.powi(step),
        correct_v: 1.0 - config.beta2.powi(step),
        config,
    }
}

/// On a device gradients come from candle, and that of a variable which is a factor is itself a node of the graph.
#[test]
fn device_steps_keep_no_graph() {
    let var = |n: f32| Var::from_slice(&[n, 2.0 * n, -n, 1.0], (2, 2), &Device::Cpu).unwrap();
    let (gamma, below) = (var(1.0), var(3.0));
    let loss = (below.sqr().unwrap() * gamma.as_tensor()).unwrap().sum_all().unwrap();
    let gradients = loss.backward().unwrap();
    let gradient = gradients.get(&gamma).unwrap();
    let zeros = || Tensor::zeros((2, 2), candle_core::DType::F32, &Device::Cpu).unwrap();
    let (mut m, mut v, mut momentum) = (zeros(), zeros(), zeros());
    let rates = rates(OptimizerConfig::default(), 1, 0.01, true, 1.0);
    rates.device_step(&gamma, gradient, &mut m, &mut v).unwrap();
    muon::step(&gamma, gradient, &mut momentum, &rates).unwrap();
    for moment in [m, v, momentum] {
        assert!(!moment.track_op());
    }
}

#[test]
fn host_and_device_steps_equal_the_formula() {
    let config = OptimizerConfig { weight_decay: 0.1, ..OptimizerConfig::default() };
    let n = 5;
    let mut rng = games::Rng::new(1);
    let mut random = || (0..n).map(|_| rng.normal() as f32).collect::<Vec<f32>>();
    let start = random();
    let (host, device) =
        (Var::from_slice(&start, n, &Device::Cpu).unwrap(), Var::from_slice(&start, n, &Device::Cpu).unwrap());
    let mut theta: Vec<f64> = start.iter().map(|x| f64::from(*x)).collect();
    let (mut m, mut v) = (vec![0.0f64; n], vec![0.0f64; n]);
    let (mut hm, mut hv) = (vec![0.0f32; n], vec![0.0f32; n]);
    let zeros = || Tensor::zeros(n, candle_core::DType::F32, &Device::Cpu).unwrap();
    let (mut dm, mut dv) = (zeros(), zeros());
    for step in 1..=5 {
        let grad = random();
        let rates = rates(config, step, 0.01, step % 2 == 0, 0.5);
        for i in 0..n {
            let g = f64::from(grad[i]) * 0.5;
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            let (mean, square) = (m[i] / (1.0 - 0.9f64.powi(step)), v[i] / (1.0 - 0.999f64.powi(step)));
            let decay = if step % 2 == 0 { 0.1 } else { 0.0 };
            theta[i] -= 0.01 * (mean / (square.sqrt() + 1e-8) + decay * theta[i]);
        }
        let grad = Tensor::from_vec(grad, n, &Device::Cpu).unwrap();
        let gradient = &grad.to_vec1::<f32>().unwrap();
        host.inplace_op1(&HostStep { rates, gradient, moments: RefCell::new((&mut hm, &mut hv)) }).unwrap();
        rates.device_step(&device, &grad, &mut dm, &mut dv).unwrap();
    }
    for (i, expected) in theta.iter().enumerate() {
        for var in [&host, &device] {
            let found = f64::from(var.to_vec1::<f32>().unwrap()[i]);
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }
}
