//! A teacher's move and score at positions of games that others played, in shards beside theirs.
//!
//! A game stays the same game: moves, result, generation, id and shard number. Shard k is a function of shard k of the
//! games and of the settings. Where the teacher is not asked, `best` and `score` are null.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use dataset::{Dataset, DatasetError, GameRecord, Meta, OnBad};
use games::{Chess, Line, Move, Score};
use pipeline::{Stage, Stamp};
use uci::{Engine, EngineError, Limit, Supervised};

use crate::Result;
use crate::engines::{Crew, Teacher};
use crate::production::Production;
use crate::stages::{Stages, fingerprint};

/// What asking a teacher reports.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct AnswersReport {
    /// Games on disk, those about which the teacher was not asked included.
    pub games: u64,
    /// Positions that the teacher was asked about.
    pub positions: u64,
    /// Fraction of these in which the move played is the teacher's.
    pub agreement: f64,
    /// The teacher and its limit; empty where an earlier version has asked.
    #[serde(default)]
    pub teacher: String,
}

impl std::fmt::Display for AnswersReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AnswersReport { games, positions, agreement, teacher } = self;
        write!(f, "{games} games, {positions} positions; {:.1} % of the moves are the teacher's", 100.0 * agreement)?;
        if teacher.is_empty() { Ok(()) } else { write!(f, " ({teacher})") }
    }
}

/// What a teacher is asked about.
pub(crate) struct Questions<'a> {
    /// The step, in messages.
    pub(crate) name: &'a str,
    /// The games, as [`played_games`] gives them.
    pub(crate) games: Dataset,
    pub(crate) games_per_shard: u64,
    /// The dataset whose games they are, and so their identity: a split by game puts both on one side.
    pub(crate) dataset: String,
    /// The target that makes the games.
    pub(crate) made_by: &'a str,
    /// What determines the answers, beside the games.
    pub(crate) settings: serde_json::Value,
    pub(crate) teacher: &'a Teacher,
    pub(crate) limit: Limit,
    /// Engine processes; 0 is one per core.
    pub(crate) workers: usize,
    /// The plies of a game up to which the teacher is asked; never about the opening, which no player chose.
    pub(crate) plies: &'a (dyn Fn(&GameRecord) -> usize + Sync),
}

/// The games of a folder, which have to be those that its stamp speaks of.
pub(crate) fn played_games(source: PathBuf, played: &Stamp, made_by: &str) -> Result<Dataset> {
    // What is damaged here would be missing from a shard that is whole.
    let games = Dataset::open(std::slice::from_ref(&source), OnBad::Stop)?;
    if games.fingerprint() != fingerprint(played) {
        let reason =
            format!("does not hold the games that its stage.json speaks of: move it away and run `make {made_by}`");
        return Err(DatasetError::BadFile { path: source, reason }.into());
    }
    Ok(games)
}

