//! An engine at the board: the handshake, and one question per move.
//!
//! Stockfish drops the rest of a move list from the first move that it dislikes, without a word, and dies of an
//! illegal position. So only moves of a [`Line`] are sent, which have been played on our own board, in the spelling of
//! the engine's castling mode; and an answer counts only if it is legal on that board.

use std::time::{Duration, Instant};

use games::{Chess, Game, Line, Move, Score};
use shakmaty::{CastlingMode, EnPassantMode, Position};

use crate::process::Process;
use crate::{Bound, Budget, Deadlines, EngineError, EngineSpec, Info, Limit, OptionTable, Phase, UciLine};

/// A move that an engine chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineMove {
    /// The move, legal in the position.
    pub m: Move,
    /// The score from the mover's view, only if it is exact and the engine's last exact score is of this very move.
    pub score: Option<Score>,
    /// The depth that the engine reports last, in half-moves.
    pub depth: Option<u32>,
    /// The nodes that the engine reports last.
    pub nodes: Option<u64>,
    /// How long the answer took, by our clock.
    pub time: Duration,
}

/// What an engine says about a position, which may be one where the game is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Analysis {
    /// The move; `None` only where there is no legal one.
    pub m: Option<Move>,
    /// As in [`EngineMove`]; without a move, the last exact score.
    pub score: Option<Score>,
    /// As in [`EngineMove`].
    pub depth: Option<u32>,
    /// As in [`EngineMove`].
    pub nodes: Option<u64>,
    /// As in [`EngineMove`].
    pub time: Duration,
}

/// The last exact score of each line of a search, by the move that it begins with.
#[derive(Default)]
struct Scores {
    lines: Vec<(u32, String, Score)>,
    depth: Option<u32>,
    nodes: Option<u64>,
}

impl Scores {
    fn take(&mut self, info: &Info<'_>) {
        self.depth = info.depth.or(self.depth);
        self.nodes = info.nodes.or(self.nodes);
        let Some((score, Bound::Exact)) = info.score else { return };
        let (rank, first) = (info.multipv.unwrap_or(1), info.moves().next().unwrap_or(""));
        match self.lines.iter_mut().find(|(r, ..)| *r == rank) {
            Some(line) => {
                line.1.clear();
                line.1.push_str(first);
                line.2 = score;
            }
            None => self.lines.push((rank, first.to_owned(), score)),
        }
    }

    /// The lines by rank, each with the move that it begins with. A move whose line a better rank has too is left out,
    /// and so is what is not legal.
    fn ranked(&mut self, state: &Chess, out: &mut Vec<(Move, Score)>) {
        out.clear();
        self.lines.sort_by_key(|(rank, ..)| *rank);
        for (_, first, score) in &self.lines {
            if let Ok(m) = state.parse_move(first)
                && out.iter().all(|(earlier, _)| *earlier != m)
            {
                out.push((m, *score));
            }
        }
    }

    /// The score of the line with the best rank that begins with `text`.
    fn of(&self, text: &str) -> Option<Score> {
        self.lines.iter().filter(|(_, first, _)| first == text).min_by_key(|(rank, ..)| *rank).map(|(.., s)| *s)
    }
}

/// A running engine. Dropping it sends `quit`, kills the process if that does not help, and reaps it.
pub struct Engine {
    process: Process,
    path: std::path::PathBuf,
    name: String,
    options: OptionTable,
    unset: Vec<String>,
    castling: CastlingMode,
    deadlines: Deadlines,
    /// A `go` whose `bestmove` has not been seen.
    searching: bool,
    lines: Vec<(Move, Score)>,
    command: String,
}

