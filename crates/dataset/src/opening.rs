//! The names of common openings, by the moves that a game begins with.
//!
//! `eco.tsv` holds code, name and moves of about 150 lines. The codes are those of the Encyclopaedia of Chess Openings
//! (Chess Informant), the names those of general use, as in <https://github.com/lichess-org/chess-openings> (CC0).

use std::collections::HashMap;
use std::sync::LazyLock;

use games::{Chess, Game, Line, Move};

const TABLE: &str = include_str!("eco.tsv");

struct Names {
    by_moves: HashMap<Vec<Move>, String>,
    longest: usize,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let by_moves: HashMap<Vec<Move>, String> = TABLE.lines().filter_map(read).collect();
    Names { longest: by_moves.keys().map(Vec::len).max().unwrap_or(0), by_moves }
});

/// A line of the table; `None` if it is none, which a test rules out.
fn read(text: &str) -> Option<(Vec<Move>, String)> {
    let (code, rest) = text.split_once('\t')?;
    let (name, moves) = rest.split_once('\t')?;
    let mut line = Line::new(Chess::start());
    for san in moves.split(' ') {
        let m = line.state().parse_san(san).ok()?;
        line.play(m);
    }
    Some((line.moves().to_vec(), format!("{code} {name}")))
}

/// ECO code and name of the longest known line that a game of chess from the standard position begins with: `B90 Sicilian
/// Defence, Najdorf`. Moves in another order are another line.
pub fn opening_name(moves: &[Move]) -> Option<&'static str> {
    let longest = moves.len().min(NAMES.longest);
    (1..=longest).rev().find_map(|plies| NAMES.by_moves.get(&moves[..plies])).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name(sans: &str) -> Option<&'static str> {
        let mut line = Line::new(Chess::start());
        for san in sans.split_whitespace() {
            line.play(line.state().parse_san(san).unwrap());
        }
        opening_name(line.moves())
    }

    #[test]
    fn every_line_of_the_table_is_legal_and_there_once() {
        let mut seen = HashSet::new();
        for text in TABLE.lines() {
            let (moves, name) = read(text).unwrap_or_else(|| panic!("{text}"));
            assert!(seen.insert(moves), "{text}: twice");
            let code = name.as_bytes();
            assert!(code[0].is_ascii_uppercase() && code[1].is_ascii_digit() && code[2].is_ascii_digit(), "{text}");
        }
        assert!(seen.len() > 100);
    }

    #[test]
    fn the_longest_known_line_names_a_game() {
        for (moves, expected) in [
            ("", None),
            ("h4", None),
            ("e4", Some("B00 King's Pawn Game")),
            ("e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6 Be3 e5", Some("B90 Sicilian Defence, Najdorf")),
            ("e4 e5 Nf3 Nc6 Bb5 h6", Some("C60 Ruy Lopez")),
            ("d4 Nf6 c4 e6 Nc3 Bb4 Qc2 O-O", Some("E32 Nimzo-Indian Defence, Classical")),
        ] {
            assert_eq!(name(moves), expected, "{moves}");
        }
    }
}
