//! Publishing: the best network of a run as a checkpoint by itself, which says how it was made.

use std::path::{Path, PathBuf};

use games::{Chess, Game};
use nn::{Best, Checkpoint, CheckpointInfo};
use pipeline::{Lock, STAMP_FILE, Stamp, Stop, Store, WHOLE};
use serde_json::{Value, json};

use crate::history::History;
use crate::profile::{Layout, Profile};
use crate::refine::{best_network, initial};
use crate::stages::Stages;
use crate::{Error, Result, origin};

/// Where `tabiya` and `configs/reference.toml` look for a network: for chess alone.
const REFERENCE: &str = "data/reference";

/// A network that was published.
#[derive(Clone, Debug)]
pub struct Published {
    /// Where it is.
    pub dir: PathBuf,
    /// Of its weights.
    pub fingerprint: String,
    /// Whether it was not there already.
    pub new: bool,
}

impl std::fmt::Display for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.new { "network" } else { "done already, network" };
        write!(f, "publish: {how} {} is in {}", self.fingerprint, self.dir.display())
    }
}

/// Copies the best network of a run to a checkpoint folder of its own, without the optimizer's state, and writes into
/// its `checkpoint.json` how it was made. `name` is the profile's, `set` the overrides that the run was made with. The
/// network that the folder held before is kept in `previous/`.
///
/// # Errors
/// A run without a network, one that the profile's settings would not make again, a folder that is another's, or a
/// network for another game in it.
pub fn publish<G: Game>(
    profile: &Profile,
    layout: &Layout,
    name: &str,
    set: &[String],
    to: &Path,
    stop: &Stop,
) -> Result<Published> {
    let stages = Stages { profile, layout, stop };
    let history = History::whole(profile, layout)?;
    let (first, best) = (initial::<G>(stages)?, best_network::<G>(stages)?);
    let refused = |path: &Path, why: String| Err(Error::Publish { path: path.to_owned(), why });
    if G::NAME != Chess::NAME && to == Path::new(REFERENCE) {
        let why = format!("{REFERENCE} is the network that plays chess; name another folder with --to");
        return refused(&best.dir, why);
    }
    if to.join(STAMP_FILE).exists() {
        return refused(to, "the folder is a stage's own; name another one with --to".to_owned());
    }
    let refined = best.fingerprint != first.fingerprint;
    let made = lineage(&history, refined.then_some(best.dir.as_path()), layout, &profile.refine.init);
    for (_, stamp) in &made {
        if let Some(difference) = difference(profile, stamp) {
            let why = format!(
                "{} was made with {difference}: publish with the settings of the run, so that the command in the \
                 checkpoint is the one that made it",
                stamp.stage
            );
            return refused(&best.dir, why);
        }
    }
    let checkpoint = Checkpoint::load(&Store::open_existing(&best.dir)?)?;
    if checkpoint.fingerprint() != best.fingerprint {
        return refused(&best.dir, "the weights are not those that the stage finished with".to_owned());
    }
    checkpoint.expect_game(G::SHAPE)?;
    let provenance = Origin { history: &history, made: &made, name, set, refined }.json(&best.fingerprint);

    let store = Store::open(to)?;
    let _lock = Lock::acquire(&Layout::new(to).locks().join("publish.lock"), WHOLE, "publish")
        .map_err(pipeline::StageError::Lock)?;
    let held = Checkpoint::find(&store)?;
    if let Some(held) = &held {
        held.expect_game(G::SHAPE)?;
    }
    let mut info = CheckpointInfo { loader: Value::Null, provenance, ..checkpoint.info.clone() };
    // As the profile has it now: constants of the search are found when there is a network to find them with.
    info.config["search"] = serde_json::to_value(profile.search).unwrap_or_default();
    let new = held.is_none_or(|held| {
        held.fingerprint() != best.fingerprint
            || held.info.provenance != info.provenance
            || held.info.config["search"] != info.config["search"]
    });
    if new {
        let network = checkpoint.best_network(&nn::select_device("cpu")?)?;
        Checkpoint::save_network(&store, &network, Best::Candidate, &info)?;
    }
    Ok(Published { dir: to.to_owned(), fingerprint: best.fingerprint, new })
}

/// The stages that led to a network: those before refinement, if it began with theirs, and the iterations up to the one
/// whose candidate it is.
fn lineage<'h>(history: &'h History, candidate: Option<&Path>, layout: &Layout, init: &str) -> Made<'h> {
    let is_candidate = |i: &usize| candidate == Some(layout.iteration(*i as u32, "train").as_path());
    let last = (1..=history.iterations.len()).find(is_candidate).unwrap_or(0);
    let refining = history.iterations[..last].iter().flatten();
    let with_corpus = refining.clone().any(|(_, stamp)| stamp.inputs.contains_key("corpus"));
    let stages = history.stages().into_iter().filter(|(name, kind, _)| match *kind {
        "eval" => false,
        "pretrain" => init == "pretrained",
        "corpus" => init == "pretrained" || with_corpus,
        _ => (1..=last).any(|i| name.starts_with(&format!("iteration {i}:"))),
    });
    stages.map(|(name, _, stamp)| (name, stamp)).collect()
}

/// Stages by their names for people.
type Made<'h> = Vec<(String, &'h Stamp)>;

/// What a network is from.
struct Origin<'a> {
    history: &'a History,
    /// The stages that made it.
    made: &'a [(String, &'a Stamp)],
    /// The profile's name.
    name: &'a str,
    set: &'a [String],
    refined: bool,
}

