//! Search and self-play.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use games::{Chess, Game, Outcome, Packed, Rng};
use nn::{Model, NnError};
use search::{
    Driver, Evaluator, EvaluatorStats, NetworkEvaluator, Request, Search, SearchConfig, SearchError, UniformEvaluator,
};
use tabiya::BoxError;
use training::SelfplayConfig;

use crate::{cores, network, positions, rate};

/// Simulations made and moves played. Visits that a tree keeps from the move before are no simulations.
#[derive(Clone, Copy, Default)]
struct Played {
    simulations: u64,
    moves: u64,
}

/// Plays many games at once until the time is over; each game begins again when it ends.
fn play(
    config: SearchConfig,
    games: usize,
    seed: u64,
    until: Instant,
    evaluator: &mut dyn Evaluator,
) -> Result<Played, SearchError> {
    let (mut driver, mut rng, mut played) = (Driver::new(), Rng::new(seed), Played::default());
    let mut searches: Vec<Search<Chess>> =
        (0..games).map(|_| Search::new(config, Chess::start(), Rng::new(rng.next_u64()))).collect();
    let mut kept = vec![0; games];
    while Instant::now() < until {
        driver.round(&mut searches, evaluator)?;
        for (search, kept) in searches.iter_mut().zip(&mut kept).filter(|(s, _)| s.finished()) {
            played.simulations += u64::from(search.visits() - *kept);
            played.moves += 1;
            let m = search.choose(1.0)?;
            search.advance(m)?;
            if search.root().outcome() != Outcome::Ongoing {
                search.reset(Chess::start(), Rng::new(rng.next_u64()));
            }
            *kept = search.visits();
        }
    }
    played.simulations += searches.iter().zip(&kept).map(|(s, kept)| u64::from(s.visits() - kept)).sum::<u64>();
    Ok(played)
}

/// The tree alone: what a simulation costs when the answer costs nothing.
pub(crate) fn search(seconds: f64) -> Result<String, BoxError> {
    let config = SearchConfig::default();
    let start = Instant::now();
    let played = play(config, 4, 1, start + Duration::from_secs_f64(seconds), &mut UniformEvaluator)?;
    let rate = played.simulations as f64 / start.elapsed().as_secs_f64();
    Ok(format!("tabiya-search sims {}: {rate:.0} sims/s", config.simulations))
}

/// What all executors have been asked and what was left for the network.
#[derive(Default)]
struct Counters {
    batches: AtomicU64,
    evaluations: AtomicU64,
}

/// A network evaluator that counts into counters that outlive it.
struct Counted {
    inner: NetworkEvaluator,
    counters: Arc<Counters>,
}

impl Evaluator for Counted {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        let evaluated = |s: EvaluatorStats| s.requests - s.cached - s.duplicates;
        let before = evaluated(self.inner.stats());
        self.inner.evaluate(requests)?;
        let evaluations = evaluated(self.inner.stats()) - before;
        self.counters.batches.fetch_add(u64::from(evaluations > 0), Ordering::Relaxed);
        self.counters.evaluations.fetch_add(evaluations, Ordering::Relaxed);
        Ok(())
    }
}

/// Self-play as the stage does it (its workers, batches and cache), then its executors alone.
pub(crate) fn selfplay(
    blocks: usize,
    channels: usize,
    simulations: u32,
    seconds: f64,
    games: Option<usize>,
) -> Result<String, BoxError> {
    let model = Model::from_network(&network(blocks, channels)?)?;
    let (stage, counters) = (SelfplayConfig::default(), Arc::new(Counters::default()));
    let evaluator = |_| {
        let inner = NetworkEvaluator::new(&model, stage.inference_batch_size, stage.cache)?;
        Ok(Counted { inner, counters: Arc::clone(&counters) })
    };
    let config = SearchConfig {
        simulations,
        noise_alpha: stage.noise_alpha,
        noise_weight: stage.noise_weight,
        ..SearchConfig::default()
    };
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(seconds);
    let games = games.unwrap_or(2 * stage.games_in_flight);
    let evaluators = (0..cores()).map(evaluator).collect::<Result<Vec<_>, SearchError>>()?;
    let played: Vec<Played> =
        search::run_workers(evaluators, |worker, evaluator| play(config, games, worker as u64, until, evaluator))?;
    let took = start.elapsed().as_secs_f64();
    let per_second = |count: u64| count as f64 / took;
    let evaluations = counters.evaluations.load(Ordering::Relaxed);
    let batch = evaluations as f64 / counters.batches.load(Ordering::Relaxed).max(1) as f64;
    let alone = executors_alone(&model, batch.round().max(1.0) as usize, seconds)?;
    Ok(format!(
        "tabiya-selfplay {blocks}x{channels} sims {simulations} games {games}: {:.0} sims/s {:.2} moves/s; {:.0} \
         evaluations/s of {alone:.0}/s alone at batch {batch:.1}, share {:.3}",
        per_second(played.iter().map(|p| p.simulations).sum()),
        per_second(played.iter().map(|p| p.moves).sum()),
        per_second(evaluations),
        per_second(evaluations) / alone
    ))
}

/// Positions/s of one executor a core, each with its own batches.
fn executors_alone(model: &Model, batch: usize, seconds: f64) -> Result<f64, BoxError> {
    let inputs: Vec<Packed> = positions(batch).iter().map(Game::pack).collect();
    let rates: Vec<Result<f64, NnError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores())
            .map(|_| {
                scope.spawn(|| {
                    let mut executor = model.executor(batch);
                    rate(seconds, || executor.evaluate(&inputs).map(|_| ()))
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    let steps = rates.into_iter().sum::<Result<f64, NnError>>()?;
    Ok(steps * batch as f64)
}
