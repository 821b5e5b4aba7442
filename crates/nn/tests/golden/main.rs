//! The policy network's files, read by programs that others wrote, give what the engine makes of them: onnxruntime (from
//! Python, with an encoder on python-chess) and tract on `policy.onnx`, the engine's own inference and candle's operations
//! on `policy.bin`. Every side makes its planes from FEN by itself, so that the encoders are compared too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use candle_core::{Device, Tensor};
use engine::policy::Policy;
use games::{Game, Outcome, PolicyChess, Rng};
use nn::{PolicyCnn, Weights};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess};

/// Largest difference of two logits that counts as rounding.
const TOLERANCE: f32 = 5e-5;
const POSITIONS: usize = 200;
const ACTIONS: usize = 4096;

/// What a side says of every position.
type Logits = Vec<Vec<f32>>;

/// A network with logits of several units; biases and all.
fn network() -> PolicyCnn {
    let mut weights: Weights = PolicyCnn::new(11).unwrap().weights().unwrap();
    let mut rng = Rng::new(12);
    for (name, tensor) in &mut weights {
        for x in &mut tensor.data {
            match name.as_str() {
                "fc2.weight" => *x = rng.normal() as f32,
                _ if name.ends_with("bias") => *x = 0.1 * rng.normal() as f32,
                _ => {}
            }
        }
    }
    PolicyCnn::from_weights(&weights, "test").unwrap()
}

/// Positions of random games, and some with castling, promotion and capture in passing.
fn positions() -> Vec<String> {
    let mut fens: Vec<String> = [
        "r3k2r/pppq1ppp/2npbn2/2b1p3/2B1P3/2NPBN2/PPPQ1PPP/R3K2R w KQkq - 0 1",
        "r3k2r/pppq1ppp/2npbn2/2b1p3/2B1P3/2NPBN2/PPPQ1PPP/R3K2R b KQkq - 0 1",
        "8/P1k5/8/3pP3/8/8/5K1p/8 w - d6 0 1",
        "8/P1k5/8/8/3pP3/8/5K1p/8 b - e3 0 1",
    ]
    .map(str::to_owned)
    .into();
    let mut rng = Rng::new(13);
    while fens.len() < POSITIONS {
        let (mut game, mut moves) = (PolicyChess::start(), Vec::new());
        let plies = rng.below(120);
        while game.generate(&mut moves) == Outcome::Ongoing {
            if rng.below(plies + 1) == 0 {
                fens.push(game.fen());
                break;
            }
            game.play(moves[rng.below(moves.len())]);
        }
    }
    fens
}

/// What plays: the inference of `tabiya-ab`.
fn engine(bin: &[u8], fens: &[String]) -> Logits {
    let policy = Policy::from_bytes(bin).unwrap();
    let position =
        |fen: &String| -> Chess { fen.parse::<Fen>().unwrap().into_position(CastlingMode::Standard).unwrap() };
    fens.iter().map(|fen| policy.logits(&position(fen))).collect()
}

/// The legal moves by index.
fn legal(fen: &str) -> Vec<u16> {
    let mut indices = Vec::new();
    PolicyChess::from_fen(fen).unwrap().legal_indices(&mut indices);
    indices
}

fn best(logits: &[f32], legal: &[u16]) -> u16 {
    *legal.iter().max_by(|a, b| logits[usize::from(**a)].total_cmp(&logits[usize::from(**b)])).unwrap()
}

/// The first thing in which two sides differ.
fn difference(fens: &[String], a: &Logits, b: &Logits) -> Option<String> {
    assert!(a.len() == fens.len() && b.len() == fens.len());
    for (fen, (a, b)) in fens.iter().zip(a.iter().zip(b)) {
        assert!(a.len() == ACTIONS && b.len() == ACTIONS);
        let worst = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        let (mine, other) = (best(a, &legal(fen)), best(b, &legal(fen)));
        if worst > TOLERANCE || !worst.is_finite() || mine != other {
            return Some(format!("{fen}: logits differ by {worst}, first moves are {mine} and {other}"));
        }
    }
    None
}

/// Planes from the encoder that training uses, `[13][8][8]`.
fn encoded(fen: &str) -> Vec<f32> {
    PolicyChess::from_fen(fen).unwrap().planes()
}

/// Planes from nothing but the text.
fn spelled(fen: &str) -> Vec<f32> {
    let (mut planes, mut fields) = (vec![0.0; 13 * 64], fen.split(' '));
    for (row, text) in fields.next().unwrap().split('/').enumerate() {
        let mut file = 0;
        for c in text.chars() {
            match c.to_digit(10) {
                Some(empty) => file += empty as usize,
                None => {
                    planes["PNBRQKpnbrqk".find(c).unwrap() * 64 + row * 8 + file] = 1.0;
                    file += 1;
                }
            }
        }
    }
    if fields.next() == Some("b") {
        planes[12 * 64..].fill(1.0);
    }
    planes
}

