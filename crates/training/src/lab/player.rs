//! A player of the lab's matches: found, asked who it is, and made once for each slot.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arena::TimeControl;
use games::Chess;
use nn::Checkpoint;
use pipeline::{Stop, Store};
use search::SearchConfig;
use uci::{Deadlines, Engine, EngineSpec, FoundEngine, Limit, OptionKind, OptionTable};

use super::config::{MatchRules, PlayerConfig, refuse};
use crate::engines::{say_unset, stand_in_note};
use crate::matches::Contender;
use crate::stages::{NetworkRef, file_hash};
use crate::{Error, Result};

/// What every engine of a match gets where it has such an option and the file does not say otherwise.
const DEFAULTS: [(&str, &str); 2] = [("Threads", "1"), ("Hash", "16")];

/// A player that is known, but not made yet.
pub(crate) struct Known {
    kind: Kind,
    /// What its games depend on beside the settings: an engine's name and executable, or a network's weights.
    pub(crate) fingerprint: String,
    /// Its clock, if it plays on one.
    pub(crate) clock: Option<TimeControl>,
    /// What a reader of the report has to know about it.
    pub(crate) notes: Vec<String>,
}

enum Kind {
    Engine { spec: EngineSpec, limit: Option<Limit>, name: String },
    Network { network: NetworkRef, name: String, search: SearchConfig },
}

impl Known {
    /// Finds a player. `side` is its table in the file, for errors and for the folders of its slots.
    ///
    /// # Errors
    /// No such engine or checkpoint, an engine that does not start, or an option that it does not have.
    pub(crate) fn find(side: &str, config: &PlayerConfig, rules: &MatchRules, stop: &Stop) -> Result<Self> {
        if config.network.is_empty() {
            return Known::engine(side, config, rules, stop);
        }
        let network = NetworkRef::at(Path::new(&config.network))
            .map_err(|error| Error::Lab { key: format!("{side}.network"), reason: error.to_string() })?;
        let (fingerprint, search) = (network.fingerprint.clone(), config.search());
        let (_, clock) = config.pace(rules);
        let own = network.name();
        let mut name = called(config, &own).to_owned();
        for setting in unusual(&search) {
            name.push(' ');
            name.push_str(&setting);
        }
        if let Some(clock) = clock {
            name.push_str(&format!(" tc={clock}"));
        }
        Ok(Known {
            kind: Kind::Network { network, name, search },
            fingerprint,
            clock,
            notes: renamed(config, &own).into_iter().collect(),
        })
    }

    fn engine(side: &str, config: &PlayerConfig, rules: &MatchRules, stop: &Stop) -> Result<Self> {
        let FoundEngine { name, path, stands_in } = uci::choose_engine(&config.engine)?;
        // A slot's folder is not this one.
        let path = full_path(&path)?;
        let mut spec = EngineSpec::new(&path).interrupt(stop.flag());
        spec.args = config.args.iter().map(|arg| here(arg)).collect::<Result<_>>()?;
        spec.deadlines = Deadlines::of_answer(Duration::from_secs_f64(rules.answer_seconds));
        spec.deadlines.margin = Duration::from_millis(rules.margin_ms);
        let (id, table) = {
            let engine = Engine::start(&spec)?;
            (engine.name().to_owned(), engine.option_table().clone())
        };
        let (options, shown) = options(side, config, &id, &table)?;
        let mut fingerprint = format!("{id} {}", file_hash(&path)?);
        let mut label = vec![called(config, &id).to_owned()];
        for (text, full) in config.args.iter().zip(&spec.args) {
            if let Some(content) = content_behind(full)? {
                label.push(format!("{text}={content:.8}"));
                fingerprint.push_str(&format!(" {content}"));
            }
        }
        for (_, value) in &options {
            if let Some(content) = content_behind(value)? {
                fingerprint.push_str(&format!(" {content}"));
            }
        }
        label.extend(shown);
        spec.options = options;
        let (limit, clock) = config.pace(rules);
        match (limit, clock) {
            (Some(limit), _) => label.push(limit.to_string()),
            (None, Some(clock)) => label.push(format!("tc={clock}")),
            (None, None) => {}
        }
        if stands_in {
            pipeline::say!("{side}: no Stockfish was found, {id} ({name} at {}) plays in its place", path.display());
        }
        Ok(Known {
            kind: Kind::Engine { spec, limit, name: label.join(" ") },
            fingerprint,
            clock,
            notes: renamed(config, &id).into_iter().chain(stands_in.then(|| stand_in_note(&id))).collect(),
        })
    }

    /// The player as it can be made. Engines run in `folders`, one a slot, with `side` as their own part of it.
    ///
    /// # Errors
    /// Weights that do not load, or folders that cannot be made.
    pub(crate) fn contender(&self, side: &str, slots: &[PathBuf], device: &str) -> Result<Contender> {
        Ok(match &self.kind {
            Kind::Network { network, name, search } => {
                Contender::of_model(network.model::<Chess>(device)?, name, *search)
            }
            Kind::Engine { spec, limit, name } => {
                let folders: Vec<PathBuf> = slots.iter().map(|slot| slot.join(side)).collect();
                for folder in &folders {
                    std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.clone(), source })?;
                }
                let (spec, name) = (spec.clone(), name.clone());
                Contender::SlotEngine { spec, limit: *limit, name, folders }
            }
        })
    }
}

