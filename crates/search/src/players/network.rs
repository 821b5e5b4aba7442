//! The player that searches.

use std::slice;
use std::time::{Duration, Instant};

use games::{Game, Line, Move, Rng};

use crate::{Choice, Driver, Evaluator, Player, PlayerError, Search, SearchConfig, SearchError};

/// How freely a player chooses in the opening, so that games from one position differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Temperature {
    /// Temperature of the choice by visits (see [`Search::choose`]).
    pub value: f32,
    /// Plies from the game's beginning, the opening's included, that it holds for.
    pub plies: u32,
}

/// Plays by Monte Carlo tree search with an evaluator: a network of its own, or a client of the service.
///
/// Within a game the tree is kept from move to move as the configuration says. It plays the most visited move, but for
/// the first plies if a temperature is set. Root noise comes from the configuration; matches leave it off.
pub struct NetworkPlayer<G: Game> {
    label: String,
    config: SearchConfig,
    evaluator: Box<dyn Evaluator>,
    temperature: Option<Temperature>,
    movetime: Option<Duration>,
    seed: u64,
    /// The tree of the running game, and the line that its root stands at: start position and moves.
    search: Option<Search<G>>,
    start: String,
    moves: Vec<Move>,
}

impl<G: Game> NetworkPlayer<G> {
    /// A player called `label`, to which the simulations are added.
    ///
    /// # Errors
    /// [`SearchError::Config`] or [`SearchError::Range`] if the configuration is out of range.
    pub fn new(
        label: impl Into<String>,
        config: SearchConfig,
        evaluator: Box<dyn Evaluator>,
    ) -> Result<Self, SearchError> {
        config.check()?;
        Ok(NetworkPlayer {
            label: label.into(),
            config,
            evaluator,
            temperature: None,
            movetime: None,
            seed: 0,
            search: None,
            start: String::new(),
            moves: Vec::new(),
        })
    }

    /// Chooses by temperature in the first plies of a game.
    #[must_use]
    pub fn with_temperature(mut self, temperature: Temperature) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Ends a search after this time, though not before the root has been evaluated; the simulations stay the most that
    /// it makes. Games are then no longer the same from one run to the next.
    #[must_use]
    pub fn with_movetime(mut self, movetime: Duration) -> Self {
        self.movetime = Some(movetime);
        self
    }

    /// Searches the root of the line until the simulations are done or the time that began at `began` is over.
    fn think(&mut self, began: Instant) -> Result<(), SearchError> {
        let Some(search) = &mut self.search else { return Ok(()) };
        let mut driver = Driver::new();
        while driver.round(slice::from_mut(search), &mut *self.evaluator)? > 0 {
            if self.movetime.is_some_and(|movetime| began.elapsed() >= movetime) {
                break;
            }
        }
        Ok(())
    }

    /// Brings the search to where `line` stands: by the moves made since the last choice, or from nothing.
    fn follow(&mut self, line: &Line<G>) -> Result<&mut Search<G>, SearchError> {
        let start = line.start().fen();
        let search = match self.search.take() {
            Some(mut search) if self.start == start && line.moves().starts_with(&self.moves) => {
                for m in &line.moves()[self.moves.len()..] {
                    search.advance(*m)?;
                }
                search
            }
            Some(mut search) => {
                search.reset(line.state().clone(), self.rng());
                search
            }
            None => Search::new(self.config, line.state().clone(), self.rng()),
        };
        self.start = start;
        self.moves.clear();
        self.moves.extend_from_slice(line.moves());
        Ok(self.search.insert(search))
    }

    fn rng(&self) -> Rng {
        Rng::from_parts(&[self.seed, Rng::part(&self.label)])
    }
}

