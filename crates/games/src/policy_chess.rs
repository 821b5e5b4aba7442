//! Chess as the policy network of the alpha-beta engine sees it: absolute colours, and moves by their two squares.

use std::sync::LazyLock;

use shakmaty::{CastlingMode, Position, Role, Setup, Square};

use crate::{Chess, Color, Game, GameError, Image, Move, Outcome, Packed, Shape, Symmetry};

/// [`Chess`] with another network input and another policy index; the rules are the same.
///
/// The input is 13 planes of 8x8, row 0 the eighth rank and column 0 file a: P N B R Q K of White, p n b r q k of
/// Black, then ones if Black is to move. Castling rights, en passant and the clocks are not in it. The policy index of
/// a move is `from * 64 + to` with a1 = 0 .. h8 = 63 in true squares, castling as the king's two-square move; what a
/// pawn promotes to is not in it, so that four moves can share an index.
///
/// # Stability
/// `policy.bin` and `policy.onnx` depend on both.
#[derive(Clone, Debug)]
pub struct PolicyChess(Chess);

/// Policy indices a square.
const TARGETS: u16 = 64;

/// The symmetries of the board but the identity.
static SYMMETRIES: LazyLock<Vec<Symmetry>> = LazyLock::new(|| Symmetry::of_square(8).split_off(1));

impl PolicyChess {
    /// The index of a stored move.
    fn index_of(m: Move) -> u16 {
        (m.0 & 63) * TARGETS + (m.0 >> 6 & 63)
    }

    /// The indices of the legal moves, ascending.
    fn legal(position: &shakmaty::Chess) -> Vec<u16> {
        let mut indices: Vec<u16> = position.legal_moves().iter().map(|m| Self::index_of(Chess::encode(*m))).collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    fn planes_of(position: &shakmaty::Chess) -> Packed {
        let mut packed = Packed::default();
        let board = position.board();
        for (side, color) in [shakmaty::Color::White, shakmaty::Color::Black].into_iter().enumerate() {
            for (i, role) in Role::ALL.into_iter().enumerate() {
                // Swapped bytes are swapped ranks.
                packed.bits[side * 6 + i] = u64::from(board.by_color(color) & board.by_role(role)).swap_bytes();
            }
        }
        packed.bits[12] = if position.turn().is_white() { 0 } else { u64::MAX };
        packed
    }

    /// The position seen through a symmetry, without castling and en passant; `None` if it is not legal or one of the
    /// moves is not legal in it. (Pawns keep their direction: turned upside down they cannot make their moves, and on
    /// their side they may lie on a back rank.)
    fn image(&self, symmetry: &Symmetry, wanted: &[u16]) -> Option<Image> {
        let moved = |square: u16| u16::from(symmetry.map[usize::from(square)]);
        let mut setup = Setup::empty();
        setup.turn = self.0.position().turn();
        for (square, piece) in self.0.position().board().iter() {
            setup.board.set_piece_at(Square::new(u32::from(moved(u16::from(square)))), piece);
        }
        let position: shakmaty::Chess = setup.position(CastlingMode::Standard).ok()?;
        let legal = Self::legal(&position);
        let through = |index: &u16| {
            let image = moved(index / TARGETS) * TARGETS + moved(index % TARGETS);
            legal.binary_search(&image).is_ok().then_some(image)
        };
        let wanted = wanted.iter().map(through).collect::<Option<_>>()?;
        Some(Image { packed: Self::planes_of(&position), legal, wanted })
    }
}

impl Game for PolicyChess {
    const NAME: &'static str = Chess::NAME;
    const SHAPE: Shape =
        Shape { bit_planes: 13, scalar_planes: 0, height: 8, width: 8, policy_planes: TARGETS as usize };

    fn start() -> Self {
        PolicyChess(Chess::start())
    }

    fn from_fen(text: &str) -> Result<Self, GameError> {
        Chess::from_fen(text).map(PolicyChess)
    }

    fn fen(&self) -> String {
        self.0.fen()
    }

    fn turn(&self) -> Color {
        self.0.turn()
    }

    fn generate(&self, moves: &mut Vec<Move>) -> Outcome {
        let outcome = self.0.generate(moves);
        moves.sort_by_key(|m| Self::index_of(*m));
        outcome
    }

    fn legal_indices(&self, indices: &mut Vec<u16>) {
        *indices = Self::legal(self.0.position());
    }

    fn index_in(&self, _indices: &[u16], m: Move) -> Option<u16> {
        self.0.is_legal(m).then(|| Self::index_of(m))
    }

    fn is_legal(&self, m: Move) -> bool {
        self.0.is_legal(m)
    }

    fn play(&mut self, m: Move) {
        self.0.play(m);
    }

    fn index(&self, m: Move) -> u16 {
        Self::index_of(m)
    }

    fn pack(&self) -> Packed {
        Self::planes_of(self.0.position())
    }

    fn move_text(&self, m: Move) -> String {
        self.0.move_text(m)
    }

    fn parse_move(&self, text: &str) -> Result<Move, GameError> {
        self.0.parse_move(text)
    }

    fn images(&self, wanted: &[u16]) -> Vec<Image> {
        SYMMETRIES.iter().filter_map(|symmetry| self.image(symmetry, wanted)).collect()
    }
}

#[cfg(test)]
#[path = "policy_chess/tests.rs"]
mod tests;
