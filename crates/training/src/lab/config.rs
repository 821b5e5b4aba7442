//! What the TOML files of the lab may say. Unknown keys are errors.

mod features;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use arena::{Adjudication, OpeningSource, SprtSpec, TimeControl};
use search::SearchConfig;
use serde::{Deserialize, Serialize};
use uci::Limit;

pub use features::{FeatureRow, FeatureRules, FeaturesConfig};

use crate::profile::OnBadShard;
use crate::{Error, Result};

/// A match: who plays, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchConfig {
    /// Player A of the report, from whose view everything is counted.
    pub first: PlayerConfig,
    /// Player B.
    pub second: PlayerConfig,
    /// The match itself.
    #[serde(default)]
    pub r#match: MatchRules,
}

/// A player: an engine or a network, never both.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlayerConfig {
    /// What the report, the PGN and the records call it in place of the engine's own name or the network's: to tell two
    /// builds of one engine apart. Options and limits follow it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A UCI engine: `auto`, a name that is looked for (`stockfish`, `tabiya-ab`, `tabiya`), or a path.
    pub engine: String,
    /// Its command-line arguments. One with a slash that is a file or folder here is passed as its full path.
    pub args: Vec<String>,
    /// Its UCI options. `Threads` is 1 and `Hash` 16 where it has them and nothing else is said; paths as in `args`.
    pub options: BTreeMap<String, Setting>,
    /// Its `UCI_Elo`; full strength if absent.
    pub elo: Option<u32>,
    /// Its limit a move; the match's if absent.
    pub limit: Option<Limit>,
    /// Its clock, in place of a limit a move; the match's if absent.
    pub tc: Option<TimeControl>,
    /// A checkpoint folder, played by our own search.
    pub network: String,
    /// Simulations a move, before `search.simulations`; 0 plays the raw policy.
    pub simulations: Option<u32>,
    /// The network's search.
    pub search: Option<SearchConfig>,
}

/// The value of a UCI option: in TOML a text, a number or a boolean.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Check(bool),
    /// An integer.
    Spin(i64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Check(value) => value.fmt(f),
            Setting::Spin(value) => value.fmt(f),
            Setting::Text(value) => value.fmt(f),
        }
    }
}

/// How a match is played.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchRules {
    /// The folder under `data/match`; the name of the file if empty.
    pub name: String,
    /// Games, two an opening; with a test, the most. A larger number extends a match.
    pub games: u64,
    /// Seed of the order of the openings.
    pub seed: u64,
    /// Games at a time, each with players of its own; 0 is one per core.
    pub concurrency: usize,
    /// Limit a move of both engines, unless a player has its own.
    pub limit: Option<Limit>,
    /// Clock of both players, unless a player has its own clock or limit.
    pub tc: Option<TimeControl>,
    /// By how much a move may overstep its time, milliseconds.
    pub margin_ms: u64,
    /// Seconds within which an answer is due, on top of its time: then the engine counts as stalled.
    pub answer_seconds: f64,
    /// Where the openings come from.
    pub openings: OpeningSource,
    /// What is done about games of a book that cannot be played: `skip` them with a count, or `stop`.
    pub on_bad_shard: OnBadShard,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// When games end before their rules say so; never if absent.
    pub adjudication: Adjudication,
    /// Ends the match as soon as this test is decided.
    pub sprt: Option<SprtSpec>,
    /// Where networks run: `auto`, `cpu`, `cuda` or `metal`.
    pub device: String,
}

impl Default for MatchRules {
    fn default() -> Self {
        MatchRules {
            name: String::new(),
            games: 200,
            seed: 1,
            concurrency: 0,
            limit: None,
            tc: None,
            margin_ms: 500,
            answer_seconds: 60.0,
            openings: OpeningSource::Builtin {},
            on_bad_shard: OnBadShard::Skip,
            max_plies: 400,
            adjudication: Adjudication::default(),
            sprt: None,
            device: "auto".to_owned(),
        }
    }
}

/// An error that names a key of the file.
pub(crate) fn refuse<T>(key: impl Into<String>, reason: impl Into<String>) -> Result<T> {
    Err(Error::Lab { key: key.into(), reason: reason.into() })
}

