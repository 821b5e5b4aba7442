//! One game as a row of a dataset.

use games::{Chess, Game, GameResult, Line, Move, Termination};

use crate::DatasetError;
use crate::opening::opening_name;

/// The largest stored score: mate in 0, which only the mated side has (see [`games::Score::to_i16`]).
const SCORE_LIMIT: i16 = 32_000;
/// How far a mean of values in -1..1 may lie outside by rounding.
const VALUE_SLACK: f32 = 1e-4;

/// The root visits of one ply: moves and how often the search went there. `None` = no policy target at this ply.
pub type Visits = Option<Vec<(Move, u32)>>;

/// One game. The fields are the columns of a shard, in the order of [`crate::schema()`].
///
/// Lists by ply (`best`, `score`, `value`, `visits`, `reward`) have one entry for each entry of `moves`.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRecord {
    /// The game's name, [`Game::NAME`].
    pub game: String,
    /// Unique in its dataset.
    pub game_id: u64,
    /// Who played White, with version and limits.
    pub white: String,
    /// Who played Black.
    pub black: String,
    /// Where the game began; `None` is the standard position.
    pub start_fen: Option<String>,
    /// Leading plies that no player chose; never trained on.
    pub opening_plies: u16,
    /// The moves played.
    pub moves: Vec<Move>,
    /// The teacher's move at each ply; `None` = the move played.
    pub best: Vec<Option<Move>>,
    /// The score of the teacher's move in the mover's view, as [`games::Score::to_i16`] stores it.
    pub score: Vec<Option<i16>>,
    /// Search values at the root, mover's view, -1..1.
    pub value: Option<Vec<Option<f32>>>,
    /// Root visits; an empty list means that no ply has any.
    pub visits: Vec<Visits>,
    /// Who won; `None` = no result (ply cap).
    pub result: Option<GameResult>,
    /// Why the game ended.
    pub termination: Termination,
    /// The network's iteration, or 0.
    pub generation: u32,
    /// ECO name of the opening, where known.
    pub opening: Option<String>,
    /// The ladder's phase.
    pub phase: Option<String>,
    /// The ladder's rung.
    pub rung: Option<i16>,
    /// The ladder's rewards.
    pub reward: Option<Vec<f32>>,
}

impl GameRecord {
    /// A game without moves and without a result, to be filled.
    pub fn new(game: &str, game_id: u64) -> Self {
        GameRecord {
            game: game.to_owned(),
            game_id,
            white: String::new(),
            black: String::new(),
            start_fen: None,
            opening_plies: 0,
            moves: Vec::new(),
            best: Vec::new(),
            score: Vec::new(),
            value: None,
            visits: Vec::new(),
            result: None,
            termination: Termination::MaxPlies,
            generation: 0,
            opening: None,
            phase: None,
            rung: None,
            reward: None,
        }
    }

    /// The length of the game.
    pub fn plies(&self) -> usize {
        self.moves.len()
    }

    /// Checks what can be checked without the game's rules.
    ///
    /// # Errors
    /// [`DatasetError::Record`] names the first field that contradicts the schema.
    pub fn validate(&self) -> Result<(), DatasetError> {
        let wrong = |field, reason: String| Err(DatasetError::Record { game_id: self.game_id, field, reason });
        let plies = self.plies();
        if self.game.is_empty() {
            return wrong("game", "is empty, expected the name of a game".into());
        }
        if plies > usize::from(u16::MAX) {
            return wrong("plies", format!("{plies} plies do not fit the column, expected at most {}", u16::MAX));
        }
        if usize::from(self.opening_plies) > plies {
            return wrong("opening_plies", format!("{} in a game of {plies} plies", self.opening_plies));
        }
        let lengths = [
            ("best", Some(self.best.len())),
            ("score", Some(self.score.len())),
            ("value", self.value.as_ref().map(Vec::len)),
            ("visits", (!self.visits.is_empty()).then_some(self.visits.len())),
            ("reward", self.reward.as_ref().map(Vec::len)),
        ];
        if let Some((field, Some(n))) = lengths.into_iter().find(|(_, n)| n.is_some_and(|n| n != plies)) {
            return wrong(field, format!("has {n} entries, expected one for each of the {plies} plies"));
        }
        if let Some(s) = self.score.iter().flatten().find(|s| !(-SCORE_LIMIT..=SCORE_LIMIT).contains(*s)) {
            return wrong("score", format!("{s} is outside -{SCORE_LIMIT}..={SCORE_LIMIT}"));
        }
        let values = self.value.iter().flatten().flatten();
        if let Some(v) = values.copied().find(|v| !v.is_finite() || v.abs() > 1.0 + VALUE_SLACK) {
            return wrong("value", format!("{v} is not a number in -1..=1"));
        }
        if let Some(r) = self.reward.iter().flatten().find(|r| !r.is_finite()) {
            return wrong("reward", format!("{r} is not a finite number"));
        }
        if self.termination == Termination::MaxPlies && self.result.is_some() {
            return wrong("result", "a game that ended at the ply cap has no result, expected null".into());
        }
        Ok(())
    }

