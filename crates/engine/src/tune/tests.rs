use games::{Chess, Game, Outcome, Rng};
use shakmaty::{Color, Role};

use super::newton::{chance, loss, slope, solve};
use super::samples::Tally;
use super::{GamesError, SCALE, fit, fit_values, samples, write_source};
use crate::board::Board;
use crate::evaluate::{PawnCache, evaluate};
use crate::features::Features;
use crate::taper::Taper;
use crate::testing::random_positions;
use crate::weights::{GROUPS, TERMS, VALUES};

/// The fit moves the numbers that the engine plays by: terms times values are its evaluation.
#[test]
fn the_sum_of_terms_is_the_evaluation() {
    let (mut cache, mut compared) = (PawnCache::new(), 0);
    random_positions(3, |game, _| {
        let board = Board::from(game.position());
        let (tally, whole) = Tally::of(&board);
        if whole {
            let sum = tally.0.iter().zip(&VALUES).fold(Taper::ZERO, |sum, (times, value)| sum + *value * *times);
            let white = sum.at(board.phase());
            let mover = if board.turn().is_white() { white } else { -white };
            assert_eq!(evaluate(&board, &Features::default(), &mut cache), mover, "{}", game.fen());
            compared += 1;
        }
    });
    assert!(compared > 1000, "{compared}");
    assert_eq!(GROUPS.iter().map(|(_, len)| len).sum::<usize>(), TERMS);
}

#[test]
fn a_slope_and_a_system_of_equations_are_solved() {
    let pairs: Vec<(f64, f64)> = (-50..50).map(|x| (f64::from(x), chance(0.03 * f64::from(x)))).collect();
    assert!((slope(&pairs) - 0.03).abs() < 1e-9);
    let mut rng = Rng::new(1);
    let n = 12;
    let random: Vec<f64> = (0..n * n).map(|_| rng.below(2000) as f64 / 1000.0 - 1.0).collect();
    let at = |i: usize, j: usize| (0..n).map(|k| random[i * n + k] * random[j * n + k]).sum::<f64>();
    let matrix: Vec<f64> = (0..n * n).map(|k| at(k / n, k % n) + if k / n == k % n { 0.5 } else { 0.0 }).collect();
    let expected: Vec<f64> = (0..n).map(|i| i as f64 - 4.5).collect();
    let right = (0..n).map(|i| (0..n).map(|j| matrix[i * n + j] * expected[j]).sum()).collect();
    let found = solve(&mut matrix.clone(), right);
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
}

/// Games of random moves whose teacher counts pieces, a thing that the terms can say.
#[test]
fn a_teacher_that_counts_pieces_is_understood() {
    const WORTH: [(Role, i32); 5] =
        [(Role::Pawn, 90), (Role::Knight, 400), (Role::Bishop, 250), (Role::Rook, 450), (Role::Queen, 700)];
    let mut lines = String::new();
    for seed in 0..400 {
        let (mut rng, mut game, mut moves) = (Rng::new(seed), Chess::start(), Vec::new());
        let (mut played, mut scores, mut white) = (Vec::new(), Vec::new(), 0);
        while played.len() < 100 && game.generate(&mut moves) == Outcome::Ongoing {
            let board = Board::from(game.position());
            let count = |color, role| board.of(color, role).count() as i32;
            let less = |role| count(Color::White, role) - count(Color::Black, role);
            white = WORTH.into_iter().map(|(role, worth)| worth * less(role)).sum();
            scores.push(if board.turn().is_white() { white } else { -white }.to_string());
            let m = moves[rng.below(moves.len())];
            played.push(m.0.to_string());
            game.play(m);
        }
        let result = if white > 250 {
            1
        } else if white < -250 {
            -1
        } else {
            0
        };
        let best = vec!["-"; played.len()].join(" ");
        lines += &format!("{result};;4;{};{};{best}\n", played.join(" "), scores.join(" "));
    }
    let samples = samples::read(lines.as_bytes(), 1.0).unwrap();
    let mut log = Vec::new();
    let values = fit_values(&samples, &mut log).unwrap();
    // The least that any prediction can reach.
    let entropy = |p: f64| -(p * p.ln() + (1.0 - p) * (1.0 - p).ln());
    let least = samples.iter().map(|s| entropy(s.target)).sum::<f64>() / samples.len() as f64;
    let (after, without) = (loss(&samples, &values, SCALE), loss(&samples, &vec![0.0; 2 * TERMS], SCALE));
    assert!(after - least < 0.1 * (without - least), "{least} {after} {without}");
    let log = String::from_utf8(log).unwrap();
    assert!(log.lines().count() > 4 && log.contains("step 3: "), "{log}");

    let mut source = Vec::new();
    write_source(&values, &mut source).unwrap();
    let source = String::from_utf8(source).unwrap();
    assert!(source.contains("static VALUES: [Taper; TERMS] = [\n    // PLACE\n    t(0, 0), t(0, 0), t(0, 0),"));
    assert_eq!(source.matches("t(").count(), TERMS);
}

#[test]
fn a_line_that_is_no_game_is_named() {
    let error = |line: &str| {
        let text = format!("1;;0;1804;-;-\n{line}\n");
        match fit(text.as_bytes(), &mut Vec::new(), &mut Vec::new()) {
            Err(e @ (GamesError::Line { line: 2, .. } | GamesError::Fen { line: 2, .. })) => e.to_string(),
            other => panic!("{line}: {other:?}"),
        }
    };
    assert!(error("1;;0;1804").starts_with("line 2: 4 fields"));
    assert!(error("2;;0;1804;-;-").starts_with("line 2: a result of `2`"));
    assert!(error("1;;0;1804;-;-;").starts_with("line 2: 7 fields"));
    assert!(error("1;;0;1;-;-").starts_with("line 2: move 1 of ply 1 is not legal"));
    assert!(error("1;;0;1804 x;- -;- -").starts_with("line 2: `x` is no number"));
    assert!(error("1;;0;1804;- -;-").starts_with("line 2: 1 moves, 2 scores, 1 best moves"));
    assert!(error("1;8/8/8/8/8/8/8/8 w - - 0 1;0;1804;-;-").starts_with("line 2: "));
    let nothing = fit("1;;0;1804;-;-\n".as_bytes(), &mut Vec::new(), &mut Vec::new());
    assert!(matches!(nothing, Err(GamesError::Empty)));
}
