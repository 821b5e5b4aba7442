//! Self-play: the best network plays itself, many games at a time, and every move's visits become a policy target.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dataset::{Dataset, GameRecord, Meta, OnBad};
use games::{Color, Game, GameResult, Line, Move, Outcome, Rng, Termination};
use pipeline::{Progress, Stage, StageSpec};
use search::{Driver, Evaluator, NetworkEvaluator, Search, SearchConfig, Service, ServiceConfig};

use crate::Result;
use crate::production::Production;
use crate::profile::{SelfplayConfig, SettingError, content};
use crate::stages::{NetworkRef, Stages};

/// Random openings in a row that may end their game before self-play is given up.
const OPENING_TRIES: usize = 1000;

/// What self-play reports; the alarms of refinement look at it.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct SelfplayReport {
    pub(crate) games: u64,
    pub(crate) positions: u64,
    pub(crate) distinct_games: u64,
    /// White wins, draws, black wins, games without a result.
    pub(crate) results: [u64; 4],
    /// Mean entropy of the visits, in nats.
    pub(crate) visit_entropy: f64,
    /// Games in which a side would have given up although it did not lose, among those played through.
    pub(crate) wrong_resignations: f64,
    pub(crate) simulations_per_second: f64,
}

/// The stamp of an iteration's self-play.
pub(crate) fn spec<G: Game>(stages: Stages<'_>, iteration: u32, network: &NetworkRef) -> StageSpec {
    let profile = stages.profile;
    let settings = serde_json::json!({
        "game": G::NAME,
        "seed": profile.seed,
        "iteration": iteration,
        "selfplay": content(&profile.selfplay, &["games", "inference_batch_size", "games_in_flight", "cache"]),
        "search": profile.search,
    });
    let inputs = BTreeMap::from([("network".to_owned(), network.fingerprint.clone())]);
    let dir = stages.layout.iteration(iteration, "selfplay");
    let mut spec = stages.spec(&format!("refine/iter_{iteration:04}/selfplay"), dir, settings, inputs);
    spec.growable.insert("games".to_owned(), profile.selfplay.games);
    spec
}

/// Plays an iteration's games into its shards; gives what it has reached and the fingerprint of the games.
pub(crate) fn selfplay<G: Game>(
    stages: Stages<'_>,
    stage: &Stage,
    iteration: u32,
    network: &NetworkRef,
) -> Result<(SelfplayReport, String)> {
    let (profile, config) = (stages.profile, &stages.profile.selfplay);
    let model = network.model::<G>(&profile.device)?;
    let spec = spec::<G>(stages, iteration, network);
    let meta = Meta {
        dataset: format!("selfplay-{iteration:04}"),
        settings: spec.settings,
        seed: profile.seed,
        engine: None,
        reproducible: !model.on_device(),
    };
    let production = Production::open(stage, meta, config.games, config.games_per_shard, None)?;
    let cores = profile.cores();
    let (total, already) = production.totals();
    let progress = Progress::new(&format!("selfplay {iteration}"), Some(total));
    let shared = Shared {
        stages,
        config,
        search: SearchConfig {
            noise_alpha: config.noise_alpha,
            noise_weight: config.noise_weight,
            ..profile.search_with(config.simulations)
        },
        iteration,
        name: format!("{} simulations={}", network.name(), config.simulations),
        production: &production,
        simulations: AtomicU64::new(0),
        entropy: AtomicU64::new(0),
        searched: AtomicU64::new(0),
        played_through: AtomicU64::new(0),
        wrong: AtomicU64::new(0),
    };
    let started = Instant::now();
    let tick = || {
        let done = already + production.tally().games;
        let rate = shared.simulations.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
        progress.set(done, &format!("{rate:.0} simulations/s"));
    };
    // Two workers a core keep a device busy while trees are walked; on the CPU one worker a core has the games of two
    // and evaluates them itself, so that no core waits.
    let workers = (2 * cores).min(production.left() as usize).max(1);
    let (batch, in_flight) = (config.inference_batch_size, config.games_in_flight.max(1));
    if model.on_device() {
        let service_config = ServiceConfig { executors: 1, batch, ..ServiceConfig::default() };
        let evaluator = |_| NetworkEvaluator::new(&model, batch, config.cache);
        let service = Service::start(service_config, evaluator)?;
        service.run_workers(workers, |_, client| shared.work::<G>(client, in_flight, &tick))?;
        service.stop()?;
    } else {
        let workers = workers.min(cores);
        // Few games are shared out evenly.
        let in_flight = (2 * in_flight).min((production.left() as usize).div_ceil(workers));
        let evaluators = (0..workers).map(|_| NetworkEvaluator::new(&model, batch, config.cache));
        let evaluators = evaluators.collect::<std::result::Result<_, _>>()?;
        search::run_workers(evaluators, |_, evaluator| shared.work::<G>(evaluator, in_flight, &tick))?;
    }
    progress.set(already + production.tally().games, "");
    progress.finish("done");
    let data = production.dataset(stage.dir(), OnBad::Stop)?;
    Ok((shared.report(&data, started.elapsed().as_secs_f64())?, data.fingerprint()))
}

