//! The options that a chess program sees and sets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use uci::server::{Declared, Kind, Setting, Settings, quoted};

/// Positions that each thread evaluates at once. More would be a little faster and search worse, because the paths of
/// one batch are chosen without each other's answers.
pub(crate) const LEAVES_PER_THREAD: u32 = 8;
/// Memory that a position of the tree takes, with its moves, the vectors' reserves and the copy at a move.
const BYTES_PER_POSITION: usize = 1024;
/// Memory that a remembered evaluation takes.
const BYTES_PER_EVALUATION: usize = 208;

const NETWORK: &str = "NetworkFile";
const HASH: &str = "Hash";
const THREADS: &str = "Threads";
const MULTI_PV: &str = "MultiPV";
const PONDER: &str = "Ponder";
const SHOW_WDL: &str = "UCI_ShowWDL";
const OVERHEAD: &str = "Move Overhead";
const SIMULATIONS: &str = "Simulations";
const CLEAR_HASH: &str = "Clear Hash";

/// The options, with the checkpoint folder that is the default.
fn declared(network: &Path) -> Settings {
    let spin = |default, min, max| Kind::Spin { default, min, max };
    let options = [
        (NETWORK, Kind::Text(network.display().to_string())),
        (HASH, spin(256, 1, 32_768)),
        (THREADS, spin(1, 1, 128)),
        (MULTI_PV, spin(1, 1, 218)),
        (PONDER, Kind::Check(false)),
        (SHOW_WDL, Kind::Check(false)),
        (OVERHEAD, spin(30, 0, 5000)),
        (SIMULATIONS, spin(0, 0, 10_000_000)),
        (CLEAR_HASH, Kind::Button),
    ];
    Settings(options.into_iter().map(|(name, kind)| Declared { name, kind }).collect())
}

/// The settings.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Options {
    declared: Settings,
    /// The checkpoint folder.
    pub(crate) network: PathBuf,
    /// Bytes for the tree and the evaluations together.
    pub(crate) hash: usize,
    pub(crate) threads: usize,
    pub(crate) multi_pv: usize,
    pub(crate) show_wdl: bool,
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

impl Options {
    pub(crate) fn new(network: &Path) -> Self {
        let declared = declared(network);
        Options {
            network: network.to_owned(),
            hash: (declared.default_of(HASH) as usize) << 20,
            threads: declared.default_of(THREADS) as usize,
            multi_pv: declared.default_of(MULTI_PV) as usize,
            show_wdl: false,
            overhead: Duration::from_millis(declared.default_of(OVERHEAD) as u64),
            simulations: None,
            declared,
        }
    }

    /// The `option` lines of the answer to `uci`.
    pub(crate) fn describe(&self) -> String {
        self.declared.describe()
    }

    /// Sets an option; names are compared without case, as the protocol wants it.
    ///
    /// # Errors
    /// What is wrong, in words; nothing is changed then.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<Effect, String> {
        let (name, setting) = self.declared.read(name, value)?;
        match (name, setting) {
            (NETWORK, Setting::Text("")) => {
                return Err(format!("the option {name} takes a folder, not {}", quoted(value)));
            }
            (NETWORK, Setting::Text(folder)) => self.network = PathBuf::from(folder),
            (HASH, Setting::Spin(n)) => self.hash = (n as usize) << 20,
            (THREADS, Setting::Spin(n)) => self.threads = n as usize,
            (MULTI_PV, Setting::Spin(n)) => self.multi_pv = n as usize,
            (SHOW_WDL, Setting::Check(on)) => self.show_wdl = on,
            (OVERHEAD, Setting::Spin(n)) => self.overhead = Duration::from_millis(n as u64),
            (SIMULATIONS, Setting::Spin(n)) => self.simulations = (n > 0).then_some(n as u32),
            // `Ponder` only tells that `go ponder` may come.
            _ => {}
        }
        Ok(match name {
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
        let mut options = Options::new(Path::new("data/reference"));
        let said = options.describe();
        let before = options.clone();
        for line in said.lines() {
            let text = line.strip_prefix("option name ").unwrap();
            let Some((name, rest)) = text.split_once(" type ") else { panic!("{line}") };
            if let Some((_, value)) = rest.split_once(" default ") {
                options.set(name, value.split(" min ").next().unwrap()).unwrap();
            }
        }
        assert_eq!(options, before);
        assert_eq!(said.lines().count(), 9);
    }
}
