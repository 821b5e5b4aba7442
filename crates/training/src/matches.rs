//! Who can play in a match of the stages, and playing it.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arena::{MatchReport, MatchSpec, play_match};
use games::{Chess, Game};
use nn::Model;
use pipeline::Stop;
use search::{
    EnginePlayer, NetworkEvaluator, NetworkPlayer, Player, PlayerError, PolicyPlayer, RandomPlayer, ReferencePlayer,
    SearchConfig,
};
use uci::{EngineSpec, Limit};

use crate::Result;
use crate::profile::Profile;
use crate::stages::NetworkRef;

/// Positions that a match player's cache holds.
const CACHE: usize = 1 << 16;

/// A player that can be made once for each game slot.
pub(crate) enum Contender {
    /// A network with search, and the longest time that it takes for a move, if there is one.
    Network { model: Model, name: String, config: SearchConfig, movetime: Option<Duration> },
    /// The raw policy.
    Policy { model: Model, name: String },
    /// A UCI engine.
    Engine { spec: EngineSpec, limit: Limit },
    /// A UCI engine with a name of its own, in a folder of its own in each slot; without a limit it plays on a clock.
    SlotEngine { spec: EngineSpec, limit: Option<Limit>, name: String, folders: Vec<PathBuf> },
    /// The game's player of known strength.
    Reference,
    /// Uniformly random legal moves.
    Random,
}

impl Contender {
    /// A network that searches, or plays its raw policy at 0 simulations.
    pub(crate) fn network<G: Game>(
        profile: &Profile,
        network: &NetworkRef,
        name: &str,
        simulations: u32,
    ) -> Result<Self> {
        // A match is played without what makes self-play diverse or cheap.
        let config = SearchConfig { noise_weight: 0.0, playout_cap: None, ..profile.search_with(simulations) };
        Ok(Contender::of_model(network.model::<G>(&profile.device)?, name, config))
    }

    /// As [`Contender::network`], of weights that are loaded.
    pub(crate) fn of_model(model: Model, name: &str, config: SearchConfig) -> Self {
        let name = name.to_owned();
        match config.simulations {
            0 => Contender::Policy { model, name },
            _ => Contender::Network { model, name, config, movetime: None },
        }
    }

    /// The same player with a longest time a move, if it is a network that searches.
    pub(crate) fn within(mut self, longest: Option<Duration>) -> Self {
        if let Contender::Network { movetime, .. } = &mut self {
            *movetime = longest;
        }
        self
    }

    fn player<G: Game>(&self, slot: usize) -> std::result::Result<Box<dyn Player<G>>, PlayerError> {
        Ok(match self {
            Contender::Network { model, name, config, movetime } => {
                let evaluator = NetworkEvaluator::new(model, config.leaves as usize, CACHE)?;
                let player = NetworkPlayer::new(name, *config, Box::new(evaluator))?;
                Box::new(match movetime {
                    Some(movetime) => player.with_movetime(*movetime),
                    None => player,
                })
            }
            Contender::Policy { model, name } => {
                Box::new(PolicyPlayer::new(name, Box::new(NetworkEvaluator::new(model, 1, 0)?)))
            }
            Contender::Engine { spec, limit } => chess_only(EnginePlayer::new(spec.clone(), *limit)?)?,
            Contender::SlotEngine { spec, limit, name, folders } => {
                let spec = EngineSpec { folder: folders.get(slot).cloned(), ..spec.clone() };
                chess_only(EnginePlayer::named(spec, *limit, name.clone())?)?
            }
            Contender::Reference => match ReferencePlayer::of_game() {
                Some(player) => Box::new(player),
                None => return Err(other_game::<G>("a reference player")),
            },
            Contender::Random => Box::new(RandomPlayer::default()),
        })
    }
}

/// An engine as a player of the match's game, which has to be chess.
fn chess_only<G: Game>(player: EnginePlayer) -> std::result::Result<Box<dyn Player<G>>, PlayerError> {
    let name = Player::<Chess>::name(&player);
    let player: Box<dyn Player<Chess>> = Box::new(player);
    let any: Box<dyn Any> = Box::new(player);
    any.downcast::<Box<dyn Player<G>>>().map(|player| *player).map_err(|_| other_game::<G>(&name))
}

fn other_game<G: Game>(player: &str) -> PlayerError {
    PlayerError::OtherGame { player: player.to_owned(), game: G::NAME }
}

/// Plays a match in a folder, resuming what is journaled there.
pub(crate) fn play<G: Game>(
    spec: &MatchSpec,
    a: &Contender,
    b: &Contender,
    folder: &Path,
    stop: &Stop,
) -> Result<MatchReport> {
    Ok(play_match::<G>(spec, &|slot| a.player(slot), &|slot| b.player(slot), folder, stop)?)
}
