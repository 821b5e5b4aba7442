//! The player that does not search: the raw policy, to measure what a network knows by itself.

use std::marker::PhantomData;

use games::{Game, Line};

use crate::{Choice, Evaluator, Player, PlayerError, Request, SearchError, normalise};

/// Plays the legal move with the greatest prior; the lowest policy index among equals.
pub struct PolicyPlayer<G: Game> {
    label: String,
    evaluator: Box<dyn Evaluator>,
    request: Request,
    game: PhantomData<G>,
}

impl<G: Game> PolicyPlayer<G> {
    /// A player called `label`, to which "policy" is added.
    pub fn new(label: impl Into<String>, evaluator: Box<dyn Evaluator>) -> Self {
        PolicyPlayer { label: label.into(), evaluator, request: Request::default(), game: PhantomData }
    }
}

impl<G: Game> Player<G> for PolicyPlayer<G> {
    fn name(&self) -> String {
        format!("{} policy", self.label)
    }

    fn new_game(&mut self, _game_seed: u64) -> Result<(), PlayerError> {
        Ok(())
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        let game = line.state();
        let moves = game.legal_moves();
        self.request.fill(game, moves.iter().copied());
        self.evaluator.evaluate(std::slice::from_mut(&mut self.request))?;
        normalise(&mut self.request.priors)?;
        let best = moves.iter().zip(&self.request.priors).rev().max_by(|a, b| a.1.total_cmp(b.1));
        let Some((&m, _)) = best else {
            return Err(SearchError::NoMoves { fen: game.fen() }.into());
        };
        Ok(Choice { value: Some(self.request.value), ..Choice::plain(m) })
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game, Line, MoverValue};

    use super::PolicyPlayer;
    use crate::testing::With;
    use crate::{Player, Request, UniformEvaluator};

    #[test]
    fn the_likeliest_legal_move_is_played() {
        let line = Line::new(Chess::start());
        let wanted = line.state().parse_move("e2e4").unwrap();
        let index = line.state().index(wanted);
        let mut player = PolicyPlayer::<Chess>::new(
            "toy",
            Box::new(With(move |r: &mut Request| {
                r.priors = r.legal.iter().map(|i| if *i == index { 0.9 } else { 0.1 }).collect();
                r.value = MoverValue(0.5);
                Ok(())
            })),
        );
        let choice = player.choose(&line).unwrap();
        assert_eq!((choice.m, choice.value, choice.visits), (wanted, Some(MoverValue(0.5)), None));
        assert_eq!(player.name(), "toy policy");
        let mut even = PolicyPlayer::<Chess>::new("even", Box::new(UniformEvaluator));
        assert_eq!(even.choose(&line).unwrap().m, line.state().legal_moves()[0]);
    }
}