impl MatchConfig {
    /// Checks what types cannot: that each player is one thing, and has what it needs.
    ///
    /// # Errors
    /// [`Error::Lab`] names the first key that no match can follow.
    pub fn check(&self) -> Result<()> {
        self.first.check("first", &self.r#match)?;
        self.second.check("second", &self.r#match)?;
        self.r#match.check("match")
    }
}

impl PlayerConfig {
    pub(crate) fn check(&self, side: &str, rules: &MatchRules) -> Result<()> {
        let key = |name: &str| format!("{side}.{name}");
        if self.name.len() > 80 || self.name.chars().any(char::is_control) || self.name.trim() != self.name {
            return refuse(key("name"), "expected a word or some, up to 80 bytes in one line");
        }
        match (self.engine.is_empty(), self.network.is_empty()) {
            (true, true) => return refuse(key("engine"), "expected an engine, or a `network` in its place"),
            (false, false) => return refuse(key("network"), "a player is an engine or a network, not both"),
            (false, true) => {
                if self.simulations.is_some() || self.search.is_some() {
                    return refuse(key("simulations"), "is for networks; an engine has `limit` or `tc`");
                }
                if self.limit.is_some() && self.tc.is_some() {
                    return refuse(key("tc"), "a player has a limit a move or a clock, not both");
                }
                if self.pace(rules) == (None, None) {
                    return refuse(
                        key("limit"),
                        "expected { nodes = N }, { depth = N } or { movetime_ms = N }, or a `tc`",
                    );
                }
            }
            (true, false) => {
                if !self.args.is_empty() || !self.options.is_empty() || self.elo.is_some() || self.limit.is_some() {
                    return refuse(
                        key("network"),
                        "takes `simulations`, `search` and `tc`; `args`, `options`, `elo` and `limit` are for engines \
                         (play it as one with engine = \"tabiya\", args = [\"--network\", FOLDER])",
                    );
                }
                let search = self.search();
                if search.simulations > 0
                    && let Err(error) = search.check()
                {
                    return refuse(key("search"), error.to_string());
                }
                if search.noise_weight > 0.0 || search.playout_cap.is_some() {
                    return refuse(
                        key("search"),
                        "noise and playout caps are for self-play; a match is played without",
                    );
                }
            }
        }
        Ok(())
    }

    /// Limit a move and clock: its own, or those of the match. A limit goes before a clock of the match.
    pub(crate) fn pace(&self, rules: &MatchRules) -> (Option<Limit>, Option<TimeControl>) {
        let network = !self.network.is_empty();
        match (self.limit, self.tc) {
            (None, Some(tc)) => (None, Some(tc)),
            (Some(limit), _) => (Some(limit), None),
            (None, None) if network || rules.tc.is_some() => (None, rules.tc),
            (None, None) => (rules.limit, None),
        }
    }

    /// The network's search.
    pub(crate) fn search(&self) -> SearchConfig {
        let search = self.search.unwrap_or_default();
        SearchConfig { simulations: self.simulations.unwrap_or(search.simulations), ..search }
    }
}

impl MatchRules {
    pub(crate) fn check(&self, table: &str) -> Result<()> {
        let key = |name: &str| format!("{table}.{name}");
        if self.limit.is_some() && self.tc.is_some() {
            return refuse(key("tc"), "a match has a limit a move or a clock, not both");
        }
        if self.games == 0 || !self.games.is_multiple_of(2) {
            return refuse(key("games"), format!("must be even and above 0, two games an opening; got {}", self.games));
        }
        if !nn::DEVICES.contains(&self.device.as_str()) {
            return refuse(key("device"), format!("expected one of {}, got {}", nn::DEVICES.join(", "), self.device));
        }
        if self.max_plies == 0 || self.max_plies > u32::from(u16::MAX) {
            return refuse(key("max_plies"), format!("must be in 1..=65535, got {}", self.max_plies));
        }
        if !(self.answer_seconds > 0.0 && self.answer_seconds < 1e6) {
            return refuse(key("answer_seconds"), format!("must be above 0, got {}", self.answer_seconds));
        }
        if let Some(fault) = self.adjudication.fault() {
            return refuse(key("adjudication"), fault);
        }
        if let Some(fault) = self.sprt.and_then(|sprt| sprt.fault()) {
            return refuse(key("sprt"), fault);
        }
        if let OpeningSource::Book { path, .. } = &self.openings
            && !path.is_file()
        {
            return refuse(key("openings"), format!("there is no book {}", path.display()));
        }
        check_name(&key("name"), &self.name)
    }

    /// Games at a time.
    pub(crate) fn slots(&self) -> usize {
        if self.concurrency > 0 {
            self.concurrency
        } else {
            std::thread::available_parallelism().map_or(1, |n| n.get())
        }
    }
}

/// A name that becomes a folder.
fn check_name(key: &str, name: &str) -> Result<()> {
    let folder = Path::new(name);
    if name.starts_with('.') || folder.components().count() > 1 || name.contains('/') {
        return refuse(key, format!("is the name of a folder and not a path, got \"{name}\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(first: &str, second: &str, rules: &str) -> std::result::Result<MatchConfig, String> {
        let text = format!("[first]\n{first}\n[second]\n{second}\n[match]\n{rules}\n");
        let config: MatchConfig = pipeline::parse_config(&text, "m.toml", &[]).map_err(|e| e.to_string())?;
        config.check().map_err(|e| e.to_string())?;
        Ok(config)
    }

    const ENGINE: &str = "engine = \"tabiya-ab\"\noptions = { NullMove = false, Hash = 8, Style = \"Solid\" }";
    const NETWORK: &str = "network = \"data/cpu/pretrain\"\nsimulations = 100\nsearch = { c_puct = 1.5 }";

    #[test]
    fn players_are_an_engine_or_a_network() {
        let config = config(ENGINE, NETWORK, "limit = { nodes = 2000 }\nsprt = { elo0 = 0, elo1 = 5 }").unwrap();
        let options: Vec<String> = config.first.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(options, ["Hash=8", "NullMove=false", "Style=Solid"]);
        assert_eq!(config.first.pace(&config.r#match), (Some(Limit::Nodes(2000)), None));
        assert_eq!(config.second.pace(&config.r#match), (None, None), "a network has its simulations");
        assert_eq!((config.second.search().simulations, config.second.search().c_puct), (100, 1.5));
    }

    #[test]
    fn a_players_own_pace_goes_before_the_matchs() {
        let own = |first: &str, rules: &str| {
            let config = config(&format!("engine = \"x\"\n{first}"), ENGINE, rules).unwrap();
            (config.first.pace(&config.r#match), config.second.pace(&config.r#match))
        };
        let (tc, nodes) = (Some("2+0.1".parse().unwrap()), Some(Limit::Nodes(5)));
        assert_eq!(own("", "tc = \"2+0.1\""), ((None, tc), (None, tc)));
        assert_eq!(own("limit = { nodes = 5 }", "tc = \"2+0.1\""), ((nodes, None), (None, tc)));
        assert_eq!(own("tc = \"2+0.1\"", "limit = { nodes = 5 }"), ((None, tc), (nodes, None)));
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        let limit = "limit = { nodes = 5 }";
        for (first, rules, named) in [
            ("", limit, "`first.engine`"),
            ("engine = \"x\"\nnetwork = \"y\"", limit, "`first.network`"),
            ("engine = \"x\"", "", "`first.limit`"),
            ("engine = \"x\"\nsimulations = 5", limit, "`first.simulations`"),
            ("network = \"y\"\nelo = 1500", limit, "`first.network`"),
            ("network = \"y\"\nsearch = { c_puct = -1.0 }", limit, "`first.search`"),
            ("network = \"y\"\nsearch = { noise_weight = 0.25 }", limit, "`first.search`"),
            ("engine = \"x\"\nlimit = { nodes = 0 }", "", "first.limit"),
            ("engine = \"x\"\nlimit = { nodes = 5 }\ntc = \"1\"", "", "`first.tc`"),
            ("engine = \"x\"\nengin = \"y\"", limit, "`first.engin`"),
            (ENGINE, "limit = { nodes = 5 }\ngames = 3", "`match.games`"),
            (ENGINE, "limit = { nodes = 5 }\nname = \"../x\"", "`match.name`"),
            (ENGINE, "limit = { nodes = 5 }\nsprt = { elo0 = 5, elo1 = 0 }", "`match.sprt`"),
            (ENGINE, "limit = { nodes = 5 }\nsprt = { elo0 = 0, elo1 = 5, model = \"glicko\" }", "match.sprt.model"),
            (ENGINE, "limit = { nodes = 5 }\nopenings = { source = \"book\", path = \"no.epd\" }", "`match.openings`"),
            (ENGINE, "tc = \"1:30\"", "match.tc"),
            (ENGINE, "limit = { nodes = 5 }\ndevice = \"tpu\"", "`match.device`"),
        ] {
            let error = config(first, ENGINE, rules).unwrap_err();
            assert!(error.contains(named), "{named} is not in {error}");
        }
    }
}
