//! The pass over all games that needs their moves in order.

use std::hash::{DefaultHasher, Hash, Hasher};

use games::{Chess, Color, Connect4, Game, Score, TicTacToe, WhiteValue};
use rayon::prelude::*;

use super::distinct::Distinct;
use super::{Calibration, Count};
use crate::sample::position_key;
use crate::{Dataset, DatasetError, GameRecord};

/// Lower bounds of the buckets of scores, in centipawns; mates lie beyond +-30000.
const BUCKETS: [i32; 15] =
    [-32_000, -30_000, -1_000, -600, -400, -200, -100, -30, 30, 100, 200, 400, 600, 1_000, 30_001];
const MATE: i32 = 32_001;

pub(super) struct Pass {
    pub(super) played_positions: u64,
    pub(super) counted_positions: u64,
    pub(super) calibration: Vec<Calibration>,
    pub(super) distinct_games: Count,
    pub(super) distinct_positions: Count,
    pub(super) bad_games: u64,
}

/// What one game adds.
#[derive(Default)]
struct Seen {
    played: u64,
    game: u64,
    positions: Vec<u64>,
    /// Positions and sum of results, by bucket.
    buckets: [(u64, f64); BUCKETS.len()],
    bad: bool,
}

pub(super) fn pass(dataset: &Dataset) -> Result<Pass, DatasetError> {
    let (mut games, mut positions) = (Distinct::new(), Distinct::new());
    let (mut played_positions, mut counted_positions, mut bad_games) = (0, 0, 0);
    let mut buckets = [(0, 0.0); BUCKETS.len()];
    for shard in 0..dataset.shards().len() {
        let seen: Vec<Seen> = dataset.read_shard(shard)?.par_iter().map(look).collect();
        for one in seen {
            games.insert(one.game);
            one.positions.iter().for_each(|key| positions.insert(*key));
            played_positions += one.played;
            counted_positions += one.positions.len() as u64;
            bad_games += u64::from(one.bad);
            for (sum, add) in buckets.iter_mut().zip(one.buckets) {
                *sum = (sum.0 + add.0, sum.1 + add.1);
            }
        }
    }
    let bounds = BUCKETS.iter().copied().zip(BUCKETS[1..].iter().copied().chain([MATE]));
    let calibration = bounds
        .zip(buckets)
        .filter(|(_, (n, _))| *n > 0)
        .map(|((from, to), (n, sum))| Calibration { from, to, positions: n, mean_result: sum / n as f64 })
        .collect();
    Ok(Pass {
        played_positions,
        counted_positions,
        calibration,
        distinct_games: games.count(),
        distinct_positions: positions.count(),
        bad_games,
    })
}

fn look(record: &GameRecord) -> Seen {
    let mut seen = Seen {
        played: (record.plies() - usize::from(record.opening_plies).min(record.plies())) as u64,
        ..Seen::default()
    };
    let mut hasher = DefaultHasher::new();
    (&record.game, &record.start_fen, &record.moves).hash(&mut hasher);
    seen.game = hasher.finish();
    let counted = match record.game.as_str() {
        Chess::NAME => walk::<Chess>(record, &mut seen),
        Connect4::NAME => walk::<Connect4>(record, &mut seen),
        TicTacToe::NAME => walk::<TicTacToe>(record, &mut seen),
        _ => Ok(()),
    };
    seen.bad = counted.is_err();
    seen
}

fn walk<G: Game>(record: &GameRecord, seen: &mut Seen) -> Result<(), DatasetError> {
    record.validate()?;
    let mut state: G = record.start()?;
    for (ply, &played) in record.moves.iter().enumerate() {
        if !state.is_legal(played) {
            return Err(record.illegal(&state, ply, played));
        }
        if ply >= usize::from(record.opening_plies) {
            seen.positions.push(position_key(&state.pack()));
            calibrate(record, ply, state.turn(), seen);
        }
        state.play(played);
    }
    Ok(())
}

fn calibrate(record: &GameRecord, ply: usize, turn: Color, seen: &mut Seen) {
    let (Some(score), Some(result)) = (record.score[ply], record.result) else { return };
    let at = match Score::from_i16(score) {
        Score::Mate(n) if n > 0 => BUCKETS.len() - 1,
        Score::Mate(_) => 0,
        Score::Cp(cp) => BUCKETS[1..BUCKETS.len() - 1].partition_point(|b| *b <= cp),
    };
    seen.buckets[at].0 += 1;
    seen.buckets[at].1 += f64::from(WhiteValue::from(result).mover(turn).0);
}
