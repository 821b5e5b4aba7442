//! Who can play in a match of the stages, and playing it.

use std::any::Any;
use std::path::Path;

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
    /// A network with search.
    Network { model: Model, name: String, config: SearchConfig },
    /// The raw policy.
    Policy { model: Model, name: String },
    /// A UCI engine.
    Engine { spec: EngineSpec, limit: Limit },
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
        let (model, name) = (network.model::<G>(profile)?, name.to_owned());
        Ok(match simulations {
            0 => Contender::Policy { model, name },
            n => Contender::Network { model, name, config: profile.search_with(n) },
        })
    }

    fn player<G: Game>(&self) -> std::result::Result<Box<dyn Player<G>>, PlayerError> {
        Ok(match self {
            Contender::Network { model, name, config } => {
                let evaluator = NetworkEvaluator::new(model, config.leaves as usize, CACHE);
                Box::new(NetworkPlayer::new(name, *config, Box::new(evaluator))?)
            }
            Contender::Policy { model, name } => {
                Box::new(PolicyPlayer::new(name, Box::new(NetworkEvaluator::new(model, 1, 0))))
            }
            Contender::Engine { spec, limit } => {
                let player: Box<dyn Player<Chess>> = Box::new(EnginePlayer::new(spec.clone(), *limit)?);
                let any: Box<dyn Any> = Box::new(player);
                // Only chess asks for engines: `Opponent::find` refuses them elsewhere.
                any.downcast::<Box<dyn Player<G>>>().map_or_else(|_| random(), |player| *player)
            }
            Contender::Reference => match ReferencePlayer::of_game() {
                Some(player) => Box::new(player),
                None => random(),
            },
            Contender::Random => random(),
        })
    }
}

fn random<G: Game>() -> Box<dyn Player<G>> {
    Box::new(RandomPlayer::default())
}

/// Plays a match in a folder, resuming what is journaled there.
pub(crate) fn play<G: Game>(
    spec: &MatchSpec,
    a: &Contender,
    b: &Contender,
    folder: &Path,
    stop: &Stop,
) -> Result<MatchReport> {
    Ok(play_match::<G>(spec, &|_| a.player(), &|_| b.player(), folder, stop)?)
}
