//! Where the games of a match begin: the built-in list, a book file, or random plies of any game.

use std::any::TypeId;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use dataset::OnBad;
use games::{Chess, Game, GameError, Line, Move, Rng};
use pipeline::say;
use serde::{Deserialize, Serialize};

use crate::builtin::{builtin_openings, builtin_variations};

/// How often a random opening is drawn again before the list is taken to be complete.
const REDRAWS: u64 = 500;

/// A start position and the plies that no player chose.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Opening {
    /// ECO code and name, or the book's name for it.
    pub name: Option<String>,
    /// The start position; `None` is the game's own.
    pub start_fen: Option<String>,
    /// The plies.
    pub moves: Vec<Move>,
}

impl Opening {
    /// The opening as played out.
    ///
    /// # Errors
    /// [`GameError`] if the position or a move is not legal.
    pub fn line<G: Game>(&self) -> Result<Line<G>, GameError> {
        let start = self.start_fen.as_deref().map_or_else(|| Ok(G::start()), G::from_fen)?;
        let mut line = Line::new(start);
        for m in &self.moves {
            line.state().clone().try_play(*m)?;
            line.play(*m);
        }
        Ok(line)
    }
}

/// Where openings come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case", deny_unknown_fields)]
pub enum OpeningSource {
    /// The built-in chess openings, in a seeded order, then continuations of them.
    Builtin {},
    /// Random legal plies, no two openings reaching the same position.
    Random {
        /// Plies an opening.
        plies: u16,
    },
    /// A book file for chess (EPD, FEN lines or PGN, also `.zst`), in a seeded order.
    Book {
        /// The file.
        path: PathBuf,
        /// Plies taken of each line at most; all if absent.
        #[serde(default)]
        plies: Option<u16>,
    },
    /// Every game begins at the game's start position.
    Start {},
}

/// Why openings cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpeningError {
    /// The built-in list and books are chess.
    #[error("{what} are for chess, not for {game}: use random openings (`source = \"random\"`, `plies = 2`)")]
    ChessOnly {
        /// What was asked for.
        what: &'static str,
        /// The game.
        game: &'static str,
    },
    /// Every random opening of this length ends the game.
    #[error("no random opening of {plies} plies leaves a game of {game} going on: ask for fewer plies")]
    NoneLeft {
        /// The game.
        game: &'static str,
        /// Plies asked for.
        plies: u16,
    },
    /// The book cannot be read or holds no usable line.
    #[error(transparent)]
    Book(#[from] dataset::DatasetError),
}

/// The openings of a match of `pairs` pairs; pair `i` begins with opening `i % len`.
///
/// A longer match begins with the openings of a shorter one of the same seed. `on_bad` says what is done about games of
/// a book that cannot be played.
///
/// # Errors
/// [`OpeningError`] if the source does not fit the game, cannot be read or is empty.
pub fn openings<G: Game>(
    source: &OpeningSource,
    seed: u64,
    pairs: usize,
    on_bad: OnBad,
) -> Result<Vec<Opening>, OpeningError> {
    let chess = TypeId::of::<G>() == TypeId::of::<Chess>();
    let chess_only = |what| if chess { Ok(()) } else { Err(OpeningError::ChessOnly { what, game: G::NAME }) };
    let mut order = Rng::from_parts(&[seed, Rng::part("opening order")]);
    let mut list = match source {
        OpeningSource::Random { plies } => return random_openings::<G>(*plies, seed, pairs),
        OpeningSource::Start {} => return Ok(vec![Opening::default()]),
        OpeningSource::Builtin {} => {
            chess_only("the built-in openings")?;
            let (mut list, mut more) = (builtin_openings(), builtin_variations());
            order.shuffle(&mut list);
            order.shuffle(&mut more);
            list.append(&mut more);
            return Ok(list);
        }
        OpeningSource::Book { path, plies } => {
            chess_only("opening books")?;
            book(path, *plies, on_bad)?
        }
    };
    order.shuffle(&mut list);
    Ok(list)
}

/// The lines of a book, each once. The reader leaves out those that cannot be played, and refuses a book without others.
fn book(path: &Path, plies: Option<u16>, on_bad: OnBad) -> Result<Vec<Opening>, OpeningError> {
    let book = dataset::read_book(path, plies.map(usize::from), on_bad)?;
    book.warnings.iter().for_each(|warning| say!("{warning}"));
    let mut seen = HashSet::new();
    let standard = Chess::start().fen();
    Ok(book
        .openings
        .into_iter()
        .map(|line| Opening {
            name: Some(line.name).filter(|name| !name.is_empty()),
            start_fen: line.start_fen.filter(|fen| *fen != standard),
            moves: line.moves,
        })
        .filter(|o| seen.insert((o.start_fen.clone(), o.moves.clone())))
        .collect())
}

