//! The games of a match as PGN, with what the players thought of each move.

use std::time::Duration;

use dataset::GameRecord;
use games::{Color, Game, GameError, GameResult, Score, Termination};

use crate::MatchSpec;
use crate::report::color_of_a;
use crate::round::as_chess;
use crate::timing::{GameLog, TimeLog};

/// Columns of the move text.
const WIDTH: usize = 80;

/// The games in PGN export form, one after another.
///
/// Chess moves are in SAN, other games' as [`Game::move_text`] writes them. A comment after a move holds, as other tools
/// write them, the mover's score in pawns in White's view (`[%eval 0.31]`, mate in 5 `[%eval #5]`) and what the mover has
/// left on its clock (`[%clk 0:00:59.8]`), then a network's search value in the mover's view, -1..1, and its simulations
/// (`v=+0.120 n=800`). Games at the ply cap have the result `*`. `Round` is the game's number from 1, `Date` the day on
/// which the game ended, and `Reason` the `termination` column, which tells more than PGN's own `Termination`.
///
/// # Errors
/// [`GameError`] if a record's position or move is not legal.
pub(crate) fn pgn<G: Game>(records: &[GameRecord], spec: &MatchSpec, times: &TimeLog) -> Result<String, GameError> {
    let mut out = String::new();
    for record in records {
        let log = times.game(record.game_id);
        write_game::<G>(record, spec, log, &mut out)?;
    }
    Ok(out)
}

fn write_game<G: Game>(
    record: &GameRecord,
    spec: &MatchSpec,
    log: Option<&GameLog>,
    out: &mut String,
) -> Result<(), GameError> {
    let result = record.result.map_or("*", GameResult::pgn);
    let round = (record.game_id + 1).to_string();
    tag(out, "Event", &spec.label);
    tag(out, "Site", "?");
    let date = log.and_then(GameLog::date).map_or_else(|| "????.??.??".to_owned(), |date| date.replace('-', "."));
    tag(out, "Date", &date);
    tag(out, "Round", &round);
    tag(out, "White", &record.white);
    tag(out, "Black", &record.black);
    tag(out, "Result", result);
    if G::NAME != "chess" {
        tag(out, "Variant", G::NAME);
    }
    if let Some(fen) = &record.start_fen {
        tag(out, "SetUp", "1");
        tag(out, "FEN", fen);
    }
    if let Some(name) = &record.opening {
        let (eco, rest) = split_eco(name);
        if let Some(eco) = eco {
            tag(out, "ECO", eco);
        }
        tag(out, "Opening", rest);
    }
    time_controls(spec, color_of_a(record.game_id), out);
    tag(out, "PlyCount", &record.moves.len().to_string());
    tag(out, "Termination", pgn_termination(record.termination));
    tag(out, "Reason", record.termination.as_str());
    out.push('\n');

    let mut text = Wrapped { out, column: 0 };
    let mut state = record.start_fen.as_deref().map_or_else(|| Ok(G::start()), G::from_fen)?;
    // Black's first move after a position of its own, or after a comment, needs its number.
    let (mut number, mut black) = first_number(&state);
    let mut numbered = false;
    for (ply, m) in record.moves.iter().enumerate() {
        if !black {
            text.word(&format!("{number}."));
        } else if !numbered {
            text.word(&format!("{number}..."));
        }
        text.word(&as_chess(&state).map_or_else(|| state.move_text(*m), |chess| chess.san(*m)));
        state.try_play(*m)?;
        numbered = true;
        if ply < usize::from(record.opening_plies) {
            if ply + 1 == usize::from(record.opening_plies) {
                text.word("{book}");
                numbered = false;
            }
        } else if let Some(comment) = comment(record, ply, black, log.and_then(|log| log.left(ply))) {
            text.word(&format!("{{{comment}}}"));
            numbered = false;
        }
        number += u32::from(black);
        black = !black;
    }
    text.word(result);
    out.push_str("\n\n");
    Ok(())
}

/// The move number and whether Black is to move.
fn first_number<G: Game>(state: &G) -> (u32, bool) {
    let number = as_chess(state).map_or(1, |chess| shakmaty::Position::fullmoves(chess.position()).get());
    (number, state.turn() == Color::Black)
}

/// `TimeControl` in seconds as PGN has it, or one of the tags for each side where they differ; `-` is no clock.
fn time_controls(spec: &MatchSpec, color_of_a: Color, out: &mut String) {
    let [a, b] = spec.clocks.map(|clock| clock.map_or_else(|| "-".to_owned(), |clock| clock.to_string()));
    let [white, black] = if color_of_a == Color::White { [a, b] } else { [b, a] };
    if white == black {
        tag(out, "TimeControl", &white);
    } else {
        tag(out, "WhiteTimeControl", &white);
        tag(out, "BlackTimeControl", &black);
    }
}

