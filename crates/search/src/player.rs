//! What plays a game: the one interface of matches, evaluations and demonstrations.

use games::{Game, Line, Move, MoverValue, Score};
use uci::Clocks;

use crate::PlayerError;

/// A move and what its player thinks of the position that it was made in.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The move.
    pub m: Move,
    /// The player's score in the mover's view, where it belongs to this move: an engine's, or a proven mate.
    pub score: Option<Score>,
    /// The player's value in the mover's view.
    pub value: Option<MoverValue>,
    /// Root visits, for players that search with a policy target.
    pub visits: Option<Vec<(Move, u32)>>,
    /// Nodes of an engine, or simulations of a network's search, where they are known.
    pub nodes: Option<u64>,
}

impl Choice {
    /// A move without an opinion.
    pub fn plain(m: Move) -> Self {
        Choice { m, score: None, value: None, visits: None, nodes: None }
    }
}

/// A player of `G`.
pub trait Player<G: Game>: Send {
    /// The name with version and limits, as it stands in reports and in the `white` and `black` columns.
    fn name(&self) -> String;

    /// Begins a game. All randomness of the player in it comes from `game_seed`.
    ///
    /// # Errors
    /// Whatever keeps the player from playing.
    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError>;

    /// Shows the clocks before a move, where a side plays on one. A player may ignore them; its clock runs all the same.
    fn see_clocks(&mut self, clocks: Clocks) {
        let _ = clocks;
    }

    /// A move in a game that is not over.
    ///
    /// # Errors
    /// [`PlayerError::Forfeit`] if the player loses this game by its own fault; else the match cannot go on.
    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError>;
}

impl<G: Game, P: Player<G> + ?Sized> Player<G> for Box<P> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError> {
        (**self).new_game(game_seed)
    }

    fn see_clocks(&mut self, clocks: Clocks) {
        (**self).see_clocks(clocks);
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        (**self).choose(line)
    }
}
