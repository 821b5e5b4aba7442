//! The gate: a candidate replaces the best network only if it wins a match of paired openings.

use std::collections::BTreeMap;

use arena::{MatchReport, MatchSpec, OpeningSource};
use games::{Game, Rng};
use pipeline::{Stage, StageSpec};

use crate::Result;
use crate::matches::{Contender, play};
use crate::profile::content;
use crate::stages::{NetworkRef, Stages};

/// The stamp of an iteration's gate.
pub(crate) fn spec<G: Game>(
    stages: Stages<'_>,
    iteration: u32,
    candidate: &NetworkRef,
    best: &NetworkRef,
) -> StageSpec {
    let profile = stages.profile;
    let settings = serde_json::json!({
        "game": G::NAME,
        "seed": profile.seed,
        "iteration": iteration,
        "gate": content(&profile.gate, &["on_reject"]),
        "search": profile.search,
    });
    let inputs = BTreeMap::from([
        ("candidate".to_owned(), candidate.fingerprint.clone()),
        ("best".to_owned(), best.fingerprint.clone()),
    ]);
    stages.spec(
        &format!("refine/iter_{iteration:04}/gate"),
        stages.layout.iteration(iteration, "gate"),
        settings,
        inputs,
    )
}

/// Plays the match; the candidate is player A.
pub(crate) fn gate<G: Game>(
    stages: Stages<'_>,
    stage: &Stage,
    iteration: u32,
    candidate: &NetworkRef,
    best: &NetworkRef,
) -> Result<MatchReport> {
    let profile = stages.profile;
    let config = &profile.gate;
    let mut spec =
        MatchSpec::new("gate", u64::from(config.games), profile.seed ^ Rng::part("gate") ^ u64::from(iteration));
    spec.openings = OpeningSource::Random { plies: config.random_plies as u16 };
    spec.concurrency = profile.cores();
    spec.max_plies = config.max_plies;
    spec.generation = iteration;
    let player = |network: &NetworkRef, role: &str| {
        Contender::network::<G>(profile, network, &format!("{} {role}", network.name()), config.simulations)
    };
    play::<G>(&spec, &player(candidate, "candidate")?, &player(best, "best")?, stage, stages.stop)
}

/// Whether a score lets the candidate through.
pub(crate) fn accepts(report: &MatchReport, threshold: f64) -> bool {
    report.score.is_some_and(|score| score >= threshold)
}
