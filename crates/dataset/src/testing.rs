//! Games for the tests: random but legal, with scores that drift as an engine's do.

use std::path::{Path, PathBuf};

use games::{Chess, Connect4, Game, Move, Outcome, Rng, Score, TicTacToe};
use pipeline::Store;
use serde_json::json;

use crate::{GameRecord, Meta, write_shard};

/// A random game as a teacher's corpus holds it: scores, a better move now and then, no visits.
pub(crate) fn random_game<G: Game>(id: u64, max_plies: usize, opening: usize) -> GameRecord {
    let mut rng = Rng::from_parts(&[7, Rng::part(G::NAME), id]);
    let mut record = GameRecord::new(G::NAME, id);
    (record.white, record.black) = ("Engine 1 nodes=100".to_owned(), format!("Engine {}", 2 + id % 2));
    record.opening = (!id.is_multiple_of(3)).then(|| format!("Opening {}", id % 5));
    let mut state = G::start();
    let (mut legal, mut advantage) = (Vec::new(), 0.0);
    while record.plies() < max_plies {
        if let Outcome::Decided { result, reason } = state.generate(&mut legal) {
            (record.result, record.termination) = (Some(result), reason);
            break;
        }
        // Engines do not choose evenly: most moves come from a few good ones.
        let choice = (rng.unit().powi(3) * legal.len() as f64) as usize;
        let played = legal[(choice * 7 + record.plies()) % legal.len()];
        advantage += rng.normal() * 20.0;
        let sign = if record.plies().is_multiple_of(2) { 1.0 } else { -1.0 };
        let best = rng.chance(0.15).then(|| legal[rng.below(legal.len())]);
        record.best.push(best.filter(|m| *m != played));
        record.score.push((record.plies() >= opening).then(|| Score::Cp((advantage * sign) as i32).to_i16()));
        record.moves.push(played);
        state.play(played);
    }
    record.opening_plies = opening.min(record.plies()) as u16;
    record
}

pub(crate) fn chess_game(id: u64, max_plies: usize) -> GameRecord {
    random_game::<Chess>(id, max_plies, 4)
}

pub(crate) fn connect4_game(id: u64) -> GameRecord {
    random_game::<Connect4>(id, 42, 1)
}

pub(crate) fn tictactoe_game(id: u64) -> GameRecord {
    random_game::<TicTacToe>(id, 9, 0)
}

/// A game as self-play writes it: visits and values at most plies, and no score.
pub(crate) fn selfplay_game(id: u64, max_plies: usize) -> GameRecord {
    let mut record = chess_game(id, max_plies);
    let mut rng = Rng::new(id);
    record.score = vec![None; record.plies()];
    record.best = vec![None; record.plies()];
    record.generation = 3;
    (record.phase, record.rung) = (Some("climb".to_owned()), Some(-2));
    let mut state = Chess::start();
    let mut values = Vec::new();
    for &played in &record.moves {
        let legal = state.legal_moves();
        let visited = legal.iter().map(|m| (*m, rng.below(50) as u32)).collect::<Vec<(Move, u32)>>();
        record.visits.push(rng.chance(0.8).then_some(visited));
        values.push(rng.chance(0.9).then(|| (rng.unit() * 2.0 - 1.0) as f32));
        state.play(played);
    }
    record.reward = Some(values.iter().map(|v| v.unwrap_or(0.0) / 3.0).collect());
    record.value = Some(values);
    record
}

pub(crate) fn meta(dataset: &str) -> Meta {
    Meta {
        dataset: dataset.to_owned(),
        settings: json!({"nodes": 100, "book": null, "mistakes": {"rate": 0.1}}),
        seed: 42,
        engine: Some("Engine 1".to_owned()),
        reproducible: true,
    }
}

/// Writes `shards` shards of `games` games each into a folder.
pub(crate) fn fill(
    dir: &Path,
    dataset: &str,
    shards: u32,
    games: u64,
    game: impl Fn(u64) -> GameRecord,
) -> Vec<PathBuf> {
    let store = Store::open(dir).unwrap();
    for shard in 0..shards {
        let ids = u64::from(shard) * games..u64::from(shard + 1) * games;
        let records: Vec<GameRecord> = ids.map(&game).collect();
        write_shard(&store, shard, &records, &meta(dataset)).unwrap();
    }
    vec![dir.to_owned()]
}
