use games::{Chess, Game, Rng};
use shakmaty::{Color, Position, Square};

use super::{FILE_SIZE, INPUTS, LABELS, PARAMETERS, Policy, PolicyError, Thoughts, planes};
use crate::board::Board;
use crate::policy::thoughts::SLOTS;
use crate::testing::{FENS, random_positions};

/// Small random weights.
fn weights(seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..PARAMETERS).map(|_| (rng.normal() * 0.1) as f32).collect()
}

fn bytes(weights: &[f32]) -> Vec<u8> {
    weights.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The network by its definition, in 64-bit floats, straight from the file's order.
fn reference(weights: &[f32], input: &[f32; INPUTS]) -> Vec<f64> {
    let mut rest = weights.iter().map(|w| f64::from(*w));
    let mut take = |n: usize| rest.by_ref().take(n).collect::<Vec<f64>>();
    let [c1w, c1b, c2w, c2b] = [16 * 13 * 9, 16, 16 * 16 * 9, 16].map(&mut take);
    let [f1w, f1b, f2w, f2b] = [64 * 1024, 64, 4096 * 64, 4096].map(&mut take);
    assert_eq!(rest.count(), 0);
    let convolution = |input: &[f64], channels: usize, w: &[f64], b: &[f64]| {
        let mut out = vec![0.0; 16 * 64];
        for (o, bias) in b.iter().enumerate() {
            for (row, column) in (0..8i32).flat_map(|r| (0..8i32).map(move |c| (r, c))) {
                let mut sum = *bias;
                for i in 0..channels {
                    for (ky, kx) in (0..3i32).flat_map(|y| (0..3i32).map(move |x| (y, x))) {
                        let (r, c) = (row + ky - 1, column + kx - 1);
                        if (0..8).contains(&r) && (0..8).contains(&c) {
                            sum += w[((o * channels + i) * 3 + ky as usize) * 3 + kx as usize]
                                * input[i * 64 + (r * 8 + c) as usize];
                        }
                    }
                }
                out[o * 64 + (row * 8 + column) as usize] = sum.max(0.0);
            }
        }
        out
    };
    let linear = |input: &[f64], w: &[f64], b: &[f64]| -> Vec<f64> {
        w.chunks(input.len()).zip(b).map(|(w, b)| b + w.iter().zip(input).map(|(w, x)| w * x).sum::<f64>()).collect()
    };
    let input: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
    let low = convolution(&input, 13, &c1w, &c1b);
    let high = convolution(&low, 16, &c2w, &c2b);
    let hidden: Vec<f64> = linear(&high, &f1w, &f1b).into_iter().map(|x| x.max(0.0)).collect();
    linear(&hidden, &f2w, &f2b)
}

/// Planes written out by hand, square by square.
fn planes_by_hand(position: &shakmaty::Chess) -> [f32; INPUTS] {
    let mut planes = [0.0; INPUTS];
    for row in 0..8u32 {
        for column in 0..8u32 {
            let square = Square::new((7 - row) * 8 + column);
            if let Some(piece) = position.board().piece_at(square) {
                let plane = "PNBRQKpnbrqk".find(piece.char()).unwrap();
                planes[plane * 64 + (row * 8 + column) as usize] = 1.0;
            }
            if position.turn() == Color::Black {
                planes[12 * 64 + (row * 8 + column) as usize] = 1.0;
            }
        }
    }
    planes
}

#[test]
fn planes_are_those_of_the_format() {
    for fen in FENS {
        let game = Chess::from_fen(fen).unwrap();
        assert_eq!(planes(game.position()), planes_by_hand(game.position()), "{fen}");
    }
    let start = planes(Chess::start().position());
    assert_eq!((start[0], start[6 * 8], start[5 * 64 + 60]), (0.0, 1.0, 1.0), "white pawns on row 6, king at row 7");
    assert_eq!(start[6 * 64 + 8], 1.0, "black pawns on row 1");
}

#[test]
fn the_fast_way_gives_the_logits_of_the_definition() {
    let weights = weights(1);
    let policy = Policy::from_bytes(&bytes(&weights)).unwrap();
    let mut compared = 0;
    let mut seen = 0;
    random_positions(1, |game, moves| {
        seen += 1;
        if seen % 12 != 0 {
            return;
        }
        let position = game.position();
        let expected = reference(&weights, &planes_by_hand(position));
        let logits = policy.logits(position);
        assert_eq!(logits.len(), LABELS);
        for (label, (fast, exact)) in logits.iter().zip(&expected).enumerate() {
            assert!((f64::from(*fast) - exact).abs() < 2e-5, "{label} in {}: {fast} {exact}", game.fen());
        }
        let thought = policy.consider_board(&Board::from(position));
        for m in moves {
            let label = usize::from(m.0 & 63) * 64 + usize::from(m.0 >> 6 & 63);
            assert_eq!(policy.logit_of(&thought, *m), logits[label]);
        }
        compared += 1;
    });
    assert!(compared > 50, "{compared}");
}

#[test]
fn what_was_thought_before_is_what_is_thought_now() {
    let [one, other] = [5, 6].map(|seed| Policy::from_bytes(&bytes(&weights(seed))).unwrap());
    let mut thoughts = Thoughts::default();
    let mut boards = Vec::new();
    random_positions(6, |game, _| boards.push(Board::from(game.position())));
    assert!(boards.len() > SLOTS);
    for policy in [&one, &other] {
        // Twice over more positions than the memory has room for: some are still there, some are not.
        for board in boards.iter().chain(boards.iter().rev()) {
            assert_eq!(thoughts.of(policy, board).0, policy.consider_board(board).0);
        }
        thoughts.clear();
    }
}

/// Every weight counts where the format puts it: a change of one is a change of what the definition says changes.
#[test]
fn no_part_of_the_file_is_left_unused() {
    let base = weights(2);
    let policy = Policy::from_bytes(&bytes(&base)).unwrap();
    let game = Chess::from_fen("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1").unwrap();
    let before = policy.logits(game.position());
    let mut rng = Rng::new(9);
    let mut at = 0;
    for size in super::SIZES {
        let mut changed = 0;
        for _ in 0..20 {
            let mut other = base.clone();
            other[at + rng.below(size)] += 0.5;
            let after = Policy::from_bytes(&bytes(&other)).unwrap().logits(game.position());
            let expected = reference(&other, &planes(game.position()));
            let worst = after.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(worst < 5e-5, "{worst}");
            changed += usize::from(after != before);
        }
        assert!(changed > 0, "the part at {at} makes no difference");
        at += size;
    }
}

#[test]
fn files_of_another_size_or_without_sense_are_refused_by_name() {
    assert_eq!((FILE_SIZE, PARAMETERS), (1_344_192, 336_048));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.bin");
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        Policy::load(&path).err().unwrap().to_string()
    };
    let good = bytes(&weights(3));
    for size in [0, 1, FILE_SIZE - 4, FILE_SIZE + 1] {
        let mut content = good.clone();
        content.resize(size, 0);
        let why = refused(&content);
        let told = [path.display().to_string(), size.to_string(), FILE_SIZE.to_string()];
        assert!(told.iter().all(|t| why.contains(t)), "{why}");
    }
    let mut nan = good.clone();
    nan[4000..4004].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(refused(&nan).contains("policy.bin holds an infinite or undefined weight"));
    std::fs::write(&path, &good).unwrap();
    assert!(Policy::load(&path).is_ok());
    let missing = Policy::load(&dir.path().join("none.bin")).err().unwrap();
    assert!(matches!(&missing, PolicyError::Read { .. }) && missing.to_string().contains("none.bin"), "{missing}");
    let unnamed = Policy::from_bytes(&[0; 10]).err().unwrap().to_string();
    assert!(unnamed.contains("the policy has 10 bytes"), "{unnamed}");
}

#[test]
fn a_move_is_labelled_by_its_squares_alone() {
    let policy = Policy::from_bytes(&bytes(&weights(4))).unwrap();
    let game = Chess::from_fen("3r3k/2P5/8/8/8/8/8/K7 w - - 0 1").unwrap();
    let thought = policy.consider(game.position());
    let logit = |text: &str| policy.logit_of(&thought, game.parse_move(text).unwrap());
    assert_eq!(logit("c7d8q"), logit("c7d8n"));
    assert_eq!(logit("c7c8r"), policy.logits(game.position())[50 * 64 + 58]);
    assert_ne!(logit("a1a2"), logit("a1b1"));
}