/// What a player is called: as the file says, else by its own name.
fn called<'a>(config: &'a PlayerConfig, own: &'a str) -> &'a str {
    if config.name.is_empty() { own } else { &config.name }
}

/// Who a player is that the file has given another name.
fn renamed(config: &PlayerConfig, own: &str) -> Option<String> {
    (!config.name.is_empty()).then(|| format!("{} is {own}", config.name))
}

/// An engine's options as they are set, and as they stand in its name.
type Options = (Vec<(String, String)>, Vec<String>);

/// The options of an engine, checked against what it declares.
fn options(side: &str, config: &PlayerConfig, id: &str, table: &OptionTable) -> Result<Options> {
    let (mut set, mut shown) = (Vec::new(), Vec::new());
    let mut add = |name: &str, value: String, text: String| {
        set.push((name.to_owned(), value));
        shown.push(format!("{name}={text}"));
    };
    let asked = |name: &str| config.options.keys().any(|o| o.trim().eq_ignore_ascii_case(name));
    let mut unset = Vec::new();
    for (name, value) in DEFAULTS {
        match table.check(name, value) {
            _ if asked(name) => {}
            Ok(()) => add(name, value.to_owned(), value.to_owned()),
            Err(_) if table.get(name).is_none() => unset.push(name.to_owned()),
            // What the engine has of itself is as good.
            Err(_) => {}
        }
    }
    say_unset(side, id, &unset);
    for (name, value) in &config.options {
        let text = value.to_string();
        let kind = table.get(name).map(|option| &option.kind);
        let value = if matches!(kind, Some(OptionKind::Text { .. })) { here(&text)? } else { text.clone() };
        if let Err(fault) = table.check(name, &value) {
            return refuse(format!("{side}.options.{name}"), format!("{id}: {fault}"));
        }
        add(name, value, text);
    }
    if let Some(elo) = config.elo {
        if table.get("UCI_Elo").is_none() {
            return refuse(
                format!("{side}.elo"),
                format!("{id} has no option UCI_Elo and cannot play at a rating: leave `elo` out and set a limit"),
            );
        }
        if let Err(fault) = table.check("UCI_Elo", &elo.to_string()) {
            return refuse(format!("{side}.elo"), format!("{id}: {fault}"));
        }
        if table.get("UCI_LimitStrength").is_some() {
            set.push(("UCI_LimitStrength".to_owned(), "true".to_owned()));
        }
        set.push(("UCI_Elo".to_owned(), elo.to_string()));
        shown.push(format!("UCI_Elo={elo}"));
    }
    Ok((set, shown))
}

/// The settings of a search that are not the default's, simulations apart.
fn unusual(search: &SearchConfig) -> Vec<String> {
    let fields = |search: &SearchConfig| serde_json::to_value(search).unwrap_or_default();
    let (own, usual) = (fields(search), fields(&SearchConfig::default()));
    let own = own.as_object().into_iter().flatten();
    own.filter(|(name, value)| *name != "simulations" && usual.get(name.as_str()) != Some(value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// A text with a slash that is a file or folder here, as its full path; any other as it is.
fn here(text: &str) -> Result<String> {
    let path = Path::new(text);
    if text.contains('/') && path.exists() { Ok(full_path(path)?.display().to_string()) } else { Ok(text.to_owned()) }
}

/// What lies at the full path that an argument or option was found to be: a file's content or a network's weights. What other
/// folders hold is not looked at.
fn content_behind(text: &str) -> Result<Option<String>> {
    let path = Path::new(text);
    Ok(match path {
        path if !path.is_absolute() => None,
        path if path.is_file() => Some(file_hash(path)?),
        // Other folders hold what they hold; a network that is there and cannot be read is no player.
        path if path.is_dir() => Checkpoint::find(&Store::open_existing(path)?)?.map(|network| network.fingerprint()),
        _ => None,
    })
}

fn full_path(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_networks_name_tells_what_is_unusual_about_its_search() {
        assert!(unusual(&SearchConfig { simulations: 7, ..SearchConfig::default() }).is_empty());
        let search = SearchConfig { c_puct: 1.5, reuse_tree: false, ..SearchConfig::default() };
        assert_eq!(unusual(&search), ["c_puct=1.5", "reuse_tree=false"]);
    }

    #[test]
    fn paths_of_this_folder_are_made_full_and_other_words_are_not() {
        let folder = std::env::current_dir().unwrap();
        assert_eq!(here("src/lab.rs").unwrap(), folder.join("src/lab.rs").display().to_string());
        for word in ["src", "no/such/file", "--network", ""] {
            assert_eq!(here(word).unwrap(), word);
        }
    }
}
