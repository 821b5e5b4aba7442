//! A game as it was played: where it began, the moves, and where it stands.

use crate::{Game, Move, Outcome, Rng};

/// A start position and the moves played from it. Engines are told this; draw rules look at it through the state.
#[derive(Clone, Debug)]
pub struct Line<G: Game> {
    start: G,
    moves: Vec<Move>,
    state: G,
}

impl<G: Game> Line<G> {
    /// A game that begins at `start`.
    pub fn new(start: G) -> Self {
        Line { state: start.clone(), start, moves: Vec::new() }
    }

    /// Plays a legal move (see [`Game::play`]).
    pub fn play(&mut self, m: Move) {
        self.state.play(m);
        self.moves.push(m);
    }

    /// Plays so many plies, each drawn at random from the legal moves. False if they end the game, or it was over before.
    #[must_use]
    pub fn play_random(&mut self, plies: usize, rng: &mut Rng) -> bool {
        let mut legal = Vec::new();
        for _ in 0..plies {
            if self.state.generate(&mut legal) != Outcome::Ongoing {
                return false;
            }
            self.play(legal[rng.below(legal.len())]);
        }
        self.state.outcome() == Outcome::Ongoing
    }

    /// Where the game began.
    pub fn start(&self) -> &G {
        &self.start
    }

    /// The moves so far.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Where the game stands.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// The moves so far as text.
    pub fn move_texts(&self) -> Vec<String> {
        let mut state = self.start.clone();
        self.moves
            .iter()
            .map(|m| {
                let text = state.move_text(*m);
                state.play(*m);
                text
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TicTacToe;

    #[test]
    fn random_plies_say_when_the_game_is_over() {
        let mut rng = Rng::new(3);
        for _ in 0..50 {
            let mut line = Line::new(TicTacToe::start());
            assert!(line.play_random(4, &mut rng) && line.moves().len() == 4);
            assert!(!line.play_random(5, &mut rng), "no game is longer than nine plies");
            let moves = line.moves().len();
            assert!(!line.play_random(1, &mut rng) && line.moves().len() == moves);
        }
    }
}
