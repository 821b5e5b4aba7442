//! Shards to batches, and training from them: rates and memory over corpora of any size.

use std::path::Path;
use std::time::Instant;

use dataset::{GameRecord, Loader, LoaderSpec, Meta};
use games::{Chess, Game, GameResult, Move, Outcome, Rng, Termination};
use nn::{Trainer, TrainerConfig};
use pipeline::{Stop, Store};
use rayon::prelude::*;
use tabiya::BoxError;
use training::{CorpusConfig, PretrainConfig};

use crate::network;
use crate::usage::{cpu_seconds, peak_mib};

/// Plies of a synthetic game: as long as an engine's game on the average.
const PLIES: (usize, usize) = (50, 140);

/// A corpus of random games in shards like those of the corpus stage. A shard depends on its number alone, so that
/// what is there stays, and a small corpus is the beginning of a large one.
pub(crate) fn synthetic(folder: &Path, positions: u64, stop: &Stop) -> Result<String, BoxError> {
    let start = Instant::now();
    let store = Store::open(folder)?;
    let games = CorpusConfig::default().games_per_shard;
    let shards = positions.div_ceil(games * (PLIES.0 + PLIES.1) as u64 / 2) as u32;
    let there = dataset::finished_shards(&store)?;
    let missing: Vec<u32> = (0..shards).filter(|shard| !there.contains_key(shard)).collect();
    let meta = Meta {
        dataset: "synthetic".to_owned(),
        settings: serde_json::json!({ "plies": PLIES }),
        seed: 0,
        engine: None,
        reproducible: true,
    };
    missing.par_iter().try_for_each(|&shard| -> Result<(), BoxError> {
        stop.check()?;
        let first = u64::from(shard) * games;
        let records: Vec<GameRecord> = (first..first + games).map(random_game).collect();
        dataset::write_shard(&store, shard, &records, &meta)?;
        Ok(())
    })?;
    let written = dataset::finished_shards(&store)?;
    let count = |f: fn(&dataset::Sidecar) -> u64| written.values().map(f).sum::<u64>();
    Ok(format!(
        "tabiya-synthetic: {} shards, {} positions, {} bytes, {} shards written in {:.1} s",
        written.len(),
        count(|s| s.positions),
        count(|s| s.bytes),
        missing.len(),
        start.elapsed().as_secs_f64()
    ))
}

/// A game of random moves, with the columns that a teacher's game has.
fn random_game(id: u64) -> GameRecord {
    let mut rng = Rng::from_parts(&[Rng::part("synthetic"), id]);
    let (mut state, mut moves) = (Chess::start(), Vec::new());
    let plies = rng.between(PLIES.0, PLIES.1);
    let mut record = GameRecord { opening_plies: 4, ..GameRecord::new(Chess::NAME, id) };
    let mut ended = None;
    while record.moves.len() < plies && ended.is_none() {
        match state.generate(&mut moves) {
            Outcome::Decided { result, reason } => ended = Some((result, reason)),
            Outcome::Ongoing => {
                let any = |rng: &mut Rng| -> Move { moves[rng.below(moves.len())] };
                let played = any(&mut rng);
                // As in a corpus with mistakes, where the teacher would have played another move.
                let best = rng.chance(0.05).then(|| any(&mut rng));
                record.best.push(best);
                record.score.push(Some(rng.between(0, 600) as i16 - 300));
                record.moves.push(played);
                state.play(played);
            }
        }
    }
    let winner = if rng.chance(0.5) { GameResult::WhiteWins } else { GameResult::BlackWins };
    let (result, termination) = ended.unwrap_or((winner, Termination::Adjudication));
    GameRecord { result: Some(result), termination, ..record }.normalized()
}

/// What pre-training reads a corpus with.
fn spec(folder: &Path, batch: usize) -> LoaderSpec {
    let config = PretrainConfig::default();
    LoaderSpec { batch, pool: config.pool, ..LoaderSpec::new([folder]) }
}

/// Batches of 256 to the end of the epoch, or until there were so many positions. The clock runs from the opened corpus,
/// so that filling the shuffle pool counts.
pub(crate) fn loader(folder: &Path, positions: u64) -> Result<String, BoxError> {
    let start = Instant::now();
    let mut loader = Loader::<Chess>::new(spec(folder, 256))?;
    let open = start.elapsed().as_secs_f64();
    let (start, mut count) = (Instant::now(), 0);
    while count < positions
        && let Some(batch) = loader.next()?
    {
        count += batch.rows as u64;
    }
    let took = start.elapsed().as_secs_f64();
    Ok(format!(
        "tabiya-loader: {count} of {} positions {:.0}/s, open {open:.3} s, peak {:.0} MiB, CPU {:.0} ns a position",
        loader.positions(),
        count as f64 / took,
        peak_mib()?,
        1e9 * cpu_seconds()? / count.max(1) as f64
    ))
}

/// Training steps on batches of a corpus, over as many epochs as it takes.
pub(crate) fn memory(
    folder: &Path,
    batch: usize,
    steps: u64,
    blocks: usize,
    channels: usize,
) -> Result<String, BoxError> {
    let mut trainer = Trainer::new(network(blocks, channels)?, TrainerConfig::default())?;
    let (start, mut first, mut spec) = (Instant::now(), 0.0, spec(folder, batch));
    let sources = spec.open()?;
    let mut loader = Loader::<Chess>::over(&sources, spec.clone())?;
    while trainer.steps() < steps {
        let Some(batch) = loader.next()? else {
            if loader.counts().samples == 0 {
                return Err(format!("{} holds no position", folder.display()).into());
            }
            spec.epoch += 1;
            loader = Loader::over(&sources, spec.clone())?;
            continue;
        };
        trainer.step(&training::batch_view(&batch), 1e-4)?;
        if trainer.steps() == steps.min(100) {
            first = peak_mib()?;
        }
    }
    Ok(format!(
        "tabiya-memory {blocks}x{channels} batch {batch}, {} positions in the corpus: {first:.0} MiB after {} batches, \
         {:.0} MiB after {steps}, {:.0} positions/s",
        loader.positions(),
        steps.min(100),
        peak_mib()?,
        (steps * batch as u64) as f64 / start.elapsed().as_secs_f64()
    ))
}