/// A plane with its ranks in the other order.
fn upside_down(plane: &mut [f32]) {
    (0..32).for_each(|i| plane.swap(i, i ^ 56));
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn rows(all: Vec<f32>) -> Logits {
    all.chunks_exact(ACTIONS).map(<[f32]>::to_vec).collect()
}

/// onnxruntime and python-chess; also the likeliest legal moves by python-chess' own list.
fn onnxruntime(onnx: &[u8], fens: &[String]) -> (Logits, Vec<u16>) {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let venv = manifest.join("../../.venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    std::fs::write(file("policy.onnx"), onnx).unwrap();
    std::fs::write(file("fens"), fens.join("\n")).unwrap();
    let mut command = Command::new(venv);
    command.arg(manifest.join("tests/golden/reference.py")).args(["policy.onnx", "fens", "logits"].map(file));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let moves = String::from_utf8(out.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    (rows(floats(&std::fs::read(file("logits")).unwrap())), moves)
}

/// tract, in a program of its own (see its Cargo.toml), which is compiled when it is first needed.
fn tract(onnx: &[u8], fens: &[String]) -> Logits {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let planes = fens.iter().flat_map(|fen| spelled(fen)).flat_map(f32::to_le_bytes);
    std::fs::write(file("policy.onnx"), onnx).unwrap();
    std::fs::write(file("planes"), planes.collect::<Vec<u8>>()).unwrap();
    // target/release/deps/golden-HASH
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("golden-tract");
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tract/Cargo.toml");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(target).arg("--").args(["policy.onnx", "planes", "logits"].map(file));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    rows(floats(&std::fs::read(file("logits")).unwrap()))
}

/// The tensors of `policy.bin` by name, in the order and with the shapes of its description.
fn read_bin(bin: &[u8]) -> BTreeMap<&'static str, (Vec<usize>, Vec<f32>)> {
    let mut numbers = floats(bin).into_iter();
    let layout: [(&str, &[usize]); 8] = [
        ("c1w", &[16, 13, 3, 3]),
        ("c1b", &[16]),
        ("c2w", &[16, 16, 3, 3]),
        ("c2b", &[16]),
        ("f1w", &[64, 1024]),
        ("f1b", &[64]),
        ("f2w", &[4096, 64]),
        ("f2b", &[4096]),
    ];
    let read = |(name, shape): (&'static str, &[usize])| {
        let data: Vec<f32> = numbers.by_ref().take(shape.iter().product()).collect();
        (name, (shape.to_vec(), data))
    };
    let tensors = layout.map(read).into();
    assert_eq!(numbers.next(), None);
    tensors
}

/// candle's own operations.
fn candle(bin: &[u8], fens: &[String], planes: impl Fn(&str) -> Vec<f32>) -> Logits {
    let tensors: BTreeMap<_, _> = read_bin(bin)
        .into_iter()
        .map(|(name, (shape, data))| (name, Tensor::from_vec(data, shape, &Device::Cpu).unwrap()))
        .collect();
    let conv = |x: &Tensor, w: &str, b: &str| {
        let bias = tensors[b].reshape((1, 16, 1, 1)).unwrap();
        x.conv2d(&tensors[w], 1, 1, 1, 1).unwrap().broadcast_add(&bias).unwrap().relu().unwrap()
    };
    let linear =
        |x: &Tensor, w: &str, b: &str| x.matmul(&tensors[w].t().unwrap()).unwrap().broadcast_add(&tensors[b]).unwrap();
    let x: Vec<f32> = fens.iter().flat_map(|fen| planes(fen)).collect();
    let x = Tensor::from_vec(x, (fens.len(), 13, 8, 8), &Device::Cpu).unwrap();
    let x = conv(&conv(&x, "c1w", "c1b"), "c2w", "c2b");
    let hidden = linear(&x.flatten_from(1).unwrap(), "f1w", "f1b").relu().unwrap();
    linear(&hidden, "f2w", "f2b").to_vec2().unwrap()
}

/// A copy of `policy.bin` in which one tensor, `from` to `to` in numbers, is another view of the same data.
fn rearranged(bin: &[u8], tensor: &str, source: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut start = 0;
    for name in ["c1w", "c1b", "c2w", "c2b", "f1w", "f1b", "f2w", "f2b"] {
        let tensors = read_bin(bin);
        let len = tensors[name].1.len();
        if name == tensor {
            let mut out = bin.to_vec();
            for i in 0..len {
                let (to, from) = ((start + i) * 4, (start + source(i)) * 4);
                out[to..to + 4].copy_from_slice(&bin[from..from + 4]);
            }
            return out;
        }
        start += len;
    }
    panic!("no tensor {tensor}")
}

#[test]
fn runtimes_of_others_agree_with_the_files() {
    let (network, fens) = (network(), positions());
    let (bin, onnx) = (network.to_bin().unwrap(), network.to_onnx().unwrap());
    assert_eq!((fens.len(), bin.len()), (POSITIONS, 1_344_192));
    let (reference, first) = onnxruntime(&onnx, &fens);
    let spread = |row: &Vec<f32>| row.iter().fold(0.0f32, |a, x| a.max(x.abs()));
    assert!(reference.iter().all(|row| spread(row) > 2.0), "logits too small to tell");
    for (fen, (row, first)) in fens.iter().zip(reference.iter().zip(first)) {
        assert_eq!(best(row, &legal(fen)), first, "{fen}");
    }
    assert_eq!(difference(&fens, &engine(&bin, &fens), &reference), None, "engine");
    assert_eq!(difference(&fens, &tract(&onnx, &fens), &reference), None, "tract");
    assert_eq!(difference(&fens, &candle(&bin, &fens, encoded), &reference), None, "candle");
}

/// Each way in which a reader could misunderstand the files or the planes is seen.
#[test]
fn every_misreading_is_noticed() {
    let (network, fens) = (network(), positions());
    let bin = network.to_bin().unwrap();
    let good = engine(&bin, &fens);
    for planes in [encoded, spelled] {
        assert_eq!(difference(&fens, &candle(&bin, &fens, planes), &good), None);
    }
    let noticed = |what: &str, other: &Logits| assert!(difference(&fens, other, &good).is_some(), "{what}");

    let planes = |what: &str, change: fn(&mut Vec<f32>)| {
        let wrong = |fen: &str| {
            let mut planes = encoded(fen);
            change(&mut planes);
            planes
        };
        noticed(what, &candle(&bin, &fens, wrong));
    };
    for plane in 0..12 {
        // Plane after plane against the next: as if the two pieces were taken for each other.
        let wrong = |fen: &str| {
            let mut planes = encoded(fen);
            let (a, b) = planes.split_at_mut((plane + 1) * 64);
            a[plane * 64..].swap_with_slice(&mut b[..64]);
            planes
        };
        noticed(&format!("planes {plane} and {}", plane + 1), &candle(&bin, &fens, wrong));
    }
    planes("the side to move", |p| p[12 * 64..].fill(0.0));
    planes("ranks upside down", |p| p.chunks_exact_mut(64).for_each(upside_down));
    planes("the mover's frame", |p| {
        if p[12 * 64] == 1.0 {
            let (white, black) = p[..12 * 64].split_at_mut(6 * 64);
            white.swap_with_slice(black);
            p[..12 * 64].chunks_exact_mut(64).for_each(upside_down);
        }
    });
    planes("files from right to left", |p| p.chunks_exact_mut(8).for_each(<[f32]>::reverse));
    planes("rows for files", |p| {
        let copy = p.clone();
        (0..13 * 64).for_each(|i| p[i] = copy[i / 64 * 64 + i % 8 * 8 + i % 64 / 8]);
    });

    let file = |what: &str, tensor: &str, source: &dyn Fn(usize) -> usize| {
        noticed(what, &engine(&rearranged(&bin, tensor, source), &fens));
    };
    let kernel = |i: usize| i / 9 * 9 + i % 3 * 3 + i % 9 / 3;
    let turned = |i: usize| i / 9 * 9 + 8 - i % 9;
    file("kernel columns for rows", "c1w", &kernel);
    file("kernels turned (true convolution)", "c2w", &turned);
    let channels = |i: usize| (i / 9 % 16 * 16 + i / 144) * 9 + i % 9;
    file("inputs for outputs", "c2w", &channels);
    let transposed = |i: usize| i % 1024 * 64 + i / 1024;
    file("a linear layer transposed", "f1w", &transposed);
    let flattened = |i: usize| i / 1024 * 1024 + i % 16 * 64 + i % 1024 / 16;
    file("flattened with the channel last", "f1w", &flattened);
    let swapped = |i: usize| (i / 64 % 64 * 64 + i / 4096) * 64 + i % 64;
    file("to * 64 + from", "f2w", &swapped);
    file("the bias of to * 64 + from", "f2b", &|i| i % 64 * 64 + i / 64);
    file("one bias moved", "c1b", &|i| (i + 1) % 16);
}
