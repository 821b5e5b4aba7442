//! Configuration: one TOML file, overrides from the command line, and errors that name the file, the line, the full
//! key and what was expected.
//!
//! The configuration types belong to the stages; they refuse unknown keys with `#[serde(deny_unknown_fields)]`.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: not valid TOML: {message}")]
    Syntax {
        /// File and line.
        place: String,
        /// What the parser expected.
        message: String,
    },
    /// A key is unknown or missing, or its value has a wrong type or range.
    #[error("{place}: `{key}`: {message}")]
    Key {
        /// File and line, or the override that set the key.
        place: String,
        /// The full path of the key, `corpus.engine.nodes`.
        key: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// An override is not of the form `KEY=VALUE`, or its key leads through a plain value.
    #[error("--set {text}: {message}")]
    Override {
        /// As typed.
        text: String,
        /// What was expected.
        message: String,
    },
}

/// Reads a TOML file into `T` with `overrides` of the form `a.b=VALUE` applied, in order.
///
/// `VALUE` is read as a TOML value, and as a string when it is not one, so that `--set net.kind=resnet` needs no
/// quotes. An override may name a key that the file does not set.
///
/// # Errors
/// [`ConfigError`], naming file, line and key.
pub fn load_config<T: DeserializeOwned>(path: &Path, overrides: &[String]) -> Result<T, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
    parse_config(&text, &path.display().to_string(), overrides)
}

/// As [`load_config`] from a text; `name` stands for the file in messages.
///
/// # Errors
/// As [`load_config`], but for reading.
pub fn parse_config<T: DeserializeOwned>(text: &str, name: &str, overrides: &[String]) -> Result<T, ConfigError> {
    // Editors on some systems put a byte-order mark first, which TOML does not allow.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut table: Table = toml::from_str(text).map_err(|e| ConfigError::Syntax {
        place: place(name, e.span().map(|span| line_of(text, span.start))),
        message: e.message().to_string(),
    })?;
    let mut overridden = Vec::new();
    for given in overrides {
        overridden.push((apply(&mut table, given)?, given));
    }
    T::deserialize(Value::Table(table)).map_err(|e| {
        let (key, message) = key_and_message(&e);
        // The last override of the key, of a table above it, or of something below it is what the user has to mend.
        let culprit = overridden.iter().rev().find(|(set, _)| is_prefix(set, &key) || is_prefix(&key, set));
        let place = match culprit {
            Some((_, given)) => format!("{name} with --set {given}"),
            None => place(name, line_of_key(text, &key)),
        };
        ConfigError::Key { place, key: key.join("."), message }
    })
}

/// Sets one `a.b=VALUE` in the table and returns its key.
fn apply(table: &mut Table, given: &str) -> Result<Vec<String>, ConfigError> {
    let fail = |message: String| ConfigError::Override { text: given.to_string(), message };
    let expected = "expected KEY=VALUE, for example corpus.games=1000";
    let (key, value) = given.split_once('=').ok_or_else(|| fail(expected.to_string()))?;
    let path: Vec<String> = key.trim().split('.').map(|part| part.trim().to_string()).collect();
    if path.iter().any(String::is_empty) {
        return Err(fail(expected.to_string()));
    }
    let Some((last, tables)) = path.split_last() else { return Err(fail(expected.to_string())) };
    let mut current = table;
    for (depth, part) in tables.iter().enumerate() {
        let next = current.entry(part.clone()).or_insert_with(|| Value::Table(Table::new()));
        let kind = next.type_str();
        current = next
            .as_table_mut()
            .ok_or_else(|| fail(format!("`{}` is a value ({kind}), not a table", path[..=depth].join("."))))?;
    }
    current.insert(last.clone(), parse_value(value.trim()));
    Ok(path)
}

/// A TOML value, or the text itself as a string.
fn parse_value(text: &str) -> Value {
    let parsed: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
    match parsed {
        // More than one key would mean a line break in the text.
        Some(mut table) if table.len() == 1 => table.remove("value").unwrap_or_else(|| Value::String(text.to_string())),
        _ => Value::String(text.to_string()),
    }
}

/// The full key of a deserialization error, and its message in one line.
fn key_and_message(error: &toml::de::Error) -> (Vec<String>, String) {
    let message = error.message().trim().to_string();
    // Only the displayed form carries the tables that lead to the error, as a last line "in `a.b`".
    let shown = error.to_string();
    let tables = shown.lines().last().and_then(|line| line.strip_prefix("in `")?.strip_suffix('`')).unwrap_or_default();
    let mut key: Vec<String> = tables.split('.').filter(|part| !part.is_empty()).map(str::to_string).collect();
    for start in ["unknown field `", "missing field `"] {
        if let Some((field, _)) = message.strip_prefix(start).and_then(|rest| rest.split_once('`')) {
            key.push(field.to_string());
        }
    }
    (key, message.replace('\n', " "))
}

