//! A game as it was played: where it began, the moves, and where it stands.

use crate::{Game, Move};

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
