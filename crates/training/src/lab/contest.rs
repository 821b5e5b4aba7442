//! A match as a stage: done once, resumed after a kill, extended by more games.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arena::{MatchReport, MatchSpec, OpeningSource};
use games::{Chess, Rng};
use pipeline::{StageSpec, Stop};
use serde::{Deserialize, Serialize};

use super::config::{MatchConfig, MatchRules, PlayerConfig};
use super::player::Known;
use crate::Result;
use crate::matches::play;
use crate::profile::{Layout, content};
use crate::stages::{locked_stage, required, summary};
use crate::teacher::book_hash;

/// Plays the match of a file in `data/match/<name>`, or reads what it gave.
///
/// # Errors
/// A file that cannot be followed, a player that cannot be had or fails for good, or a stop request; finished games
/// stay where they are.
pub fn contest(config: &MatchConfig, root: &Path, name: &str, stop: &Stop) -> Result<MatchReport> {
    config.check()?;
    let rules = &config.r#match;
    let name = if rules.name.is_empty() { name } else { &rules.name };
    let bout = Bout {
        name: &format!("match/{name}"),
        folder: root.join(name),
        first: &config.first,
        second: &config.second,
        rules,
    };
    bout.play(&Layout::new(root), stop)
}

/// Two players, how they play, and where that is kept.
pub(crate) struct Bout<'a> {
    /// The stage's name.
    pub(crate) name: &'a str,
    pub(crate) folder: PathBuf,
    pub(crate) first: &'a PlayerConfig,
    pub(crate) second: &'a PlayerConfig,
    pub(crate) rules: &'a MatchRules,
}

/// The summary in the stage's stamp.
#[derive(Serialize, Deserialize)]
struct Summary {
    score: Option<f64>,
    text: String,
    report: MatchReport,
}

impl Bout<'_> {
    /// Plays what is left of the match, or reads its report.
    pub(crate) fn play(&self, layout: &Layout, stop: &Stop) -> Result<MatchReport> {
        let rules = self.rules;
        let first = Known::find("first", self.first, rules, stop)?;
        let second = Known::find("second", self.second, rules, stop)?;
        let Some(stage) = locked_stage(self.stage_spec(&first, &second)?, layout, None)? else {
            let stamp = required(self.folder.clone(), "the match", "match")?;
            return Ok(summary::<Summary>(&self.folder, &stamp)?.report);
        };
        let slots: Vec<PathBuf> =
            (0..rules.slots()).map(|slot| stage.dir().join("slots").join(slot.to_string())).collect();
        let a = first.contender("first", &slots, &rules.device)?;
        let b = second.contender("second", &slots, &rules.device)?;
        let mut spec = self.match_spec();
        spec.clocks = [first.clock, second.clock];
        spec.notes = [first.notes, second.notes].concat();
        let report = play::<Chess>(&spec, &a, &b, stage.dir(), stop)?;
        remove_empty(&stage.dir().join("slots"));
        let summary = Summary { score: report.score, text: report.to_string(), report };
        stage.finish(&pipeline::content_hash(&content(&summary, &[])), &summary)?;
        Ok(summary.report)
    }

    fn stage_spec(&self, first: &Known, second: &Known) -> Result<StageSpec> {
        let config =
            MatchConfig { first: self.first.clone(), second: self.second.clone(), r#match: self.rules.clone() };
        let mut inputs = BTreeMap::from([
            ("first".to_owned(), first.fingerprint.clone()),
            ("second".to_owned(), second.fingerprint.clone()),
        ]);
        if let OpeningSource::Book { path, .. } = &self.rules.openings {
            inputs
                .insert("book".to_owned(), book_hash(&path.to_string_lossy())?.as_str().unwrap_or_default().to_owned());
        }
        Ok(StageSpec {
            name: self.name.to_owned(),
            dir: self.folder.clone(),
            settings: serde_json::json!({
                "first": self.first,
                "second": self.second,
                "match": content(self.rules, &["name", "games", "concurrency", "answer_seconds", "device", "on_bad_shard"]),
            }),
            growable: BTreeMap::from([("games".to_owned(), self.rules.games)]),
            inputs,
            resolved_config: serde_json::to_value(config).unwrap_or_default(),
        })
    }

    fn match_spec(&self) -> MatchSpec {
        let rules = self.rules;
        MatchSpec {
            concurrency: rules.slots(),
            max_plies: rules.max_plies,
            openings: rules.openings.clone(),
            on_bad: rules.on_bad_shard.into(),
            adjudication: rules.adjudication,
            sprt: rules.sprt,
            margin: Duration::from_millis(rules.margin_ms),
            ..MatchSpec::new(self.name, rules.games, rules.seed ^ Rng::part("match"))
        }
    }
}

/// Removes the folders of the slots in which engines left nothing.
fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_empty(&entry.path());
        }
    }
    // A folder that holds something stays.
    let _ = std::fs::remove_dir(folder);
}
