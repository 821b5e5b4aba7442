//! The trait that every framework part is written against.

use std::fmt;

use crate::{Color, Outcome, Packed, Reference};

/// A move as it is stored in a dataset.
///
/// Chess: `from | to << 6 | promotion << 12` with a1 = 0 .. h8 = 63 in *true* squares (not mirrored for Black),
/// promotion 0 none, 1 N, 2 B, 3 R, 4 Q, castling as the king's two-square move. The other games: the action index
/// (Connect 4 the column, tic-tac-toe the cell).
///
/// # Stability
/// This is a file format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Move(pub u16);

/// The geometry of a game's network input and policy output.
///
/// The input is `planes() x height x width`; the policy has `policy_planes` logits a square, and the policy index of
/// an action is `square * policy_planes + plane` with `square = rank * width + file`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Planes of zeros and ones.
    pub bit_planes: usize,
    /// Planes that hold one number on every square.
    pub scalar_planes: usize,
    /// Ranks.
    pub height: usize,
    /// Files.
    pub width: usize,
    /// Policy logits a square.
    pub policy_planes: usize,
}

impl Shape {
    /// Input planes in all.
    pub const fn planes(&self) -> usize {
        self.bit_planes + self.scalar_planes
    }
    /// Squares of the board; at most 64.
    pub const fn squares(&self) -> usize {
        self.height * self.width
    }
    /// A bit for each square.
    pub(crate) const fn board(&self) -> u64 {
        u64::MAX >> (64 - self.squares())
    }
    /// Length of the policy vector.
    pub const fn actions(&self) -> usize {
        self.squares() * self.policy_planes
    }
    /// Numbers in one input.
    pub const fn inputs(&self) -> usize {
        self.planes() * self.squares()
    }
}

/// A board symmetry: square `s` of the board goes to square `map[s]`.
///
/// Games with more than the identity have one policy plane, so that a policy index is a square and moves with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symmetry {
    /// Image of each square.
    pub map: Vec<u8>,
}

impl Symmetry {
    /// The identity on `squares` squares.
    pub fn identity(squares: usize) -> Self {
        Symmetry { map: (0..squares as u8).collect() }
    }

    /// The eight symmetries of a square board of `side * side` squares, the identity first.
    pub fn of_square(side: u8) -> Vec<Self> {
        let quarter_turn = |s: u8| (s % side) * side + (side - 1 - s / side);
        let mirror = |s: u8| s / side * side + (side - 1 - s % side);
        let image = |mirrored: bool, turns: u8, s: u8| {
            (0..turns).fold(if mirrored { mirror(s) } else { s }, |s, _| quarter_turn(s))
        };
        let kinds = [false, true].into_iter().flat_map(|mirrored| (0..4).map(move |turns| (mirrored, turns)));
        kinds.map(|(m, turns)| Symmetry { map: (0..side * side).map(|s| image(m, turns, s)).collect() }).collect()
    }

    /// The image of a policy index of a game with `shape`.
    pub fn index(&self, shape: Shape, index: u16) -> u16 {
        let planes = shape.policy_planes as u16;
        u16::from(self.map[usize::from(index / planes)]) * planes + index % planes
    }
}

/// A position seen through a symmetry of the board.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    /// The network input.
    pub packed: Packed,
    /// Policy indices of the legal moves, ascending.
    pub legal: Vec<u16>,
    /// Policy indices of the moves that were asked for, in the order in which they were.
    pub wanted: Vec<u16>,
}

/// Why a position or a move was refused.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum GameError {
    /// The text is not a position, or the position is not legal.
    #[error("`{text}` is not a legal {game} position: {reason}")]
    Position {
        /// The game's name.
        game: &'static str,
        /// What was read.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The move is not legal in the position.
    #[error("the move `{text}` is not legal in `{fen}`")]
    IllegalMove {
        /// The move as text.
        text: String,
        /// The position.
        fen: String,
    },
}

