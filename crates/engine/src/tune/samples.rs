//! Positions of games, and what they have of each term.

use std::io::BufRead;

use games::{Chess, Game, GameError, Move};
use thiserror::Error;

use super::newton;
use crate::board::Board;
use crate::evaluate::count_all;
use crate::features::Features;
use crate::moves::Parts;
use crate::taper::FULL_PHASE;
use crate::weights::{Count, TERMS};

/// Of the positions of a game one in so many is taken.
const EVERY: usize = 3;
/// Scores beyond this, mates among them, are no more than this.
const MOST_SCORE: f64 = 1500.0;
/// Positions with more half-moves since the last capture or pawn move say more of the rule than of the position.
const MOST_HALFMOVES: u32 = 60;

/// Why games cannot be used.
#[derive(Debug, Error)]
pub enum GamesError {
    /// A stream failed.
    #[error("games: {0}")]
    Stream(#[from] std::io::Error),
    /// A line that is no game.
    #[error(
        "line {line}: {what}; expected `result;fen;opening plies;moves;scores;best`, as scripts/games.py writes it"
    )]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A first position that is none.
    #[error("line {line}: {cause}")]
    Fen {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong with it.
        cause: GameError,
    },
    /// Nothing to fit to.
    #[error("no game has a position to learn from")]
    Empty,
}

/// Counts the terms of one side, or of White less Black.
#[derive(Clone)]
pub(super) struct Tally(pub(super) Vec<i32>);

impl Tally {
    /// The terms of White less those of Black; whether all of the evaluation counts.
    pub(super) fn of(board: &Board) -> (Tally, bool) {
        let (mut white, mut black) = (Tally(vec![0; TERMS]), Tally(vec![0; TERMS]));
        let whole = count_all(board, &Features::default(), &mut white, &mut black);
        white.0.iter_mut().zip(black.0).for_each(|(white, black)| *white -= black);
        (white, whole)
    }
}

impl Count for Tally {
    fn add(&mut self, term: usize, times: i32) {
        self.0[term] += times;
    }
}

/// A position.
pub(super) struct Sample<'a> {
    /// How much of it is middlegame, 0 to 1.
    pub(super) phase: f64,
    /// White's expected points, between teacher and result.
    pub(super) target: f64,
    /// Its terms, in order, and how many more White has of each.
    pub(super) terms: &'a [(u16, i16)],
}

impl Sample<'_> {
    /// The evaluation in White's view, in centipawns.
    pub(super) fn evaluate(&self, values: &[f64]) -> f64 {
        let (mut middle, mut end) = (0.0, 0.0);
        for (term, times) in self.terms {
            let (term, times) = (usize::from(*term), f64::from(*times));
            middle += values[term] * times;
            end += values[TERMS + term] * times;
        }
        middle * self.phase + end * (1.0 - self.phase)
    }
}

/// What is kept of a position beside its terms.
#[derive(Clone, Copy)]
struct Head {
    game: usize,
    phase: f64,
    /// The teacher's score in White's view.
    score: f64,
    /// White's points.
    result: f64,
    /// Where its terms end.
    end: usize,
}

/// All positions.
#[derive(Default)]
pub(super) struct Samples {
    heads: Vec<Head>,
    targets: Vec<f64>,
    terms: Vec<(u16, i16)>,
    /// Logits a centipawn of the teacher's score that predict the results best.
    pub(super) teacher: f64,
}

