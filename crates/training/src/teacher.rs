//! The corpus: games of a strong engine against itself, diverse by construction.
//!
//! Each game is a function of its id: its opening, how many random plies it begins with, and which plies are
//! deliberate mistakes, so that positions after mistakes are in the data with the teacher's answer to them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dataset::{Dataset, GameRecord, Meta, OnBad, Visits};
use games::{Chess, Color, Game, GameResult, Line, Move, Outcome, Rng, Termination};
use pipeline::Stop;
use uci::{Deadlines, EngineError, EngineSpec, FoundEngine, Supervised};

use crate::engines::{Crew, Teacher};
use crate::production::Production;
use crate::profile::{CorpusConfig, EngineConfig, Layout, Profile, content};
use crate::stages::{Stages, locked_stage, required, summary};
use crate::{Error, Result};

/// What the `corpus` stage reports.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct CorpusReport {
    /// Who played, with version and limit; unknown in the stamps of older builds.
    #[serde(default)]
    pub teacher: String,
    /// Games on disk, all shards together.
    pub games: u64,
    /// Positions on disk.
    pub positions: u64,
    /// Games that differ from all others.
    pub distinct_games: u64,
    /// Positions that differ from all others.
    pub distinct_positions: u64,
    /// White wins, draws, black wins, games without a result.
    pub results: [u64; 4],
    /// Parquet bytes a position.
    pub bytes_per_position: f64,
    /// Games a second in this run of the program.
    pub games_per_second: f64,
    /// Positions a second in this run of the program.
    pub positions_per_second: f64,
}

impl std::fmt::Display for CorpusReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [white, draw, black, open] = self.results;
        write!(
            f,
            "{} games ({} distinct), {} positions ({} distinct), White wins {white}, draws {draw}, Black wins {black}, \
             no result {open}; {:.2} bytes a position",
            self.games, self.distinct_games, self.positions, self.distinct_positions, self.bytes_per_position,
        )?;
        if !self.teacher.is_empty() {
            write!(f, "; played by {}", self.teacher)?;
        }
        if self.games_per_second > 0.0 {
            write!(f, "; {:.2} games/s, {:.0} positions/s", self.games_per_second, self.positions_per_second)?;
        }
        Ok(())
    }
}

/// How the teacher is started: one thread, a small hash table, full strength.
///
/// # Errors
/// The engine is not found.
pub fn teacher_spec(config: &EngineConfig, stop: &Stop) -> Result<EngineSpec> {
    let mut spec = engine_spec(config, stop)?;
    spec.options.extend(config.options.iter().map(|(k, v)| (k.clone(), v.clone())));
    Ok(spec)
}

/// An engine with one thread and the configured hash table, where it has such options.
pub(crate) fn engine_spec(config: &EngineConfig, stop: &Stop) -> Result<EngineSpec> {
    let FoundEngine { name, path, stands_in } = uci::choose_engine(&config.path)?;
    if stands_in {
        pipeline::say!("engine: no Stockfish was found, {name} at {} is used in its place", path.display());
    }
    let mut spec = EngineSpec::new(path);
    spec.args.clone_from(&config.args);
    spec = spec.default_option("Threads", "1").default_option("Hash", &config.hash_mb.to_string());
    spec.deadlines = Deadlines::of_answer(Duration::from_secs_f64(config.answer_seconds));
    spec.interrupt = Some(stop.flag());
    Ok(spec)
}

/// Writes the corpus of a profile, or of its shards `range` alone.
///
/// # Errors
/// Settings that cannot be followed, an engine that keeps failing, a disk that cannot be written, or a stop request.
pub fn corpus(
    profile: &Profile,
    layout: &Layout,
    range: Option<std::ops::Range<u32>>,
    stop: &Stop,
) -> Result<CorpusReport> {
    let dir = layout.corpus();
    let games = Games { name: "corpus", table: "corpus", dataset: "corpus", dir, config: &profile.corpus };
    games.write(Stages { profile, layout, stop }, &profile.engine, range)
}

/// Games of an engine against itself.
pub(crate) struct Games<'a> {
    /// The stage.
    pub(crate) name: &'static str,
    /// The table of the profile that `config` is.
    pub(crate) table: &'static str,
    /// The dataset's name, a part of its games' identity and of their random streams.
    pub(crate) dataset: &'static str,
    pub(crate) dir: PathBuf,
    pub(crate) config: &'a CorpusConfig,
}