/// A state of a two-player, zero-sum game of perfect information, with what its rules need of the past.
pub trait Game: Clone + fmt::Debug + Send + Sync + 'static {
    /// The name in configs and in the `game` column.
    const NAME: &'static str;
    /// Input and policy geometry.
    const SHAPE: Shape;

    /// The initial position.
    fn start() -> Self;

    /// Reads a position.
    ///
    /// # Errors
    /// [`GameError::Position`] if the text does not describe a legal position.
    fn from_fen(text: &str) -> Result<Self, GameError>;

    /// The position as text that [`Game::from_fen`] reads.
    fn fen(&self) -> String;

    /// Who is to move.
    fn turn(&self) -> Color;

    /// Replaces `moves` by the legal moves, sorted by policy index, and says whether the game is over.
    ///
    /// The moves are given even when a draw rule has ended the game, since a search may be asked for a move there.
    fn generate(&self, moves: &mut Vec<Move>) -> Outcome;

    /// Replaces `indices` by the policy indices of the legal moves, ascending, and does not ask whether the game is
    /// over: for replaying games whose end is known.
    fn legal_indices(&self, indices: &mut Vec<u16>) {
        let moves = self.legal_moves();
        indices.clear();
        indices.extend(moves.iter().map(|m| self.index(*m)));
    }

    /// The policy index of a move from outside, if it is legal; `indices` are those of [`Game::legal_indices`].
    fn index_in(&self, indices: &[u16], m: Move) -> Option<u16> {
        let legal = self.legal_moves();
        legal.iter().zip(indices).find(|(l, _)| **l == m).map(|(_, index)| *index)
    }

    /// Whether [`Game::generate`] gives the move.
    fn is_legal(&self, m: Move) -> bool {
        self.legal_moves().contains(&m)
    }

    /// Plays a move that [`Game::generate`] gave.
    ///
    /// # Panics
    /// May panic, or leave a wrong position, on any other move: use [`Game::try_play`] for moves from outside.
    fn play(&mut self, m: Move);

    /// The policy index of a legal move, in the mover's frame (the frame of [`Game::pack`]).
    fn index(&self, m: Move) -> u16;

    /// The network input, compact, in the mover's frame.
    fn pack(&self) -> Packed;

    /// The move as text (chess: UCI, castling as e1g1).
    fn move_text(&self, m: Move) -> String;

    /// Reads a legal move.
    ///
    /// # Errors
    /// [`GameError::IllegalMove`] if no legal move is written so.
    fn parse_move(&self, text: &str) -> Result<Move, GameError>;

    /// The board symmetries under which rules and policy are unchanged; the first is the identity.
    fn symmetries() -> Vec<Symmetry> {
        vec![Symmetry::identity(Self::SHAPE.squares())]
    }

    /// The position and the moves `wanted` (policy indices) seen through every symmetry of the board but the identity
    /// that makes a legal position of it in which these moves are legal.
    fn images(&self, wanted: &[u16]) -> Vec<Image> {
        let (packed, mut legal) = (self.pack(), Vec::new());
        self.legal_indices(&mut legal);
        let image = |symmetry: &Symmetry| {
            let moved = |indices: &[u16]| indices.iter().map(|i| symmetry.index(Self::SHAPE, *i)).collect::<Vec<_>>();
            let mut legal = moved(&legal);
            legal.sort_unstable();
            Image { packed: packed.transformed(Self::SHAPE, symmetry), legal, wanted: moved(wanted) }
        };
        Self::symmetries().iter().skip(1).map(image).collect()
    }

    /// A player of known strength to measure against, where the game has one.
    fn reference() -> Option<Box<dyn Reference<Self>>> {
        None
    }

    /// Whether the game is over.
    fn outcome(&self) -> Outcome {
        self.generate(&mut Vec::new())
    }

    /// The legal moves, sorted by policy index.
    fn legal_moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        self.generate(&mut moves);
        moves
    }

    /// Plays a move if it is legal.
    ///
    /// # Errors
    /// [`GameError::IllegalMove`] if it is not; the state is then unchanged.
    fn try_play(&mut self, m: Move) -> Result<(), GameError> {
        if self.is_legal(m) {
            self.play(m);
            return Ok(());
        }
        Err(GameError::IllegalMove { text: self.move_text(m), fen: self.fen() })
    }

    /// The network input as `[plane][rank][file]`, in the mover's frame.
    fn planes(&self) -> Vec<f32> {
        let mut out = vec![0.0; Self::SHAPE.inputs()];
        self.pack().write_planes(Self::SHAPE, &mut out);
        out
    }
}