impl Origin<'_> {
    /// For `checkpoint.json`, which has the whole profile beside it.
    fn json(&self, network: &str) -> Value {
        let stages: Vec<Value> = self.made.iter().map(|(name, stamp)| origin::stage(name, stamp)).collect();
        let init = self.stage("pretrain").map_or(&Value::Null, |_| &self.history.init);
        let seconds: f64 = self.made.iter().map(|(_, stamp)| stamp.seconds).sum();
        let corpus = self.stage("corpus");
        let eval = self.history.eval.as_ref();
        let measured = eval.filter(|eval| eval.inputs.get("network").is_some_and(|n| n == network));
        let mut made = json!({
            "command": self.command(),
            "profile": self.name,
            "program": concat!("tabiya ", env!("CARGO_PKG_VERSION")),
            "stages": stages,
            "hours": origin::hours(seconds + origin::seconds_of(init)),
            "teacher": corpus.map(|stamp| &stamp.settings["engine"]),
            "limit": corpus.map(|stamp| &stamp.settings["corpus"]["limit"]),
            "games": corpus.map(|stamp| &stamp.summary["games"]),
            "positions": corpus.map(|stamp| &stamp.summary["positions"]),
            "corpus": corpus.and_then(|stamp| stamp.fingerprint.as_ref()),
            "eval": measured.map(|stamp| &stamp.summary["text"]),
        });
        if !init.is_null() {
            made["init"] = init.clone();
        }
        made
    }

    /// What a user types to make the network again.
    fn command(&self) -> String {
        let mut targets: Vec<&str> = ["corpus", "pretrain"].into_iter().filter(|t| self.stage(t).is_some()).collect();
        targets.extend(self.refined.then_some("refine"));
        let set = if self.set.is_empty() { String::new() } else { format!(" SET='{}'", self.set.join(" ")) };
        format!("make {} PROFILE={}{set}", targets.join(" "), self.name)
    }

    fn stage(&self, stage: &str) -> Option<&Stamp> {
        self.made.iter().find(|(name, _)| name == stage).map(|(_, stamp)| *stamp)
    }
}

/// The first setting of a stage that the profile says otherwise: `pretrain.batch = 16 (the profile says 32)`.
fn difference(profile: &Profile, stamp: &Stamp) -> Option<String> {
    let minimal = json!({ "game": profile.game, "net": {} });
    let defaults = serde_json::from_value::<Profile>(minimal).ok().and_then(|p| serde_json::to_value(p).ok());
    let (profile, defaults) = (serde_json::to_value(profile).unwrap_or_default(), defaults.unwrap_or_default());
    let name = stamp.stage.rsplit('/').next().unwrap_or_default();
    let games = stamp.growable.get("games").map(|games| json!({ name: { "games": games } }));
    differs("", &stamp.settings, &profile, &defaults).or_else(|| differs("", &games?, &profile, &profile))
}

/// Compares the settings of a stage with those of the profile that have the same keys. Beside the tables of the profile
/// a stage notes other things, and some in its own words (the engine's name for `[engine]`). A key that `defaults` lack is
/// only written where it is not at its default.
fn differs(path: &str, made: &Value, profile: &Value, defaults: &Value) -> Option<String> {
    let noted = !path.contains('.');
    match (made, profile) {
        (Value::Object(made), Value::Object(profile)) => {
            let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            let mut changed = made.iter().filter_map(|(key, value)| match profile.get(key) {
                None if path.is_empty() => None,
                said => differs(&inner(key), value, said.unwrap_or(&Value::Null), &defaults[key]),
            });
            let added = |(key, _): &(&String, &Value)| !made.contains_key(*key) && defaults.get(key).is_none();
            changed.next().or_else(|| {
                let (key, said) = profile.iter().filter(|_| !path.is_empty()).find(added)?;
                Some(format!("{} at its default (the profile says {said})", inner(key)))
            })
        }
        (_, Value::Object(_)) if noted => None,
        // What a profile leaves out follows from another table.
        (Value::Object(_), Value::Null) => None,
        _ if pipeline::content_hash(made) == pipeline::content_hash(profile) => None,
        _ => Some(format!("{path} = {made} (the profile says {profile})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named() {
        let made = json!({
            "engine": "Stockfish 15.1", "book": null, "iteration": 3, "seed": 1,
            "corpus": { "limit": { "nodes": 500 }, "adjudicate": null }, "relabel": { "limit": { "nodes": 500 } },
        });
        let profile = json!({
            "engine": { "path": "stockfish" }, "seed": 1, "net": { "blocks": 2 },
            "corpus": { "limit": { "nodes": 500 }, "adjudicate": null, "games": 10 }, "relabel": { "limit": null },
        });
        let defaults = json!({ "corpus": { "limit": { "nodes": 1 }, "adjudicate": null, "games": 1 }, "relabel": {} });
        assert_eq!(differs("", &made, &profile, &defaults), None);
        let changed = |table: &str, value: Value| {
            let mut profile = profile.clone();
            profile[table] = value;
            differs("", &made, &profile, &defaults).unwrap_or_default()
        };
        assert_eq!(changed("seed", json!(2)), "seed = 1 (the profile says 2)");
        let depth = json!({ "limit": { "depth": 8 }, "adjudicate": null });
        assert_eq!(changed("corpus", depth), "corpus.limit.nodes = 500 (the profile says null)");
        let adjudicated = json!({ "limit": { "nodes": 500 }, "adjudicate": { "score": 900 } });
        assert!(changed("corpus", adjudicated).starts_with("corpus.adjudicate = null"));
        let newer = json!({ "limit": { "nodes": 500 }, "adjudicate": null, "newer": "on" });
        assert_eq!(changed("corpus", newer), "corpus.newer at its default (the profile says \"on\")");
    }
}
