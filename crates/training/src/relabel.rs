//! Relabelling: the teacher's move and score at every position that our own network reached in self-play.
//!
//! A network that learns only from games of the teacher meets positions of its own making and has never been told what
//! to do there; its own search is a weak answer. So the teacher is asked (DAgger: Ross, Gordon and Bagnell, AISTATS
//! 2011). A game stays the same game: moves, result, generation, id and shard number. Shard k is a function of shard k
//! of self-play and of the settings.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dataset::{Dataset, DatasetError, GameRecord, Meta, OnBad};
use games::{Chess, Line, Move, Score};
use pipeline::{Stage, StageSpec, Stamp};
use uci::{Engine, EngineError, Limit, Supervised};

use crate::Result;
use crate::engines::{Crew, Teacher};
use crate::production::Production;
use crate::profile::Profile;
use crate::stages::{Stages, fingerprint};

/// What relabelling reports.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct RelabelReport {
    pub(crate) games: u64,
    /// Positions that the teacher was asked about.
    pub(crate) positions: u64,
    /// Fraction of these in which the move played is the teacher's.
    pub(crate) agreement: f64,
}

impl std::fmt::Display for RelabelReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RelabelReport { games, positions, agreement } = self;
        write!(f, "{games} games, {positions} positions; {:.1} % of the moves are the teacher's", 100.0 * agreement)
    }
}

/// The teacher's limit a move.
fn limit(profile: &Profile) -> Limit {
    profile.relabel.limit.unwrap_or(profile.corpus.limit)
}

/// What determines the answers, beside the games.
fn settings(profile: &Profile, iteration: u32, teacher: &Teacher) -> serde_json::Value {
    serde_json::json!({
        "iteration": iteration,
        "relabel": { "limit": limit(profile) },
        "engine": teacher.identity(),
    })
}

/// The stamp of the step, after the self-play that `played` is the stamp of.
pub(crate) fn spec(stages: Stages<'_>, iteration: u32, teacher: &Teacher, played: &Stamp) -> StageSpec {
    let inputs = BTreeMap::from([("selfplay".to_owned(), fingerprint(played))]);
    let dir = stages.layout.iteration(iteration, "relabel");
    let name = format!("refine/iter_{iteration:04}/relabel");
    stages.spec(&name, dir, settings(stages.profile, iteration, teacher), inputs)
}

/// Asks the teacher about every position that a player of an iteration's self-play was at.
pub(crate) fn relabel(
    stages: Stages<'_>,
    stage: &Stage,
    iteration: u32,
    teacher: &Teacher,
    played: &Stamp,
) -> Result<()> {
    let profile = stages.profile;
    let (limit, per_shard) = (limit(profile), profile.selfplay.games_per_shard);
    let source = stages.layout.iteration(iteration, "selfplay");
    // What is damaged here would be missing from a shard that is whole.
    let data = Dataset::open(std::slice::from_ref(&source), OnBad::Stop)?;
    if data.fingerprint() != fingerprint(played) {
        let reason = "does not hold the games that its stage.json speaks of: move it away and run `make selfplay`";
        return Err(DatasetError::BadFile { path: source, reason: reason.to_owned() }.into());
    }
    let meta = Meta {
        // The games are those of self-play, and so is their identity: a split by game puts both on one side.
        dataset: format!("selfplay-{iteration:04}"),
        settings: settings(profile, iteration, teacher),
        seed: profile.seed,
        engine: Some(teacher.at(limit)),
        reproducible: teacher.is_reproducible(limit) && data.shards().iter().all(|s| s.sidecar.reproducible),
    };
    let note = serde_json::json!({ "teacher": teacher.identity(), "limit": limit, "source": fingerprint(played) });
    let production = Production::open_noting(stage, meta, data.games(), per_shard, None, note)?;
    let crew = Crew { production: &production, stop: stages.stop };
    let wanted = if profile.relabel.workers > 0 { profile.relabel.workers } else { profile.cores() };
    let workers = wanted.min(production.left() as usize).max(1);
    let engines = (0..workers).map(|_| Supervised::new(teacher.spec.clone())).collect();
    let games = Games { data, per_shard, production: &production, open: Mutex::default() };
    crew.run(&format!("relabel {iteration}"), engines, |engine| {
        let Some(game) = games.next()? else { return Ok(None) };
        // The engine is told only what is legal on our own board.
        game.check::<Chess>()?;
        let start: Chess = game.start()?;
        let begin = || Answers::after_opening(start.clone(), &game);
        let ask = |answers: &mut Answers, engine: &mut Engine| answers.go_on(&game, engine, limit);
        let (answers, ()) = crew.with_restarts(game.game_id, engine, begin, Answers::ply, ask)?;
        Ok(Some(answers.into_record(game)))
    })?;
    let relabelled = Dataset::open(&[stage.dir().to_owned()], OnBad::Stop)?;
    let report = report(&relabelled)?;
    pipeline::say!("relabel {iteration}: {report}");
    stage.finish(&relabelled.fingerprint(), serde_json::to_value(&report).unwrap_or_default())?;
    Ok(())
}

/// Counted from what is on disk, since a run may have found much of it there.
fn report(data: &Dataset) -> Result<RelabelReport> {
    let (mut positions, mut agreed) = (0, 0);
    for i in 0..data.shards().len() {
        for game in data.read_shard(i)? {
            let asked = &game.best[usize::from(game.opening_plies)..];
            positions += asked.len() as u64;
            agreed += asked.iter().filter(|best| best.is_none()).count() as u64;
        }
    }
    Ok(RelabelReport { games: data.games(), positions, agreement: agreed as f64 / positions.max(1) as f64 })
}

/// Self-play's games that are still to be relabelled, by ascending id, with one shard in memory.
struct Games<'a> {
    data: Dataset,
    per_shard: u64,
    production: &'a Production,
    open: Mutex<BTreeMap<u64, GameRecord>>,
}

impl Games<'_> {
    fn next(&self) -> Result<Option<GameRecord>> {
        // Taken before the id, so that ids come in order and a shard is read once.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = self.production.next() else { return Ok(None) };
        if !open.contains_key(&id) {
            let number = (id / self.per_shard) as u32;
            let place = self.data.shards().iter().position(|shard| shard.sidecar.shard == number);
            let records = place.map_or(Ok(Vec::new()), |i| self.data.read_shard(i))?;
            *open = records.into_iter().map(|record| (record.game_id, record)).collect();
        }
        let reason = || "is not in its shard of self-play; move that folder away and run `make selfplay`".to_owned();
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

    /// Asks about the rest of the game. The engine's memory is cleared first, so that its answers are a function of
    /// the game, whatever it was asked before.
    fn go_on(&mut self, game: &GameRecord, engine: &mut Engine, limit: Limit) -> std::result::Result<(), EngineError> {
        engine.new_game()?;
        for played in &game.moves[self.ply()..] {
            let answer = engine.play(&self.line, limit)?;
            self.best.push((answer.m != *played).then_some(answer.m));
            self.score.push(answer.score.map(Score::to_i16));
            self.line.play(*played);
        }
        Ok(())
    }

    /// The game with these answers in place of the search's.
    fn into_record(self, game: GameRecord) -> GameRecord {
        GameRecord { best: self.best, score: self.score, value: None, visits: Vec::new(), ..game }
    }
}
