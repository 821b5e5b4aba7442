//! What a chess program says to an engine, line by line.
//!
//! Parsing never fails: what is not a command of UCI is [`Command::Unknown`] and ignored, as the protocol wants it, and
//! a command that cannot be followed is [`Command::Wrong`] with the reason, for an `info string`.

/// Remarks on one line, at most.
const MAX_REMARKS: usize = 4;
/// What a side is taken to have left where its clock was not told or cannot be read, in milliseconds: little, so that no
/// game is lost on time.
const LITTLE_TIME: i64 = 1000;
/// What a `go` whose only limits cannot be read is given, in milliseconds.
const SHORT_SEARCH: i64 = 100;

/// A command.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// `uci`
    Uci,
    /// `isready`
    IsReady,
    /// `ucinewgame`
    NewGame,
    /// `setoption`
    SetOption {
        /// The name as it was written, which may have spaces.
        name: String,
        /// The value; empty if there is none.
        value: String,
    },
    /// `position`
    Position {
        /// Where the game begins; the standard position if absent.
        fen: Option<String>,
        /// The moves as they were written.
        moves: Vec<String>,
    },
    /// A `position` that cannot be read, and why.
    WrongPosition(String),
    /// `go`
    Go(Box<Go>),
    /// `stop`
    Stop,
    /// `ponderhit`
    PonderHit,
    /// `quit`, and the end of the input.
    Quit,
    /// A command that cannot be followed, and why.
    Wrong(String),
    /// No command that an engine has to know.
    Unknown,
}

/// The limits of a `go`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Go {
    /// What White and Black have left, in milliseconds. It may be negative: some programs let a flag hang.
    pub time: [Option<i64>; 2],
    /// What they get for each move, in milliseconds.
    pub increment: [i64; 2],
    /// Moves until the clock is filled up again.
    pub moves_to_go: Option<u32>,
    /// Milliseconds for this move.
    pub movetime: Option<i64>,
    /// Nodes to search, at least 1.
    pub nodes: Option<u64>,
    /// Plies to search, at least 1.
    pub depth: Option<u32>,
    /// Moves within which a mate is looked for, at least 1.
    pub mate: Option<u32>,
    /// No end before `stop`.
    pub infinite: bool,
    /// No end, and no clock, before `ponderhit` or `stop`.
    pub ponder: bool,
    /// The only moves to search at the root, if there are any here.
    pub search_moves: Vec<String>,
    /// What could not be followed.
    pub remarks: Vec<String>,
    /// Whether a time or an increment was named, readable or not.
    clock: bool,
    /// Whether a limit was named that cannot be read.
    unreadable: bool,
}

/// The words that begin another part of a `go`.
const GO_WORDS: [&str; 12] = [
    "searchmoves",
    "ponder",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "depth",
    "nodes",
    "mate",
    "movetime",
    "infinite",
];

/// Reads a line.
pub fn parse_command(line: &str) -> Command {
    let line = line.trim();
    let (word, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
    match word {
        "uci" => Command::Uci,
        "isready" => Command::IsReady,
        "ucinewgame" => Command::NewGame,
        "setoption" => parse_option(rest),
        "position" => parse_position(rest),
        "go" => Command::Go(Box::new(parse_go(rest))),
        "stop" => Command::Stop,
        "ponderhit" => Command::PonderHit,
        "quit" => Command::Quit,
        _ => Command::Unknown,
    }
}

/// `name <words> [value <anything>]`; neither name nor value is trimmed inside.
fn parse_option(rest: &str) -> Command {
    let text = rest.trim();
    let Some(text) = text.strip_prefix("name").filter(|t| t.starts_with(|c: char| c.is_ascii_whitespace())) else {
        return Command::Wrong("setoption: expected `setoption name NAME value VALUE`".to_owned());
    };
    let (name, value) = match text.find(" value ") {
        Some(at) => (&text[..at], &text[at + " value ".len()..]),
        None => (text.strip_suffix(" value").unwrap_or(text), ""),
    };
    Command::SetOption { name: name.trim().to_owned(), value: value.trim().to_owned() }
}

fn parse_position(rest: &str) -> Command {
    let mut words = rest.split_ascii_whitespace();
    let fen = match words.next() {
        Some("startpos") => match words.next() {
            None | Some("moves") => None,
            Some(other) => {
                return Command::WrongPosition(format!("expected `moves` after `startpos`, got {}", quoted(other)));
            }
        },
        Some("fen") => Some(words.by_ref().take_while(|w| *w != "moves").collect::<Vec<_>>().join(" ")),
        other => {
            let got = other.map_or_else(|| "nothing".to_owned(), quoted);
            return Command::WrongPosition(format!("expected `startpos` or `fen`, got {got}"));
        }
    };
    Command::Position { fen, moves: words.map(str::to_owned).collect() }
}

fn parse_go(rest: &str) -> Go {
    let mut go = Go::default();
    let mut words = rest.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            "infinite" => go.infinite = true,
            "ponder" => go.ponder = true,
            "searchmoves" => {
                while let Some(m) = words.next_if(|w| !GO_WORDS.contains(w)) {
                    go.search_moves.push(m.to_owned());
                }
            }
            _ if GO_WORDS.contains(&word) => {
                go.clock |= matches!(word, "wtime" | "btime" | "winc" | "binc");
                match words.peek().and_then(|w| number(w)) {
                    Some(n) => {
                        words.next();
                        go.limit(word, n);
                    }
                    None => {
                        let got = words.peek().map_or_else(|| "nothing".to_owned(), |w| quoted(w));
                        go.remark(format!("go: expected a whole number after `{word}`, got {got}"));
                        go.unreadable = true;
                    }
                }
            }
            // The protocol lets words be that an engine does not know.
            _ => {}
        }
    }
    go
}

