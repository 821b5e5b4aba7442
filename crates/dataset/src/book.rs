//! Opening books (EPD, FEN lines, PGN; plain or zstd) and PGN games, as people have them.
//!
//! Byte order marks, UTF-16, CRLF, Latin-1, blank lines anywhere, variations, glyphs and odd spellings are read. A game or
//! line that cannot be played (an illegal position or move, a null move, a variant, Chess960) is left out, counted and
//! named by its line, or is the error that ends the reading: see [`OnBad`]. It is never handed to an engine: engines crash
//! on illegal positions (Stockfish does not check).

mod pgn;
mod scan;
mod text;

use std::path::Path;

use games::{Chess, Game, Line, Move, Outcome, Termination};

pub use pgn::{PgnGame, parse_pgn, read_pgn};

use crate::{DatasetError, OnBad};

/// Where a game can begin.
#[derive(Clone, PartialEq, Debug)]
pub struct Opening {
    /// The `id` of an EPD line, the opening or event of a PGN game, or else file name and line.
    pub name: String,
    /// The position; `None` is the standard one.
    pub start_fen: Option<String>,
    /// The moves from there.
    pub moves: Vec<Move>,
}

/// A file of openings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Book {
    /// The openings, in the order of the file.
    pub openings: Vec<Opening>,
    /// What was odd, with its count and first line: bytes that are not UTF-8, games that were left out, and why.
    pub warnings: Vec<String>,
}

/// The openings of a file; warnings go to standard error.
///
/// # Errors
/// As [`read_book`].
pub fn read_openings(path: &Path, on_bad: OnBad) -> Result<Vec<Opening>, DatasetError> {
    let book = read_book(path, None, on_bad)?;
    book.warnings.iter().for_each(|warning| pipeline::say!("{warning}"));
    Ok(book.openings)
}

/// The openings of a file, PGN games cut after `max_plies`: what comes later in a game is not looked at.
///
/// # Errors
/// [`DatasetError::Io`]; [`DatasetError::Book`] for what is no text, if there is no opening at all, and under
/// [`OnBad::Stop`] for the first game or line that cannot be played.
pub fn read_book(path: &Path, max_plies: Option<usize>, on_bad: OnBad) -> Result<Book, DatasetError> {
    let (text, mut warnings) = text::read(path)?;
    let fault = |line, reason| DatasetError::Book { path: path.to_owned(), line, reason };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let most = max_plies.unwrap_or(usize::MAX);
    let (what, entries) = if is_pgn(path, &text) {
        ("games", pgn::parse(&text, most).into_iter().map(|game| of_game(game, &file)).collect())
    } else {
        ("lines", of_lines(&text, &file))
    };
    let (all, mut openings) = (entries.len(), Vec::new());
    let (mut bad, mut over, mut short) = (Count::default(), Count::default(), Count::default());
    for Entry { line, opening } in entries {
        match opening {
            Err((line, reason)) if on_bad == OnBad::Stop => return Err(fault(line, reason)),
            Err((line, reason)) => bad.add(line, reason),
            Ok(opening) => {
                let is_short = max_plies.is_some() && opening.start_fen.is_none() && opening.moves.len() < most;
                match ending(&opening) {
                    Some(reason) => over.add(line, format!("{} after {} plies", reason.as_str(), opening.moves.len())),
                    None => {
                        if is_short {
                            short.add(line, format!("{} plies", opening.moves.len()));
                        }
                        openings.push(opening);
                    }
                }
            }
        }
    }
    let counted = [
        bad.text(all, what, "cannot be used and are left out"),
        over.text(all, what, "are over by their opening's end and are left out"),
        short.text(all, what, &format!("are shorter than `plies` = {most} and are used as they are")),
    ];
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    if openings.is_empty() {
        let expected = "expected EPD or FEN lines, or PGN games";
        let reason = if all == 0 { expected.to_owned() } else { counted.join("; ") };
        return Err(fault(1, format!("holds no opening: {reason}")));
    }
    warnings.extend(counted.into_iter().map(|text| format!("{}: {text}", path.display())));
    Ok(Book { openings, warnings })
}