fn is_prefix(short: &[String], long: &[String]) -> bool {
    !short.is_empty() && long.starts_with(short)
}

fn place(name: &str, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{name}:{line}"),
        None => name.to_string(),
    }
}

/// The line (from 1) of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|b| *b == b'\n').count()
}

/// The line on which the deepest part of `key` that the text has is written.
fn line_of_key(text: &str, key: &[String]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut line = None;
    for part in key {
        let Some((name, value)) = table.iter().find(|(name, _)| *name.get_ref() == part.as_str()) else { break };
        line = Some(line_of(text, name.span().start));
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    line
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        corpus: Corpus,
        #[serde(default)]
        names: BTreeMap<String, u32>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Corpus {
        games: u64,
        rate: f64,
        engine: Option<Engine>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Engine {
        path: String,
    }

    const TEXT: &str = "[corpus]\ngames = 10\nrate = 1\n\n[corpus.engine]\npath = \"x\"\n";

    fn load(text: &str, overrides: &[&str]) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu.toml");
        std::fs::write(&path, text).unwrap();
        load_config(&path, &overrides.iter().map(|s| s.to_string()).collect::<Vec<_>>())
    }

    fn message(text: &str, overrides: &[&str]) -> String {
        load(text, overrides).unwrap_err().to_string()
    }

    #[test]
    fn overrides_apply_in_order() {
        let config = load(
            &format!("\u{feff}{TEXT}"),
            &["corpus.games=1000", "corpus.engine.path=/usr/games/stockfish", "names.a = 3", "corpus.games=7"],
        )
        .unwrap();
        assert_eq!(config.corpus.games, 7);
        assert_eq!(config.corpus.rate, 1.0);
        assert_eq!(config.corpus.engine.unwrap().path, "/usr/games/stockfish");
        assert_eq!(config.names["a"], 3);
    }

    #[test]
    fn unknown_key_is_named_with_file_and_line() {
        let text = message(&TEXT.replace("path =", "pathh ="), &[]);
        assert!(text.contains("cpu.toml:6: `corpus.engine.pathh`: unknown field `pathh`, expected `path`"), "{text}");
        let text = message(&format!("{TEXT}\n[corpuss]\n"), &[]);
        assert!(text.contains("cpu.toml:8: `corpuss`: unknown field"), "{text}");
    }

    #[test]
    fn wrong_types_and_missing_keys_are_named() {
        let text = message(&TEXT.replace("games = 10", "games = \"ten\""), &[]);
        assert!(text.contains("cpu.toml:2: `corpus.games`: invalid type: string \"ten\", expected u64"), "{text}");
        let text = message(&TEXT.replace("games = 10", "games = -1"), &[]);
        assert!(text.contains("cpu.toml:2: `corpus.games`") && text.contains("-1"), "{text}");
        let text = message(&TEXT.replace("games = 10", ""), &[]);
        assert!(text.contains("cpu.toml:1: `corpus.games`: missing field `games`"), "{text}");
    }

    #[test]
    fn override_errors_name_the_override() {
        let text = message(TEXT, &["corpus.games=many"]);
        assert!(text.contains("cpu.toml with --set corpus.games=many: `corpus.games`: invalid type"), "{text}");
        let text = message(TEXT, &["corpus.gamess=1"]);
        assert!(text.contains("`corpus.gamess`: unknown field"), "{text}");
        assert!(message(TEXT, &["corpus.games"]).contains("expected KEY=VALUE"));
        assert!(message(TEXT, &["corpus..games=1"]).contains("expected KEY=VALUE"));
        assert!(message(TEXT, &["corpus.games.x=1"]).contains("`corpus.games` is a value (integer), not a table"));
    }

    #[test]
    fn syntax_and_missing_file() {
        let text = message("[corpus]\ngames = = 3\n", &[]);
        assert!(text.contains("cpu.toml:2: not valid TOML"), "{text}");
        let text = load_config::<Config>(Path::new("no/such.toml"), &[]).unwrap_err().to_string();
        assert!(text.contains("no/such.toml"), "{text}");
    }

    #[test]
    fn values_are_toml_or_strings() {
        assert_eq!(parse_value("1"), Value::Integer(1));
        assert_eq!(parse_value("[1, 2]").as_array().unwrap().len(), 2);
        assert_eq!(parse_value("result IS NOT NULL"), Value::String("result IS NOT NULL".to_string()));
        assert_eq!(parse_value("1\nx = 2"), Value::String("1\nx = 2".to_string()));
        assert_eq!(parse_value(""), Value::String(String::new()));
    }
}