/// What the workers share.
struct Shared<'a> {
    stages: Stages<'a>,
    config: &'a SelfplayConfig,
    search: SearchConfig,
    iteration: u32,
    name: String,
    production: &'a Production,
    simulations: AtomicU64,
    /// Sum of visit entropies in thousandths of a nat, over `searched` moves.
    entropy: AtomicU64,
    searched: AtomicU64,
    played_through: AtomicU64,
    wrong: AtomicU64,
}

/// A game in flight.
struct Table<G: Game> {
    id: u64,
    line: Line<G>,
    search: Search<G>,
    rng: Rng,
    opening_plies: usize,
    value: Vec<Option<f32>>,
    visits: Vec<Option<Vec<(Move, u32)>>>,
    plays_through: bool,
    /// Who would have given up, had the game not been played through.
    gave_up: Option<Color>,
}

impl<G: Game> AsMut<Search<G>> for Table<G> {
    fn as_mut(&mut self) -> &mut Search<G> {
        &mut self.search
    }
}

impl Shared<'_> {
    /// Plays games, `in_flight` at a time, until none is left.
    fn work<G: Game>(&self, evaluator: &mut dyn Evaluator, in_flight: usize, tick: &dyn Fn()) -> Result<()> {
        let mut tables: Vec<Table<G>> = Vec::new();
        let mut driver = Driver::new();
        loop {
            self.stages.stop.check()?;
            while tables.len() < in_flight {
                let Some(id) = self.production.next() else { break };
                tables.push(self.open_table(id)?);
            }
            if tables.is_empty() {
                return Ok(());
            }
            driver.round(&mut tables, evaluator)?;
            let mut finished = Vec::new();
            for (i, table) in tables.iter_mut().enumerate() {
                if table.search.finished() && self.play_move(table)? {
                    finished.push(i);
                }
            }
            for i in finished.into_iter().rev() {
                tables.swap_remove(i);
                tick();
            }
        }
    }

    fn open_table<G: Game>(&self, id: u64) -> Result<Table<G>> {
        let parts = [self.stages.profile.seed, Rng::part("selfplay"), u64::from(self.iteration), id];
        let mut rng = Rng::from_parts(&parts);
        let (low, high) = self.config.random_plies.range();
        let opening = |_| {
            let mut line = Line::new(G::start());
            let plies = rng.between(low as usize, high as usize);
            line.play_random(plies, &mut rng).then_some(line)
        };
        let Some(line) = (0..OPENING_TRIES).find_map(opening) else {
            let reason = "expected fewer: a game of random moves is over by then";
            return Err(SettingError::new("selfplay.random_plies", format!("[{low}, {high}]"), reason).into());
        };
        let opening_plies = line.moves().len();
        let search = Search::new(self.search, line.state().clone(), Rng::from_parts(&[rng.next_u64()]));
        let plays_through = rng.chance(self.config.resign_playthrough);
        Ok(Table {
            id,
            line,
            search,
            rng,
            opening_plies,
            value: vec![None; opening_plies],
            visits: vec![None; opening_plies],
            plays_through,
            gave_up: None,
        })
    }

    /// Plays the move that the search found; true when the game is over and recorded.
    fn play_move<G: Game>(&self, table: &mut Table<G>) -> Result<bool> {
        let report = table.search.root_report()?;
        let total: u32 = report.visits.iter().map(|(_, n)| n).sum();
        self.simulations.fetch_add(u64::from(report.simulations), Ordering::Relaxed);
        self.searched.fetch_add(1, Ordering::Relaxed);
        self.entropy.fetch_add((1000.0 * entropy(&report.visits, total)) as u64, Ordering::Relaxed);
        let ply = table.line.moves().len();
        let greedy = ply >= table.opening_plies + self.config.temperature_plies as usize;
        let m = if greedy {
            report.best
        } else {
            sample(&report.visits, self.config.temperature, &mut table.rng).unwrap_or(report.best)
        };
        let mover = table.line.state().turn();
        table.value.push(Some(report.value.0));
        // Quick searches of a playout cap move the game on but teach no policy.
        table.visits.push(report.full.then(|| report.visits.into_iter().filter(|(_, n)| *n > 0).collect()));
        let limit = self.config.resign_value;
        let hopeless = limit > 0.0 && report.value.0 < -limit;
        if hopeless && table.gave_up.is_none() {
            table.gave_up = Some(mover);
        }
        table.line.play(m);
        table.search.advance(m)?;
        let outcome = table.line.state().outcome();
        let (result, termination) = match outcome {
            Outcome::Decided { result, reason } => (Some(result), reason),
            Outcome::Ongoing if hopeless && !table.plays_through => {
                (Some(GameResult::win(mover.other())), Termination::Resignation)
            }
            Outcome::Ongoing if table.line.moves().len() >= self.config.max_plies as usize => {
                (None, Termination::MaxPlies)
            }
            Outcome::Ongoing => return Ok(false),
        };
        if table.plays_through
            && let Some(color) = table.gave_up
        {
            self.played_through.fetch_add(1, Ordering::Relaxed);
            let lost = result == Some(GameResult::win(color.other()));
            self.wrong.fetch_add(u64::from(!lost), Ordering::Relaxed);
        }
        self.production.finished(GameRecord {
            white: self.name.clone(),
            black: self.name.clone(),
            opening_plies: table.opening_plies as u16,
            moves: table.line.moves().to_vec(),
            best: vec![None; table.line.moves().len()],
            score: vec![None; table.line.moves().len()],
            value: Some(std::mem::take(&mut table.value)),
            visits: std::mem::take(&mut table.visits),
            result,
            termination,
            generation: self.iteration,
            ..GameRecord::new(G::NAME, table.id)
        })?;
        Ok(true)
    }

    fn report(&self, data: &Dataset, seconds: f64) -> Result<SelfplayReport> {
        let stats = dataset::stats(data)?;
        let load = |x: &AtomicU64| x.load(Ordering::Relaxed) as f64;
        Ok(SelfplayReport {
            games: stats.games,
            positions: stats.played_positions,
            distinct_games: stats.distinct_games.count,
            results: [stats.results.wins, stats.results.draws, stats.results.losses, stats.results.none],
            visit_entropy: load(&self.entropy) / 1000.0 / load(&self.searched).max(1.0),
            wrong_resignations: load(&self.wrong) / load(&self.played_through).max(1.0),
            simulations_per_second: load(&self.simulations) / seconds,
        })
    }
}

fn entropy(visits: &[(Move, u32)], total: u32) -> f64 {
    let p = |n: u32| f64::from(n) / f64::from(total.max(1));
    visits.iter().filter(|(_, n)| *n > 0).map(|(_, n)| -p(*n) * p(*n).ln()).sum()
}

/// A move drawn with probability proportional to `visits^(1 / temperature)`.
fn sample(visits: &[(Move, u32)], temperature: f32, rng: &mut Rng) -> Option<Move> {
    let most = visits.iter().map(|(_, n)| *n).max().filter(|n| *n > 0)?;
    if temperature <= 0.0 {
        return visits.iter().find(|(_, n)| *n == most).map(|(m, _)| *m);
    }
    let weight = |n: u32| (f64::from(n) / f64::from(most)).powf(1.0 / f64::from(temperature));
    let weights: Vec<f64> = visits.iter().map(|(_, n)| weight(*n)).collect();
    rng.weighted(&weights).map(|i| visits[i].0)
}
