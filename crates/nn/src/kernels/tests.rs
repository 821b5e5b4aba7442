use candle_core::{Device, Tensor, Var};
use games::Rng;

use super::*;
use crate::testing::{assert_close, numbers};

const BOARDS: [(usize, usize); 3] = [(3, 3), (6, 7), (8, 8)];
const CHANNELS: [(usize, usize); 8] = [(1, 1), (1, 33), (3, 20), (20, 64), (33, 3), (64, 33), (64, 64), (64, 1)];

fn random(rng: &mut Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| rng.normal() as f32).collect()
}

/// `[n, squares, c]` as candle's `[n, c, h, w]`.
fn nchw(x: &Tensor, h: usize, w: usize) -> Tensor {
    let (n, _, c) = x.dims3().unwrap();
    x.reshape((n, h, w, c)).unwrap().permute((0, 3, 1, 2)).unwrap().contiguous().unwrap()
}

struct Case {
    x: Vec<f32>,
    w: Vec<f32>,
    dy: Vec<f32>,
    y: Vec<f32>,
    dx: Vec<f32>,
    dw: Vec<f32>,
}

/// Random data, and what plain candle makes of it.
fn oracle(h: usize, w: usize, kernel: usize, n: usize, inputs: usize, outputs: usize, rng: &mut Rng) -> Case {
    let (s, taps) = (h * w, kernel * kernel);
    let (x, weight) = (random(rng, n * s * inputs), random(rng, outputs * inputs * taps));
    let dy = random(rng, n * s * outputs);
    let xt = Var::from_slice(&x, (n, s, inputs), &Device::Cpu).unwrap();
    let wt = Var::from_slice(&weight, (outputs, inputs, kernel, kernel), &Device::Cpu).unwrap();
    let y = nchw(&xt, h, w).conv2d(&wt, kernel / 2, 1, 1, 1).unwrap();
    let y = y.permute((0, 2, 3, 1)).unwrap().reshape((n, s, outputs)).unwrap();
    let loss = (&y * Tensor::from_slice(&dy, (n, s, outputs), &Device::Cpu).unwrap()).unwrap().sum_all().unwrap();
    let grads = loss.backward().unwrap();
    let (dx, dw) = (numbers(grads.get(&xt).unwrap()), numbers(grads.get(&wt).unwrap()));
    Case { x, w: weight, dy, y: numbers(&y), dx, dw }
}

fn geometry(h: usize, w: usize, kernel: usize) -> Geometry {
    if kernel == 3 { Geometry::conv3x3(h, w) } else { Geometry::pointwise(h * w) }
}

#[test]
fn convolutions_and_gradients_equal_plain_candle() {
    let mut rng = Rng::new(1);
    for (h, w) in BOARDS {
        for (inputs, outputs) in CHANNELS {
            for (n, kernel) in [(1, 3), (5, 3), (5, 1)] {
                let case = oracle(h, w, kernel, n, inputs, outputs, &mut rng);
                let geometry = geometry(h, w, kernel);
                for isa in Isa::available() {
                    let what = format!("{isa:?} {h}x{w} {inputs}->{outputs} kernel {kernel} batch {n}");
                    let packed = Packing::forward(isa, &geometry, inputs, outputs, &case.w);
                    let mut y = vec![f32::NAN; case.y.len()];
                    let rows = Rows { data: &case.x, stride: inputs };
                    packed.apply(&geometry, n, rows, Epilogue::default(), &mut y);
                    assert_close(&what, &y, &case.y, 2e-5);
                    let backward = Backward {
                        isa,
                        geometry: &geometry,
                        inputs,
                        outputs,
                        weight: &case.w,
                        x: &case.x,
                        want_input: true,
                    };
                    let result = backward.run(|boards, stride, dz| {
                        let dy = &case.dy[boards.start * h * w * outputs..boards.end * h * w * outputs];
                        for (dz, dy) in dz.chunks_exact_mut(stride).zip(dy.chunks_exact(outputs)) {
                            dz[..outputs].copy_from_slice(dy);
                        }
                    });
                    assert_close(&format!("{what} dx"), &result.input.unwrap(), &case.dx, 2e-5);
                    assert_close(&format!("{what} dw"), &result.weight, &case.dw, 2e-5);
                }
            }
        }
    }
}

