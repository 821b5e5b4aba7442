use std::sync::Arc;

use candle_core::{Device, Tensor, Var};
use games::Rng;

use super::*;
use crate::kernels::Geometry;
use crate::tensor_ops::{Gather, finish, norm_train};
use crate::testing::{assert_close, numbers};

fn var(rng: &mut Rng, dims: &[usize]) -> Var {
    let data: Vec<f32> = (0..dims.iter().product()).map(|_| rng.normal() as f32).collect();
    Var::from_vec(data, dims, &Device::Cpu).unwrap()
}

/// The inner product with fixed numbers: a loss whose gradient is those numbers.
fn loss(y: &Tensor, dy: &Tensor) -> Tensor {
    (y * dy).unwrap().sum_all().unwrap()
}

struct Inputs {
    geometry: Arc<Geometry>,
    x: Var,
    w: Var,
    gamma: Var,
    beta: Var,
    residual: Option<Var>,
    relu: bool,
}

impl Inputs {
    fn vars(&self) -> Vec<&Var> {
        [&self.x, &self.w, &self.gamma, &self.beta].into_iter().chain(&self.residual).collect()
    }

    fn ours(&self) -> Tensor {
        let spec = ConvNormSpec {
            geometry: self.geometry.clone(),
            inputs: self.w.dim(1).unwrap(),
            outputs: self.w.dim(0).unwrap(),
            relu: self.relu,
            eps: 1e-5,
        };
        let residual = self.residual.as_ref().map(|r| r.as_tensor());
        conv_norm(spec, &self.x, &self.w, &self.gamma, &self.beta, residual).unwrap().0
    }

    fn plain(&self) -> Tensor {
        let z = Gather::new(&self.geometry, &Device::Cpu).unwrap().conv(&self.x, &self.w).unwrap();
        let (y, ..) = norm_train(&z, &self.gamma, &self.beta, 1e-5).unwrap();
        finish(y, self.residual.as_ref().map(|r| r.as_tensor()), self.relu).unwrap()
    }
}

#[test]
fn conv_norm_equals_tensor_operations_with_every_gradient() {
    let mut rng = Rng::new(1);
    for (h, w, n) in [(3, 3, 5), (6, 7, 9), (8, 8, 5)] {
        for (inputs, outputs, kernel) in [(3, 20, 3), (20, 33, 3), (33, 1, 3), (20, 3, 1)] {
            for (with_residual, relu) in [(false, true), (true, true), (false, false), (true, false)] {
                let s = h * w;
                let geometry = if kernel == 3 { Geometry::conv3x3(h, w) } else { Geometry::pointwise(s) };
                let inputs = Inputs {
                    geometry: Arc::new(geometry),
                    x: var(&mut rng, &[n, s, inputs]),
                    w: var(&mut rng, &[outputs, inputs, kernel, kernel]),
                    gamma: var(&mut rng, &[outputs]),
                    beta: var(&mut rng, &[outputs]),
                    residual: with_residual.then(|| var(&mut rng, &[n, s, outputs])),
                    relu,
                };
                let dy = var(&mut rng, &[n, s, outputs]).detach();
                let (ours, plain) = (inputs.ours(), inputs.plain());
                assert_close("forward", &numbers(&ours), &numbers(&plain), 1e-4);
                let (ours, plain) = (loss(&ours, &dy).backward().unwrap(), loss(&plain, &dy).backward().unwrap());
                for (i, var) in inputs.vars().into_iter().enumerate() {
                    let (a, b) = (numbers(ours.get(var).unwrap()), numbers(plain.get(var).unwrap()));
                    assert_close(&format!("gradient {i}"), &a, &b, 1e-4);
                }
            }
        }
    }
}

