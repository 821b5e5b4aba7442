//! One game of a match.

use std::any::Any;
use std::time::{Duration, Instant};

use dataset::GameRecord;
use games::{Chess, Color, Game, GameResult, Line, Move, Outcome, Termination};
use pipeline::{error_chain, say};
use search::{Choice, Player, PlayerError};

use crate::clock::GameClocks;
use crate::timing::{GameLog, Spent};
use crate::{Adjudicator, MatchSpec, Opening, TimeControl};

/// A side: its player, its name in the records, its clock if it has one, and the seed of this game.
pub(crate) struct Side<'p, G: Game> {
    pub(crate) player: &'p mut dyn Player<G>,
    pub(crate) name: &'p str,
    pub(crate) clock: Option<TimeControl>,
    pub(crate) seed: u64,
}

/// A finished game, and what a record of it does not tell, White's before Black's.
pub(crate) struct Played {
    pub(crate) record: GameRecord,
    pub(crate) log: GameLog,
}

/// A player's failure, and whose it is.
pub(crate) struct Failure {
    pub(crate) color: Color,
    pub(crate) error: Box<PlayerError>,
}

impl Failure {
    fn of(color: Color) -> impl FnOnce(PlayerError) -> Self {
        move |error| Failure { color, error: Box::new(error) }
    }
}

/// What the moves of a game left behind, one entry a ply.
#[derive(Default)]
struct Plies {
    score: Vec<Option<i16>>,
    value: Vec<Option<f32>>,
    visits: Vec<Option<Vec<(Move, u32)>>>,
    /// White's and Black's thinking, the move that forfeited on time included.
    spent: [Spent; 2],
    /// Nodes or simulations of each of their moves, where they are known.
    nodes: [Vec<u64>; 2],
    /// What the mover has left after each ply, milliseconds; none in the opening and without a clock.
    left: Vec<Option<u64>>,
}

impl Plies {
    /// A ply of the opening.
    fn push_opening(&mut self) {
        self.score.push(None);
        self.value.push(None);
        self.visits.push(None);
        self.left.push(None);
    }

    /// A move that a side chose, with what it has left on its clock.
    fn push(&mut self, side: usize, choice: Choice, left: Option<Duration>) {
        self.score.push(choice.score.map(|s| s.to_i16()));
        self.value.push(choice.value.map(|v| v.0.clamp(-1.0, 1.0)).filter(|v| v.is_finite()));
        self.visits.push(choice.visits);
        self.nodes[side].extend(choice.nodes);
        self.left.push(left.map(|left| left.as_millis() as u64));
    }
}

