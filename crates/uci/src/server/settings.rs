//! The options of an engine: how they are declared, and what a `setoption` sets.

use std::fmt::Write;

use super::command::quoted;

/// What an option holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `true` or `false`, and its default.
    Check(bool),
    /// A whole number.
    Spin {
        /// Its default.
        default: i64,
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// Any text, and its default.
    Text(String),
    /// An action without a value.
    Button,
}

/// An option with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Its name, which may have spaces.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// A value that an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting<'a> {
    /// Of a [`Kind::Check`].
    Check(bool),
    /// Of a [`Kind::Spin`], within its range.
    Spin(i64),
    /// Of a [`Kind::Text`]; empty for `<empty>`.
    Text(&'a str),
    /// A [`Kind::Button`] was pressed.
    Button,
}

/// The options of an engine, in the order in which it declares them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings(pub Vec<Declared>);

impl Settings {
    /// The `option` lines of the answer to `uci`, each with its line end.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for Declared { name, kind } in &self.0 {
            let _ = match kind {
                Kind::Check(default) => writeln!(out, "option name {name} type check default {default}"),
                Kind::Spin { default, min, max } => {
                    writeln!(out, "option name {name} type spin default {default} min {min} max {max}")
                }
                Kind::Text(default) => {
                    let default = if default.is_empty() { "<empty>" } else { default };
                    writeln!(out, "option name {name} type string default {default}")
                }
                Kind::Button => writeln!(out, "option name {name} type button"),
            };
        }
        out
    }

    /// The default of a whole number; 0 if there is no such option.
    pub fn default_of(&self, name: &str) -> i64 {
        match self.0.iter().find(|declared| declared.name == name) {
            Some(Declared { kind: Kind::Spin { default, .. }, .. }) => *default,
            _ => 0,
        }
    }

    /// Reads a value for an option; names are compared without case, as the protocol wants it. Gives the name as it is
    /// declared.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn read<'a>(&self, name: &str, value: &'a str) -> Result<(&'static str, Setting<'a>), String> {
        let Some(Declared { name, kind }) = self.0.iter().find(|declared| declared.name.eq_ignore_ascii_case(name))
        else {
            return Err(format!("there is no option {}", quoted(name)));
        };
        let refuse = |expected: String| Err(format!("the option {name} takes {expected}, not {}", quoted(value)));
        let setting = match *kind {
            Kind::Check(_) => match value.to_ascii_lowercase().as_str() {
                "true" => Setting::Check(true),
                "false" => Setting::Check(false),
                _ => return refuse("true or false".to_owned()),
            },
            Kind::Spin { min, max, .. } => match value.parse::<i64>() {
                Ok(n) if (min..=max).contains(&n) => Setting::Spin(n),
                _ => return refuse(format!("a number from {min} to {max}")),
            },
            Kind::Text(_) if value == "<empty>" => Setting::Text(""),
            Kind::Text(_) => Setting::Text(value),
            Kind::Button => Setting::Button,
        };
        Ok((name, setting))
    }
}

#[cfg(test)]
mod tests {
    use super::{Declared, Kind, Setting, Settings};

    fn settings() -> Settings {
        Settings(vec![
            Declared { name: "Hash", kind: Kind::Spin { default: 16, min: 1, max: 1024 } },
            Declared { name: "Ponder", kind: Kind::Check(false) },
            Declared { name: "Book File", kind: Kind::Text(String::new()) },
            Declared { name: "Clear Hash", kind: Kind::Button },
        ])
    }

    #[test]
    fn what_is_declared_is_what_the_client_reads() {
        let settings = settings();
        let said = settings.describe();
        assert_eq!(
            said,
            "option name Hash type spin default 16 min 1 max 1024\noption name Ponder type check default false\n\
             option name Book File type string default <empty>\noption name Clear Hash type button\n"
        );
        for (line, declared) in said.lines().zip(&settings.0) {
            let option = crate::EngineOption::parse(line).unwrap();
            assert_eq!(option.name, declared.name);
        }
        assert_eq!((settings.default_of("Hash"), settings.default_of("Ponder")), (16, 0));
    }

    #[test]
    fn values_are_read_by_kind() {
        let settings = settings();
        for (name, value, expected) in [
            ("hash", "1024", ("Hash", Setting::Spin(1024))),
            ("PONDER", "True", ("Ponder", Setting::Check(true))),
            ("book file", "/a b", ("Book File", Setting::Text("/a b"))),
            ("Book File", "<empty>", ("Book File", Setting::Text(""))),
            ("clear hash", "", ("Clear Hash", Setting::Button)),
        ] {
            assert_eq!(settings.read(name, value), Ok(expected));
        }
        for (name, value) in [
            ("", ""),
            ("Contempt", "3"),
            ("Hash", "0"),
            ("Hash", "99999999999999999999"),
            ("Ponder", "yes"),
            ("Hash", ""),
        ] {
            let why = settings.read(name, value).unwrap_err();
            assert!(why.contains(if name == "Contempt" { name } else { value }), "{why}");
        }
    }
}