impl Go {
    /// The same limits for a search that ends. A side that is to move and has no readable clock, though the other has
    /// one or its own was named, has little time; a `go` whose only limits cannot be read gets a short search. Either is
    /// a remark. What asks for an endless search gets one: `go`, `go infinite`.
    #[must_use]
    pub fn settled(&self, white: bool) -> Go {
        let mut go = self.clone();
        if go.infinite || go.movetime.is_some() {
            return go;
        }
        let own = usize::from(!white);
        if go.clock && go.time[own].is_none() {
            go.time[own] = Some(LITTLE_TIME);
            let word = ["wtime", "btime"][own];
            go.remark(format!(
                "go: there is no readable `{word}` for the side to move, it is taken as {LITTLE_TIME} ms"
            ));
        }
        let unlimited = go.time[own].is_none() && go.nodes.is_none() && go.depth.is_none() && go.mate.is_none();
        if go.unreadable && unlimited {
            go.movetime = Some(SHORT_SEARCH);
            go.remark(format!("go: no limit of it can be read, searching for {SHORT_SEARCH} ms"));
        }
        go
    }

    fn remark(&mut self, text: String) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push(text);
        }
    }

    fn limit(&mut self, word: &str, n: i64) {
        let count = u32::try_from(n.max(0)).unwrap_or(u32::MAX);
        match word {
            "wtime" => self.time[0] = Some(n),
            "btime" => self.time[1] = Some(n),
            "winc" => self.increment[0] = n.max(0),
            "binc" => self.increment[1] = n.max(0),
            "movestogo" => self.moves_to_go = (count > 0).then_some(count),
            "movetime" => self.movetime = Some(n),
            "nodes" => self.nodes = Some(n.max(1).unsigned_abs()),
            "depth" => self.depth = Some(count.max(1)),
            // `mate`, the only one left.
            _ => self.mate = Some(count.max(1)),
        }
    }
}

/// A whole number; one that is too large is the largest.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(limit))
}

/// Foreign text in a message: in quotes, and not longer than a line.
pub fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text, 80))
}