    /// Cuts the game off after its first `plies`; its result stays that of the whole game.
    pub(crate) fn truncate(&mut self, plies: usize) {
        self.opening_plies = self.opening_plies.min(plies.try_into().unwrap_or(u16::MAX));
        self.moves.truncate(plies);
        self.best.truncate(plies);
        self.score.truncate(plies);
        self.visits.truncate(plies);
        self.value.iter_mut().for_each(|value| value.truncate(plies));
        self.reward.iter_mut().for_each(|reward| reward.truncate(plies));
    }

    /// The position in which the game began.
    ///
    /// # Errors
    /// [`DatasetError::OtherGame`], or [`DatasetError::Illegal`] if `start_fen` is not a legal position.
    pub fn start<G: Game>(&self) -> Result<G, DatasetError> {
        if self.game != G::NAME {
            return Err(DatasetError::OtherGame { game_id: self.game_id, wanted: G::NAME, found: self.game.clone() });
        }
        let illegal = |source| DatasetError::Illegal { game_id: self.game_id, ply: 0, source };
        self.start_fen.as_deref().map_or_else(|| Ok(G::start()), |fen| G::from_fen(fen).map_err(illegal))
    }

    /// Replays the game and checks that every move (played, the teacher's, visited) is legal.
    ///
    /// # Errors
    /// As [`GameRecord::validate`] and [`GameRecord::start`], and [`DatasetError::Illegal`] with the ply.
    pub fn check<G: Game>(&self) -> Result<Line<G>, DatasetError> {
        self.validate()?;
        let mut line = Line::new(self.start::<G>()?);
        let mut legal = Vec::new();
        for (ply, &played) in self.moves.iter().enumerate() {
            line.state().generate(&mut legal);
            let visited = self.visits.get(ply).into_iter().flatten().flatten().map(|(m, _)| *m);
            let named = [Some(played), self.best[ply]].into_iter().flatten().chain(visited);
            if let Some(wrong) = named.into_iter().find(|m| !legal.contains(m)) {
                return Err(self.illegal(line.state(), ply, wrong));
            }
            line.play(played);
        }
        Ok(line)
    }

    /// The error that a move of this record is not legal in `state`, where it stands at `ply`.
    pub(crate) fn illegal<G: Game>(&self, state: &G, ply: usize, m: Move) -> DatasetError {
        let source = games::GameError::IllegalMove { text: format!("{:#06x}", m.0), fen: state.fen() };
        DatasetError::Illegal { game_id: self.game_id, ply, source }
    }

    /// The name that was given to the opening, else that of the known line which the game begins with.
    pub(crate) fn opening_name(&self) -> Option<&str> {
        let standard = self.game == Chess::NAME && self.start_fen.is_none();
        self.opening.as_deref().or_else(|| opening_name(&self.moves).filter(|_| standard))
    }

    /// The record as a shard holds it: `best` is `None` where it equals the move played, and a known opening has its
    /// name.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        for (best, played) in self.best.iter_mut().zip(&self.moves) {
            if *best == Some(*played) {
                *best = None;
            }
        }
        self.opening = self.opening_name().map(str::to_owned);
        self
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Connect4};

    use super::*;
    use crate::testing::{chess_game, connect4_game};

    #[test]
    fn lists_by_ply_have_one_entry_a_ply() {
        let good = chess_game(1, 60);
        good.check::<Chess>().unwrap();
        let mut bad = good.clone();
        bad.score.pop();
        let message = bad.validate().unwrap_err().to_string();
        assert!(message.contains("game 1: score") && message.contains("expected"), "{message}");
        let mut bad = good.clone();
        bad.visits = vec![None];
        assert!(bad.validate().unwrap_err().to_string().contains("visits"));
        let mut bad = good.clone();
        bad.value = Some(vec![Some(f32::NAN); bad.plies()]);
        assert!(bad.validate().unwrap_err().to_string().contains("value"));
        let mut bad = good;
        (bad.termination, bad.result) = (Termination::MaxPlies, Some(GameResult::Draw));
        assert!(bad.validate().unwrap_err().to_string().contains("result"));
    }

    #[test]
    fn illegal_moves_and_other_games_are_named() {
        let mut record = chess_game(2, 60);
        record.moves[3] = Move(0);
        let message = record.check::<Chess>().unwrap_err().to_string();
        assert!(message.contains("game 2, ply 3"), "{message}");
        let message = connect4_game(7).check::<Chess>().unwrap_err().to_string();
        assert!(message.contains("connect4") && message.contains("chess"), "{message}");
        connect4_game(7).check::<Connect4>().unwrap();
    }
}