/// A game or line of a book: what it gives, or the line and the reason why it gives nothing.
struct Entry {
    line: usize,
    opening: Result<Opening, (usize, String)>,
}

/// How often something was met, with the first place.
#[derive(Default)]
struct Count {
    count: usize,
    first: Option<(usize, String)>,
}

impl Count {
    fn add(&mut self, line: usize, reason: String) {
        self.count += 1;
        self.first.get_or_insert((line, reason));
    }

    fn text(&self, all: usize, what: &str, happens: &str) -> Option<String> {
        let (line, reason) = self.first.as_ref()?;
        Some(format!("{} of {all} {what} {happens}, the first at line {line}: {reason}", self.count))
    }
}

fn of_game(game: PgnGame, file: &str) -> Entry {
    let line = game.line;
    if let Some(fault) = game.fault {
        return Entry { line, opening: Err(fault) };
    }
    if game.moves.is_empty() && game.start_fen.is_none() {
        return Entry { line, opening: Err((line, "the game has neither moves nor a position".to_owned())) };
    }
    let name = ["Opening", "ECO", "Event"].iter().find_map(|tag| game.tag(tag).filter(|v| *v != "?"));
    let name = name.map_or_else(|| format!("{file}:{line}"), str::to_owned);
    Entry { line, opening: Ok(Opening { name, start_fen: game.start_fen, moves: game.moves }) }
}

fn of_lines(text: &str, file: &str) -> Vec<Entry> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    let read = |line: usize, text: &str| {
        let (fen, id) = epd(text)?;
        let state = Chess::from_fen(&fen).map_err(|e| e.to_string())?;
        let start_fen = (state.fen() != Chess::start().fen()).then_some(fen);
        Ok(Opening { name: id.unwrap_or_else(|| format!("{file}:{line}")), start_fen, moves: Vec::new() })
    };
    let entry = |(i, text)| {
        let line = i + 1;
        Entry { line, opening: read(line, text).map_err(|reason: String| (line, reason)) }
    };
    lines.map(entry).collect()
}

/// How the game has ended where an opening ends.
fn ending(opening: &Opening) -> Option<Termination> {
    let start = opening.start_fen.as_deref().map_or_else(|| Ok(Chess::start()), Chess::from_fen).ok()?;
    let mut line = Line::new(start);
    opening.moves.iter().for_each(|m| line.play(*m));
    match line.state().outcome() {
        Outcome::Decided { reason, .. } => Some(reason),
        Outcome::Ongoing => None,
    }
}

fn is_pgn(path: &Path, text: &str) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    let looks = || text.trim_start().starts_with('[') || text.trim_start().starts_with("1.");
    name.ends_with(".pgn") || (!name.ends_with(".epd") && !name.ends_with(".fen") && looks())
}

/// The FEN and the `id` of an EPD or FEN line.
fn epd(line: &str) -> Result<(String, Option<String>), String> {
    let mut rest = line.trim();
    let mut fields = Vec::new();
    while fields.len() < 6 {
        let (field, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // Clocks are numbers; whatever else follows the fourth field is an operation.
        let clock = field.trim_end_matches(';');
        if field.is_empty() || (fields.len() >= 4 && clock.parse::<u32>().is_err()) {
            break;
        }
        fields.push(if fields.len() >= 3 { clock } else { field });
        rest = after.trim_start();
    }
    if fields.len() < 4 {
        return Err(format!("{} is no position, expected at least four fields of FEN", text::quoted(line.trim())));
    }
    let operation = |name: &str| {
        rest.split(';').find_map(|op| op.trim().strip_prefix(name).filter(|v| v.starts_with(char::is_whitespace)))
    };
    let number = |name: &str, otherwise: &str| operation(name).map_or(otherwise, str::trim).to_owned();
    let halfmoves = fields.get(4).map_or_else(|| number("hmvc", "0"), |f| (*f).to_owned());
    let fullmoves = fields.get(5).map_or_else(|| number("fmvn", "1"), |f| (*f).to_owned());
    let id = operation("id").map(|v| v.trim().trim_matches('"').to_owned());
    Ok((format!("{} {halfmoves} {fullmoves}", fields[..4].join(" ")), id))
}

#[cfg(test)]
mod tests;
