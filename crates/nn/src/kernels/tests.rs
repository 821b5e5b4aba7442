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
                    let (dx, dw) = gradients(isa, &geometry, n, inputs, outputs, &case);
                    assert_close(&format!("{what} dx"), &dx, &case.dx, 2e-5);
                    assert_close(&format!("{what} dw"), &dw, &case.dw, 2e-5);
                }
            }
        }
    }
}

/// The gradients of input and weights, the weights' in parts of three boards and these in two goes.
fn gradients(
    isa: Isa,
    geometry: &Geometry,
    n: usize,
    inputs: usize,
    outputs: usize,
    case: &Case,
) -> (Vec<f32>, Vec<f32>) {
    let (s, stride) = (geometry.squares(), WeightGradient::stride(isa, outputs));
    let mut dz = vec![f32::NAN; n * s * stride];
    for (dz, dy) in dz.chunks_exact_mut(stride).zip(case.dy.chunks_exact(outputs)) {
        dz[..outputs].copy_from_slice(dy);
    }
    let mut parts = Vec::new();
    for (x, dz) in case.x.chunks(3 * s * inputs).zip(dz.chunks(3 * s * stride)) {
        let mut part = WeightGradient::new(isa, geometry, inputs, outputs);
        for (x, dz) in x.chunks(2 * s * inputs).zip(dz.chunks(2 * s * stride)) {
            part.add(geometry, x.len() / (s * inputs), x, dz);
        }
        parts.push(part);
    }
    let mut dw = vec![f32::NAN; case.dw.len()];
    merge(isa, parts, geometry.taps(), inputs, outputs, &mut dw);
    let mut dx = vec![f32::NAN; case.dx.len()];
    let flipped = Packing::backward(isa, geometry, inputs, outputs, &case.w);
    flipped.apply(geometry, n, Rows { data: &dz, stride }, Epilogue::default(), &mut dx);
    (dx, dw)
}

#[test]
fn many_boards_fill_several_groups() {
    let mut rng = Rng::new(2);
    for (h, w, n) in [(3, 3, 131), (6, 7, 40), (8, 8, 37)] {
        for (inputs, outputs) in [(5, 7), (17, 35)] {
            let case = oracle(h, w, 3, n, inputs, outputs, &mut rng);
            for isa in Isa::available() {
                let geometry = geometry(h, w, 3);
                let mut y = vec![f32::NAN; case.y.len()];
                let rows = Rows { data: &case.x, stride: inputs };
                let packed = Packing::forward(isa, &geometry, inputs, outputs, &case.w);
                packed.apply(&geometry, n, rows, Epilogue::default(), &mut y);
                assert_close("y", &y, &case.y, 2e-5);
                let (dx, dw) = gradients(isa, &geometry, n, inputs, outputs, &case);
                assert_close("dx", &dx, &case.dx, 2e-5);
                assert_close("dw", &dw, &case.dw, 2e-5);
            }
        }
    }
}

/// By tiles the error is a few times that of a direct sum in f32, and stays far below what a network notices.
#[test]
fn tiles_round_little_over_many_channels() {
    let mut rng = Rng::new(7);
    let case = oracle(8, 8, 3, 2, 128, 128, &mut rng);
    let geometry = Geometry::conv3x3(8, 8);
    for isa in Isa::available() {
        let mut y = vec![0.0; case.y.len()];
        let packed = Packing::forward(isa, &geometry, 128, 128, &case.w);
        packed.apply(&geometry, 2, Rows { data: &case.x, stride: 128 }, Epilogue::default(), &mut y);
        let square = |x: f32| f64::from(x) * f64::from(x);
        let error: f64 = y.iter().zip(&case.y).map(|(a, b)| square(a - b)).sum();
        let size: f64 = case.y.iter().map(|y| square(*y)).sum();
        assert!((error / size).sqrt() < 3e-6, "{isa:?}: {}", (error / size).sqrt());
    }
}

#[test]
fn epilogue_adds_and_clips() {
    let mut rng = Rng::new(3);
    // Directly, and by tiles.
    for inputs in [9, 20] {
        let case = oracle(6, 7, 3, 2, inputs, 35, &mut rng);
        let (bias, residual) = (random(&mut rng, 35), random(&mut rng, case.y.len()));
        for isa in Isa::available() {
            let packed = Packing::forward(isa, &Geometry::conv3x3(6, 7), inputs, 35, &case.w);
            let mut y = vec![0.0; case.y.len()];
            let epilogue = Epilogue { bias: Some(&bias), residual: Some(&residual), relu: true };
            packed.apply(&Geometry::conv3x3(6, 7), 2, Rows { data: &case.x, stride: inputs }, epilogue, &mut y);
            let expected: Vec<f32> =
                case.y.iter().enumerate().map(|(i, y)| (y + bias[i % 35] + residual[i]).max(0.0)).collect();
            assert_close("epilogue", &y, &expected, 2e-5);
            assert!(y.contains(&0.0));
        }
    }
}