impl Questions<'_> {
    /// Asks about every position, and closes the stage.
    pub(crate) fn ask(&self, stages: Stages<'_>, stage: &Stage) -> Result<AnswersReport> {
        let (teacher, limit) = (self.teacher, self.limit);
        let meta = Meta {
            dataset: self.dataset.clone(),
            settings: self.settings.clone(),
            seed: stages.profile.seed,
            engine: Some(teacher.at(limit)),
            reproducible: teacher.is_reproducible(limit) && self.games.shards().iter().all(|s| s.sidecar.reproducible),
        };
        let source = self.games.fingerprint();
        let note = serde_json::json!({ "teacher": teacher.identity(), "limit": limit, "source": source });
        let production = Production::open_noting(stage, meta, self.games.games(), self.games_per_shard, None, note)?;
        let crew = Crew { production: &production, stop: stages.stop };
        let wanted = if self.workers > 0 { self.workers } else { stages.profile.cores() };
        let workers = wanted.min(production.left() as usize).max(1);
        let engines = (0..workers).map(|_| Supervised::new(teacher.spec.clone())).collect();
        let games = Games { questions: self, production: &production, open: Mutex::default() };
        crew.run(self.name, engines, |engine| {
            let Some(game) = games.next()? else { return Ok(None) };
            // The engine is told only what is legal on our own board.
            game.check::<Chess>()?;
            let start: Chess = game.start()?;
            let until = self.until(&game);
            let begin = || Answers::after_opening(start.clone(), &game);
            let ask = |answers: &mut Answers, engine: &mut Engine| answers.go_on(&game, until, engine, limit);
            let (answers, ()) = crew.with_restarts(game.game_id, engine, begin, Answers::ply, ask)?;
            Ok(Some(answers.into_record(game)))
        })?;
        let answered = production.dataset(stage.dir(), OnBad::Stop)?;
        let report = self.report(&answered)?;
        stage.finish(&answered.fingerprint(), &report)?;
        Ok(report)
    }

    /// The ply up to which the teacher is asked.
    fn until(&self, game: &GameRecord) -> usize {
        (self.plies)(game).clamp(usize::from(game.opening_plies), game.plies())
    }

    /// Counted from what is on disk, since a run may have found much of it there.
    fn report(&self, data: &Dataset) -> Result<AnswersReport> {
        let (mut positions, mut agreed) = (0, 0);
        for i in 0..data.shards().len() {
            for game in data.read_shard(i)? {
                let asked = &game.best[usize::from(game.opening_plies)..self.until(&game)];
                positions += asked.len() as u64;
                agreed += asked.iter().filter(|best| best.is_none()).count() as u64;
            }
        }
        let agreement = agreed as f64 / positions.max(1) as f64;
        Ok(AnswersReport { games: data.games(), positions, agreement, teacher: self.teacher.at(self.limit) })
    }
}

/// The games about which the teacher is still to be asked, by ascending id, with one shard in memory.
struct Games<'a> {
    questions: &'a Questions<'a>,
    production: &'a Production,
    open: Mutex<BTreeMap<u64, GameRecord>>,
}

impl Games<'_> {
    fn next(&self) -> Result<Option<GameRecord>> {
        // Taken before the id, so that ids come in order and a shard is read once.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = self.production.next() else { return Ok(None) };
        if !open.contains_key(&id) {
            let (games, number) = (&self.questions.games, (id / self.questions.games_per_shard) as u32);
            let place = games.shards().iter().position(|shard| shard.sidecar.shard == number);
            let records = place.map_or(Ok(Vec::new()), |i| games.read_shard(i))?;
            *open = records.into_iter().map(|record| (record.game_id, record)).collect();
        }
        let made_by = self.questions.made_by;
        let reason = || format!("is not in its shard; move its folder away and run `make {made_by}`");
        let missing = || DatasetError::Record { game_id: id, field: "game_id", reason: reason() };
        Ok(Some(open.remove(&id).ok_or_else(missing)?))
    }
}

/// The teacher's answers to the first plies of a game.
struct Answers {
    line: Line<Chess>,
    best: Vec<Option<Move>>,
    score: Vec<Option<i16>>,
}

impl Answers {
    /// Nobody is asked about the opening, which no player chose.
    fn after_opening(start: Chess, game: &GameRecord) -> Self {
        let opening = &game.moves[..usize::from(game.opening_plies)];
        let mut line = Line::new(start);
        opening.iter().for_each(|m| line.play(*m));
        Answers { line, best: vec![None; opening.len()], score: vec![None; opening.len()] }
    }

    fn ply(&self) -> usize {
        self.line.moves().len()
    }

    /// Asks about the game up to a ply. The engine's memory is cleared first, so that its answers are a function of
    /// the game, whatever it was asked before.
    fn go_on(
        &mut self,
        game: &GameRecord,
        until: usize,
        engine: &mut Engine,
        limit: Limit,
    ) -> std::result::Result<(), EngineError> {
        engine.new_game()?;
        for played in &game.moves[self.ply()..until] {
            let answer = engine.play(&self.line, limit)?;
            self.best.push((answer.m != *played).then_some(answer.m));
            self.score.push(answer.score.map(Score::to_i16));
            self.line.play(*played);
        }
        Ok(())
    }

    /// The game with these answers in place of what its players thought.
    fn into_record(mut self, game: GameRecord) -> GameRecord {
        self.best.resize(game.plies(), None);
        self.score.resize(game.plies(), None);
        GameRecord { best: self.best, score: self.score, value: None, visits: Vec::new(), ..game }
    }
}