/// At most `most` characters of a text, without control characters.
pub fn shortened(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::{Command, Go, parse_command as parse};

    fn go(text: &str) -> Go {
        match parse(text) {
            Command::Go(go) => *go,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn go_takes_its_limits_in_any_order() {
        let clock = go("go  wtime 1000 btime -20 winc 5\tbinc 6 movestogo 40");
        assert_eq!((clock.time, clock.increment, clock.moves_to_go), ([Some(1000), Some(-20)], [5, 6], Some(40)));
        let moves = go("go searchmoves e2e4 d2d4 infinite");
        assert_eq!(
            (moves.search_moves.as_slice(), moves.infinite),
            (&["e2e4".to_owned(), "d2d4".to_owned()][..], true)
        );
        assert_eq!(
            go("go ponder nodes 5 depth 3 movetime 7 mate 2"),
            Go { ponder: true, nodes: Some(5), depth: Some(3), movetime: Some(7), mate: Some(2), ..Go::default() }
        );
        assert_eq!(go("go"), Go::default());
    }

    #[test]
    fn limits_that_make_no_sense_are_left_out_and_said() {
        assert_eq!(go("go movestogo 0").moves_to_go, None);
        assert_eq!(go("go nodes 99999999999999999999999").nodes, Some(i64::MAX as u64));
        assert_eq!(go("go nodes -3").nodes, Some(1));
        for text in ["go wtime", "go wtime soon", "go nodes infinite", "go depth 1.5", "go mate"] {
            let go = go(text);
            assert_eq!(go.remarks.len(), 1, "{text}");
            assert!(go.time[0].is_none() && go.nodes.is_none() && go.depth.is_none() && go.mate.is_none(), "{text}");
        }
        assert!(go("go nodes infinite").infinite, "the next word keeps its meaning");
        assert_eq!(go(&"go wtime x ".repeat(1000)).remarks.len(), 4);
    }

    #[test]
    fn a_clock_that_is_missing_or_cannot_be_read_is_little_time() {
        for (text, white, black) in [
            ("go wtime 1000.0 btime 60000", Some(1000), Some(60_000)),
            ("go wtime 60000 btime soon", Some(60_000), Some(1000)),
            ("go btime 60000", Some(1000), Some(60_000)),
            ("go winc 1000 binc 1000", Some(1000), Some(1000)),
            ("go wtime btime nodes 5", Some(1000), Some(1000)),
            ("go ponder wtime 0x10 btime 9", Some(1000), Some(9)),
            ("go wtime -5 btime 99999999999999999999999", Some(-5), Some(i64::MAX)),
            ("go nodes 5", None, None),
        ] {
            let go = go(text);
            for (white_moves, own) in [(true, white), (false, black)] {
                let settled = go.settled(white_moves);
                assert_eq!(settled.time[usize::from(!white_moves)], own, "{text}");
                assert_eq!(settled.movetime, None, "{text}");
                let missing = go.time[usize::from(!white_moves)] != own;
                let said = settled.remarks.iter().filter(|r| r.contains("side to move")).count();
                assert_eq!(said, usize::from(missing), "{text}: {:?}", settled.remarks);
            }
        }
    }

    #[test]
    fn no_limit_that_cannot_be_read_makes_a_search_endless() {
        for text in
            ["go movetime 1e3", "go depth 1.5", "go nodes many", "go mate", "go movestogo x", "go nodes 5k ponder"]
        {
            let settled = go(text).settled(true);
            assert_eq!(settled.movetime, Some(100), "{text}");
            assert_eq!(settled.remarks.len(), 2, "{text}: {:?}", settled.remarks);
        }
        for text in
            ["go", "go infinite", "go infinite wtime x", "go ponder", "go movetime 5 wtime x", "go depth x nodes 7"]
        {
            let settled = go(text).settled(true);
            assert_eq!((settled.movetime, settled.time), (go(text).movetime, [None; 2]), "{text}");
        }
    }

    #[test]
    fn positions() {
        let position = |fen: Option<&str>, moves: &[&str]| Command::Position {
            fen: fen.map(str::to_owned),
            moves: moves.iter().map(|m| (*m).to_owned()).collect(),
        };
        for (text, expected) in [
            ("position startpos", position(None, &[])),
            ("position startpos moves", position(None, &[])),
            (" position  startpos moves e2e4  e7e5 ", position(None, &["e2e4", "e7e5"])),
            (
                "position fen 8/8/8/8/8/8/8/8 w - - 0 1 moves a1a2",
                position(Some("8/8/8/8/8/8/8/8 w - - 0 1"), &["a1a2"]),
            ),
            ("position fen", position(Some(""), &[])),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in ["position", "position e2e4", "position startpos e2e4"] {
            assert!(matches!(parse(text), Command::WrongPosition(_)), "{text}");
        }
    }

    #[test]
    fn options() {
        let option = |name: &str, value: &str| Command::SetOption { name: name.to_owned(), value: value.to_owned() };
        for (text, expected) in [
            ("setoption name Move Overhead value 100", option("Move Overhead", "100")),
            ("setoption name NetworkFile value /a b/value  c", option("NetworkFile", "/a b/value  c")),
            ("setoption name Clear Hash", option("Clear Hash", "")),
            ("setoption name NetworkFile value", option("NetworkFile", "")),
            ("setoption name NetworkFile value ", option("NetworkFile", "")),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in ["setoption", "setoption Hash value 3", "setoption nameHash"] {
            assert!(matches!(parse(text), Command::Wrong(_)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_unknown() {
        for text in ["", "   ", "hello", "Go", "stopp", "debug on", "\u{0}", "\u{fffd}uci"] {
            assert_eq!(parse(text), Command::Unknown, "{text:?}");
        }
        assert_eq!(
            [parse("stop\r"), parse("\tquit now"), parse("ponderhit")],
            [Command::Stop, Command::Quit, Command::PonderHit]
        );
    }
}