impl Games<'_> {
    /// Writes the games, or the shards `range` alone.
    pub(crate) fn write(
        &self,
        stages: Stages<'_>,
        engine: &EngineConfig,
        range: Option<std::ops::Range<u32>>,
    ) -> Result<CorpusReport> {
        let (config, profile, stop) = (self.config, stages.profile, stages.stop);
        if profile.game != Chess::NAME {
            return Err(Error::NoTeacher(profile.game.clone()));
        }
        let shards = config.games.div_ceil(config.games_per_shard);
        if let Some(range) = range.as_ref().filter(|range| u64::from(range.end) > shards) {
            return Err(Error::NoShard { table: self.table, last: range.end - 1, shards, games: config.games });
        }
        let mut shown = engine.clone();
        if let Some(soft) = config.soft {
            shown.options.insert("MultiPV".to_owned(), soft.multipv.to_string());
        }
        let (engine, first) = Teacher::start(&shown, stop)?;
        let teacher = engine.at(config.limit);
        let settings = serde_json::json!({
            "seed": profile.seed,
            (self.dataset): content(config, &["games", "workers", "max_duplicates"]),
            "book": book_hash(&config.book)?,
            "engine": engine.identity(),
        });
        let mut plan = stages.spec(self.name, self.dir.clone(), settings.clone(), Default::default());
        plan.growable.insert("games".to_owned(), config.games);
        let Some(stage) = locked_stage(plan, stages.layout, range.clone())? else {
            let stamp = required(self.dir.clone(), "the games", self.name)?;
            return summary(&self.dir, &stamp);
        };
        let meta = Meta {
            dataset: self.dataset.to_owned(),
            settings,
            seed: profile.seed,
            engine: Some(teacher.clone()),
            reproducible: engine.is_reproducible(config.limit),
        };
        let production = Production::open(&stage, meta, config.games, config.games_per_shard, range.clone())?;
        let book = if config.book.is_empty() {
            Vec::new()
        } else {
            dataset::book::read_openings(config.book.as_ref(), profile.on_bad_shard.into())?
        };
        let started = Instant::now();
        let crew = Crew { production: &production, stop };
        let stream = [profile.seed, Rng::part(self.dataset)];
        let writer = Writer { config, stream, teacher: teacher.clone(), book: &book, crew };
        let wanted = if config.workers > 0 { config.workers } else { profile.cores() };
        let more = wanted.min(production.left() as usize).saturating_sub(1);
        let mut engines = vec![first];
        engines.extend((0..more).map(|_| Supervised::new(engine.spec.clone())));
        crew.run(self.name, engines, |engine| production.next().map(|id| writer.game(id, engine)).transpose())?;
        let seconds = started.elapsed().as_secs_f64();
        let tally = production.tally();
        let dataset = production.dataset(&self.dir, OnBad::Skip)?;
        let report = report(&dataset, teacher, (tally.games > 0).then_some((tally.games, tally.positions, seconds)))?;
        let copies = 1.0 - report.distinct_games as f64 / report.games.max(1) as f64;
        if copies > config.max_duplicates {
            return Err(Error::Duplicates { table: self.table, rate: copies, limit: config.max_duplicates });
        }
        if range.is_none() {
            stage.finish(&dataset.fingerprint(), &report)?;
        }
        Ok(report)
    }
}

/// What a dataset holds, and how fast the games, positions and seconds of a run were.
fn report(dataset: &Dataset, teacher: String, run: Option<(u64, u64, f64)>) -> Result<CorpusReport> {
    let stats = dataset::stats(dataset)?;
    let (games_per_second, positions_per_second) =
        run.map_or((0.0, 0.0), |(games, positions, s)| (games as f64 / s, positions as f64 / s));
    Ok(CorpusReport {
        teacher,
        games: stats.games,
        positions: stats.positions,
        distinct_games: stats.distinct_games.count,
        distinct_positions: stats.distinct_positions.count,
        results: [stats.results.wins, stats.results.draws, stats.results.losses, stats.results.none],
        bytes_per_position: stats.bytes_per_position,
        games_per_second,
        positions_per_second,
    })
}

/// The hash of a book's content; null without a book.
pub(crate) fn book_hash(path: &str) -> Result<serde_json::Value> {
    if path.is_empty() {
        return Ok(serde_json::Value::Null);
    }
    let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.into(), source })?;
    Ok(serde_json::Value::String(blake3::hash(&bytes).to_hex().to_string()))
}

/// A book's opening as played out; the reader has checked that it is legal.
fn opened(opening: &dataset::book::Opening) -> Line<Chess> {
    let start = opening.start_fen.as_deref().and_then(|fen| Chess::from_fen(fen).ok());
    let mut line = Line::new(start.unwrap_or_else(Chess::start));
    opening.moves.iter().for_each(|m| line.play(*m));
    line
}

struct Writer<'a> {
    config: &'a CorpusConfig,
    /// The run's seed and the dataset.
    stream: [u64; 2],
    teacher: String,
    book: &'a [dataset::book::Opening],
    crew: Crew<'a>,
}