impl<G: Game> Player<G> for NetworkPlayer<G> {
    fn name(&self) -> String {
        let name = format!("{} simulations={}", self.label, self.config.simulations);
        match self.movetime {
            Some(movetime) => format!("{name} movetime={}ms", movetime.as_millis()),
            None => name,
        }
    }

    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError> {
        self.seed = game_seed;
        self.search = None;
        Ok(())
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        let began = Instant::now();
        self.follow(line)?;
        if let Err(error) = self.think(began) {
            self.search = None; // its answers are lost
            return Err(error.into());
        }
        let Some(search) = &mut self.search else {
            return Err(SearchError::NoMoves { fen: line.state().fen() }.into());
        };
        let report = search.root_report()?;
        let temperature = self.temperature.filter(|t| (line.moves().len() as u32) < t.plies).map_or(0.0, |t| t.value);
        let m = search.choose(temperature)?;
        let nodes = Some(report.visits.iter().map(|(_, n)| u64::from(*n)).sum());
        let visits = report.full.then_some(report.visits);
        // A proven score belongs to the best move only.
        let score = report.proof.mate().filter(|_| m == report.best);
        Ok(Choice { m, score, value: Some(report.value), visits, nodes })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use games::{Chess, Game, Line, Outcome, Score, TicTacToe};

    use super::{NetworkPlayer, Temperature};
    use crate::testing::HashEvaluator;
    use crate::{Evaluator, Player, RandomPlayer, Request, SearchConfig, SearchError, UniformEvaluator};

    fn config(simulations: u32) -> SearchConfig {
        SearchConfig { simulations, ..SearchConfig::default() }
    }

    fn play(player: &mut dyn Player<Chess>, seed: u64, plies: usize) -> Vec<games::Move> {
        player.new_game(seed).unwrap();
        let mut line = Line::new(Chess::start());
        for _ in 0..plies {
            let choice = player.choose(&line).unwrap();
            assert!(choice.value.is_some() && choice.visits.is_some());
            line.play(choice.m);
        }
        line.moves().to_vec()
    }

    #[test]
    fn games_are_greedy_unless_a_temperature_is_set() {
        let player = || NetworkPlayer::<Chess>::new("toy", config(30), Box::new(HashEvaluator)).unwrap();
        let mut greedy = player();
        assert_eq!(greedy.name(), "toy simulations=30");
        assert_eq!(play(&mut greedy, 1, 12), play(&mut greedy, 2, 12));
        let mut free = player().with_temperature(Temperature { value: 1.0, plies: 6 });
        let game = play(&mut free, 1, 12);
        assert_eq!(game, play(&mut free, 1, 12), "the same seed, the same game");
        assert_ne!(game, play(&mut free, 2, 12));
    }

    /// Answers like another after a while.
    struct Slow(Duration);

    impl Evaluator for Slow {
        fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
            std::thread::sleep(self.0);
            HashEvaluator.evaluate(requests)
        }
    }

    #[test]
    fn time_ends_a_search_and_the_tree_goes_on_with_the_next_move() {
        let slow = Box::new(Slow(Duration::from_millis(1)));
        let mut player = NetworkPlayer::<Chess>::new("toy", config(1_000_000), slow).unwrap();
        player = player.with_movetime(Duration::from_millis(50));
        assert_eq!(player.name(), "toy simulations=1000000 movetime=50ms");
        let mut line = Line::new(Chess::start());
        for _ in 0..3 {
            let choice = player.choose(&line).unwrap();
            let visits: u32 = choice.visits.unwrap().iter().map(|(_, n)| n).sum();
            assert!((1..=200).contains(&visits), "{visits} visits of at least 1 ms each");
            line.play(choice.m);
        }
        // With no time at all there is still a move.
        let mut hasty = NetworkPlayer::<Chess>::new("toy", config(100), Box::new(HashEvaluator)).unwrap();
        hasty = hasty.with_movetime(Duration::ZERO);
        assert!(line.state().legal_moves().contains(&hasty.choose(&line).unwrap().m));
        // A search that is done before is the one without a limit.
        let mut free = NetworkPlayer::<Chess>::new("toy", config(30), Box::new(HashEvaluator)).unwrap();
        let mut ample = NetworkPlayer::<Chess>::new("toy", config(30), Box::new(HashEvaluator)).unwrap();
        ample = ample.with_movetime(Duration::from_secs(60));
        assert_eq!(free.choose(&line).unwrap(), ample.choose(&line).unwrap());
    }

    #[test]
    fn m1_a_mate_is_reported_as_a_score() {
        let mut player = NetworkPlayer::<Chess>::new("toy", config(200), Box::new(UniformEvaluator)).unwrap();
        let line = Line::new(Chess::from_fen("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1").unwrap());
        let choice = player.choose(&line).unwrap();
        assert_eq!(line.state().move_text(choice.m), "g5g7");
        assert_eq!(choice.score, Some(Score::Mate(1)));
    }

    #[test]
    fn a_searching_player_does_not_lose_to_a_random_one() {
        let mut player = NetworkPlayer::<TicTacToe>::new("toy", config(600), Box::new(UniformEvaluator)).unwrap();
        let mut random = RandomPlayer::default();
        for seed in 0..20 {
            Player::<TicTacToe>::new_game(&mut player, seed).unwrap();
            Player::<TicTacToe>::new_game(&mut random, seed).unwrap();
            let mut line = Line::new(TicTacToe::start());
            while line.state().outcome() == Outcome::Ongoing {
                let own = (line.moves().len() as u64 + seed).is_multiple_of(2);
                let choice = if own { player.choose(&line) } else { random.choose(&line) }.unwrap();
                line.play(choice.m);
            }
            let Outcome::Decided { result, .. } = line.state().outcome() else { unreachable!() };
            let color = if seed % 2 == 0 { games::Color::White } else { games::Color::Black };
            assert!(result.points(color) >= 0.5, "game {seed}: {:?}", line.move_texts());
        }
    }

    #[test]
    fn another_line_begins_a_new_search() {
        let mut player = NetworkPlayer::<Chess>::new("toy", config(20), Box::new(UniformEvaluator)).unwrap();
        let mut line = Line::new(Chess::start());
        let first = player.choose(&line).unwrap();
        line.play(first.m);
        player.choose(&line).unwrap();
        let other = Line::new(Chess::start());
        assert_eq!(player.choose(&other).unwrap().m, first.m, "an earlier position is searched afresh");
        assert!(NetworkPlayer::<Chess>::new("bad", config(0), Box::new(UniformEvaluator)).is_err());
    }
}