#[test]
fn conv_norm_equals_finite_differences() {
    let mut rng = Rng::new(2);
    let inputs = Inputs {
        geometry: Arc::new(Geometry::conv3x3(6, 7)),
        x: var(&mut rng, &[3, 42, 4]),
        w: var(&mut rng, &[5, 4, 3, 3]),
        gamma: var(&mut rng, &[5]),
        beta: var(&mut rng, &[5]),
        residual: Some(var(&mut rng, &[3, 42, 5])),
        relu: false,
    };
    let dy = var(&mut rng, &[3, 42, 5]).detach();
    let grads = loss(&inputs.ours(), &dy).backward().unwrap();
    for v in inputs.vars() {
        let direction = var(&mut rng, v.dims()).detach();
        let start = v.copy().unwrap();
        let at = |h: f64| {
            v.set(&(&start + direction.affine(h, 0.0).unwrap()).unwrap()).unwrap();
            let y = numbers(&inputs.ours());
            y.iter().zip(numbers(&dy)).map(|(y, d)| f64::from(*y) * f64::from(d)).sum::<f64>()
        };
        let numeric = (at(1e-2) - at(-1e-2)) / 2e-2;
        v.set(&start).unwrap();
        let exact: f64 = numbers(grads.get(v).unwrap())
            .iter()
            .zip(numbers(&direction))
            .map(|(g, d)| f64::from(*g) * f64::from(d))
            .sum();
        assert!((numeric - exact).abs() < 2e-3 * exact.abs().max(10.0), "{numeric} {exact}");
    }
}

#[test]
fn the_planes_get_no_gradient() {
    let mut rng = Rng::new(3);
    let x = var(&mut rng, &[2, 9, 3]).detach();
    let (w, b) = (var(&mut rng, &[4, 3, 1, 1]), var(&mut rng, &[4]));
    let geometry = Arc::new(Geometry::pointwise(9));
    let grads = conv_bias(geometry, &x, &w, &b).unwrap().sum_all().unwrap().backward().unwrap();
    assert!(grads.get(&x).is_none());
    assert_eq!(numbers(grads.get(&b).unwrap()), [18.0; 4]);
}

#[test]
fn squeeze_and_gate_equal_tensor_operations() {
    let mut rng = Rng::new(4);
    for (n, s, c) in [(1, 9, 1), (5, 42, 20), (3, 64, 33)] {
        let (z, g, r) = (var(&mut rng, &[n, s, c]), var(&mut rng, &[n, c]), var(&mut rng, &[n, s, c]));
        let dy = var(&mut rng, &[n, s, c]).detach();
        let ours = gate(&z, &(mean_squares(&z).unwrap() * g.as_tensor()).unwrap(), &r).unwrap();
        let scale = (z.mean(1).unwrap() * g.as_tensor()).unwrap().unsqueeze(1).unwrap();
        let plain = (z.broadcast_mul(&scale).unwrap() + r.as_tensor()).unwrap().relu().unwrap();
        assert_close("forward", &numbers(&ours), &numbers(&plain), 1e-5);
        let (ours, plain) = (loss(&ours, &dy).backward().unwrap(), loss(&plain, &dy).backward().unwrap());
        for var in [&z, &g, &r] {
            assert_close("gradient", &numbers(ours.get(var).unwrap()), &numbers(plain.get(var).unwrap()), 1e-4);
        }
    }
}

#[test]
fn conv_bias_equals_tensor_operations() {
    let mut rng = Rng::new(5);
    for (n, s, inputs, outputs) in [(1, 9, 3, 1), (5, 42, 33, 1), (7, 64, 20, 73)] {
        let (x, w) = (var(&mut rng, &[n, s, inputs]), var(&mut rng, &[outputs, inputs, 1, 1]));
        let b = var(&mut rng, &[outputs]);
        let dy = var(&mut rng, &[n, s, outputs]).detach();
        let geometry = Geometry::pointwise(s);
        let plain = Gather::new(&geometry, &Device::Cpu).unwrap().conv(&x, &w).unwrap().broadcast_add(&b).unwrap();
        let ours = conv_bias(Arc::new(geometry), &x, &w, &b).unwrap();
        assert_close("forward", &numbers(&ours), &numbers(&plain), 1e-5);
        let (ours, plain) = (loss(&ours, &dy).backward().unwrap(), loss(&plain, &dy).backward().unwrap());
        for var in [&x, &w, &b] {
            assert_close("gradient", &numbers(ours.get(var).unwrap()), &numbers(plain.get(var).unwrap()), 1e-4);
        }
    }
}
