//! Players of known strength for the small games: the opponents that a trained network is measured against.

use std::collections::HashMap;

use crate::connect4::lines;
use crate::{Connect4, Game, GameResult, Move, Outcome, Rng, TicTacToe};

/// A player whose strength is known.
pub trait Reference<G: Game>: Send {
    /// The name in reports, with its limits.
    fn name(&self) -> String;

    /// A move in a position that is not over; equal moves are drawn by `rng`.
    fn choose(&mut self, game: &G, rng: &mut Rng) -> Move;
}

/// Perfect tic-tac-toe: the whole game tree, remembered.
#[derive(Default)]
pub struct Solver {
    values: HashMap<TicTacToe, i8>,
}

impl Solver {
    /// 1 if the side to move wins, 0 for a draw, -1 if it loses, with best play.
    pub fn value(&mut self, game: &TicTacToe) -> i8 {
        if let Some(value) = self.values.get(game) {
            return *value;
        }
        let value = match game.outcome() {
            Outcome::Decided { result: GameResult::Draw, .. } => 0,
            Outcome::Decided { .. } => -1, // only the side that has just moved can have a line
            Outcome::Ongoing => game.legal_moves().iter().map(|m| self.value_of(game, *m)).max().unwrap_or(0),
        };
        self.values.insert(*game, value);
        value
    }

    fn value_of(&mut self, game: &TicTacToe, m: Move) -> i8 {
        let mut next = *game;
        next.play(m);
        -self.value(&next)
    }
}

impl Reference<TicTacToe> for Solver {
    fn name(&self) -> String {
        "solver".to_owned()
    }

    fn choose(&mut self, game: &TicTacToe, rng: &mut Rng) -> Move {
        let moves = game.legal_moves();
        let values: Vec<i8> = moves.iter().map(|m| self.value_of(game, *m)).collect();
        best_at_random(&moves, &values, rng)
    }
}

/// Connect 4 by alpha-beta to a fixed depth; leaves count open lines.
pub struct Minimax {
    depth: u32,
    lines: Vec<u64>,
}

const WIN: i32 = 1_000_000;

impl Minimax {
    /// A player that looks `depth` plies ahead.
    pub fn new(depth: u32) -> Self {
        Minimax { depth, lines: lines() }
    }

    fn evaluate(&self, game: &Connect4) -> i32 {
        let [own, other] = game.stones();
        self.lines.iter().fold(0, |sum, line| {
            let (a, b) = ((own & line).count_ones(), (other & line).count_ones());
            sum + match (a, b) {
                (0, b) => -(1 << (2 * b)) + 1,
                (a, 0) => (1 << (2 * a)) - 1,
                _ => 0,
            }
        })
    }

    /// The value for the side to move; a quicker win is worth more.
    fn search(&self, game: &Connect4, depth: u32, mut alpha: i32, beta: i32) -> i32 {
        let mut moves = Vec::with_capacity(7);
        match game.generate(&mut moves) {
            Outcome::Decided { result: GameResult::Draw, .. } => return 0,
            Outcome::Decided { .. } => return -WIN - depth as i32,
            Outcome::Ongoing if depth == 0 => return self.evaluate(game),
            Outcome::Ongoing => {}
        }
        moves.sort_unstable_by_key(|m| m.0.abs_diff(3));
        for m in moves {
            let mut next = *game;
            next.play(m);
            alpha = alpha.max(-self.search(&next, depth - 1, -beta, -alpha));
            if alpha >= beta {
                break;
            }
        }
        alpha
    }
}

impl Reference<Connect4> for Minimax {
    fn name(&self) -> String {
        format!("minimax depth={}", self.depth)
    }

    fn choose(&mut self, game: &Connect4, rng: &mut Rng) -> Move {
        let moves = game.legal_moves();
        let values: Vec<i32> = moves
            .iter()
            .map(|m| {
                let mut next = *game;
                next.play(*m);
                -self.search(&next, self.depth.saturating_sub(1), -2 * WIN, 2 * WIN)
            })
            .collect();
        best_at_random(&moves, &values, rng)
    }
}

fn best_at_random<V: Ord>(moves: &[Move], values: &[V], rng: &mut Rng) -> Move {
    let best = values.iter().max();
    let equal: Vec<Move> = moves.iter().zip(values).filter(|(_, v)| Some(*v) == best).map(|(m, _)| *m).collect();
    equal[rng.below(equal.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tic_tac_toe_is_a_draw_and_the_solver_knows_it() {
        let mut solver = Solver::default();
        assert_eq!(solver.value(&TicTacToe::start()), 0);
        let fork = TicTacToe::from_fen("x1o/1o1/x1x o");
        assert!(fork.is_ok());
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let mut game = TicTacToe::start();
            while game.outcome() == Outcome::Ongoing {
                game.play(solver.choose(&game, &mut rng));
            }
            assert!(matches!(game.outcome(), Outcome::Decided { result: GameResult::Draw, .. }));
        }
    }

    #[test]
    fn minimax_takes_a_win_and_stops_one() {
        let mut player = Minimax::new(4);
        let mut rng = Rng::new(1);
        let win = Connect4::from_fen("7/7/7/7/ooo4/xxx4 x").unwrap();
        assert_eq!(player.choose(&win, &mut rng), Move(3));
        let defend = Connect4::from_fen("7/7/7/7/oo5/xxx4 o").unwrap();
        assert_eq!(player.choose(&defend, &mut rng), Move(3));
    }
}
