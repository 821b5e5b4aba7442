//! The options that a chess program sees and sets.

use std::path::PathBuf;
use std::time::Duration;

use uci::server::{Declared, Kind, Setting, Settings};

use crate::features::Features;

const HASH: &str = "Hash";
const THREADS: &str = "Threads";
const MULTI_PV: &str = "MultiPV";
const PONDER: &str = "Ponder";
const OVERHEAD: &str = "Move Overhead";
const SHOW_WDL: &str = "UCI_ShowWDL";
const CLEAR_HASH: &str = "Clear Hash";
const POLICY: &str = "Policy";
const POLICY_FILE: &str = "PolicyFile";

/// The settings.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Options {
    declared: Settings,
    /// Size of the transposition table in MiB.
    pub(crate) hash: usize,
    pub(crate) threads: usize,
    pub(crate) multi_pv: usize,
    /// Whether reports tell the chances of win, draw and loss.
    pub(crate) show_wdl: bool,
    /// What passes between the clock's start and end of a move without the engine: pipes, the other program, a network.
    pub(crate) overhead: Duration,
    /// The network that orders moves, if one shall.
    policy: bool,
    policy_file: PathBuf,
    pub(crate) features: Features,
}

/// What else has to happen when an option was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Nothing,
    /// The table has another size.
    Resize,
    /// The table is forgotten.
    Clear,
}

impl Options {
    pub(crate) fn new() -> Self {
        let spin = |default, min, max| Kind::Spin { default, min, max };
        let own = [
            (HASH, spin(16, 1, 65_536)),
            (THREADS, spin(1, 1, 256)),
            (MULTI_PV, spin(1, 1, 218)),
            (PONDER, Kind::Check(false)),
            (SHOW_WDL, Kind::Check(false)),
            (OVERHEAD, spin(10, 0, 5000)),
            (CLEAR_HASH, Kind::Button),
            (POLICY, Kind::Check(false)),
            (POLICY_FILE, Kind::Text(String::new())),
        ];
        let parts = Features::OPTIONS.iter().map(|(name, on)| (*name, Kind::Check(*on)));
        let declared = own.into_iter().chain(parts).map(|(name, kind)| Declared { name, kind }).collect();
        let declared = Settings(declared);
        Options {
            hash: declared.default_of(HASH) as usize,
            threads: declared.default_of(THREADS) as usize,
            multi_pv: declared.default_of(MULTI_PV) as usize,
            show_wdl: false,
            overhead: Duration::from_millis(declared.default_of(OVERHEAD) as u64),
            policy: false,
            policy_file: PathBuf::new(),
            features: Features::default(),
            declared,
        }
    }

    /// The `option` lines of the answer to `uci`.
    pub(crate) fn describe(&self) -> String {
        self.declared.describe()
    }

    /// The file of the network that shall order moves, if one shall; empty if none was named.
    pub(crate) fn policy(&self) -> Option<&PathBuf> {
        self.policy.then_some(&self.policy_file)
    }

    /// Sets an option; names are compared without case, as the protocol wants it.
    ///
    /// # Errors
    /// What is wrong, in words; nothing is changed then.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<Effect, String> {
        let (name, setting) = self.declared.read(name, value)?;
        let before = (self.features, self.policy().cloned());
        match (name, setting) {
            (HASH, Setting::Spin(n)) => self.hash = n as usize,
            (THREADS, Setting::Spin(n)) => self.threads = n as usize,
            (MULTI_PV, Setting::Spin(n)) => self.multi_pv = n as usize,
            (SHOW_WDL, Setting::Check(on)) => self.show_wdl = on,
            (OVERHEAD, Setting::Spin(n)) => self.overhead = Duration::from_millis(n as u64),
            (POLICY, Setting::Check(on)) => self.policy = on,
            (POLICY_FILE, Setting::Text(file)) => self.policy_file = PathBuf::from(file),
            // `Ponder`, which is no part, only tells that `go ponder` may come.
            (part, Setting::Check(on)) => {
                self.features.set(part, on);
            }
            _ => {}
        }
        Ok(match name {
            HASH => Effect::Resize,
            CLEAR_HASH => Effect::Clear,
            // What the table and the history know was found with the part or the policy as it was before.
            _ if (self.features, self.policy()) != (before.0, before.1.as_ref()) => Effect::Clear,
            _ => Effect::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::{Effect, Options};

    #[test]
    fn options_are_set_by_name_without_case() {
        let mut options = Options::new();
        for (name, value, effect) in [
            ("HASH", "64", Effect::Resize),
            ("Threads", "2", Effect::Nothing),
            ("multipv", "5", Effect::Nothing),
            ("Move overhead", "0", Effect::Nothing),
            ("Ponder", "true", Effect::Nothing),
            ("uci_showwdl", "true", Effect::Nothing),
            ("Clear Hash", "", Effect::Clear),
            ("nullmove", "false", Effect::Clear),
            ("NullMove", "false", Effect::Nothing),
            ("PolicyFile", "/x y/z.bin", Effect::Nothing),
        ] {
            assert_eq!(options.set(name, value), Ok(effect), "{name}");
        }
        assert_eq!((options.hash, options.threads, options.multi_pv, options.overhead), (64, 2, 5, Duration::ZERO));
        assert!(options.show_wdl && !options.features.null_move && options.features.table);
        assert_eq!(options.policy(), None);
        assert_eq!(options.set("Policy", "true"), Ok(Effect::Clear));
        assert_eq!(options.set("PolicyFile", "/x y/z.bin"), Ok(Effect::Nothing));
        assert_eq!(options.policy().map(|p| p.as_path()), Some(Path::new("/x y/z.bin")));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        let mut options = Options::new();
        let before = options.clone();
        for (name, value) in [("", ""), ("Contempt", "3"), ("Hash", "0"), ("Threads", "two"), ("NullMove", "maybe")] {
            let why = options.set(name, value).unwrap_err();
            assert!(why.contains(if name == "Contempt" { name } else { value }), "{why}");
        }
        assert_eq!(options, before);
    }

    #[test]
    fn the_defaults_are_the_ones_that_are_said() {
        let mut options = Options::new();
        let (said, before) = (options.describe(), options.clone());
        for line in said.lines() {
            let text = line.strip_prefix("option name ").unwrap();
            let Some((name, rest)) = text.split_once(" type ") else { panic!("{line}") };
            if let Some((_, value)) = rest.split_once(" default ") {
                options.set(name, value.split(" min ").next().unwrap()).unwrap();
            }
        }
        assert_eq!(options, before);
        assert!(said.contains("option name NullMove type check default true"), "{said}");
    }
}