fn comment(record: &GameRecord, ply: usize, black: bool, left: Option<Duration>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(score) = record.score.get(ply).copied().flatten() {
        let sign = if black { -1 } else { 1 };
        parts.push(match Score::from_i16(score) {
            // Mate in 0 has no sign to turn, and no move to be made by the mated side.
            Score::Mate(0) => format!("[%eval #{}]", if black { "0" } else { "-0" }),
            Score::Mate(n) => format!("[%eval #{}]", sign * n),
            Score::Cp(cp) => format!("[%eval {:.2}]", f64::from(sign * cp) / 100.0),
        });
    }
    if let Some(left) = left {
        let (seconds, tenths) = (left.as_secs(), left.subsec_millis() / 100);
        parts.push(format!("[%clk {}:{:02}:{:02}.{tenths}]", seconds / 3600, seconds / 60 % 60, seconds % 60));
    }
    if let Some(value) = record.value.as_ref().and_then(|v| v.get(ply).copied().flatten()) {
        parts.push(format!("v={value:+.3}"));
    }
    if let Some(visits) = record.visits.get(ply).and_then(Option::as_ref) {
        parts.push(format!("n={}", visits.iter().map(|(_, n)| u64::from(*n)).sum::<u64>()));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn tag(out: &mut String, name: &str, value: &str) {
    let clean: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let escaped = clean.replace('\\', "\\\\").replace('"', "\\\"");
    out.push_str(&format!("[{name} \"{escaped}\"]\n"));
}

/// `C42 Petrov Defence` as code and name.
fn split_eco(name: &str) -> (Option<&str>, &str) {
    match name.split_once(' ') {
        Some((eco, rest)) if is_eco(eco) => (Some(eco), rest),
        _ => (None, name),
    }
}

fn is_eco(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 3 && (b'A'..=b'E').contains(&bytes[0]) && bytes[1..].iter().all(u8::is_ascii_digit)
}

/// The values that the PGN standard lists.
fn pgn_termination(termination: Termination) -> &'static str {
    match termination {
        Termination::Adjudication => "adjudication",
        Termination::Time => "time forfeit",
        Termination::IllegalMove => "rules infraction",
        Termination::Stall | Termination::Disconnect => "abandoned",
        Termination::MaxPlies => "unterminated",
        _ => "normal",
    }
}

/// Words with a line break where the next would pass the width.
struct Wrapped<'o> {
    out: &'o mut String,
    column: usize,
}

