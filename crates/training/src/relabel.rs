//! Relabelling: the teacher's move and score at every position that our own network reached in self-play.
//!
//! A network that learns only from games of the teacher meets positions of its own making and has never been told what
//! to do there; its own search is a weak answer. So the teacher is asked (DAgger: Ross, Gordon and Bagnell, AISTATS
//! 2011).

use std::collections::BTreeMap;

use dataset::GameRecord;
use pipeline::{Stage, StageSpec, Stamp};
use uci::Limit;

use crate::Result;
use crate::answers::{Questions, played_games};
use crate::engines::Teacher;
use crate::profile::Profile;
use crate::stages::{Stages, fingerprint};

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
    let questions = Questions {
        name: &format!("relabel {iteration}"),
        games: played_games(stages.layout.iteration(iteration, "selfplay"), played, "selfplay")?,
        games_per_shard: profile.selfplay.games_per_shard,
        dataset: format!("selfplay-{iteration:04}"),
        made_by: "selfplay",
        settings: settings(profile, iteration, teacher),
        teacher,
        limit: limit(profile),
        workers: profile.relabel.workers,
        plies: &GameRecord::plies,
    };
    let report = questions.ask(stages, stage)?;
    pipeline::say!("relabel {iteration}: {report}");
    Ok(())
}
