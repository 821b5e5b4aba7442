//! The `policy` stages: a policy network that orders the moves of the alpha-beta engine.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use uci::Limit;

use super::{CorpusConfig, EngineConfig};

/// The `policy` stages. All of them, and every column of their data, speak of the same positions: those of `plies` in
/// the games of `where`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// The UCI engine that plays the games. Without a `path` it is ours, `tabiya-ab`, with its own `Policy` off.
    #[serde(deserialize_with = "ours_unless_named")]
    pub engine: EngineConfig,
    /// SQL condition on the games that are labelled and learnt; all if empty.
    #[serde(rename = "where")]
    pub filter: String,
    /// Only this many first plies of a game are labelled and learnt.
    pub plies: usize,
    /// The games; the keys are those of `corpus`.
    pub games: CorpusConfig,
    /// The moves that are to be learnt.
    pub labels: PolicyLabels,
    /// Training.
    pub training: PolicyTraining,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        PolicyConfig {
            engine: ours(),
            // Games that hit the ply cap have no result.
            filter: "result <> 0".to_owned(),
            plies: 40,
            games: CorpusConfig::default(),
            labels: PolicyLabels::default(),
            training: PolicyTraining::default(),
        }
    }
}

/// The `labels` step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyLabels {
    /// The UCI engine that is asked for its moves; `policy.engine` if absent, and ours if it has no `path`.
    #[serde(deserialize_with = "another")]
    pub engine: Option<EngineConfig>,
    /// Its limit a move.
    pub limit: Limit,
    /// Engine processes; 0 is one per core.
    pub workers: usize,
}

impl Default for PolicyLabels {
    fn default() -> Self {
        PolicyLabels { engine: None, limit: Limit::Depth(8), workers: 0 }
    }
}

/// The `train` step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyTraining {
    /// Most passes over the positions.
    pub epochs: u64,
    /// Positions a step.
    pub batch: usize,
    /// Highest learning rate, after the warm-up.
    pub peak_lr: f64,
    /// Learning rate at the last step.
    pub end_lr: f64,
    /// AdamW's decay, on weights only.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 for no clipping.
    pub clip_norm: f64,
    /// Fraction of the games held out.
    pub holdout: f64,
    /// Epochs without a better validation loss after which training stops.
    pub patience: u64,
    /// Samples in the shuffle pool.
    pub pool: usize,
    /// Whether the symmetries of the board that leave position and move legal make further samples.
    pub augment: bool,
    /// Drop positions already seen in the epoch.
    pub drop_duplicates: bool,
    /// Steps between checkpoints; one is written every minute too.
    pub checkpoint_steps: u64,
}

impl Default for PolicyTraining {
    fn default() -> Self {
        PolicyTraining {
            epochs: 10,
            batch: 256,
            peak_lr: 2e-3,
            end_lr: 2e-5,
            weight_decay: 1e-2,
            clip_norm: 5.0,
            holdout: 0.2,
            patience: 3,
            pool: 131_072,
            augment: true,
            drop_duplicates: false,
            checkpoint_steps: 2000,
        }
    }
}

/// Our own engine: it is looked for beside this program too.
const OURS: &str = "tabiya-ab";

/// An engine that learns from itself does so without what it learnt before.
fn ours() -> EngineConfig {
    EngineConfig {
        path: OURS.to_owned(),
        options: [("Policy".to_owned(), "false".to_owned())].into(),
        ..EngineConfig::default()
    }
}

fn ours_unless_named<'de, D: Deserializer<'de>>(given: D) -> Result<EngineConfig, D::Error> {
    let mut given = Map::deserialize(given)?;
    if !given.contains_key("path") {
        given.insert("path".to_owned(), json!(OURS));
        if let Value::Object(options) = given.entry("options").or_insert(json!({})) {
            options.entry("Policy").or_insert(json!("false"));
        }
    }
    EngineConfig::deserialize(Value::Object(given)).map_err(D::Error::custom)
}

fn another<'de, D: Deserializer<'de>>(given: D) -> Result<Option<EngineConfig>, D::Error> {
    // The resolved configuration of a run, read back, says null.
    #[derive(Deserialize)]
    struct Named(#[serde(deserialize_with = "ours_unless_named")] EngineConfig);
    Ok(Option::<Named>::deserialize(given)?.map(|named| named.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> PolicyConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_engine_without_a_path_is_ours_and_plays_without_its_policy() {
        let off = |engine: &EngineConfig| (engine.path.clone(), engine.options.get("Policy").cloned());
        let ours = ("tabiya-ab".to_owned(), Some("false".to_owned()));
        let config =
            read(json!({ "engine": { "hash_mb": 64 }, "labels": { "engine": { "options": { "Null": "1" } } } }));
        assert_eq!((off(&config.engine), config.engine.hash_mb), (ours.clone(), 64));
        assert_eq!(off(&config.labels.engine.unwrap()), ours);
        assert_eq!(off(&read(json!({})).engine), ours);
        assert!(read(json!({})).labels.engine.is_none());
        let named = read(json!({ "labels": { "engine": { "path": "stockfish" } } })).labels.engine.unwrap();
        assert_eq!(off(&named), ("stockfish".to_owned(), None));
        let wish = read(json!({ "engine": { "options": { "Policy": "true" } } }));
        assert_eq!(wish.engine.options["Policy"], "true");
        let error = serde_json::from_value::<PolicyConfig>(json!({ "engine": { "hash": 1 } })).unwrap_err();
        assert!(error.to_string().contains("unknown field `hash`"), "{error}");
        // What is saved beside a stage reads back as it was.
        let saved = serde_json::to_value(read(json!({}))).unwrap();
        assert_eq!(serde_json::to_value(read(saved.clone())).unwrap(), saved);
    }
}
