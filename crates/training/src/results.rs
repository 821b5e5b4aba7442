//! Experiments over a finished run, for the page of results: how strong the final network is by the simulations it is
//! given, how strong networks are by the positions they were trained on, and what refinement gained.
//!
//! Each match and each network is a stage of its own under `results/`, so that a killed run goes on, and a second one
//! does nothing. A match's folder is named after the network and its simulations: two experiments that need the same
//! match play it once.

mod config;
mod curves;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arena::MatchReport;
use games::{Chess, Game};
use nn::Checkpoint;
use pipeline::{Stamp, Stop, Store};
use serde::{Deserialize, Serialize};

use crate::epochs::{EpochReport, State, TrainingReport};
use crate::history::History;
use crate::profile::{GateConfig, Layout, Profile};
use crate::refine::{best_network, initial};
use crate::stages::{NetworkRef, Stages, fingerprint, locked_stage, required, summary};
use crate::supervised::{Lesson, learn};
use crate::window::Amount;
use crate::{Error, Result, evaluate, gate};
pub use config::ResultsConfig;
pub use page::{RESULTS_PAGE, Section, write_page};

/// What the experiments have measured.
const FOUND: &str = "results.json";

/// What the experiments of a run have measured, as kept in `results/results.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Experiments {
    /// The final network against the opponent, by its simulations.
    pub(crate) simulations: Vec<AtSimulations>,
    /// Networks of parts of the corpus against the opponent.
    pub(crate) shares: Vec<OfShare>,
    /// The final network against the one that refinement began with, if they differ.
    pub(crate) refinement: Option<MatchReport>,
    /// Wall time of what was trained and played for all this, over all sittings.
    pub(crate) seconds: f64,
}

/// A match of the final network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AtSimulations {
    /// A move; 0 is the raw policy.
    pub(crate) simulations: u32,
    pub(crate) report: MatchReport,
}

/// A network that was trained on a part of the corpus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OfShare {
    /// It learned from one in so many of the games, less the held-out ones.
    pub(crate) one_in: u64,
    /// Positions it was trained on.
    pub(crate) positions: u64,
    /// Validation of the weights that were kept, on the games held out of the whole corpus.
    pub(crate) validation: EpochReport,
    pub(crate) report: MatchReport,
}

impl Experiments {
    /// What is kept of a run's experiments; nothing if there is none.
    pub(crate) fn read(layout: &Layout) -> Result<Self> {
        let folder = folder(layout);
        if !folder.join(FOUND).exists() {
            return Ok(Experiments::default());
        }
        read_json(&folder, FOUND)
    }

    /// Keeps it, unless the file says the same already.
    fn write(&self, layout: &Layout) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        put_if_new(&Store::open(folder(layout))?, FOUND, &text)?;
        Ok(())
    }
}

fn folder(layout: &Layout) -> PathBuf {
    layout.root().join("results")
}

/// Writes a file if that changes it; whether it did.
fn put_if_new(store: &Store, name: &str, bytes: &[u8]) -> Result<bool> {
    let new = !store.exists(name)? || store.get(name)? != bytes;
    if new {
        store.put(name, bytes)?;
    }
    Ok(new)
}

fn read_json<T: for<'de> Deserialize<'de>>(folder: &Path, name: &str) -> Result<T> {
    let store = Store::open_existing(folder)?;
    let content = |source| Error::Content { path: folder.join(name), source };
    serde_json::from_slice(&store.get(name)?).map_err(content)
}

/// The report of a match folder.
pub(crate) fn match_report(folder: &Path) -> Result<MatchReport> {
    read_json(folder, "report.json")
}

/// Makes the experiments that `[results]` asks for, as far as they are not made yet.
///
/// # Errors
/// A run without a network, whatever training and matches fail with, or a stop request.
pub fn results<G: Game>(profile: &Profile, layout: &Layout, stop: &Stop) -> Result<()> {
    let history = History::whole(profile, layout)?;
    let stages = Stages { profile, layout, stop };
    let mut lab = Lab { stages, seconds: BTreeMap::new() };
    let (config, last) = (&profile.results, best_network::<G>(stages)?);
    let mut found = Experiments::default();
    if let Some(corpus) = history.corpus.filter(|_| profile.refine.init == "pretrained") {
        let Amount { games, .. } = summary(&layout.corpus(), &corpus)?;
        for one_in in &config.shares {
            found.shares.push(lab.share::<G>(*one_in, games)?);
        }
    }
    for simulations in &config.simulations {
        let report = lab.against::<G>(&last, *simulations)?;
        found.simulations.push(AtSimulations { simulations: *simulations, report });
    }
    let first = initial::<G>(stages)?;
    if config.refined_games > 0 && last.fingerprint != first.fingerprint {
        found.refinement = Some(lab.refinement::<G>(&first, &last)?);
    }
    found.seconds = lab.seconds.values().sum();
    found.write(layout)
}

