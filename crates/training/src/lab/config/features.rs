//! What the TOML file of a table of features may say. Unknown keys are errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uci::Limit;

use super::{MatchRules, Setting, refuse};
use crate::Result;

/// What the features of an engine are worth: it plays itself, without one on the other side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesConfig {
    /// The engine, and what its matches share.
    #[serde(default)]
    pub features: FeatureRules,
    /// A match each.
    #[serde(default)]
    pub row: Vec<FeatureRow>,
}

/// What the matches of a table of features share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeatureRules {
    /// The engine, as in [`super::PlayerConfig::engine`].
    pub engine: String,
    /// Its command-line arguments.
    pub args: Vec<String>,
    /// Options of both sides in all rows.
    pub options: BTreeMap<String, Setting>,
    /// Games a row, two an opening.
    pub games: u64,
    /// Limit a move, unless a row has its own.
    pub limit: Limit,
    /// Whether each check option that is on by default and in no row gets a row too.
    pub every_check: bool,
    /// Seed of the order of the openings.
    pub seed: u64,
    /// Games at a time; 0 is one per core.
    pub concurrency: usize,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// By how much a move may overstep its time, milliseconds.
    pub margin_ms: u64,
    /// The markdown document.
    pub out: PathBuf,
}

impl Default for FeatureRules {
    fn default() -> Self {
        FeatureRules {
            engine: "tabiya-ab".to_owned(),
            args: Vec::new(),
            options: BTreeMap::new(),
            games: 200,
            limit: Limit::Nodes(20_000),
            every_check: true,
            seed: 1,
            concurrency: 0,
            max_plies: 400,
            margin_ms: 500,
            out: PathBuf::from("docs/features.md"),
        }
    }
}

/// One feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureRow {
    /// What it is called in the table, and its folder.
    pub name: String,
    /// The option that takes it away.
    pub option: String,
    /// The option's value on the side without the feature; `false` if absent.
    #[serde(default = "off")]
    pub value: Setting,
    /// More options that are changed on that side, where one alone is not the feature.
    #[serde(default)]
    pub without: BTreeMap<String, Setting>,
    /// Options of both sides that the feature needs; the option itself too, where it is off by default.
    #[serde(default)]
    pub with: BTreeMap<String, Setting>,
    /// Limit a move; that of the table if absent.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Games; those of the table if absent.
    #[serde(default)]
    pub games: Option<u64>,
}

fn off() -> Setting {
    Setting::Check(false)
}

impl FeaturesConfig {
    /// Checks what types cannot.
    ///
    /// # Errors
    /// [`crate::Error::Lab`] names the first key that cannot be followed.
    pub fn check(&self) -> Result<()> {
        let mut seen = Vec::new();
        for row in &self.row {
            let folder = row.folder();
            if folder.is_empty() || seen.contains(&folder) {
                return refuse("row.name", format!("\"{}\": expected a name that no other row has", row.name));
            }
            seen.push(folder);
            let with = self.with_feature(row);
            for (changed, value) in row.changes() {
                if with.iter().any(|(name, other)| name.eq_ignore_ascii_case(changed) && other == value) {
                    return refuse("row.value", format!("\"{}\": both sides have {changed}={value}", row.name));
                }
            }
        }
        if self.row.is_empty() && !self.features.every_check {
            return refuse("row", "expected rows, or features.every_check = true");
        }
        self.rules(None).check("features")
    }

    /// Options of the side that has a row's feature.
    pub(crate) fn with_feature(&self, row: &FeatureRow) -> BTreeMap<String, Setting> {
        let mut options = self.features.options.clone();
        options.extend(row.with.iter().map(|(name, value)| (name.clone(), value.clone())));
        options
    }

    /// Options of the side that lacks it.
    pub(crate) fn without_feature(&self, row: &FeatureRow) -> BTreeMap<String, Setting> {
        let mut options = self.with_feature(row);
        for (changed, value) in row.changes() {
            options.retain(|name, _| !name.eq_ignore_ascii_case(changed));
            options.insert(changed.to_owned(), value.clone());
        }
        options
    }

    /// The rules of a row's match.
    pub(crate) fn rules(&self, row: Option<&FeatureRow>) -> MatchRules {
        let shared = &self.features;
        MatchRules {
            games: row.and_then(|row| row.games).unwrap_or(shared.games),
            seed: shared.seed,
            concurrency: shared.concurrency,
            limit: Some(row.and_then(|row| row.limit).unwrap_or(shared.limit)),
            max_plies: shared.max_plies,
            margin_ms: shared.margin_ms,
            ..MatchRules::default()
        }
    }
}

impl FeatureRow {
    /// What is changed on the side without the feature, the row's own option first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&str, &Setting)> {
        let more = self.without.iter().map(|(name, value)| (name.as_str(), value));
        std::iter::once((self.option.as_str(), &self.value)).chain(more)
    }

    /// Its folder: the name in small letters, with a dash for all that is neither letter nor digit.
    pub(crate) fn folder(&self) -> String {
        let dashed: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
        dashed.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_features() {
        let read = |text: &str| -> std::result::Result<FeaturesConfig, String> {
            let config: FeaturesConfig = pipeline::parse_config(text, "f.toml", &[]).map_err(|e| e.to_string())?;
            config.check().map(|()| config).map_err(|e| e.to_string())
        };
        let config = read(
            "[features]\ngames = 20\noptions = { Hash = 4 }\n[[row]]\nname = \"Null move (R = 3)\"\noption = \"NullMove\"\n\
             limit = { movetime_ms = 20 }\n[[row]]\nname = \"policy\"\noption = \"Policy\"\nwith = { Policy = true }\n\
             games = 40",
        )
        .unwrap();
        let [null, policy] = &config.row[..] else { panic!("two rows") };
        assert_eq!((null.folder().as_str(), &null.value), ("null-move-r-3", &Setting::Check(false)));
        assert_eq!(config.rules(Some(policy)).games, 40);
        assert_eq!(config.with_feature(policy).len(), 2);
        assert!(matches!(config.rules(Some(null)).limit, Some(Limit::MoveTime(_))));
        for (text, named) in [
            ("[features]\nevery_check = false", "`row`"),
            ("[[row]]\nname = \"a\"\noption = \"A\"\n[[row]]\nname = \"A\"\noption = \"B\"", "`row.name`"),
            ("[[row]]\nname = \"a\"\noption = \"A\"\nwith = { A = false }", "`row.value`"),
            ("[[row]]\nname = \"a\"", "option"),
            ("[features]\ngames = 5", "`features.games`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{named} is not in {error}");
        }
    }
}