impl Engine {
    /// Starts an engine, reads its options, sets ours, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not start, stalls, exits, or does not have an option or a value that `spec` asks for.
    pub fn start(spec: &EngineSpec) -> Result<Engine, EngineError> {
        let mut process = Process::spawn(spec)?;
        let (mut name, mut options) = (String::new(), OptionTable::default());
        process.send("uci\n", Phase::UciOk)?;
        process.wait(Phase::UciOk, spec.deadlines.start, |line| {
            match line {
                UciLine::Name(text) => name = text.to_owned(),
                UciLine::Option(option) => options.push(option),
                UciLine::UciOk => return Some(()),
                _ => {}
            }
            None
        })?;
        if name.is_empty() {
            name = spec.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        let (mut settings, unset) = options.declared(&spec.defaults, &spec.options);
        settings.extend_from_slice(&spec.options);
        let commands =
            options.commands(&settings).map_err(|fault| EngineError::Option { path: spec.path.clone(), fault })?;
        let chess960 = |(name, value): &(String, String)| {
            name.trim().eq_ignore_ascii_case("UCI_Chess960") && value.trim().eq_ignore_ascii_case("true")
        };
        let castling = CastlingMode::from_chess960(spec.options.iter().any(chess960));
        let (path, deadlines) = (spec.path.clone(), spec.deadlines);
        let mut engine = Engine {
            process,
            path,
            name,
            options,
            unset,
            castling,
            deadlines,
            searching: false,
            lines: Vec::new(),
            command: commands,
        };
        engine.ready()?;
        Ok(engine)
    }

    /// What the engine calls itself, with its version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options that the engine declared.
    pub fn option_table(&self) -> &OptionTable {
        &self.options
    }

    /// The names of the spec's default options that the engine does not declare, and so did not get.
    pub fn unset(&self) -> &[String] {
        &self.unset
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Tells the engine that another game begins, and waits until it has cleared its memory of the last one.
    ///
    /// # Errors
    /// If the engine stalls or exits, or the wait is interrupted.
    pub fn new_game(&mut self) -> Result<(), EngineError> {
        self.settle()?;
        self.command.clear();
        self.command.push_str("ucinewgame\n");
        self.ready()
    }

    /// Asks for a move at the end of `line`, within a [`Limit`] or on [`Clocks`](crate::Clocks). Whoever keeps the
    /// clocks judges whether the answer came in time.
    ///
    /// # Errors
    /// [`EngineError::NoMove`] and [`EngineError::ZeroLimit`] before anything is sent; [`EngineError::Stall`] and
    /// [`EngineError::Disconnect`], after which the engine is gone; [`EngineError::IllegalMove`] for anything that
    /// is not a legal move; [`EngineError::Late`]; [`EngineError::Interrupted`].
    pub fn play(&mut self, line: &Line<Chess>, budget: impl Into<Budget>) -> Result<EngineMove, EngineError> {
        let no_move = || EngineError::NoMove { fen: line.state().fen() };
        if line.state().position().legal_moves().is_empty() {
            return Err(no_move());
        }
        let Analysis { m, score, depth, nodes, time } = self.analyse(line, budget)?;
        m.map(|m| EngineMove { m, score, depth, nodes, time }).ok_or_else(no_move)
    }

    /// Asks about the end of `line`, even where there is no legal move: engines answer `(none)` there.
    ///
    /// # Errors
    /// As [`Engine::play`], but for [`EngineError::NoMove`].
    pub fn analyse(&mut self, line: &Line<Chess>, budget: impl Into<Budget>) -> Result<Analysis, EngineError> {
        let budget = budget.into();
        match budget {
            Budget::Move(limit) if limit.is_zero() => return Err(EngineError::ZeroLimit(limit)),
            _ => {}
        }
        self.settle()?;
        self.process.discard();
        self.lines.clear();
        self.command.clear();
        write_position(&mut self.command, line, self.castling);
        budget.write_go(&mut self.command);
        let began = Instant::now();
        self.process.send(&self.command, Phase::BestMove)?;
        self.searching = true;
        let mut scores = Scores::default();
        let text = self.process.wait(Phase::BestMove, budget.time() + self.deadlines.answer, |line| {
            match line {
                UciLine::Info(info) => scores.take(&info),
                UciLine::BestMove(text) => return Some(text.to_owned()),
                _ => {}
            }
            None
        })?;
        self.searching = false;
        let (time, margin) = (began.elapsed(), self.deadlines.margin);
        if let Budget::Move(limit @ Limit::MoveTime(allowed)) = budget
            && time > allowed + margin
        {
            return Err(EngineError::Late { path: self.path.clone(), limit, taken: time, margin });
        }
        let state = line.state();
        scores.ranked(state, &mut self.lines);
        let none = ["(none)", "0000", "NULL", ""];
        let (m, score) = match state.parse_move(&text) {
            Ok(m) => (Some(m), scores.of(&text)),
            Err(_) if none.contains(&text.as_str()) && state.position().legal_moves().is_empty() => {
                (None, scores.of(""))
            }
            Err(_) => return Err(EngineError::IllegalMove { path: self.path.clone(), text, fen: state.fen() }),
        };
        Ok(Analysis { m, score, depth: scores.depth, nodes: scores.nodes, time })
    }

    /// The lines of the last answer by rank, at most as many as the option `MultiPV` says: the move that each begins with
    /// and its last exact score, the mover's view.
    pub fn lines(&self) -> &[(Move, Score)] {
        &self.lines
    }

    /// Ends a search that an interrupt has left running, so that its answer is not taken for the next one's.
    fn settle(&mut self) -> Result<(), EngineError> {
        if self.searching {
            self.process.send("stop\n", Phase::BestMove)?;
            self.process.wait(Phase::BestMove, self.deadlines.ready, |line| {
                matches!(line, UciLine::BestMove(_)).then_some(())
            })?;
            self.searching = false;
        }
        Ok(())
    }

    /// Sends the pending command and waits until the engine has worked it off.
    fn ready(&mut self) -> Result<(), EngineError> {
        self.command.push_str("isready\n");
        self.process.send(&self.command, Phase::ReadyOk)?;
        self.process.wait(Phase::ReadyOk, self.deadlines.ready, |line| (line == UciLine::ReadyOk).then_some(()))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("name", &self.name).field("pid", &self.pid()).finish_non_exhaustive()
    }
}

/// Appends `position ... moves ...` and its line end.
fn write_position(out: &mut String, line: &Line<Chess>, castling: CastlingMode) {
    let start = line.start();
    if is_standard_start(start) {
        out.push_str("position startpos");
    } else {
        out.push_str("position fen ");
        out.push_str(&start.fen_with(EnPassantMode::Legal));
    }
    if line.moves().is_empty() {
        out.push('\n');
        return;
    }
    out.push_str(" moves");
    if castling == CastlingMode::Standard {
        line.moves().iter().for_each(|m| write_move(out, *m));
    } else {
        let mut state = start.clone();
        for m in line.moves() {
            out.push(' ');
            out.push_str(&state.uci_text(*m, castling));
            state.play(*m);
        }
    }
    out.push('\n');
}

fn is_standard_start(start: &Chess) -> bool {
    // The clocks are not part of the comparison of positions.
    let (position, standard) = (start.position(), shakmaty::Chess::default());
    *position == standard && position.halfmoves() == 0 && position.fullmoves() == standard.fullmoves()
}

/// Appends a space and a move. A stored move is its own standard UCI text: no board is needed.
fn write_move(out: &mut String, m: Move) {
    out.push(' ');
    for square in [m.0 & 63, m.0 >> 6 & 63] {
        out.push((b'a' + (square & 7) as u8) as char);
        out.push((b'1' + (square >> 3) as u8) as char);
    }
    if let Some(role) = games::Promotion::role(m) {
        out.push(role.char());
    }
}

#[cfg(test)]
mod tests {
    use games::Rng;

    use super::*;

    fn text(line: &Line<Chess>, castling: CastlingMode) -> String {
        let mut out = String::new();
        write_position(&mut out, line, castling);
        out
    }

    fn line(fen: &str, moves: &[&str]) -> Line<Chess> {
        let mut line = Line::new(Chess::from_fen(fen).unwrap());
        for m in moves {
            line.play(line.state().parse_move(m).unwrap());
        }
        line
    }

    #[test]
    fn u11_castling_is_written_for_the_engines_mode() {
        let fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        for spelling in ["e1g1", "e1h1"] {
            let line = line(fen, &[spelling, "e8c8"]);
            let standard = format!("position fen {fen} moves e1g1 e8c8\n");
            assert_eq!(text(&line, CastlingMode::Standard), standard);
            let chess960 = format!("position fen {fen} moves e1h1 e8a8\n");
            assert_eq!(text(&line, CastlingMode::Chess960), chess960);
        }
    }

    #[test]
    fn u9_moves_are_spelled_as_the_board_spells_them() {
        let mut rng = Rng::new(5);
        for _ in 0..20 {
            let mut line = Line::new(Chess::start());
            while line.moves().len() < 200 && line.state().outcome() == games::Outcome::Ongoing {
                let moves = line.state().legal_moves();
                line.play(moves[rng.below(moves.len())]);
            }
            let expected = format!("position startpos moves {}\n", line.move_texts().join(" "));
            assert_eq!(text(&line, CastlingMode::Standard), expected);
        }
    }

    #[test]
    fn start_positions_are_told_apart_by_their_clocks_too() {
        assert_eq!(text(&Line::new(Chess::start()), CastlingMode::Standard), "position startpos\n");
        let late = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 9";
        assert_eq!(text(&line(late, &[]), CastlingMode::Standard), format!("position fen {late}\n"));
        let promotion = text(&line("1n1n4/2P4k/8/8/8/8/8/K7 w - - 0 1", &["c7b8r"]), CastlingMode::Standard);
        assert!(promotion.ends_with(" moves c7b8r\n"), "{promotion}");
    }

    #[test]
    fn u16_only_the_exact_score_of_the_answer_counts() {
        let take = |lines: &[&str]| {
            let mut scores = Scores::default();
            for line in lines {
                if let UciLine::Info(info) = crate::parse_line(line) {
                    scores.take(&info);
                }
            }
            scores
        };
        let scores = take(&[
            "info depth 1 score cp 10 pv e2e4",
            "info depth 2 score cp 20 pv d2d4",
            "info depth 3 score cp 90 lowerbound pv e2e4",
            "info string score cp 999 pv a1a1",
        ]);
        assert_eq!(scores.of("d2d4"), Some(Score::Cp(20)));
        assert_eq!(scores.of("e2e4"), None, "the last exact score belongs to another move");
        assert_eq!((scores.depth, scores.nodes), (Some(3), None));
        let ranked = take(&[
            "info depth 5 multipv 1 score cp 20 pv d2d4",
            "info depth 5 multipv 2 score cp 15 pv e2e4",
            "info depth 6 multipv 1 score cp 25 pv e2e4",
        ]);
        assert_eq!(ranked.of("e2e4"), Some(Score::Cp(25)));
        assert_eq!(ranked.of("d2d4"), None);
    }

    #[test]
    fn lines_are_ranked_and_begin_with_different_moves() {
        let mut scores = Scores::default();
        for line in [
            "info depth 5 multipv 1 score cp 20 pv d2d4",
            "info depth 5 multipv 3 score cp 5 pv g1f3 d7d5",
            "info depth 5 multipv 2 score cp 15 pv e2e4",
            "info depth 6 multipv 1 score cp 25 pv e2e4",
            "info depth 6 multipv 4 score cp 0 pv e2e5",
            "info depth 6 multipv 5 score cp 90 lowerbound pv a2a3",
        ] {
            if let UciLine::Info(info) = crate::parse_line(line) {
                scores.take(&info);
            }
        }
        let (mut lines, start) = (Vec::new(), Chess::start());
        scores.ranked(&start, &mut lines);
        let text: Vec<_> = lines.iter().map(|(m, score)| (start.move_text(*m), *score)).collect();
        assert_eq!(text, [("e2e4".to_owned(), Score::Cp(25)), ("g1f3".to_owned(), Score::Cp(5))]);
    }
}