/// Where the experiments are made.
struct Lab<'a> {
    stages: Stages<'a>,
    /// Wall time of what was made here, by folder.
    seconds: BTreeMap<PathBuf, f64>,
}

impl Lab<'_> {
    /// The stamp of an experiment that is done.
    fn done(&mut self, dir: &Path) -> Result<Stamp> {
        let stamp = required(dir.to_owned(), "the experiment", "results")?;
        self.seconds.insert(dir.to_owned(), stamp.seconds);
        Ok(stamp)
    }

    /// A network against the opponent of all experiments.
    fn against<G: Game>(&mut self, network: &NetworkRef, simulations: u32) -> Result<MatchReport> {
        let mut profile = self.stages.profile.clone();
        let (config, eval) = (&self.stages.profile.results, &mut profile.eval);
        eval.games = config.games;
        eval.simulations = simulations;
        eval.movetime_ms = 0; // by simulations, and nothing else
        eval.elo = config.elo.unwrap_or(eval.elo);
        eval.limit = config.limit.unwrap_or(eval.limit);
        if G::NAME == Chess::NAME {
            eval.opponent = "engine".to_owned();
        }
        let weights: String = network.fingerprint.chars().take(8).collect();
        let name = format!("match_{weights}_{simulations:04}");
        let dir = folder(self.stages.layout).join(&name);
        let stages = Stages { profile: &profile, ..self.stages };
        evaluate::run::<G>(stages, network, &format!("results/{name}"), dir.clone(), 0)?;
        self.done(&dir)?;
        match_report(&dir)
    }

    /// The network that one pass over one in `one_in` of the corpus' games gives.
    fn share<G: Game>(&mut self, one_in: u64, games: u64) -> Result<OfShare> {
        let mut profile = self.stages.profile.clone();
        // From random weights, whatever the run's own network went on from.
        let from_random = std::mem::take(&mut profile.pretrain.init).is_empty();
        let whole = one_in == 1 && from_random && profile.pretrain.epochs <= 1 && profile.pretrain.max_steps == 0;
        let (report, dir): (TrainingReport, PathBuf) = if whole {
            // That is what the run itself has trained.
            let dir = self.stages.layout.pretrain();
            let stamp = required(dir.clone(), "the pre-trained network", "pretrain")?;
            (summary(&dir, &stamp)?, dir)
        } else {
            profile.pretrain.epochs = 1;
            profile.pretrain.max_steps = 0;
            let name = format!("one_in_{one_in}");
            let dir = folder(self.stages.layout).join(&name);
            let games = (one_in > 1).then_some(games / one_in);
            let lesson = Lesson { name: format!("results/{name}"), dir: dir.clone(), games };
            let report = learn::<G>(Stages { profile: &profile, ..self.stages }, &lesson)?;
            self.done(&dir)?;
            (report, dir)
        };
        let trained = required(dir.clone(), "the network", "results")?;
        let network = NetworkRef { fingerprint: fingerprint(&trained), dir };
        let State { place, .. } = State::of(Some(&Checkpoint::load(&Store::open_existing(&network.dir)?)?))?;
        let kept = report.epochs.iter().find(|e| e.epoch == report.best_epoch);
        Ok(OfShare {
            one_in,
            positions: place.positions,
            validation: kept.cloned().ok_or_else(|| Error::Stale {
                path: network.dir.clone(),
                what: "does not say which epoch it kept",
                stage: "pretrain",
            })?,
            report: self.against::<G>(&network, self.stages.profile.results.fixed_simulations)?,
        })
    }

    /// The final network against the one that refinement began with, over random openings as in the gate: two networks
    /// that search without noise would play the same game twice from the same opening.
    fn refinement<G: Game>(&mut self, first: &NetworkRef, last: &NetworkRef) -> Result<MatchReport> {
        let (profile, config) = (self.stages.profile, &self.stages.profile.results);
        let rules = GateConfig {
            games: config.refined_games,
            simulations: config.fixed_simulations.max(1),
            ..profile.gate.clone()
        };
        let settings = serde_json::json!({
            "game": G::NAME,
            "seed": profile.seed,
            "simulations": rules.simulations,
            "random_plies": rules.random_plies,
            "max_plies": rules.max_plies,
            "search": profile.search,
        });
        let inputs = [("refined", last), ("initial", first)]
            .map(|(role, network)| (role.to_owned(), network.fingerprint.clone()));
        let dir = folder(self.stages.layout).join("refinement");
        let mut spec = self.stages.spec("results/refinement", dir.clone(), settings, inputs.into());
        spec.growable.insert("games".to_owned(), u64::from(rules.games));
        if let Some(stage) = locked_stage(spec, self.stages.layout, None)? {
            let players = [(last, "refined"), (first, "initial")];
            let report = gate::duel::<G>(self.stages, "refinement", &rules, stage.dir(), 0, players)?;
            let summary = serde_json::json!({ "score": report.score, "text": report.to_string() });
            stage.finish(&pipeline::content_hash(&summary["score"]), summary)?;
        }
        self.done(&dir)?;
        match_report(&dir)
    }
}
