//! A UCI chess engine as a player.

use std::time::Duration;

use games::{Chess, Line};
use uci::{Budget, Clocks, Engine, EngineError, EngineSpec, Limit, Supervised};

use crate::error::chain;
use crate::{Choice, Player, PlayerError};

/// Options that change an engine's strength, and so belong to its name.
const STRENGTH: [&str; 3] = ["UCI_LimitStrength", "UCI_Elo", "Skill Level"];

/// An engine with a limit, or on a clock. A fault in a game (silence, death, an illegal or late move) forfeits that game; the engine
/// is started again for the next one, and after repeated failures the error is final.
pub struct EnginePlayer {
    engine: Supervised,
    /// `None` on a clock.
    limit: Option<Limit>,
    /// What the clocks showed last.
    clocks: Option<Clocks>,
    name: String,
    /// Whether the engine has lost the running game by its own fault.
    at_fault: bool,
}

impl EnginePlayer {
    /// Starts the engine. Its name is `id name`, the strength options that are set, and the limit:
    /// "Stockfish 15.1 UCI_Elo=1500 movetime=500ms".
    ///
    /// # Errors
    /// [`EngineError`] if it does not start or refuses an option.
    pub fn new(spec: EngineSpec, limit: Limit) -> Result<Self, EngineError> {
        let strength = strength(&spec.options);
        let mut player = EnginePlayer::named(spec, Some(limit), String::new())?;
        player.name = format!("{} {strength}{limit}", player.engine.engine()?.name());
        Ok(player)
    }

    /// Starts the engine, with a limit or without one on the clock of its games, under a name that should tell options
    /// and limit.
    ///
    /// # Errors
    /// As [`EnginePlayer::new`].
    pub fn named(spec: EngineSpec, limit: Option<Limit>, name: String) -> Result<Self, EngineError> {
        let mut engine = Supervised::new(spec);
        engine.engine()?;
        Ok(EnginePlayer { engine, limit, clocks: None, name, at_fault: false })
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
                self.at_fault = true;
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
        .map(|(name, value)| format!("{name}={value} "))
        .collect()
}

impl Player<Chess> for EnginePlayer {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Tells the engine of a new game. The seed is not used: engines have no option for it. Failures are counted by game,
    /// since an engine that dies late in each of them plays many moves in between.
    fn new_game(&mut self, _game_seed: u64) -> Result<(), PlayerError> {
        if !std::mem::take(&mut self.at_fault) {
            self.engine.succeeded();
        }
        self.with_engine(false, Engine::new_game)
    }

    fn see_clocks(&mut self, clocks: Clocks) {
        self.clocks = Some(clocks);
    }

    fn choose(&mut self, line: &Line<Chess>) -> Result<Choice, PlayerError> {
        // With neither, the engine refuses the limit that allows nothing.
        let unlimited = Budget::Move(Limit::MoveTime(Duration::ZERO));
        let budget = self.limit.map(Budget::from).or(self.clocks.map(Budget::from)).unwrap_or(unlimited);
        let answer = self.with_engine(true, |engine| engine.play(line, budget))?;
        Ok(Choice { score: answer.score, nodes: answer.nodes, ..Choice::plain(answer.m) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use games::{Chess, Game, Line, Score, Termination};
    use uci::{Clocks, EngineSpec, Limit};

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
    fn a_limit_goes_before_the_clocks_and_an_engine_with_neither_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let answer = "case \"$line\" in *wtime\\ 500*) echo 'bestmove e2e4';; *nodes*) echo 'bestmove d2d4';; esac";
        let clocks = Clocks { left: [Some(Duration::from_millis(500)), None], ..Clocks::default() };
        let line = Line::new(Chess::start());
        let play = |limit, clocks: Option<Clocks>| {
            let mut player =
                EnginePlayer::named(toy(dir.path(), answer), limit, "Toy 1.0 Hash=1 tc=5".to_owned()).unwrap();
            assert_eq!(player.name(), "Toy 1.0 Hash=1 tc=5");
            clocks.into_iter().for_each(|clocks| Player::<Chess>::see_clocks(&mut player, clocks));
            player.choose(&line).map(|choice| line.state().move_text(choice.m))
        };
        assert_eq!(play(None, Some(clocks)).unwrap(), "e2e4");
        assert_eq!(play(Some(Limit::Nodes(9)), Some(clocks)).unwrap(), "d2d4");
        let error = play(None, None).unwrap_err();
        assert!(error.termination().is_none() && error.to_string().contains("engine"), "{error}");
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
    fn an_engine_that_dies_late_in_every_game_ends_the_match_too() {
        let dir = tempfile::tempdir().unwrap();
        // It plays a move a game.
        let go = "if [ -e moved ]; then rm moved; exit 1; fi; : > moved; echo 'bestmove e2e4'";
        let mut spec = toy(dir.path(), go);
        spec.folder = Some(dir.path().to_owned());
        let mut player = EnginePlayer::new(spec, Limit::Nodes(1)).unwrap();
        let line = Line::new(Chess::start());
        let mut forfeits = 0;
        let last = loop {
            player.new_game(0).unwrap();
            player.choose(&line).unwrap();
            match player.choose(&line).unwrap_err() {
                PlayerError::Forfeit { .. } => forfeits += 1,
                other => break other,
            }
            assert!(forfeits < 10, "it goes on for ever");
        };
        assert_eq!(forfeits, 4, "{last}");
    }

    #[test]
    fn u17_an_elo_without_limited_strength_is_not_in_the_name() {
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(strength(&[option("UCI_Elo", "1500"), option("Threads", "1")]), "");
        assert_eq!(strength(&[option("UCI_LimitStrength", "true"), option("UCI_Elo", "1500")]), "UCI_Elo=1500 ");
        assert_eq!(strength(&[option("Skill Level", "3")]), "Skill Level=3 ");
    }
}