/// Plays a game from the end of its opening.
///
/// A player's fault loses it the game. `None` if `halted` became true before the end: the game then counts for
/// nothing and is played again from its id.
pub(crate) fn play_game<G: Game>(
    spec: &MatchSpec,
    game_id: u64,
    opening: &Opening,
    mut line: Line<G>,
    mut sides: [Side<'_, G>; 2],
    halted: &dyn Fn() -> bool,
) -> Result<Option<Played>, Failure> {
    let opening_plies = line.moves().len();
    let mut plies = Plies::default();
    (0..opening_plies).for_each(|_| plies.push_opening());

    let (result, termination) =
        match begin(&mut sides).and_then(|()| play_on(spec, &mut line, &mut sides, &mut plies, halted)) {
            Ok(Some(ended)) => ended,
            Ok(None) => return Ok(None),
            // A player interrupted by the request that halts the match is at no fault.
            Err(_) if halted() => return Ok(None),
            Err(failure) => {
                let text = error_chain(&*failure.error);
                let ended = fault(line.state(), failure)?;
                say!("{}: game {game_id}: {text}", spec.label);
                ended
            }
        };

    let [white, black] = sides.map(|side| side.name.to_owned());
    let with_value = plies.value.iter().any(Option::is_some);
    let with_visits = plies.visits.iter().any(Option::is_some);
    let clocked = plies.left.iter().any(Option::is_some);
    let log = GameLog::new(plies.spent, plies.nodes, if clocked { plies.left } else { Vec::new() });
    let record = GameRecord {
        game: G::NAME.to_owned(),
        game_id,
        white,
        black,
        start_fen: opening.start_fen.clone(),
        opening_plies: opening_plies as u16,
        best: vec![None; line.moves().len()],
        moves: line.moves().to_vec(),
        score: plies.score,
        value: with_value.then_some(plies.value),
        visits: if with_visits { plies.visits } else { Vec::new() },
        result,
        termination,
        generation: spec.generation,
        opening: opening.name.clone(),
        phase: None,
        rung: None,
        reward: None,
    };
    Ok(Some(Played { record, log }))
}

fn begin<G: Game>(sides: &mut [Side<'_, G>; 2]) -> Result<(), Failure> {
    for (side, color) in sides.iter_mut().zip([Color::White, Color::Black]) {
        side.player.new_game(side.seed).map_err(Failure::of(color))?;
    }
    Ok(())
}

type Ended = (Option<GameResult>, Termination);

/// Plays to the end of the game; `None` if halted.
fn play_on<G: Game>(
    spec: &MatchSpec,
    line: &mut Line<G>,
    sides: &mut [Side<'_, G>; 2],
    plies: &mut Plies,
    halted: &dyn Fn() -> bool,
) -> Result<Option<Ended>, Failure> {
    let mut adjudicator = Adjudicator::new(spec.adjudication, line.moves().len() as u32);
    let mut clocks = GameClocks::new([sides[0].clock, sides[1].clock], spec.margin);
    let mut legal = Vec::new();
    loop {
        if let Outcome::Decided { result, reason } = line.state().generate(&mut legal) {
            return Ok(Some((Some(result), reason)));
        }
        if line.moves().len() >= spec.max_plies as usize {
            return Ok(Some((None, Termination::MaxPlies)));
        }
        if halted() {
            return Ok(None);
        }
        let color = line.state().turn();
        let index = usize::from(color == Color::Black);
        let side = &mut sides[index];
        if let Some(clocks) = clocks.shown() {
            side.player.see_clocks(clocks);
        }
        let began = Instant::now();
        let chosen = side.player.choose(line);
        let taken = began.elapsed();
        let answered = match &chosen {
            Ok(_) => true,
            Err(error) => error.termination() == Some(Termination::Time),
        };
        if answered {
            plies.spent[index].add(taken);
        }
        let choice = chosen.map_err(Failure::of(color))?;
        if let Err(reason) = clocks.press(color, taken) {
            let (name, termination) = (side.name.to_owned(), Termination::Time);
            return Err(Failure::of(color)(PlayerError::Forfeit { name, termination, reason }));
        }
        if !legal.contains(&choice.m) {
            let reason = format!("answered with {:#06x}, which is no legal move in {}", choice.m.0, line.state().fen());
            let (name, termination) = (side.name.to_owned(), Termination::IllegalMove);
            return Err(Failure::of(color)(PlayerError::Forfeit { name, termination, reason }));
        }
        line.play(choice.m);
        let (score, value) = (choice.score, choice.value);
        plies.push(index, choice, clocks.left(color));
        if let Outcome::Decided { result, reason } = line.state().outcome() {
            return Ok(Some((Some(result), reason)));
        }
        let verdict = adjudicator.after_move(color, score, value, is_irreversible(line.state()));
        if verdict.is_some() {
            return Ok(Some((verdict, Termination::Adjudication)));
        }
    }
}

/// How a player's failure ends its game, or that it ends the match.
fn fault<G: Game>(state: &G, failure: Failure) -> Result<Ended, Failure> {
    let Some(termination) = failure.error.termination() else { return Err(failure) };
    let winner = failure.color.other();
    let drawn = termination == Termination::Time && !can_win(state, winner);
    let result = if drawn { GameResult::Draw } else { GameResult::win(winner) };
    Ok((Some(result), termination))
}

/// The state as chess, where it is.
pub(crate) fn as_chess<G: Game>(state: &G) -> Option<&Chess> {
    (state as &dyn Any).downcast_ref()
}

/// Whether the last move was a capture or a pawn move; elsewhere than in chess no move starts the draw rule again.
fn is_irreversible<G: Game>(state: &G) -> bool {
    as_chess(state).is_some_and(|chess| chess.halfmoves() == 0)
}

/// Whether `color` has what it takes to win by any play: in chess a flag against a bare king is a draw.
fn can_win<G: Game>(state: &G, color: Color) -> bool {
    let side = if color == Color::White { shakmaty::Color::White } else { shakmaty::Color::Black };
    as_chess(state).is_none_or(|chess| !shakmaty::Position::has_insufficient_material(chess.position(), side))
}