#[test]
fn a_board_is_the_same_bits_wherever_it_sits() {
    let mut rng = Rng::new(4);
    for ((h, w), inputs) in [((3, 3), 4), ((6, 7), 20), ((8, 8), 33)] {
        let (geometry, s, n) = (Geometry::conv3x3(h, w), h * w, 21);
        let (x, w) = (random(&mut rng, n * s * inputs), random(&mut rng, 40 * inputs * 9));
        for isa in Isa::available() {
            let packed = Packing::forward(isa, &geometry, inputs, 40, &w);
            let run = |x: &[f32]| {
                let n = x.len() / (s * inputs);
                let mut y = vec![0.0; n * s * 40];
                packed.apply(&geometry, n, Rows { data: x, stride: inputs }, Epilogue::default(), &mut y);
                y
            };
            let all = run(&x);
            for count in [1, 2, 5] {
                for (x, y) in x.chunks_exact(count * s * inputs).zip(all.chunks_exact(count * s * 40)) {
                    assert!(run(x).iter().zip(y).all(|(a, b)| a.to_bits() == b.to_bits()));
                }
            }
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
    let groups: Vec<GroupStats> = data.chunks(300).map(|g| GroupStats::of(Isa::best(), g, 1)).collect();
    let stats = GroupStats::merge(&groups, &[1.0], &[0.0], 0.0);
    let mean = data.iter().map(|x| f64::from(*x)).sum::<f64>() / 4096.0;
    let var = data.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / 4096.0;
    assert!((f64::from(stats.mean[0]) - mean).abs() < 1e-3);
    assert!((f64::from(stats.var[0]) / var - 1.0).abs() < 1e-3, "{} {var}", stats.var[0]);
}

#[test]
fn loops_over_rows_equal_plain_ones() {
    let mut rng = Rng::new(6);
    for channels in [1, 3, 8, 20, 64, 77] {
        let (rows, stride) = (13, channels + 5);
        let len = rows * channels;
        let [x, y, z] = [(); 3].map(|()| random(&mut rng, len));
        let [a, b, c] = [(); 3].map(|()| random(&mut rng, channels));
        for isa in Isa::available() {
            let what = |name: &str| format!("{name} {isa:?} {channels}");
            let each = |f: &dyn Fn(usize, usize) -> f32| (0..len).map(|i| f(i, i % channels)).collect::<Vec<f32>>();
            let columns =
                |v: &[f32]| -> Vec<f32> { (0..channels).map(|c| v[c..].iter().step_by(channels).sum()).collect() };
            let by = Channelwise { scale: &a, shift: &b };
            let mut out = vec![f32::NAN; len];
            affine(isa, &x, by, Some(&y), true, &mut out);
            assert_close(&what("affine"), &out, &each(&|i, c| (x[i] * a[c] + b[c] + y[i]).max(0.0)), 1e-5);
            out.clone_from(&x);
            affine_in_place(isa, &mut out, by, None, false);
            assert_close(&what("in place"), &out, &each(&|i, c| x[i] * a[c] + b[c]), 1e-5);
            let mut sums = a.clone();
            column_sums(isa, &x, &mut sums);
            let expected: Vec<f32> = columns(&x).iter().zip(&a).map(|(s, a)| s + a).collect();
            assert_close(&what("sums"), &sums, &expected, 1e-5);
            for mask in [None, Some(y.as_slice())] {
                let masked = each(&|i, _| if mask.is_none_or(|y| y[i] > 0.0) { x[i] } else { 0.0 });
                let mut sums = NormSums::zeros(channels);
                masked_sums(isa, &x, mask, &z, &c, &mut out, &mut sums);
                assert_close(&what("mask"), &out, &masked, 0.0);
                assert_close(&what("plain"), &sums.plain, &columns(&masked), 1e-5);
                let products = each(&|i, column| masked[i] * (z[i] - c[column]));
                assert_close(&what("centred"), &sums.centred, &columns(&products), 1e-5);
            }
            let mut wide = vec![7.0; rows * stride];
            norm_gradient(isa, &x, &z, [&a, &b, &c], &mut wide, stride);
            let narrow: Vec<f32> = wide.chunks_exact(stride).flat_map(|row| row[..channels].to_vec()).collect();
            assert_close(&what("gradient"), &narrow, &each(&|i, k| a[k] * x[i] + b[k] * z[i] + c[k]), 1e-5);
            assert!(wide.chunks_exact(stride).all(|row| row[channels..].iter().all(|x| *x == 7.0)));
        }
    }
}
