//! The options that an engine declares, and the check of what a config asks for.
//!
//! Ranges differ between engine versions and engines ignore a value outside them in silence, so a value is checked
//! against the engine's own line before it is sent, and the error quotes that line.

use std::fmt;

/// The type of an option with its default and what it accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// `true` or `false`.
    Check {
        /// Its default.
        default: bool,
    },
    /// An integer in a range.
    Spin {
        /// Its default.
        default: i64,
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// One of several words.
    Combo {
        /// Its default.
        default: String,
        /// What it accepts.
        choices: Vec<String>,
    },
    /// An action without a value.
    Button,
    /// Any text; also the kinds that the protocol does not know (`file`, `path`).
    Text {
        /// Its default; `<empty>` is read as no text.
        default: String,
    },
}

/// An option that an engine declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineOption {
    /// Its name, which may have spaces.
    pub name: String,
    /// Its type.
    pub kind: OptionKind,
    /// The engine's own line.
    pub line: String,
}

/// What is wrong with a setting.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum OptionFault {
    /// The engine has no such option.
    #[error("there is no option `{name}`; this engine has: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that the engine declared.
        known: String,
    },
    /// The option does not take this value.
    #[error("the option `{name}` takes {expected}, not `{value}`; the engine declares `{line}`")]
    Value {
        /// The option.
        name: String,
        /// The value asked for.
        value: String,
        /// What it accepts.
        expected: String,
        /// The engine's own line.
        line: String,
    },
    /// The option is without effect as long as another is not set.
    #[error("the option `{name}` has no effect unless `{needs}` is true; set both")]
    Inert {
        /// The option.
        name: String,
        /// The one that it needs.
        needs: String,
    },
}

impl OptionFault {
    /// The option at fault, as it was asked for.
    pub fn name(&self) -> &str {
        match self {
            OptionFault::Unknown { name, .. } | OptionFault::Value { name, .. } | OptionFault::Inert { name, .. } => {
                name
            }
        }
    }
}

impl EngineOption {
    /// Reads an `option` line; `None` if it has no name or no type.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("option") && words.next() == Some("name")).then_some(())?;
        let name = words.by_ref().take_while(|w| *w != "type").collect::<Vec<_>>().join(" ");
        let kind = words.next()?;
        // Defaults and choices may have spaces, so a field ends where the next key begins.
        let mut fields: Vec<(&str, String)> = Vec::new();
        for word in words {
            match (word, fields.last_mut()) {
                ("default" | "min" | "max" | "var", _) => fields.push((word, String::new())),
                (_, Some((_, text))) => {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
                (_, None) => {}
            }
        }
        let field = |key: &str| fields.iter().find(|(k, _)| *k == key).map(|(_, text)| text.as_str());
        let text = || field("default").filter(|t| *t != "<empty>").unwrap_or("").to_owned();
        let integer = |key: &str| field(key).and_then(|t| t.parse::<i64>().ok());
        let kind = match kind {
            "check" => OptionKind::Check { default: field("default") == Some("true") },
            "spin" => OptionKind::Spin {
                default: integer("default").unwrap_or(0),
                min: integer("min").unwrap_or(i64::MIN),
                max: integer("max").unwrap_or(i64::MAX),
            },
            "combo" => OptionKind::Combo {
                default: text(),
                choices: fields.iter().filter(|(k, _)| *k == "var").map(|(_, t)| t.clone()).collect(),
            },
            "button" => OptionKind::Button,
            _ => OptionKind::Text { default: text() },
        };
        (!name.is_empty()).then(|| EngineOption { name, kind, line: line.to_owned() })
    }

    /// The `setoption` command for a value, with its line end.
    fn command(&self, value: &str) -> Result<String, OptionFault> {
        let fault = |expected: String| {
            let (name, value, line) = (self.name.clone(), value.to_owned(), self.line.clone());
            Err(OptionFault::Value { name, value, expected, line })
        };
        let value = value.trim();
        let sent = match &self.kind {
            OptionKind::Check { .. } => match value.to_ascii_lowercase() {
                v if v == "true" || v == "false" => v,
                _ => return fault("true or false".to_owned()),
            },
            OptionKind::Spin { min, max, .. } => match value.parse::<i64>() {
                Ok(v) if (*min..=*max).contains(&v) => v.to_string(),
                _ => return fault(format!("an integer from {min} to {max}")),
            },
            OptionKind::Combo { choices, .. } => match choices.iter().find(|c| c.eq_ignore_ascii_case(value)) {
                Some(choice) => choice.clone(),
                None => return fault(format!("one of {}", choices.join(", "))),
            },
            OptionKind::Button if value.is_empty() => return Ok(format!("setoption name {}\n", self.name)),
            OptionKind::Button => return fault("no value".to_owned()),
            OptionKind::Text { .. } if value.contains(['\n', '\r', '\0']) => return fault("one line".to_owned()),
            OptionKind::Text { .. } if value.len() > MAX_TEXT => return fault(format!("at most {MAX_TEXT} bytes")),
            OptionKind::Text { .. } if value.is_empty() => "<empty>".to_owned(),
            OptionKind::Text { .. } => value.to_owned(),
        };
        Ok(format!("setoption name {} value {sent}\n", self.name))
    }
}

/// So that the handshake fits into the pipe of an engine that does not read it.
const MAX_TEXT: usize = 4096;

/// All options of an engine, in its order. Names are compared without regard to case, as the protocol says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OptionTable {
    options: Vec<EngineOption>,
}

impl OptionTable {
    pub(crate) fn push(&mut self, option: EngineOption) {
        self.options.push(option);
    }

    /// The options.
    pub fn iter(&self) -> impl Iterator<Item = &EngineOption> {
        self.options.iter()
    }

