//! The chess openings that come with the program: well-known, balanced, 4 to 10 plies, from every part of the ECO.

use games::{Chess, Game};

use crate::Opening;

/// (ECO code and name, moves in UCI). A match draws its openings from this list in a seeded order, so the order here
/// only matters to the reader; changing a line changes the matches of a seed.
const OPENINGS: &[(&str, &str)] = &[
    ("A04 Réti Opening", "g1f3 d7d5 g2g3 g8f6 f1g2 e7e6"),
    ("A07 King's Indian Attack", "g1f3 d7d5 g2g3 c7c6 f1g2 c8g4"),
    ("A13 English Opening, Agincourt Defence", "c2c4 e7e6 g1f3 d7d5 g2g3 g8f6"),
    ("A15 English Opening, Anglo-Indian Defence", "c2c4 g8f6 g1f3 g7g6 g2g3 f8g7"),
    ("A22 English Opening, Two Knights", "c2c4 e7e5 b1c3 g8f6 g2g3 d7d5"),
    ("A28 English Opening, Four Knights", "c2c4 e7e5 b1c3 g8f6 g1f3 b8c6"),
    ("A30 English Opening, Symmetrical, Hedgehog", "c2c4 c7c5 g1f3 g8f6 g2g3 b7b6"),
    ("A34 English Opening, Symmetrical", "c2c4 c7c5 b1c3 g8f6 g2g3 d7d5"),
    ("A37 English Opening, Symmetrical, Botvinnik", "c2c4 c7c5 b1c3 b8c6 g2g3 g7g6 f1g2 f8g7"),
    ("A45 Trompowsky Attack", "d2d4 g8f6 c1g5 f6e4 g5f4 d7d5"),
    ("A46 Queen's Pawn Game, Torre Attack", "d2d4 g8f6 g1f3 e7e6 c1g5 c7c5"),
    ("A57 Benko Gambit Declined", "d2d4 g8f6 c2c4 c7c5 d4d5 b7b5 g1f3 b5c4"),
    ("A48 London System", "d2d4 g8f6 g1f3 g7g6 c1f4 f8g7"),
    ("A84 Dutch Defence", "d2d4 e7e6 c2c4 f7f5 g1f3 g8f6"),
    ("A87 Dutch Defence, Leningrad", "d2d4 f7f5 g2g3 g8f6 f1g2 g7g6"),
    ("B01 Scandinavian Defence, Modern", "e2e4 d7d5 e4d5 g8f6 d2d4 f6d5"),
    ("B01 Scandinavian Defence, Main Line", "e2e4 d7d5 e4d5 d8d5 b1c3 d5a5"),
    ("B02 Alekhine Defence, Four Pawns", "e2e4 g8f6 e4e5 f6d5 d2d4 d7d6"),
    ("B06 Modern Defence", "e2e4 g7g6 d2d4 f8g7 b1c3 d7d6"),
    ("B07 Pirc Defence", "e2e4 d7d6 d2d4 g8f6 b1c3 g7g6"),
    ("B10 Caro-Kann Defence, Two Knights", "e2e4 c7c6 b1c3 d7d5 g1f3 c8g4"),
    ("B12 Caro-Kann Defence, Advance", "e2e4 c7c6 d2d4 d7d5 e4e5 c8f5"),
    ("B13 Caro-Kann Defence, Exchange", "e2e4 c7c6 d2d4 d7d5 e4d5 c6d5"),
    ("B14 Caro-Kann Defence, Panov Attack", "e2e4 c7c6 d2d4 d7d5 e4d5 c6d5 c2c4 g8f6"),
    ("B18 Caro-Kann Defence, Classical", "e2e4 c7c6 d2d4 d7d5 b1c3 d5e4 c3e4 c8f5"),
    ("B22 Sicilian Defence, Alapin", "e2e4 c7c5 c2c3 g8f6 e4e5 f6d5"),
    ("B23 Sicilian Defence, Closed", "e2e4 c7c5 b1c3 b8c6 g2g3 g7g6"),
    ("B30 Sicilian Defence, Rossolimo", "e2e4 c7c5 g1f3 b8c6 f1b5 g7g6"),
    ("B33 Sicilian Defence, Sveshnikov", "e2e4 c7c5 g1f3 b8c6 d2d4 c5d4 f3d4 g8f6 b1c3 e7e5"),
    ("B40 Sicilian Defence, French Variation", "e2e4 c7c5 g1f3 e7e6 c2c3 d7d5"),
    ("B42 Sicilian Defence, Kan", "e2e4 c7c5 g1f3 e7e6 d2d4 c5d4 f3d4 a7a6"),
    ("B44 Sicilian Defence, Taimanov", "e2e4 c7c5 g1f3 e7e6 d2d4 c5d4 f3d4 b8c6"),
    ("B51 Sicilian Defence, Moscow", "e2e4 c7c5 g1f3 d7d6 f1b5 c8d7"),
    ("B54 Sicilian Defence, Open", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6"),
    ("B70 Sicilian Defence, Dragon", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 g7g6"),
    ("B80 Sicilian Defence, Scheveningen", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 e7e6"),
    ("B90 Sicilian Defence, Najdorf", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6"),
    ("C01 French Defence, Exchange", "e2e4 e7e6 d2d4 d7d5 e4d5 e6d5"),
    ("C02 French Defence, Advance", "e2e4 e7e6 d2d4 d7d5 e4e5 c7c5 c2c3 b8c6"),
    ("C03 French Defence, Tarrasch", "e2e4 e7e6 d2d4 d7d5 b1d2 c7c5"),
    ("C11 French Defence, Classical", "e2e4 e7e6 d2d4 d7d5 b1c3 g8f6"),
    ("C15 French Defence, Winawer", "e2e4 e7e6 d2d4 d7d5 b1c3 f8b4"),
    ("C24 Bishop's Opening, Berlin Defence", "e2e4 e7e5 f1c4 g8f6 d2d3 c7c6"),
    ("C26 Vienna Game", "e2e4 e7e5 b1c3 g8f6 g2g3 f8c5"),
    ("C28 Vienna Game, Three Bishops", "e2e4 e7e5 b1c3 g8f6 f1c4 b8c6"),
    ("C42 Petrov Defence, Classical", "e2e4 e7e5 g1f3 g8f6 f3e5 d7d6 e5f3 f6e4"),
    ("C43 Petrov Defence, Steinitz", "e2e4 e7e5 g1f3 g8f6 d2d4 f6e4"),
    ("C45 Scotch Game", "e2e4 e7e5 g1f3 b8c6 d2d4 e5d4 f3d4 g8f6"),
    ("C47 Four Knights Game", "e2e4 e7e5 g1f3 b8c6 b1c3 g8f6"),
    ("C50 Italian Game, Giuoco Pianissimo", "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 d2d3 g8f6"),
    ("C53 Italian Game, Classical", "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 c2c3 g8f6"),
    ("C55 Italian Game, Two Knights", "e2e4 e7e5 g1f3 b8c6 f1c4 g8f6 d2d3 f8e7"),
    ("C65 Ruy Lopez, Berlin Defence", "e2e4 e7e5 g1f3 b8c6 f1b5 g8f6"),
    ("C68 Ruy Lopez, Exchange", "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5c6 d7c6"),
    ("C78 Ruy Lopez, Morphy Defence", "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6"),
    ("D00 Queen's Pawn Game, Accelerated London", "d2d4 d7d5 c1f4 g8f6 e2e3 c7c5"),
    ("D05 Colle System", "d2d4 d7d5 g1f3 g8f6 e2e3 e7e6"),
    ("D10 Slav Defence, Exchange", "d2d4 d7d5 c2c4 c7c6 c4d5 c6d5"),
    ("D15 Slav Defence, Three Knights", "d2d4 d7d5 c2c4 c7c6 g1f3 g8f6 b1c3 d5c4"),
    ("D20 Queen's Gambit Accepted", "d2d4 d7d5 c2c4 d5c4 e2e3 g8f6"),
    ("D30 Queen's Gambit Declined", "d2d4 d7d5 c2c4 e7e6 g1f3 g8f6"),
    ("D34 Tarrasch Defence", "d2d4 d7d5 c2c4 e7e6 b1c3 c7c5 c4d5 e6d5"),
    ("D35 Queen's Gambit Declined, Exchange", "d2d4 d7d5 c2c4 e7e6 b1c3 g8f6 c4d5 e6d5"),
    ("D43 Semi-Slav Defence", "d2d4 d7d5 c2c4 c7c6 g1f3 g8f6 b1c3 e7e6"),
    ("D76 Neo-Grünfeld Defence", "d2d4 g8f6 c2c4 g7g6 g2g3 d7d5 c4d5 f6d5"),
    ("D85 Grünfeld Defence, Exchange", "d2d4 g8f6 c2c4 g7g6 b1c3 d7d5 c4d5 f6d5"),
    ("E00 Catalan Opening", "d2d4 g8f6 c2c4 e7e6 g2g3 d7d5"),
    ("E11 Bogo-Indian Defence", "d2d4 g8f6 c2c4 e7e6 g1f3 f8b4 c1d2 b4d2"),
    ("E12 Queen's Indian Defence, Petrosian", "d2d4 g8f6 c2c4 e7e6 g1f3 b7b6 a2a3 c8b7"),
    ("E15 Queen's Indian Defence, Nimzowitsch", "d2d4 g8f6 c2c4 e7e6 g1f3 b7b6 g2g3 c8a6"),
    ("E32 Nimzo-Indian Defence, Classical", "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4 d1c2 e8g8"),
    ("E46 Nimzo-Indian Defence, Rubinstein", "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4 e2e3 e8g8"),
    ("E60 King's Indian Defence, Fianchetto", "d2d4 g8f6 c2c4 g7g6 g1f3 f8g7 g2g3 e8g8"),
    ("E70 King's Indian Defence", "d2d4 g8f6 c2c4 g7g6 b1c3 f8g7 e2e4 d7d6"),
];

/// Continuations of [`OPENINGS`], two plies longer, a line each: name, tab, moves in UCI. Made by
/// `scripts/variations.py`, which keeps what an engine holds for even.
const VARIATIONS: &str = include_str!("variations.txt");

/// The built-in openings, in the order of their ECO codes as listed.
pub(crate) fn builtin_openings() -> Vec<Opening> {
    OPENINGS.iter().filter_map(|(name, text)| opening(name, text)).collect()
}

/// Continuations of the built-in openings, for matches of more pairs than there are openings.
pub(crate) fn builtin_variations() -> Vec<Opening> {
    VARIATIONS.lines().filter_map(|line| line.split_once('\t')).filter_map(|(name, text)| opening(name, text)).collect()
}

/// An opening of the lists; `None` if a move is not legal.
fn opening(name: &str, text: &str) -> Option<Opening> {
    let mut state = Chess::start();
    let mut moves = Vec::new();
    for word in text.split(' ') {
        let m = state.parse_move(word).ok()?;
        state.play(m);
        moves.push(m);
    }
    Some(Opening { name: Some(name.to_owned()), start_fen: None, moves })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use games::Outcome;

    use super::*;

    fn all() -> Vec<Opening> {
        builtin_openings().into_iter().chain(builtin_variations()).collect()
    }

    #[test]
    fn every_opening_replays_and_is_distinct() {
        let openings = all();
        assert!(builtin_openings().len() >= 40 && openings.len() >= 300, "{}", openings.len());
        assert_eq!(openings.len(), OPENINGS.len() + VARIATIONS.lines().count(), "an unreadable line is dropped");
        let (mut names, mut positions) = (HashSet::new(), HashSet::new());
        for opening in &openings {
            let name = opening.name.clone().unwrap();
            let line = opening.line::<Chess>().unwrap();
            assert!((4..=12).contains(&line.moves().len()), "{name}");
            assert_eq!(line.state().outcome(), Outcome::Ongoing, "{name}");
            assert!(positions.insert(line.state().hash()), "{name} transposes to another opening");
            let eco = name.split(' ').next().unwrap().to_owned();
            assert!(eco.len() == 3 && ('A'..='E').contains(&eco.chars().next().unwrap()), "{name}");
            assert!(eco[1..].parse::<u8>().is_ok(), "{name}");
            assert!(names.insert(name));
        }
    }

    #[test]
    fn every_opening_is_materially_even() {
        // A pawn at most: a check against typing errors that leave a piece hanging.
        for opening in all() {
            let line = opening.line::<Chess>().unwrap();
            let material = |color| {
                let side = shakmaty::Position::board(line.state().position()).material_side(color);
                side.pawn as i32 + 3 * (side.knight + side.bishop) as i32 + 5 * side.rook as i32 + 9 * side.queen as i32
            };
            let difference = material(shakmaty::Color::White) - material(shakmaty::Color::Black);
            assert!(difference.abs() <= 3, "{opening:?}: {difference}");
        }
    }
}
