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
    parse(text, usize::MAX)
}

/// The same with at most `most` moves a game; what is wrong after them is no fault.
pub(super) fn parse(text: &str, most: usize) -> Vec<PgnGame> {
    let mut reader = Reader { games: Vec::new(), open: None, most };
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

impl Open {
    fn plies(&self) -> usize {
        self.position.as_ref().map_or(0, |line| line.moves().len())
    }
}

struct Reader {
    games: Vec<PgnGame>,
    open: Option<Open>,
    /// Moves of a game that are looked at.
    most: usize,
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
        let most = self.most;
        let open = self.game(line);
        let enough = open.movetext && open.plies() >= most;
        match token {
            Token::Tag(name, value) => {
                if name == "FEN" {
                    open.game.start_fen = Some(value.clone());
                }
                open.game.tags.push((name.to_owned(), value));
            }
            Token::Move(text) => {
                open.movetext = true;
                if open.game.fault.is_none() && !enough {
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
            Token::Unclosed(_) if enough => {}
            Token::Unclosed(sign) => {
                let reason = format!("`{sign}` is not closed, the game cannot be read on");
                open.game.fault.get_or_insert((line, reason));
            }
        }
    }
}

/// Names of standard chess in the `Variant` tag; the others are other games.
const STANDARD: [&str; 6] = ["standard", "chess", "from position", "normal", "?", ""];
/// How a null move is written.
const NULL_MOVES: [&str; 5] = ["--", "Z0", "z0", "<>", "null"];

fn start(game: &PgnGame) -> Result<Chess, String> {
    let variant = game.tag("Variant").unwrap_or_default();
    if !STANDARD.contains(&variant.trim().to_lowercase().as_str()) {
        return Err(format!("the variant is {}, expected standard chess", text::quoted(variant)));
    }
    match &game.start_fen {
        Some(fen) => Chess::from_fen(fen).map_err(|e| e.to_string()),
        None if game.tag("SetUp") == Some("1") => Err("`SetUp` is 1, and there is no `FEN`".to_owned()),
        None => Ok(Chess::start()),
    }
}

fn play(open: &mut Open, written: &str) -> Result<(), String> {
    if open.position.is_none() {
        open.position = Some(Line::new(start(&open.game)?));
    }
    let Some(line) = &mut open.position else { return Ok(()) };
    let number = line.moves().len() / 2 + 1;
    if NULL_MOVES.contains(&written) {
        return Err(format!("move {number}: `{written}` is a null move, which no game of chess has"));
    }
    let (state, spelled) = (line.state(), spelling(written));
    // Standard algebraic, else coordinates.
    let m = state.parse_san(&spelled).or_else(|e| coordinates(&spelled).map_or(Err(e), |text| state.parse_move(&text)));
    let m = m.map_err(|_| format!("move {number}: {} is not legal in `{}`", text::quoted(written), state.fen()))?;
    line.play(m);
    Ok(())
}

/// The spelling of the standard: `0-0` as `O-O`, `Ng1-f3` as `Ng1f3`, `a8Q` as `a8=Q`, letters for figurines, no marks
/// behind.
fn spelling(text: &str) -> String {
    let text = text.trim_end_matches(['+', '#', '=']);
    let text = text.strip_suffix("ep").unwrap_or(text).trim_end_matches(['+', '#']);
    match text {
        "0-0" | "o-o" => return "O-O".to_owned(),
        "0-0-0" | "o-o-o" => return "O-O-O".to_owned(),
        "O-O" | "O-O-O" => return text.to_owned(),
        _ => {}
    }
    let letter = |c: char| match c {
        '♔' | '♚' => 'K',
        '♕' | '♛' => 'Q',
        '♖' | '♜' => 'R',
        '♗' | '♝' => 'B',
        '♘' | '♞' => 'N',
        '♙' | '♟' => 'P',
        c => c,
    };
    let mut text: String = text.chars().filter(|c| !['-', '\u{fe0e}', '\u{fe0f}'].contains(c)).map(letter).collect();
    if let Some(pawn) = text.strip_prefix('P') {
        text = pawn.to_owned();
    }
    if let [.., b'1' | b'8', b'N' | b'B' | b'R' | b'Q'] = text.as_bytes() {
        text.insert(text.len() - 1, '=');
    }
    text
}

/// `e7xd8=Q` or `Ng1f3` as the coordinates that a machine writes, `e7d8q` and `g1f3`; `None` if it names less than two
/// squares.
fn coordinates(text: &str) -> Option<String> {
    let text = text.strip_prefix(['K', 'Q', 'R', 'B', 'N']).unwrap_or(text);
    let compact: String = text.chars().filter(|c| !['x', ':', '='].contains(c)).collect::<String>().to_lowercase();
    let square = |at: usize| matches!(compact.as_bytes().get(at..at + 2), Some([b'a'..=b'h', b'1'..=b'8']));
    (square(0) && square(2) && compact.len() <= 5).then_some(compact)
}
