//! What an engine says, line by line.
//!
//! Engines print banners, debug text, unknown words and odd spacing around the protocol. Nothing of that may abort a
//! game, so parsing never fails: an unknown word in an `info` line is skipped and an unknown line is
//! [`UciLine::Other`].

use std::time::Duration;

use games::Score;

use crate::EngineOption;

/// How a score relates to the true value of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The value itself.
    Exact,
    /// The value is at least this (fail high).
    Lower,
    /// The value is at most this (fail low).
    Upper,
}

/// An `info` line. Words that it does not have are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Info<'a> {
    /// Depth in half-moves.
    pub depth: Option<u32>,
    /// Rank of this line among the lines of a multi-PV search, 1 the best.
    pub multipv: Option<u32>,
    /// The score from the view of the side to move.
    pub score: Option<(Score, Bound)>,
    /// Nodes searched.
    pub nodes: Option<u64>,
    /// Time spent, by the engine's clock.
    pub time: Option<Duration>,
    /// The principal variation as it was written: moves with whitespace between them, empty if there is none.
    pub pv: &'a str,
}

impl<'a> Info<'a> {
    /// The moves of the principal variation.
    pub fn moves(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.pv.split_ascii_whitespace()
    }
}

/// One line from an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UciLine<'a> {
    /// `id name ...`
    Name(&'a str),
    /// `id author ...`
    Author(&'a str),
    /// `option name ... type ...`
    Option(EngineOption),
    /// `uciok`
    UciOk,
    /// `readyok`
    ReadyOk,
    /// `info ...`
    Info(Info<'a>),
    /// `info string ...`: text for a reader.
    InfoString(&'a str),
    /// `bestmove ...` with the move as it was written; empty if nothing follows.
    BestMove(&'a str),
    /// Anything else, trimmed: banners, complaints, noise.
    Other(&'a str),
}

/// Takes the next word off `rest`.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_ascii_start();
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    let (first, tail) = text.split_at(end);
    *rest = tail;
    (!first.is_empty()).then_some(first)
}

/// Takes the next word off `rest` if it is a number.
fn number<T: std::str::FromStr>(rest: &mut &str) -> Option<T> {
    let mut ahead = *rest;
    let value = word(&mut ahead)?.parse().ok()?;
    *rest = ahead;
    Some(value)
}

/// Whether a word has the shape of a move, legal or not.
fn is_move_shaped(text: &str) -> bool {
    let b = text.as_bytes();
    let square = |f: u8, r: u8| (b'a'..=b'h').contains(&f) && (b'1'..=b'8').contains(&r);
    (b.len() == 4 || (b.len() == 5 && b"nbrq".contains(&b[4]))) && square(b[0], b[1]) && square(b[2], b[3])
}

fn parse_score(rest: &mut &str) -> Option<(Score, Bound)> {
    let mut ahead = *rest;
    let score = match word(&mut ahead)? {
        "cp" => Score::Cp(number(&mut ahead)?),
        "mate" => Score::Mate(number(&mut ahead)?),
        _ => return None,
    };
    *rest = ahead;
    let bound = match word(&mut ahead) {
        Some("lowerbound") => Bound::Lower,
        Some("upperbound") => Bound::Upper,
        _ => return Some((score, Bound::Exact)),
    };
    *rest = ahead;
    Some((score, bound))
}

fn parse_info(mut rest: &str) -> Info<'_> {
    let mut info = Info::default();
    while let Some(key) = word(&mut rest) {
        match key {
            // A comment may follow on the fields of a line.
            "string" => break,
            "depth" => info.depth = number(&mut rest),
            "multipv" => info.multipv = number(&mut rest),
            "nodes" => info.nodes = number(&mut rest),
            "time" => info.time = number(&mut rest).map(Duration::from_millis),
            "score" => info.score = parse_score(&mut rest),
            "pv" => {
                let all = rest.trim_ascii_start();
                let mut ahead = all;
                loop {
                    rest = ahead;
                    if !word(&mut ahead).is_some_and(is_move_shaped) {
                        break;
                    }
                }
                info.pv = &all[..all.len() - rest.len()];
            }
            _ => {}
        }
    }
    info
}

/// Reads one line, with or without its line end.
///
/// ```
/// use games::Score;
/// use uci::{Bound, UciLine, parse_line};
/// let line = " info  depth 10 score cp 22 upperbound  time 17 pv d7d5 e4e5";
/// let UciLine::Info(info) = parse_line(line) else { panic!("an info line") };
/// assert_eq!(info.score, Some((Score::Cp(22), Bound::Upper)));
/// assert_eq!(info.moves().next(), Some("d7d5"));
/// ```
pub fn parse_line(line: &str) -> UciLine<'_> {
    let text = line.trim_ascii();
    let mut rest = text;
    match word(&mut rest) {
        Some("info") => {
            let mut ahead = rest;
            match word(&mut ahead) {
                Some("string") => UciLine::InfoString(ahead.trim_ascii()),
                _ => UciLine::Info(parse_info(rest)),
            }
        }
        Some("bestmove") => UciLine::BestMove(word(&mut rest).unwrap_or("")),
        Some("readyok") => UciLine::ReadyOk,
        Some("uciok") => UciLine::UciOk,
        Some("option") => EngineOption::parse(text).map_or(UciLine::Other(text), UciLine::Option),
        Some("id") => match word(&mut rest) {
            Some("name") => UciLine::Name(rest.trim_ascii()),
            Some("author") => UciLine::Author(rest.trim_ascii()),
            _ => UciLine::Other(text),
        },
        _ => UciLine::Other(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn info(line: &str) -> Info<'_> {
        match parse_line(line) {
            UciLine::Info(info) => info,
            other => panic!("expected info, got {other:?}"),
        }
    }

    #[test]
    fn u6_text_around_the_protocol() {
        let odd = info(" info  depth 10 seldepth 9 score cp 22 upperbound  time 17 nodes 48299 pv d7d5 e4e5");
        assert_eq!(odd.score, Some((Score::Cp(22), Bound::Upper)));
        assert_eq!(odd.moves().collect::<Vec<_>>(), ["d7d5", "e4e5"]);
        assert_eq!((odd.depth, odd.nodes, odd.time), (Some(10), Some(48_299), Some(Duration::from_millis(17))));

        let ebf = info("info depth 2 score cp 0 ebf 1.75 time 4 nodes 138 pv e2e4 e7e5");
        assert_eq!((ebf.score, ebf.nodes), (Some((Score::Cp(0), Bound::Exact)), Some(138)));

        let wdl = info("info depth 1 seldepth 1 multipv 1 score cp 32 wdl 43 955 2 nodes 24 pv e2e4");
        assert_eq!((wdl.score, wdl.nodes, wdl.multipv), (Some((Score::Cp(32), Bound::Exact)), Some(24), Some(1)));
        assert_eq!(wdl.pv.trim(), "e2e4");

        assert_eq!(parse_line("info  string score cp 999 pv a1a1"), UciLine::InfoString("score cp 999 pv a1a1"));
        assert_eq!(info("info depth 3 string score cp 999"), Info { depth: Some(3), ..Info::default() });
        assert_eq!(parse_line("No such option: Nonsense"), UciLine::Other("No such option: Nonsense"));
        let banner = "Stockfish 15.1 by the Stockfish developers (see AUTHORS file)";
        assert_eq!(parse_line(banner), UciLine::Other(banner));
        assert_eq!(parse_line("bestmove e2e4\r"), UciLine::BestMove("e2e4"));
        assert_eq!(parse_line("\tbestmove  e2e4   ponder (none)\r\n"), UciLine::BestMove("e2e4"));
        assert_eq!(parse_line("bestmove"), UciLine::BestMove(""));
    }

    #[test]
    fn u13_mate_scores_keep_their_sign() {
        assert_eq!(info("info depth 0 score mate 0").score, Some((Score::Mate(0), Bound::Exact)));
        assert_eq!(info("info depth 5 score mate -1 pv a1a2").score, Some((Score::Mate(-1), Bound::Exact)));
        assert_eq!(info("info score mate 9 lowerbound").score, Some((Score::Mate(9), Bound::Lower)));
    }

    #[test]
    fn broken_fields_are_absent_and_the_rest_is_read() {
        let broken = info("info depth x score cp 1.5 nodes 7 pv");
        assert_eq!(broken, Info { nodes: Some(7), ..Info::default() });
        let after = info("info pv e7e8q a1a1 nodes 12 score cp -3");
        assert_eq!((after.nodes, after.score), (Some(12), Some((Score::Cp(-3), Bound::Exact))));
        assert_eq!(after.moves().count(), 2);
        assert_eq!(info("info score lowerbound nodes 3").nodes, Some(3));
    }

    #[test]
    fn identity_and_handshake() {
        assert_eq!(parse_line("id name Stockfish 15.1"), UciLine::Name("Stockfish 15.1"));
        assert_eq!(parse_line("id author someone"), UciLine::Author("someone"));
        assert_eq!(parse_line("id"), UciLine::Other("id"));
        assert_eq!(parse_line(" uciok "), UciLine::UciOk);
        assert_eq!(parse_line("readyok\r"), UciLine::ReadyOk);
        assert_eq!(parse_line(""), UciLine::Other(""));
    }

    proptest! {
        #[test]
        fn any_text_is_a_line(text in "(info |option |bestmove )?[ a-z0-9é\t-]{0,60}") {
            parse_line(&text);
        }
    }
}
