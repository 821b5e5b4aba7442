//! The gate: a candidate replaces the best network only if it wins a match of paired openings.

use std::collections::BTreeMap;
use std::path::Path;

use arena::{MatchReport, MatchSpec, OpeningSource};
use games::{Game, Rng};
use pipeline::{StageSpec, Stop};

use crate::Result;
use crate::matches::{Contender, play};
use crate::profile::{GateConfig, Layout, Profile, content};
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

/// What the stamp of a gate says, as the loop reads it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct GateReport {
    /// Whether the candidate replaces the best network.
    pub(crate) accepted: bool,
    /// Its score in 0..1; absent if no game was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    /// Why there was no match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

/// What a gate decided.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Verdict {
    /// Whether the candidate replaces the best network.
    pub accepted: bool,
    /// Its score in 0..1; `None` if no game was decided.
    pub score: Option<f64>,
    /// The score that it needed.
    pub threshold: f64,
    /// The match.
    pub text: String,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.accepted { "accepted" } else { "refused" };
        write!(f, "gate: the candidate is {verdict} (needs {:.3})\n{}", self.threshold, self.text)
    }
}

/// Plays any two checkpoint folders against each other under the gate's rules. The games are kept in a dated folder
/// `gate.<time>` of the run.
///
/// # Errors
/// A folder without a checkpoint for this game, a match that fails, or a stop request.
pub fn judge<G: Game>(
    profile: &Profile,
    layout: &Layout,
    candidate: &Path,
    best: &Path,
    stop: &Stop,
) -> Result<Verdict> {
    let stages = Stages { profile, layout, stop };
    let (candidate, best) = (NetworkRef::at(candidate)?, NetworkRef::at(best)?);
    let folder = pipeline::dated_name(&layout.root().join("gate"));
    gate::<G>(stages, &folder, 0, &candidate, &best)
}

/// Plays the match in `folder`; the candidate is player A.
pub(crate) fn gate<G: Game>(
    stages: Stages<'_>,
    folder: &Path,
    iteration: u32,
    candidate: &NetworkRef,
    best: &NetworkRef,
) -> Result<Verdict> {
    let config = &stages.profile.gate;
    let players = [(candidate, "candidate"), (best, "best")];
    let report = duel::<G>(stages, "gate", config, folder, iteration, players)?;
    Ok(Verdict {
        accepted: report.score.is_some_and(|score| score >= config.threshold),
        score: report.score,
        threshold: config.threshold,
        text: report.to_string(),
    })
}

/// Plays two networks, each with its role in the match, from random openings under the gate's rules.
pub(crate) fn duel<G: Game>(
    stages: Stages<'_>,
    label: &str,
    config: &GateConfig,
    folder: &Path,
    iteration: u32,
    players: [(&NetworkRef, &str); 2],
) -> Result<MatchReport> {
    let profile = stages.profile;
    let seed = profile.seed ^ Rng::part(label) ^ u64::from(iteration);
    let mut spec = MatchSpec::new(label, u64::from(config.games), seed);
    spec.openings = OpeningSource::Random { plies: config.random_plies as u16 };
    spec.concurrency = profile.cores();
    spec.max_plies = config.max_plies;
    spec.generation = iteration;
    let player = |(network, role): (&NetworkRef, &str)| {
        Contender::network::<G>(profile, network, &format!("{} {role}", network.name()), config.simulations)
    };
    let [a, b] = players;
    play::<G>(&spec, &player(a)?, &player(b)?, folder, stages.stop)
}
