//! The options that a chess program sees and sets.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::protocol::quoted;

/// Positions that each thread evaluates at once. More would be a little faster and search worse, because the paths of
/// one batch are chosen without each other's answers.
pub(crate) const LEAVES_PER_THREAD: u32 = 8;
/// Memory that a position of the tree takes, with its moves, the vectors' reserves and the copy at a move.
const BYTES_PER_POSITION: usize = 1024;
/// Memory that a remembered evaluation takes.
const BYTES_PER_EVALUATION: usize = 208;

/// What an option holds.
enum Kind {
    Check(bool),
    Spin { default: i64, min: i64, max: i64 },
    Text,
    Button,
}

const NETWORK: &str = "NetworkFile";
const HASH: &str = "Hash";
const THREADS: &str = "Threads";
const MULTI_PV: &str = "MultiPV";
const PONDER: &str = "Ponder";
const SHOW_WDL: &str = "UCI_ShowWDL";
const CHESS960: &str = "UCI_Chess960";
const OVERHEAD: &str = "Move Overhead";
const SIMULATIONS: &str = "Simulations";
const CLEAR_HASH: &str = "Clear Hash";

const TABLE: [(&str, Kind); 10] = [
    (NETWORK, Kind::Text),
    (HASH, Kind::Spin { default: 256, min: 1, max: 32_768 }),
    (THREADS, Kind::Spin { default: 1, min: 1, max: 128 }),
    (MULTI_PV, Kind::Spin { default: 1, min: 1, max: 218 }),
    (PONDER, Kind::Check(false)),
    (SHOW_WDL, Kind::Check(false)),
    (CHESS960, Kind::Check(false)),
    (OVERHEAD, Kind::Spin { default: 30, min: 0, max: 5000 }),
    (SIMULATIONS, Kind::Spin { default: 0, min: 0, max: 10_000_000 }),
    (CLEAR_HASH, Kind::Button),
];

/// The settings.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Options {
    /// The checkpoint folder.
    pub(crate) network: PathBuf,
    /// Bytes for the tree and the evaluations together.
    hash: usize,
    pub(crate) threads: usize,
    pub(crate) multi_pv: usize,
    pub(crate) show_wdl: bool,
    pub(crate) chess960: bool,
    /// What passes between the clock's start and end of a move without the engine: pipes, the other program, a network.
    pub(crate) overhead: Duration,
    /// Most visits of the root's moves, if there is a limit.
    pub(crate) simulations: Option<u32>,
}

/// What else has to happen when an option was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Nothing,
    /// Evaluators and tree have another size.
    Resize,
    /// The tree and the evaluations are forgotten.
    Clear,
}

fn default_of(name: &str) -> i64 {
    let spin = TABLE.iter().find(|(known, _)| *known == name);
    match spin {
        Some((_, Kind::Spin { default, .. })) => *default,
        _ => 0,
    }
}

impl Options {
    pub(crate) fn new(network: &Path) -> Self {
        Options {
            network: network.to_owned(),
            hash: (default_of(HASH) as usize) << 20,
            threads: default_of(THREADS) as usize,
            multi_pv: default_of(MULTI_PV) as usize,
            show_wdl: false,
            chess960: false,
            overhead: Duration::from_millis(default_of(OVERHEAD) as u64),
            simulations: None,
        }
    }

    /// The `option` lines of the answer to `uci`.
    pub(crate) fn describe(network: &Path) -> String {
        let mut out = String::new();
        for (name, kind) in &TABLE {
            let _ = match kind {
                Kind::Check(default) => writeln!(out, "option name {name} type check default {default}"),
                Kind::Spin { default, min, max } => {
                    writeln!(out, "option name {name} type spin default {default} min {min} max {max}")
                }
                Kind::Text => writeln!(out, "option name {name} type string default {}", network.display()),
                Kind::Button => writeln!(out, "option name {name} type button"),
            };
        }
        out
    }