#[test]
fn many_boards_fill_several_groups_and_chunks() {
    let mut rng = Rng::new(2);
    for (h, w, n) in [(3, 3, 131), (6, 7, 40), (8, 8, 37)] {
        let case = oracle(h, w, 3, n, 5, 7, &mut rng);
        let geometry = geometry(h, w, 3);
        let backward = Backward {
            isa: Isa::best(),
            geometry: &geometry,
            inputs: 5,
            outputs: 7,
            weight: &case.w,
            x: &case.x,
            want_input: true,
        };
        let result = backward.run(|boards, stride, dz| {
            for (dz, dy) in dz.chunks_exact_mut(stride).zip(case.dy[boards.start * h * w * 7..].chunks_exact(7)) {
                dz[..7].copy_from_slice(dy);
            }
        });
        assert_close("dx", &result.input.unwrap(), &case.dx, 2e-5);
        assert_close("dw", &result.weight, &case.dw, 2e-5);
    }
}

#[test]
fn epilogue_adds_and_clips() {
    let mut rng = Rng::new(3);
    let case = oracle(6, 7, 3, 2, 9, 35, &mut rng);
    let (bias, residual) = (random(&mut rng, 35), random(&mut rng, case.y.len()));
    for isa in Isa::available() {
        let packed = Packing::forward(isa, &Geometry::conv3x3(6, 7), 9, 35, &case.w);
        let mut y = vec![0.0; case.y.len()];
        let epilogue = Epilogue { bias: Some(&bias), residual: Some(&residual), relu: true };
        packed.apply(&Geometry::conv3x3(6, 7), 2, Rows { data: &case.x, stride: 9 }, epilogue, &mut y);
        let expected: Vec<f32> =
            case.y.iter().enumerate().map(|(i, y)| (y + bias[i % 35] + residual[i]).max(0.0)).collect();
        assert_close("epilogue", &y, &expected, 2e-5);
        assert!(y.contains(&0.0));
    }
}

#[test]
fn a_row_is_the_same_bits_wherever_it_sits() {
    let mut rng = Rng::new(4);
    let geometry = Geometry::conv3x3(3, 3);
    let (x, w) = (random(&mut rng, 10 * 9 * 4), random(&mut rng, 40 * 4 * 9));
    for isa in Isa::available() {
        let packed = Packing::forward(isa, &geometry, 4, 40, &w);
        let run = |x: &[f32]| {
            let n = x.len() / 36;
            let mut y = vec![0.0; n * 9 * 40];
            packed.apply(&geometry, n, Rows { data: x, stride: 4 }, Epilogue::default(), &mut y);
            y
        };
        let all = run(&x);
        for (i, x) in x.chunks_exact(36).enumerate() {
            let alone = run(x);
            assert!(alone.iter().zip(&all[i * 360..]).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}

#[test]
fn nan_is_not_clipped_away() {
    assert!(at_least(f32::NAN, 0.0).is_nan());
    assert_eq!((at_least(-1.0, 0.0), at_least(2.0, 0.0)), (0.0, 2.0));
}

#[test]
fn statistics_do_not_lose_a_small_spread_on_a_large_mean() {
    let mut rng = Rng::new(5);
    let data: Vec<f32> = (0..4096).map(|_| 1000.0 + rng.normal() as f32).collect();
    let groups: Vec<GroupStats> = data.chunks(300).map(|g| GroupStats::of(g, 1)).collect();
    let stats = GroupStats::merge(&groups, 1, 0.0);
    let mean = data.iter().map(|x| f64::from(*x)).sum::<f64>() / 4096.0;
    let var = data.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / 4096.0;
    assert!((f64::from(stats.mean[0]) - mean).abs() < 1e-3);
    assert!((f64::from(stats.var[0]) / var - 1.0).abs() < 1e-3, "{} {var}", stats.var[0]);
}