/// Up to `count` random openings of `plies` plies, reaching distinct positions in which the game goes on; fewer if the
/// game has not so many. Opening `i` does not depend on `count`.
///
/// # Errors
/// [`OpeningError::NoneLeft`] if every opening ends the game.
pub fn random_openings<G: Game>(plies: u16, seed: u64, count: usize) -> Result<Vec<Opening>, OpeningError> {
    let mut seen = HashSet::new();
    let mut list = Vec::new();
    'openings: for i in 0..count as u64 {
        for attempt in 0..REDRAWS {
            let mut rng = Rng::from_parts(&[seed, Rng::part("random opening"), i, attempt]);
            let mut line = Line::new(G::start());
            if line.play_random(usize::from(plies), &mut rng) && seen.insert(line.state().fen()) {
                list.push(Opening { name: None, start_fen: None, moves: line.moves().to_vec() });
                continue 'openings;
            }
        }
        break;
    }
    if list.is_empty() && count > 0 { Err(OpeningError::NoneLeft { game: G::NAME, plies }) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use games::{Connect4, Outcome, TicTacToe};

    #[test]
    fn random_openings_are_distinct_stable_and_unfinished() {
        let long = random_openings::<Chess>(6, 7, 40).unwrap();
        assert_eq!(long.len(), 40);
        assert_eq!(random_openings::<Chess>(6, 7, 15).unwrap(), long[..15]);
        assert_ne!(random_openings::<Chess>(6, 8, 15).unwrap(), long[..15]);
        let positions: HashSet<String> = long.iter().map(|o| o.line::<Chess>().unwrap().state().fen()).collect();
        assert_eq!(positions.len(), 40);
        for opening in random_openings::<TicTacToe>(6, 3, 50).unwrap() {
            assert_eq!(opening.line::<TicTacToe>().unwrap().state().outcome(), Outcome::Ongoing);
        }
        assert_eq!(random_openings::<Connect4>(3, 3, 20).unwrap().len(), 20);
    }

    #[test]
    fn small_games_run_out_of_openings() {
        assert_eq!(random_openings::<TicTacToe>(1, 5, 100).unwrap().len(), 9);
        assert_eq!(random_openings::<TicTacToe>(0, 5, 100).unwrap().len(), 1);
        assert!(matches!(random_openings::<TicTacToe>(9, 5, 10), Err(OpeningError::NoneLeft { plies: 9, .. })));
    }

    #[test]
    fn built_in_openings_come_in_a_seeded_order() {
        let a = openings::<Chess>(&OpeningSource::Builtin {}, 1, 10, OnBad::Skip).unwrap();
        let b = openings::<Chess>(&OpeningSource::Builtin {}, 1, 90, OnBad::Skip).unwrap();
        let c = openings::<Chess>(&OpeningSource::Builtin {}, 2, 10, OnBad::Skip).unwrap();
        assert_eq!(a, b);
        assert!(a != c && a.len() == c.len());
        let (first, then) = (builtin_openings(), &a[builtin_openings().len()..]);
        assert!(first.iter().all(|o| a.contains(o) && !then.contains(o)), "the continuations come behind");
        let refused = openings::<TicTacToe>(&OpeningSource::Builtin {}, 1, 10, OnBad::Skip).unwrap_err();
        assert!(refused.to_string().contains("tictactoe"));
    }

    #[test]
    fn a_book_gives_distinct_unfinished_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.epd");
        let lines = [
            "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
            "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3",
            "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
            "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let list =
            openings::<Chess>(&OpeningSource::Book { path: path.clone(), plies: None }, 3, 4, OnBad::Skip).unwrap();
        assert_eq!(list.len(), 2, "the mated position and the copy are left out: {list:?}");
        std::fs::write(&path, lines[1]).unwrap();
        let empty = openings::<Chess>(&OpeningSource::Book { path, plies: None }, 3, 4, OnBad::Skip).unwrap_err();
        assert!(matches!(empty, OpeningError::Book(_)), "{empty}");
    }

    #[test]
    fn a_book_of_games_is_cut_to_its_plies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.pgn");
        std::fs::write(&path, "[Event \"a\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n[Event \"b\"]\n\n1. d4 d5 2. c4 *\n")
            .unwrap();
        let source = OpeningSource::Book { path, plies: Some(3) };
        let list = openings::<Chess>(&source, 1, 2, OnBad::Skip).unwrap();
        assert_eq!(list.len(), 2);
        assert!(list.iter().all(|o| o.moves.len() == 3));
    }

    #[test]
    fn a_source_reads_from_a_config() {
        let read = |text: &str| serde_json::from_str::<OpeningSource>(text);
        assert_eq!(read(r#"{"source":"builtin"}"#).unwrap(), OpeningSource::Builtin {});
        assert_eq!(read(r#"{"source":"random","plies":4}"#).unwrap(), OpeningSource::Random { plies: 4 });
        assert!(read(r#"{"source":"builtin","plies":4}"#).is_err(), "unknown keys are errors");
    }
}
