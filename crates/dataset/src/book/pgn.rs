//! PGN games: tags, the main line as moves, the result.

use std::path::Path;

use games::{Chess, Game, GameResult, Line, Move};

use super::scan::{Scanner, Token};
use super::text;
use crate::DatasetError;

/// A game of a PGN file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PgnGame {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The tags, in order.
    pub tags: Vec<(String, String)>,
    /// The `FEN` tag; `None` = the standard position.
    pub start_fen: Option<String>,
    /// The main line, as far as it is legal.
    pub moves: Vec<Move>,
    /// The result; `None` for `*` or if none is given.
    pub result: Option<GameResult>,
    /// The first thing that is wrong (line and what): an illegal position or move, a brace that does not close.
    pub fault: Option<(usize, String)>,
}

impl PgnGame {
    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// The games of a PGN file, plain or zstd, and warnings about its text. Games may be empty or have a fault: a caller
/// counts them.
///
/// # Errors
/// [`DatasetError::Io`], or [`DatasetError::Book`] for UTF-16.
pub fn read_pgn(path: &Path) -> Result<(Vec<PgnGame>, Vec<String>), DatasetError> {
    let (text, warnings) = text::read(path)?;
    Ok((parse_pgn(&text), warnings))
}

/// The games of a PGN text. A game ends at its result, or where tags begin again; blank lines mean nothing.
pub fn parse_pgn(text: &str) -> Vec<PgnGame> {
    let mut reader = Reader { games: Vec::new(), open: None };
    let mut scanner = Scanner::new(text);
    while let Some((line, token)) = scanner.next() {
        reader.token(line, token);
    }
    reader.close();
    reader.games
}

/// A game that is being read.
struct Open {
    game: PgnGame,
    /// `None` until the first move, since the position may come in the last tag.
    position: Option<Line<Chess>>,
    /// A move or a result was read: tags would begin another game.
    movetext: bool,
    ended: bool,
}

struct Reader {
    games: Vec<PgnGame>,
    open: Option<Open>,
}

impl Reader {
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let mut game = open.game;
            game.moves = open.position.map(|p| p.moves().to_vec()).unwrap_or_default();
            if game.moves.is_empty() && game.fault.is_none() {
                game.fault = start(&game).err().map(|reason| (game.line, reason));
            }
            self.games.push(game);
        }
    }

    fn game(&mut self, line: usize) -> &mut Open {
        self.open.get_or_insert_with(|| Open {
            game: PgnGame { line, ..PgnGame::default() },
            position: None,
            movetext: false,
            ended: false,
        })
    }

    fn token(&mut self, line: usize, token: Token<'_>) {
        let another = |open: &Open| match &token {
            Token::Tag(name, _) => open.movetext || open.game.tag(name).is_some(),
            Token::Move(_) | Token::Result(_) => open.ended,
            Token::Unclosed(_) => false,
        };
        if self.open.as_ref().is_some_and(another) {
            self.close();
        }
        let open = self.game(line);
        match token {
            Token::Tag(name, value) => {
                if name == "FEN" {
                    open.game.start_fen = Some(value.clone());
                }
                open.game.tags.push((name.to_owned(), value));
            }
            Token::Move(text) => {
                open.movetext = true;
                if open.game.fault.is_none() {
                    open.game.fault = play(open, text).err().map(|reason| (line, reason));
                }
            }
            Token::Result(text) => {
                (open.movetext, open.ended) = (true, true);
                open.game.result = match text {
                    "1-0" => Some(GameResult::WhiteWins),
                    "0-1" => Some(GameResult::BlackWins),
                    "*" => None,
                    _ => Some(GameResult::Draw),
                };
            }
            Token::Unclosed(sign) => {
                let reason = format!("`{sign}` is not closed, the game cannot be read on");
                open.game.fault.get_or_insert((line, reason));
            }
        }
    }
}

fn start(game: &PgnGame) -> Result<Chess, String> {
    let variant = game.tag("Variant").map(str::to_lowercase);
    if let Some(variant) = variant.filter(|v| !["standard", "chess", "from position", "normal"].contains(&v.as_str())) {
        return Err(format!("variant `{variant}`, expected standard chess"));
    }
    game.start_fen.as_deref().map_or_else(|| Ok(Chess::start()), |fen| Chess::from_fen(fen).map_err(|e| e.to_string()))
}

fn play(open: &mut Open, text: &str) -> Result<(), String> {
    if open.position.is_none() {
        open.position = Some(Line::new(start(&open.game)?));
    }
    let Some(line) = &mut open.position else { return Ok(()) };
    let state = line.state();
    let spelled = spelling(text);
    let m = state.parse_san(&spelled).or_else(|e| state.parse_move(&spelled).map_err(|_| e));
    let m =
        m.map_err(|_| format!("move {}: `{text}` is not legal in `{}`", line.moves().len() / 2 + 1, state.fen()))?;
    line.play(m);
    Ok(())
}

/// The spelling of the standard: `0-0` as `O-O`, `a8Q` as `a8=Q`, no marks behind.
fn spelling(text: &str) -> String {
    let text = text.trim_end_matches(['+', '#', '=']);
    let text = text.strip_suffix("ep").unwrap_or(text).trim_end_matches(['+', '#']);
    match text {
        "0-0" | "o-o" => return "O-O".to_owned(),
        "0-0-0" | "o-o-o" => return "O-O-O".to_owned(),
        _ => {}
    }
    let bytes = text.as_bytes();
    match bytes {
        [.., rank @ (b'1' | b'8'), role @ (b'N' | b'B' | b'R' | b'Q')] => {
            format!("{}{}={}", &text[..text.len() - 2], char::from(*rank), char::from(*role))
        }
        _ => text.to_owned(),
    }
}