impl Wrapped<'_> {
    fn word(&mut self, word: &str) {
        for part in word.split(' ') {
            if self.column > 0 && self.column + 1 + part.len() > WIDTH {
                self.out.push('\n');
                self.column = 0;
            } else if self.column > 0 {
                self.out.push(' ');
                self.column += 1;
            }
            self.out.push_str(part);
            self.column += part.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Move, Outcome, Rng, TicTacToe};

    use super::*;

    fn chess_record(start_fen: Option<&str>, moves: &[&str], opening_plies: u16) -> GameRecord {
        let mut state = start_fen.map_or_else(Chess::start, |f| Chess::from_fen(f).unwrap());
        let mut record = GameRecord::new("chess", 6);
        (record.white, record.black) = ("net \"x\" 400".to_owned(), "Stockfish 15.1 nodes=5".to_owned());
        for text in moves {
            let m = state.parse_move(text).unwrap();
            state.play(m);
            record.moves.push(m);
        }
        record.best = vec![None; moves.len()];
        record.score = vec![None; moves.len()];
        record.start_fen = start_fen.map(str::to_owned);
        record.opening_plies = opening_plies;
        record
    }

    /// The PGN of records without logs.
    fn text_of<G: Game>(records: &[GameRecord], label: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let times = TimeLog::open(&folder.path().join("times.jsonl")).unwrap();
        pgn::<G>(records, &MatchSpec::new(label, 8, 1), &times).unwrap()
    }

    #[test]
    fn scores_clocks_date_and_time_control_are_written_as_other_tools_do() {
        let mut record = chess_record(None, &["e2e4", "e7e5", "g1f3", "b8c6"], 0);
        record.score =
            [Score::Cp(31), Score::Cp(-20), Score::Mate(5), Score::Mate(-4)].map(|s| Some(s.to_i16())).to_vec();
        let left = [Some(59_849), Some(3_723_000), None, Some(50)].to_vec();
        let folder = tempfile::tempdir().unwrap();
        let mut times = TimeLog::open(&folder.path().join("times.jsonl")).unwrap();
        times.append(6, GameLog::new(Default::default(), Default::default(), left)).unwrap();
        let clock = |text: &str| Some(text.parse().unwrap());
        let spec = MatchSpec { clocks: [clock("60+0.6"), clock("60+0.6")], ..MatchSpec::new("m", 8, 1) };
        let text = pgn::<Chess>(&[record.clone()], &spec, &times).unwrap();
        let unwrapped = text.replace('\n', " ");
        for part in [
            "1. e4 {[%eval 0.31] [%clk 0:00:59.8]} 1... e5 {[%eval 0.20] [%clk 1:02:03.0]}",
            "2. Nf3 {[%eval #5]} 2... Nc6 {[%eval #4] [%clk 0:00:00.0]}",
            "[TimeControl \"60+0.6\"]",
        ] {
            assert!(unwrapped.contains(part), "{part}: {text}");
        }
        let today = pipeline::utc_now()[..10].replace('-', ".");
        assert!(text.contains(&format!("[Date \"{today}\"]")), "{text}");
        assert_eq!(dataset::book::parse_pgn(&text)[0].moves, record.moves);

        let one = MatchSpec { clocks: [clock("10"), None], ..spec };
        let text = pgn::<Chess>(&[record.clone()], &one, &times).unwrap();
        assert!(text.contains("[WhiteTimeControl \"10\"]\n[BlackTimeControl \"-\"]"), "{text}");
        record.game_id = 7;
        let text = pgn::<Chess>(&[record], &one, &times).unwrap();
        assert!(text.contains("[WhiteTimeControl \"-\"]\n[BlackTimeControl \"10\"]"), "A has Black: {text}");
        assert!(text.contains("[Date \"????.??.??\"]"), "a game without a log");
    }

    #[test]
    fn a_game_with_comments() {
        let mut record = chess_record(None, &["f2f3", "e7e5", "g2g4", "d8h4"], 2);
        record.opening = Some("A00 Barnes Opening".to_owned());
        record.score[2] = Some(Score::Mate(-1).to_i16());
        record.value = Some(vec![None, None, None, Some(0.5)]);
        record.visits = vec![None, None, None, Some(vec![(Move(1), 30), (Move(2), 12)])];
        (record.result, record.termination) = (Some(GameResult::BlackWins), Termination::Checkmate);
        let text = text_of::<Chess>(&[record], "eval");
        assert!(text.contains("1. f3 e5 {book} 2. g4 {[%eval #-1]} 2... Qh4# {v=+0.500 n=42} 0-1\n\n"), "{text}");
        let tags = ["[White \"net \\\"x\\\" 400\"]", "[Round \"7\"]", "[ECO \"A00\"]", "[Opening \"Barnes Opening\"]"];
        assert!(tags.iter().all(|tag| text.contains(tag)), "{text}");
    }

    #[test]
    fn u18_a_capped_game_has_no_result() {
        let record = chess_record(Some("4k3/8/8/8/8/8/4P3/4K3 b - - 0 40"), &["e8e7", "e2e4"], 0);
        let text = text_of::<Chess>(&[record], "eval");
        assert!(text.contains("40... Ke7 41. e4 *"), "{text}");
        assert!(text.contains("[Result \"*\"]") && text.contains("[Termination \"unterminated\"]"));
        assert!(text.contains("[Reason \"max_plies\"]") && text.contains("[SetUp \"1\"]"));
    }

    #[test]
    fn long_games_wrap_and_read_back() {
        let mut rng = Rng::new(4);
        let mut state = Chess::start();
        let mut record = GameRecord::new("chess", 0);
        while record.moves.len() < 120 && state.outcome() == Outcome::Ongoing {
            let legal = state.legal_moves();
            record.moves.push(legal[rng.below(legal.len())]);
            state.play(record.moves[record.moves.len() - 1]);
        }
        assert_eq!(state.outcome(), Outcome::Ongoing, "the reader of books leaves finished games out");
        record.opening_plies = 4;
        record.score = (0..120).map(|i| Some(i - 60)).collect();
        let text = text_of::<Chess>(&[record.clone(), record.clone()], "eval");
        assert!(text.lines().all(|l| l.len() <= WIDTH));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.pgn");
        std::fs::write(&path, text).unwrap();
        let read = dataset::read_openings(&path, dataset::OnBad::Stop).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].moves, record.moves);
    }

    #[test]
    fn other_games_use_their_own_move_text() {
        let mut record = GameRecord::new("tictactoe", 0);
        record.moves = vec![Move(4), Move(0), Move(8)];
        let text = text_of::<TicTacToe>(&[record], "toy");
        assert!(text.contains("[Variant \"tictactoe\"]") && text.contains("1. 5 1 2. 9 *"), "{text}");
    }
}