impl Samples {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Sample<'_>> {
        let starts = std::iter::once(0).chain(self.heads.iter().map(|h| h.end));
        self.heads.iter().zip(starts).zip(&self.targets).map(|((head, start), target)| Sample {
            phase: head.phase,
            target: *target,
            terms: &self.terms[start..head.end],
        })
    }

    /// The positions of one game in `parts`, and those of the others.
    pub(super) fn split(&self, parts: usize) -> (Samples, Samples) {
        let (mut some, mut others) = (Samples::default(), Samples::default());
        for (head, sample) in self.heads.iter().zip(self.iter()) {
            let to = if head.game.is_multiple_of(parts) { &mut some } else { &mut others };
            to.terms.extend_from_slice(sample.terms);
            to.heads.push(Head { end: to.terms.len(), ..*head });
            to.targets.push(sample.target);
        }
        (some, others)
    }

    /// How often each term occurs.
    pub(super) fn counts(&self) -> Vec<f64> {
        let mut counts = vec![0.0; TERMS];
        self.terms.iter().for_each(|(term, times)| counts[usize::from(*term)] += f64::from(times.abs()));
        counts
    }

    fn push(&mut self, game: usize, board: &Board, score: f64, result: f64) {
        let (tally, whole) = Tally::of(board);
        if !whole {
            return;
        }
        let terms = tally.0.iter().enumerate().filter(|(_, times)| **times != 0);
        self.terms.extend(terms.map(|(term, times)| (term as u16, *times as i16)));
        let phase = f64::from(board.phase().min(FULL_PHASE)) / f64::from(FULL_PHASE);
        self.heads.push(Head { game, phase, score, result, end: self.terms.len() });
    }

    /// Sets what is to be predicted, with a share of the teacher's score in it.
    fn aim(&mut self, share: f64) {
        self.teacher = newton::slope(&self.heads.iter().map(|h| (h.score, h.result)).collect::<Vec<_>>());
        let k = self.teacher;
        self.targets =
            self.heads.iter().map(|h| share * newton::chance(k * h.score) + (1.0 - share) * h.result).collect();
    }
}

/// Reads games and takes the positions from them in which the teacher has a score and its move is quiet: only there
/// a static evaluation can know the score.
pub(super) fn read(games: impl BufRead, share: f64) -> Result<Samples, GamesError> {
    let mut samples = Samples::default();
    for (i, line) in games.lines().enumerate() {
        read_game(&mut samples, i, &line?)?;
    }
    if samples.len() == 0 {
        return Err(GamesError::Empty);
    }
    samples.aim(share);
    Ok(samples)
}

fn read_game(samples: &mut Samples, game: usize, text: &str) -> Result<(), GamesError> {
    let wrong = |what: String| GamesError::Line { line: game + 1, what };
    let number = |text: &str| text.parse::<i32>().map_err(|_| wrong(format!("`{text}` is no number")));
    let optional = |text: &str| if text == "-" { Ok(None) } else { number(text).map(Some) };
    let fields: Vec<&str> = text.split(';').collect();
    let [result, fen, opening, moves, scores, best] = fields[..] else {
        return Err(wrong(format!("{} fields", fields.len())));
    };
    let result = match result {
        "1" => 1.0,
        "0" => 0.5,
        "-1" => 0.0,
        other => return Err(wrong(format!("a result of `{other}`"))),
    };
    let opening = number(opening)? as usize;
    let start = if fen.is_empty() { Ok(Chess::start()) } else { Chess::from_fen(fen) };
    let mut board = Board::from(start.map_err(|cause| GamesError::Fen { line: game + 1, cause })?.position());
    let [moves, scores, best] = [moves, scores, best].map(|list| list.split_whitespace().collect::<Vec<_>>());
    if scores.len() != moves.len() || best.len() != moves.len() {
        return Err(wrong(format!("{} moves, {} scores, {} best moves", moves.len(), scores.len(), best.len())));
    }
    for (ply, ((m, score), best)) in moves.into_iter().zip(scores).zip(best).enumerate() {
        let legal = |number: i32| {
            let m = u16::try_from(number).map(Move).ok().filter(|m| board.is_legal(*m));
            m.ok_or_else(|| wrong(format!("move {number} of ply {} is not legal", ply + 1)))
        };
        let played = legal(number(m)?)?;
        let best = optional(best)?.map_or(Ok(played), legal)?;
        let quiet = !board.is_check() && !board.is_noisy(best) && best.promotion().is_none();
        if let Some(score) = optional(score)?
            && ply >= opening
            && (game + ply).is_multiple_of(EVERY)
            && quiet
            && board.halfmoves() <= MOST_HALFMOVES
        {
            let score = f64::from(score).clamp(-MOST_SCORE, MOST_SCORE);
            samples.push(game, &board, if board.turn().is_white() { score } else { -score }, result);
        }
        board = board.after(played);
    }
    Ok(())
}