impl Writer<'_> {
    fn game(&self, id: u64, engine: &mut Supervised) -> Result<GameRecord> {
        let ply = |game: &Table| game.line.moves().len();
        let (game, (result, termination)) =
            self.crew.with_restarts(id, engine, || self.begin(id), ply, |game, engine| self.play(game, engine))?;
        Ok(self.record(id, game, result, termination))
    }

    /// The opening of a game: from the book where there is one, then random plies; drawn again if it ends the game.
    fn opening(&self, rng: &mut Rng) -> (Line<Chess>, Option<String>) {
        let (low, high) = self.config.random_plies.range();
        loop {
            let (mut line, name) = match self.book {
                [] => (Line::new(Chess::start()), None),
                book => {
                    let opening = &book[rng.below(book.len())];
                    (opened(opening), Some(opening.name.clone()))
                }
            };
            let plies = rng.between(low as usize, high as usize);
            if line.play_random(plies, rng) {
                return (line, name);
            }
        }
    }

    fn mistake_rate(&self, rng: &mut Rng) -> f64 {
        let mut u = rng.unit();
        for class in &self.config.mistakes {
            if u < class.share {
                return class.rate;
            }
            u -= class.share;
        }
        0.0
    }

    /// A game at the end of its opening.
    fn begin(&self, id: u64) -> Table {
        let [seed, dataset] = self.stream;
        let mut rng = Rng::from_parts(&[seed, dataset, 0, id]);
        let (line, opening) = self.opening(&mut rng);
        let mistakes = self.mistake_rate(&mut rng);
        let opening_plies = line.moves().len();
        Table {
            line,
            opening,
            opening_plies,
            mistakes,
            rng,
            best: vec![None; opening_plies],
            score: vec![None; opening_plies],
            soft: self.config.soft.map_or_else(Vec::new, |_| vec![None; opening_plies]),
            agreed: Agreement::default(),
        }
    }

    /// Plays a game on to its end.
    fn play(
        &self,
        game: &mut Table,
        engine: &mut uci::Engine,
    ) -> std::result::Result<(Option<GameResult>, Termination), EngineError> {
        engine.new_game()?;
        let mut moves = Vec::new();
        loop {
            if let Outcome::Decided { result, reason } = game.line.state().generate(&mut moves) {
                return Ok((Some(result), reason));
            }
            if game.line.moves().len() >= self.config.max_plies as usize {
                return Ok((None, Termination::MaxPlies));
            }
            let answer = engine.play(&game.line, self.config.limit)?;
            let mistake = game.mistakes > 0.0 && game.rng.chance(game.mistakes);
            let played = if mistake { moves[game.rng.below(moves.len())] } else { answer.m };
            game.best.push((played != answer.m).then_some(answer.m));
            game.score.push(answer.score.map(games::Score::to_i16));
            game.soft.extend(self.config.soft.map(|soft| soft.counts(answer.m, engine.lines())));
            let white = answer.score.filter(|_| played == answer.m).map(|s| match game.line.state().turn() {
                Color::White => s,
                Color::Black => s.opponent(),
            });
            game.line.play(played);
            if let Some(rule) = self.config.adjudicate
                && let Some(winner) = game.agreed.add(white, rule)
                // A game that the rules have just ended keeps its own reason.
                && game.line.state().outcome() == Outcome::Ongoing
            {
                return Ok((Some(GameResult::win(winner)), Termination::Adjudication));
            }
        }
    }

    fn record(&self, id: u64, game: Table, result: Option<GameResult>, termination: Termination) -> GameRecord {
        let start = game.line.start().fen();
        GameRecord {
            white: self.teacher.clone(),
            black: self.teacher.clone(),
            start_fen: (start != Chess::start().fen()).then_some(start),
            opening_plies: game.opening_plies as u16,
            moves: game.line.moves().to_vec(),
            best: game.best,
            score: game.score,
            visits: game.soft,
            result,
            termination,
            opening: game.opening,
            ..GameRecord::new(Chess::NAME, id)
        }
    }
}

/// A game in hand.
struct Table {
    line: Line<Chess>,
    opening: Option<String>,
    opening_plies: usize,
    /// Probability that a ply is a random move.
    mistakes: f64,
    rng: Rng,
    best: Vec<Option<Move>>,
    score: Vec<Option<i16>>,
    /// The teacher's lines, where they are asked for.
    soft: Vec<Visits>,
    agreed: Agreement,
}

/// How long the scores have agreed on a winner.
#[derive(Default)]
struct Agreement {
    winner: Option<Color>,
    plies: u32,
}

impl Agreement {
    /// Adds a score from White's view; the winner once the scores have agreed long enough.
    fn add(&mut self, white: Option<games::Score>, rule: crate::profile::Adjudicate) -> Option<Color> {
        let bound = games::Score::Cp(rule.score.abs());
        let winner = white.and_then(|s| match s {
            s if s >= bound => Some(Color::White),
            s if s <= bound.opponent() => Some(Color::Black),
            _ => None,
        });
        self.plies =
            if winner.is_some() && winner == self.winner { self.plies + 1 } else { u32::from(winner.is_some()) };
        self.winner = winner;
        self.winner.filter(|_| self.plies >= rule.plies)
    }
}
