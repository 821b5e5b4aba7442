//! A UCI chess engine as a player.

use games::{Chess, Line};
use uci::{Engine, EngineError, EngineSpec, Limit, Supervised};

use crate::error::chain;
use crate::{Choice, Player, PlayerError};

/// Options that change an engine's strength, and so belong to its name.
const STRENGTH: [&str; 3] = ["UCI_LimitStrength", "UCI_Elo", "Skill Level"];

/// An engine with a limit. A fault in a game (silence, death, an illegal or late move) forfeits that game; the engine
/// is started again for the next one, and after repeated failures the error is final.
pub struct EnginePlayer {
    engine: Supervised,
    limit: Limit,
    name: String,
}

impl EnginePlayer {
    /// Starts the engine. Its name is `id name`, the strength options that are set, and the limit:
    /// "Stockfish 15.1 UCI_Elo=1500 movetime=500ms".
    ///
    /// # Errors
    /// [`EngineError`] if it does not start or refuses an option.
    pub fn new(spec: EngineSpec, limit: Limit) -> Result<Self, EngineError> {
        let strength = strength(&spec.options);
        let mut engine = Supervised::new(spec);
        let id = engine.engine()?.name().to_owned();
        Ok(EnginePlayer { engine, limit, name: format!("{id}{strength} {limit}") })
    }

    /// Runs `step` on the engine, which is started again as long as that may help. A fault of the engine itself is
    /// given back as a forfeit if `forfeits`, else it is tried again.
    fn with_engine<T>(
        &mut self,
        forfeits: bool,
        step: impl Fn(&mut Engine) -> Result<T, EngineError>,
    ) -> Result<T, PlayerError> {
        loop {
            let error = match self.engine.engine().and_then(&step) {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let termination = error.termination().filter(|_| forfeits);
            let reason = chain(&error);
            self.engine.failed(error)?;
            if let Some(termination) = termination {
                return Err(PlayerError::Forfeit { name: self.name.clone(), termination, reason });
            }
        }
    }
}

/// The strength options as they stand in a name. `UCI_Elo` has no effect, and no place in the name, unless
/// `UCI_LimitStrength` is on (pains U17).
fn strength(options: &[(String, String)]) -> String {
    let is = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let limited = options.iter().any(|(name, value)| is(name, STRENGTH[0]) && is(value, "true"));
    options
        .iter()
        .filter(|(name, _)| (is(name, STRENGTH[1]) && limited) || is(name, STRENGTH[2]))
        .map(|(name, value)| format!(" {name}={value}"))
        .collect()
}

impl Player<Chess> for EnginePlayer {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Tells the engine of a new game. The seed is not used: engines have no option for it.
    fn new_game(&mut self, _game_seed: u64) -> Result<(), PlayerError> {
        self.with_engine(false, Engine::new_game)
    }

    fn choose(&mut self, line: &Line<Chess>) -> Result<Choice, PlayerError> {
        let limit = self.limit;
        let answer = self.with_engine(true, |engine| engine.play(line, limit))?;
        self.engine.succeeded();
        Ok(Choice { score: answer.score, ..Choice::plain(answer.m) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use games::{Chess, Game, Line, Score, Termination};
    use uci::{EngineSpec, Limit};

    use super::{EnginePlayer, strength};
    use crate::{Player, PlayerError};

    /// An engine in a few lines of shell; `go` is what it does when it is asked for a move.
    fn toy(dir: &Path, go: &str) -> EngineSpec {
        let script = dir.join("toy.sh");
        let text = format!(
            "while read -r line; do case \"$line\" in\n\
             uci) echo 'id name Toy 1.0'; echo 'option name UCI_LimitStrength type check default false';\n\
             echo 'option name UCI_Elo type spin default 1350 min 1350 max 2850'; echo uciok;;\n\
             isready) echo readyok;;\n\
             go*) {go};;\n\
             quit) exit 0;;\n\
             esac; done\n"
        );
        fs::write(&script, text).unwrap();
        EngineSpec::new("/bin/sh").args([script.to_string_lossy().into_owned()])
    }

    #[test]
    fn an_engine_is_named_with_strength_and_limit_and_plays() {
        let dir = tempfile::tempdir().unwrap();
        let spec = toy(dir.path(), "echo 'info depth 1 score cp 20 nodes 9 pv e2e4'; echo 'bestmove e2e4'")
            .option("UCI_LimitStrength", "true")
            .option("UCI_Elo", "1500");
        let mut player = EnginePlayer::new(spec, Limit::Nodes(100)).unwrap();
        assert_eq!(player.name(), "Toy 1.0 UCI_Elo=1500 nodes=100");
        player.new_game(1).unwrap();
        let line = Line::new(Chess::start());
        let choice = player.choose(&line).unwrap();
        assert_eq!(line.state().move_text(choice.m), "e2e4");
        assert_eq!(choice.score, Some(Score::Cp(20)));
    }

    #[test]
    fn u8_faults_forfeit_the_game_and_the_next_one_is_played() {
        let dir = tempfile::tempdir().unwrap();
        for (go, termination) in [
            ("echo 'bestmove a1a1'", Termination::IllegalMove),
            ("echo 'bestmove (none)'", Termination::IllegalMove),
            ("exit 3", Termination::Disconnect),
        ] {
            let mut player = EnginePlayer::new(toy(dir.path(), go), Limit::Nodes(100)).unwrap();
            for _ in 0..2 {
                player.new_game(1).unwrap();
                let error = player.choose(&Line::new(Chess::start())).unwrap_err();
                assert_eq!(error.termination(), Some(termination), "{error}");
                assert!(error.to_string().contains("Toy 1.0 nodes=100"), "{error}");
            }
        }
    }

    #[test]
    fn repeated_faults_are_final() {
        let dir = tempfile::tempdir().unwrap();
        let mut player = EnginePlayer::new(toy(dir.path(), "exit 3"), Limit::Nodes(100)).unwrap();
        let line = Line::new(Chess::start());
        let errors: Vec<PlayerError> = (0..5).map(|_| player.choose(&line).unwrap_err()).collect();
        assert!(matches!(errors[4], PlayerError::Engine(_)), "{:?}", errors[4]);
        assert!(errors[4].termination().is_none());
    }

    #[test]
    fn u17_an_elo_without_limited_strength_is_not_in_the_name() {
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(strength(&[option("UCI_Elo", "1500"), option("Threads", "1")]), "");
        assert_eq!(strength(&[option("UCI_LimitStrength", "true"), option("UCI_Elo", "1500")]), " UCI_Elo=1500");
        assert_eq!(strength(&[option("Skill Level", "3")]), " Skill Level=3");
    }
}
