//! Opening books (EPD, FEN lines, PGN; plain or zstd) and PGN games, as people have them.
//!
//! Byte order marks, CRLF, Latin-1, blank lines anywhere, variations, glyphs and odd spellings are read. An illegal
//! position or move is an error that names the file and the line: engines crash on them (Stockfish does not check).

mod pgn;
mod scan;
mod text;

use std::path::Path;

use games::{Chess, Game, Line, Move, Outcome};

pub use pgn::{PgnGame, parse_pgn, read_pgn};

use crate::DatasetError;

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
    /// What was odd and did no harm: bytes that are not UTF-8, games without moves, openings that end the game.
    pub warnings: Vec<String>,
}

/// The openings of a file; warnings go to standard error.
///
/// # Errors
/// As [`read_book`].
pub fn read_openings(path: &Path) -> Result<Vec<Opening>, DatasetError> {
    let book = read_book(path, None)?;
    book.warnings.iter().for_each(|warning| pipeline::say!("{warning}"));
    Ok(book.openings)
}

/// The openings of a file, PGN games cut after `max_plies`.
///
/// # Errors
/// [`DatasetError::Io`]; [`DatasetError::Book`] with the line of an illegal position or move, or if there is no
/// opening at all.
pub fn read_book(path: &Path, max_plies: Option<usize>) -> Result<Book, DatasetError> {
    let (text, mut warnings) = text::read(path)?;
    let fault = |line, reason| DatasetError::Book { path: path.to_owned(), line, reason };
    let mut openings = Vec::new();
    let mut keep = |opening: Opening, line: usize| match over(&opening) {
        Some(ending) => warnings.push(format!("{}:{line}: {ending}; left out", path.display())),
        None => openings.push(opening),
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if is_pgn(path, &text) {
        for game in parse_pgn(&text) {
            if let Some((line, reason)) = game.fault {
                return Err(fault(line, reason));
            }
            let name = ["Opening", "ECO", "Event"].iter().find_map(|tag| game.tag(tag).filter(|v| *v != "?"));
            let name = name.map_or_else(|| format!("{file}:{}", game.line), str::to_owned);
            let mut moves = game.moves;
            moves.truncate(max_plies.unwrap_or(usize::MAX));
            keep(Opening { name, start_fen: game.start_fen, moves }, game.line);
        }
    } else {
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')) {
            let (fen, id) = epd(line).map_err(|reason| fault(i + 1, reason))?;
            let state = Chess::from_fen(&fen).map_err(|e| fault(i + 1, e.to_string()))?;
            let start_fen = (state.fen() != Chess::start().fen()).then_some(fen);
            let name = id.unwrap_or_else(|| format!("{file}:{}", i + 1));
            keep(Opening { name, start_fen, moves: Vec::new() }, i + 1);
        }
    }
    if openings.is_empty() {
        return Err(fault(1, "holds no opening, expected EPD or FEN lines, or PGN games".into()));
    }
    Ok(Book { openings, warnings })
}

/// Why an opening cannot be played: it has neither position nor moves, or the game is over at its end.
fn over(opening: &Opening) -> Option<String> {
    let start = opening.start_fen.as_deref().map_or_else(|| Ok(Chess::start()), Chess::from_fen).ok()?;
    let mut line = Line::new(start);
    opening.moves.iter().for_each(|m| line.play(*m));
    match line.state().outcome() {
        Outcome::Decided { reason, .. } => Some(format!("the game is over there ({})", reason.as_str())),
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
        return Err(format!("`{}` is no position, expected at least four fields of FEN", line.trim()));
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