    /// The option called `name`.
    pub fn get(&self, name: &str) -> Option<&EngineOption> {
        self.options.iter().find(|o| o.name.eq_ignore_ascii_case(name.trim()))
    }

    /// The range of an integer option; `None` if there is no such option or it is no integer.
    pub fn range(&self, name: &str) -> Option<(i64, i64)> {
        match self.get(name)?.kind {
            OptionKind::Spin { min, max, .. } => Some((min, max)),
            _ => None,
        }
    }

    /// Checks one setting by itself.
    ///
    /// # Errors
    /// [`OptionFault::Unknown`] or [`OptionFault::Value`].
    pub fn check(&self, name: &str, value: &str) -> Result<(), OptionFault> {
        self.command(name, value).map(|_| ())
    }

    fn command(&self, name: &str, value: &str) -> Result<String, OptionFault> {
        match self.get(name) {
            Some(option) => option.command(value),
            None => Err(OptionFault::Unknown { name: name.to_owned(), known: self.to_string() }),
        }
    }

    /// Parts `defaults` into those that the engine declares and the names of those that it does not. What `settings`
    /// has too is in neither.
    pub(crate) fn declared(
        &self,
        defaults: &[(String, String)],
        settings: &[(String, String)],
    ) -> (Vec<(String, String)>, Vec<String>) {
        let asked = |name: &str| settings.iter().any(|(other, _)| other.trim().eq_ignore_ascii_case(name));
        let (set, unset): (Vec<_>, Vec<_>) =
            defaults.iter().filter(|(name, _)| !asked(name)).cloned().partition(|(name, _)| self.get(name).is_some());
        (set, unset.into_iter().map(|(name, _)| name).collect())
    }

    /// The commands that make all `settings`, in their order, after checking each and the set as a whole.
    pub(crate) fn commands(&self, settings: &[(String, String)]) -> Result<String, OptionFault> {
        let commands = settings.iter().map(|(name, value)| self.command(name, value)).collect::<Result<String, _>>()?;
        let asks = |wanted: &str| settings.iter().rev().find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        let (elo, needs) = ("UCI_Elo", "UCI_LimitStrength");
        if asks(elo).is_some()
            && self.get(needs).is_some()
            && !asks(needs).is_some_and(|(_, v)| v.trim().eq_ignore_ascii_case("true"))
        {
            return Err(OptionFault::Inert { name: elo.to_owned(), needs: needs.to_owned() });
        }
        Ok(commands)
    }
}

/// The names, separated by commas.
impl fmt::Display for OptionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, option) in self.options.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, option.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 8] = [
        "option name Debug Log File type string default ",
        "option name Hash type spin default 16 min 1 max 33554432",
        "option name Clear Hash type button",
        "option name UCI_LimitStrength type check default false",
        "option name UCI_Elo type spin default 1350 min 1350 max 2850",
        "option name SyzygyPath type string default <empty>",
        "option name Style type combo default Very Solid var Very Solid var Normal",
        "option name Book type file default book.bin",
    ];

    fn table() -> OptionTable {
        OptionTable { options: LINES.iter().map(|l| EngineOption::parse(l).unwrap()).collect() }
    }

    fn settings(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn lines_are_read() {
        let table = table();
        assert_eq!(table.get("debug log file").unwrap().kind, OptionKind::Text { default: String::new() });
        assert_eq!(table.get("SyzygyPath").unwrap().kind, OptionKind::Text { default: String::new() });
        assert_eq!(table.get("Book").unwrap().kind, OptionKind::Text { default: "book.bin".to_owned() });
        assert_eq!(table.range("Hash"), Some((1, 33_554_432)));
        let choices = vec!["Very Solid".to_owned(), "Normal".to_owned()];
        assert_eq!(table.get("Style").unwrap().kind, OptionKind::Combo { default: "Very Solid".to_owned(), choices });
        assert_eq!(EngineOption::parse("option name Broken"), None);
        assert_eq!(EngineOption::parse("option type spin"), None);
    }

    #[test]
    fn u17_a_value_outside_the_range_quotes_the_engines_line() {
        let fault = table().check("UCI_Elo", "800").unwrap_err();
        assert!(fault.to_string().contains(LINES[4]), "{fault}");
        assert!(fault.to_string().contains("800"), "{fault}");
        let fault = table().check("Elo", "800").unwrap_err();
        assert!(fault.to_string().contains("UCI_LimitStrength"), "{fault}");
    }

    #[test]
    fn u17_elo_needs_limit_strength() {
        let table = table();
        for list in [&[("UCI_Elo", "1500")][..], &[("uci_elo", "1500"), ("UCI_LimitStrength", "false")]] {
            assert!(matches!(table.commands(&settings(list)), Err(OptionFault::Inert { .. })));
        }
        let commands = table.commands(&settings(&[("uci_limitstrength", "True"), ("UCI_Elo", " 1500")])).unwrap();
        assert_eq!(commands, "setoption name UCI_LimitStrength value true\nsetoption name UCI_Elo value 1500\n");
    }

    #[test]
    fn values_are_checked_by_kind() {
        let table = table();
        assert!(table.check("Hash", "16.5").is_err());
        assert!(table.check("UCI_LimitStrength", "yes").is_err());
        assert!(table.check("Style", "wild").is_err());
        assert!(table.check("Clear Hash", "now").is_err());
        assert!(table.check("SyzygyPath", "a\nquit").is_err());
        let good = [("Clear Hash", ""), ("style", "normal"), ("SyzygyPath", ""), ("Book", "a b.bin")];
        assert_eq!(
            table.commands(&settings(&good)).unwrap(),
            "setoption name Clear Hash\nsetoption name Style value Normal\n\
             setoption name SyzygyPath value <empty>\nsetoption name Book value a b.bin\n"
        );
    }
}