    /// Sets an option; names are compared without case, as the protocol wants it.
    ///
    /// # Errors
    /// What is wrong, in words; nothing is changed then.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<Effect, String> {
        let Some((name, kind)) = TABLE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
            return Err(format!("there is no option {}", quoted(name)));
        };
        let refuse = |expected: String| Err(format!("the option {name} takes {expected}, not {}", quoted(value)));
        let (mut number, mut flag) = (0, false);
        match *kind {
            Kind::Check(_) => match value.to_ascii_lowercase().as_str() {
                "true" => flag = true,
                "false" => {}
                _ => return refuse("true or false".to_owned()),
            },
            Kind::Spin { min, max, .. } => match value.parse::<i64>() {
                Ok(n) if (min..=max).contains(&n) => number = n,
                _ => return refuse(format!("a number from {min} to {max}")),
            },
            Kind::Text if value.is_empty() || value == "<empty>" => return refuse("a folder".to_owned()),
            Kind::Text | Kind::Button => {}
        }
        match *name {
            NETWORK => self.network = PathBuf::from(value),
            HASH => self.hash = (number as usize) << 20,
            THREADS => self.threads = number as usize,
            MULTI_PV => self.multi_pv = number as usize,
            SHOW_WDL => self.show_wdl = flag,
            CHESS960 => self.chess960 = flag,
            OVERHEAD => self.overhead = Duration::from_millis(number as u64),
            SIMULATIONS => self.simulations = (number > 0).then_some(number as u32),
            // `Ponder` only tells that `go ponder` may come.
            _ => {}
        }
        Ok(match *name {
            HASH | THREADS => Effect::Resize,
            CLEAR_HASH => Effect::Clear,
            _ => Effect::Nothing,
        })
    }

    /// Positions that the tree may have: three quarters of the memory.
    pub(crate) fn tree_positions(&self) -> usize {
        (self.hash / 4 * 3 / BYTES_PER_POSITION).max(1)
    }

    /// Evaluations to remember: the last quarter.
    pub(crate) fn evaluations(&self) -> usize {
        self.hash / 4 / BYTES_PER_EVALUATION
    }

    /// Positions that a search asks for at once.
    pub(crate) fn leaves(&self) -> u32 {
        self.threads as u32 * LEAVES_PER_THREAD
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::{Effect, Options};

    #[test]
    fn options_are_set_by_name_without_case() {
        let mut options = Options::new(Path::new("a"));
        for (name, value, effect) in [
            ("networkfile", "/x y/z", Effect::Nothing),
            ("HASH", "64", Effect::Resize),
            ("Threads", "2", Effect::Resize),
            ("multipv", "5", Effect::Nothing),
            ("UCI_ShowWDL", "True", Effect::Nothing),
            ("Move overhead", "0", Effect::Nothing),
            ("Simulations", "800", Effect::Nothing),
            ("Ponder", "true", Effect::Nothing),
            ("Clear Hash", "", Effect::Clear),
        ] {
            assert_eq!(options.set(name, value), Ok(effect), "{name}");
        }
        assert_eq!((options.network.as_path(), options.threads, options.multi_pv), (Path::new("/x y/z"), 2, 5));
        assert!(options.show_wdl && options.overhead == Duration::ZERO && options.simulations == Some(800));
        assert!(options.tree_positions() * 1024 + options.evaluations() * 208 <= 64 << 20);
        assert_eq!(options.leaves(), 16);
        options.set("Simulations", "0").unwrap();
        assert_eq!(options.simulations, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        let mut options = Options::new(Path::new("a"));
        let before = options.clone();
        for (name, value) in [
            ("", ""),
            ("Contempt", "3"),
            ("Hash", "0"),
            ("Hash", "99999999999999999999"),
            ("Threads", "two"),
            ("MultiPV", "219"),
            ("MultiPV", ""),
            ("UCI_ShowWDL", "yes"),
            ("NetworkFile", "<empty>"),
        ] {
            let why = options.set(name, value).unwrap_err();
            assert!(why.contains(if name == "Contempt" { name } else { value }), "{why}");
        }
        assert_eq!(options, before);
    }

    #[test]
    fn the_defaults_are_the_ones_that_are_said() {
        let said = Options::describe(Path::new("data/reference"));
        let mut options = Options::new(Path::new("data/reference"));
        let before = options.clone();
        for line in said.lines() {
            let text = line.strip_prefix("option name ").unwrap();
            let Some((name, rest)) = text.split_once(" type ") else { panic!("{line}") };
            if let Some((_, value)) = rest.split_once(" default ") {
                options.set(name, value.split(" min ").next().unwrap()).unwrap();
            }
        }
        assert_eq!(options, before);
        assert_eq!(said.lines().count(), 10);
    }
}
