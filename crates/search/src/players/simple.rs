//! Players that need neither network nor engine: uniformly random, and the references of the small games.

use games::{Game, Line, Reference, Rng};

use crate::{Choice, Player, PlayerError, SearchError};

/// Plays any legal move.
#[derive(Clone, Debug)]
pub struct RandomPlayer {
    rng: Rng,
}

impl Default for RandomPlayer {
    fn default() -> Self {
        RandomPlayer { rng: seeded("random", 0) }
    }
}

fn seeded(name: &str, game_seed: u64) -> Rng {
    Rng::from_parts(&[game_seed, Rng::part(name)])
}

impl<G: Game> Player<G> for RandomPlayer {
    fn name(&self) -> String {
        "random".to_owned()
    }

    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError> {
        self.rng = seeded("random", game_seed);
        Ok(())
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        let moves = line.state().legal_moves();
        if moves.is_empty() {
            return Err(SearchError::NoMoves { fen: line.state().fen() }.into());
        }
        Ok(Choice::plain(moves[self.rng.below(moves.len())]))
    }
}

/// Plays as a [`Reference`] of known strength does.
pub struct ReferencePlayer<G: Game> {
    reference: Box<dyn Reference<G>>,
    rng: Rng,
}

impl<G: Game> ReferencePlayer<G> {
    /// The given reference as a player.
    pub fn new(reference: Box<dyn Reference<G>>) -> Self {
        ReferencePlayer { rng: seeded(&reference.name(), 0), reference }
    }

    /// The game's own reference, where it has one.
    pub fn of_game() -> Option<Self> {
        G::reference().map(ReferencePlayer::new)
    }
}

impl<G: Game> Player<G> for ReferencePlayer<G> {
    fn name(&self) -> String {
        self.reference.name()
    }

    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError> {
        self.rng = seeded(&self.reference.name(), game_seed);
        Ok(())
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        if line.state().legal_moves().is_empty() {
            return Err(SearchError::NoMoves { fen: line.state().fen() }.into());
        }
        Ok(Choice::plain(self.reference.choose(line.state(), &mut self.rng)))
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Color, Game, Line, Outcome, TicTacToe};

    use super::{RandomPlayer, ReferencePlayer};
    use crate::Player;

    #[test]
    fn the_reference_never_loses_to_a_random_player() {
        let mut reference = ReferencePlayer::<TicTacToe>::of_game().unwrap();
        let mut random = RandomPlayer::default();
        for seed in 0..30 {
            reference.new_game(seed).unwrap();
            Player::<TicTacToe>::new_game(&mut random, seed).unwrap();
            let mut line = Line::new(TicTacToe::start());
            while line.state().outcome() == Outcome::Ongoing {
                let white = line.state().turn() == Color::White;
                let choice = if white { random.choose(&line) } else { reference.choose(&line) };
                line.play(choice.unwrap().m);
            }
            let Outcome::Decided { result, .. } = line.state().outcome() else { unreachable!() };
            assert!(result.points(Color::Black) >= 0.5);
        }
    }

    #[test]
    fn random_games_follow_their_seed_and_end_with_an_error() {
        let first = |seed| {
            let mut player = RandomPlayer::default();
            Player::<Chess>::new_game(&mut player, seed).unwrap();
            player.choose(&Line::new(Chess::start())).unwrap().m
        };
        assert_eq!(first(3), first(3));
        assert!((0..20).any(|seed| first(seed) != first(3)));
        let stalemate = Line::new(Chess::from_fen("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").unwrap());
        assert!(RandomPlayer::default().choose(&stalemate).is_err());
    }
}
