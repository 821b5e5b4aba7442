//! How much an engine may think about one move.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// The budget of one move. A limit of 0 is refused when it is read and when it is used: engines take it for "none".
///
/// In a config: `{ nodes = 1500 }`, `{ depth = 8 }` or `{ movetime_ms = 100 }`. Only node and depth limits are
/// reproducible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "Raw")]
pub enum Limit {
    /// Nodes to search.
    Nodes(u64),
    /// Depth in half-moves.
    Depth(u32),
    /// Time, in whole milliseconds.
    MoveTime(Duration),
}

/// The config form, in which 0 does not parse.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Raw {
    Nodes(NonZeroU64),
    Depth(NonZeroU32),
    MovetimeMs(NonZeroU64),
}

impl From<Raw> for Limit {
    fn from(raw: Raw) -> Self {
        match raw {
            Raw::Nodes(n) => Limit::Nodes(n.get()),
            Raw::Depth(d) => Limit::Depth(d.get()),
            Raw::MovetimeMs(ms) => Limit::MoveTime(Duration::from_millis(ms.get())),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Limit::Nodes(n) => serializer.serialize_newtype_variant("Limit", 0, "nodes", &n),
            Limit::Depth(d) => serializer.serialize_newtype_variant("Limit", 1, "depth", &d),
            Limit::MoveTime(t) => serializer.serialize_newtype_variant("Limit", 2, "movetime_ms", &millis(t)),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Limit {
    /// Whether the limit allows nothing.
    pub(crate) fn is_zero(self) -> bool {
        match self {
            Limit::Nodes(n) => n == 0,
            Limit::Depth(d) => d == 0,
            Limit::MoveTime(t) => millis(t) == 0,
        }
    }

    /// The word and the number of the `go` command.
    fn go(self) -> (&'static str, u64) {
        match self {
            Limit::Nodes(n) => ("nodes", n),
            Limit::Depth(d) => ("depth", u64::from(d)),
            Limit::MoveTime(t) => ("movetime", millis(t)),
        }
    }
}

/// As it stands in a player's name: `nodes=1500`, `depth=8`, `movetime=100ms`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Nodes(n) => write!(f, "nodes={n}"),
            Limit::Depth(d) => write!(f, "depth={d}"),
            Limit::MoveTime(t) => write!(f, "movetime={}ms", millis(t)),
        }
    }
}

/// What the clocks show before a move, for the sides that play on one: White, then Black.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clocks {
    /// What is left.
    pub left: [Option<Duration>; 2],
    /// What is added after each of the side's moves.
    pub increment: [Duration; 2],
}

/// What an engine is told about how long to think.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// The budget of this move.
    Move(Limit),
    /// The clocks of the game; the engine decides.
    Game(Clocks),
}

impl From<Limit> for Budget {
    fn from(limit: Limit) -> Self {
        Budget::Move(limit)
    }
}

impl From<Clocks> for Budget {
    fn from(clocks: Clocks) -> Self {
        Budget::Game(clocks)
    }
}

impl Budget {
    /// The longest time that may be used up before the answer; zero for node and depth limits.
    pub(crate) fn time(self) -> Duration {
        match self {
            Budget::Move(Limit::MoveTime(time)) => time,
            Budget::Move(_) => Duration::ZERO,
            Budget::Game(clocks) => clocks.left.into_iter().flatten().max().unwrap_or_default(),
        }
    }

    /// Appends the `go` command and its line end. A clock never shows less than a millisecond: engines differ in what
    /// they take 0 for.
    pub(crate) fn write_go(self, out: &mut String) {
        out.push_str("go");
        let mut word = |name: &str, value: u64| {
            out.push(' ');
            out.push_str(name);
            out.push(' ');
            out.push_str(&value.to_string());
        };
        match self {
            Budget::Move(limit) => {
                let (name, value) = limit.go();
                word(name, value);
            }
            Budget::Game(clocks) => {
                for (side, names) in [["wtime", "winc"], ["btime", "binc"]].into_iter().enumerate() {
                    if let Some(left) = clocks.left[side] {
                        word(names[0], millis(left).max(1));
                        word(names[1], millis(clocks.increment[side]));
                    }
                }
            }
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Config {
        limit: Limit,
    }

    #[test]
    fn limits_round_trip_through_toml_and_json() {
        for (text, limit) in [
            ("limit = { nodes = 1500 }", Limit::Nodes(1500)),
            ("limit = { depth = 8 }", Limit::Depth(8)),
            ("limit = { movetime_ms = 100 }", Limit::MoveTime(Duration::from_millis(100))),
        ] {
            assert_eq!(toml::from_str::<Config>(text).unwrap(), Config { limit });
            let json = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), limit);
            let written = toml::to_string(&Config { limit }).unwrap();
            assert_eq!(toml::from_str::<Config>(&written).unwrap(), Config { limit });
        }
        assert_eq!(Limit::Nodes(1500).to_string(), "nodes=1500");
        assert_eq!(Limit::MoveTime(Duration::from_millis(100)).to_string(), "movetime=100ms");
    }

    #[test]
    fn the_go_command_of_limits_and_clocks() {
        let go = |budget: Budget| {
            let mut out = String::new();
            budget.write_go(&mut out);
            out
        };
        let ms = Duration::from_millis;
        assert_eq!(go(Limit::Nodes(1500).into()), "go nodes 1500\n");
        assert_eq!(go(Limit::MoveTime(ms(100)).into()), "go movetime 100\n");
        let both = Clocks { left: [Some(ms(9_500)), Some(Duration::ZERO)], increment: [ms(100), ms(0)] };
        assert_eq!(go(both.into()), "go wtime 9500 winc 100 btime 1 binc 0\n");
        let black = Clocks { left: [None, Some(ms(700))], ..both };
        assert_eq!(go(black.into()), "go btime 700 binc 0\n");
        assert_eq!((Budget::from(both).time(), Budget::from(Limit::Depth(3)).time()), (ms(9_500), ms(0)));
    }

    #[test]
    fn zero_and_unknown_limits_are_refused() {
        for text in ["limit = { nodes = 0 }", "limit = { movetime_ms = 0 }", "limit = { time = 3 }", "limit = 3"] {
            assert!(toml::from_str::<Config>(text).is_err(), "{text}");
        }
        assert!(Limit::MoveTime(Duration::from_micros(900)).is_zero());
    }
}
