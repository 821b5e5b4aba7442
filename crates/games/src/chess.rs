//! Chess on shakmaty's rules, with the repetition and fifty-move rules that shakmaty leaves to its users.

use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{CastlingMode, CastlingSide, EnPassantMode, Position, Role, Square};

use crate::move_index::{IndexSet, TYPES};
use crate::{
    Color, Game, GameError, GameResult, Move, MoveShape, Outcome, Packed, Shape, Termination, decode_index,
    encode_index,
};

/// The promotion code in bits 12-14 of a stored move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promotion;

impl Promotion {
    fn code(role: Option<Role>) -> u16 {
        match role {
            Some(Role::Knight) => 1,
            Some(Role::Bishop) => 2,
            Some(Role::Rook) => 3,
            Some(Role::Queen) => 4,
            _ => 0,
        }
    }

    /// The promotion role of a stored move.
    pub fn role(m: Move) -> Option<Role> {
        [None, Some(Role::Knight), Some(Role::Bishop), Some(Role::Rook), Some(Role::Queen)]
            .get(usize::from(m.0 >> 12))
            .copied()
            .flatten()
    }
}

/// A chess game: the position and the hashes since the last irreversible move.
///
/// Draw rules are automatic, as an arbiter would apply them: threefold repetition on the board, fifty moves (100
/// half-moves), insufficient material. Two positions are the same if FIDE says so: an en-passant square counts only
/// if the capture is legal.
#[derive(Debug)]
pub struct Chess {
    position: shakmaty::Chess,
    /// Zobrist hashes of the positions since the last irreversible move; the last is the position's own.
    hashes: Vec<u64>,
}

impl Clone for Chess {
    fn clone(&self) -> Self {
        Chess { position: self.position.clone(), hashes: self.hashes.clone() }
    }

    fn clone_from(&mut self, source: &Self) {
        self.position.clone_from(&source.position);
        self.hashes.clone_from(&source.hashes);
    }
}

fn hash(position: &shakmaty::Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal).0
}

/// a1 = 0 seen from the mover's side.
fn framed(square: u8, turn: Color) -> u8 {
    if turn == Color::White { square } else { square ^ 56 }
}

impl Chess {
    fn from_position(position: shakmaty::Chess) -> Self {
        let hashes = vec![hash(&position)];
        Chess { position, hashes }
    }

    /// The position alone, as shakmaty sees it.
    pub fn position(&self) -> &shakmaty::Chess {
        &self.position
    }

    /// The Zobrist hash of the position (Polyglot values; en passant only where legal): the repetition and
    /// de-duplication key. It covers neither clock.
    pub fn hash(&self) -> u64 {
        self.hashes[self.hashes.len() - 1]
    }

    /// How often the position has stood on the board, itself included.
    pub fn repetitions(&self) -> usize {
        let own = self.hash();
        self.hashes.iter().filter(|h| **h == own).count()
    }

    /// Half-moves since the last capture or pawn move.
    pub fn halfmoves(&self) -> u32 {
        self.position.halfmoves()
    }

    /// Whether neither side can ever mate.
    pub fn is_insufficient_material(&self) -> bool {
        self.position.is_insufficient_material()
    }

    /// Whether the mover is in check.
    pub fn is_check(&self) -> bool {
        self.position.is_check()
    }

    /// The FEN with the en-passant field spelled as `mode` says: `Legal`, `PseudoLegal` (X-FEN) or `Always` (strict).
    pub fn fen_with(&self, mode: EnPassantMode) -> String {
        Fen::from_position(&self.position, mode).to_string()
    }

    /// The stored form of a move given by shakmaty.
    pub fn encode(m: shakmaty::Move) -> Move {
        let (from, to, promotion) = match m {
            shakmaty::Move::Normal { from, to, promotion, .. } => (from, to, promotion),
            shakmaty::Move::EnPassant { from, to } => (from, to, None),
            shakmaty::Move::Castle { king, rook } => {
                (king, CastlingSide::from_king_side(king < rook).king_to(color_of_rank(king)), None)
            }
            shakmaty::Move::Put { to, .. } => (to, to, None),
        };
        Move(u16::from(from) | u16::from(to) << 6 | Promotion::code(promotion) << 12)
    }

    /// The move of shakmaty that a stored move means here; only meaningful for legal moves.
    pub fn decode(&self, m: Move) -> Option<shakmaty::Move> {
        let (from, to) = (Square::new(u32::from(m.0 & 63)), Square::new(u32::from(m.0 >> 6 & 63)));
        let board = self.position.board();
        let role = board.role_at(from)?;
        if role == Role::King && from.file().distance(to.file()) == 2 {
            let side = CastlingSide::from_king_side(from < to);
            let rook = self.position.castles().rook(self.position.turn(), side)?;
            return Some(shakmaty::Move::Castle { king: from, rook });
        }
        let capture = board.role_at(to);
        if role == Role::Pawn && capture.is_none() && from.file() != to.file() {
            return Some(shakmaty::Move::EnPassant { from, to });
        }
        Some(shakmaty::Move::Normal { role, from, capture, to, promotion: Promotion::role(m) })
    }

    /// The move as UCI text for an engine in the given castling mode (standard e1g1, Chess960 e1h1).
    pub fn uci_text(&self, m: Move, mode: CastlingMode) -> String {
        self.decode(m).map_or_else(|| "0000".to_owned(), |m| m.to_uci(mode).to_string())
    }

    /// The move in standard algebraic notation, with check and mate signs.
    pub fn san(&self, m: Move) -> String {
        self.decode(m).map_or_else(
            || "--".to_owned(),
            |m| shakmaty::san::SanPlus::from_move(self.position.clone(), m).to_string(),
        )
    }

    /// The policy indices of the legal moves.
    fn legal_set(&self) -> IndexSet {
        let mut set = IndexSet::new();
        for &m in &self.position.legal_moves() {
            set.insert(self.index(Chess::encode(m)));
        }
        set
    }

    /// The legal move with this policy index.
    fn move_at(&self, index: u16) -> Move {
        let code = MOVES[usize::from(index)];
        let m = if self.position.turn().is_white() { code } else { code ^ (56 | 56 << 6) };
        let (from, last_rank) = (m & 63, matches!(code >> 9 & 7, 7));
        let pawns = u64::from(self.position.board().pawns());
        let queens = last_rank && code >> 12 == 0 && pawns >> from & 1 == 1;
        Move(m | u16::from(queens) << 14)
    }

    /// Reads a legal move in standard algebraic notation.
    ///
    /// # Errors
    /// [`GameError::IllegalMove`] if it is none.
    pub fn parse_san(&self, text: &str) -> Result<Move, GameError> {
        let illegal = || GameError::IllegalMove { text: text.to_owned(), fen: self.fen() };
        let san = text.parse::<shakmaty::san::SanPlus>().map_err(|_| illegal())?;
        san.san.to_move(&self.position).map(Self::encode).map_err(|_| illegal())
    }
}

/// The stored form of each policy index in the mover's frame; a queen's promotion is still a plain move.
static MOVES: [u16; 64 * TYPES] = {
    let mut table = [0; 64 * TYPES];
    let mut i = 0;
    while i < table.len() {
        if let Some(m) = decode_index(i as u16) {
            table[i] = m.from as u16 | (m.to as u16) << 6 | (m.underpromotion as u16) << 12;
        }
        i += 1;
    }
    table
};

fn color_of_rank(king: Square) -> shakmaty::Color {
    if king.rank() == shakmaty::Rank::First { shakmaty::Color::White } else { shakmaty::Color::Black }
}

impl Game for Chess {
    const NAME: &'static str = "chess";
    const SHAPE: Shape = Shape { bit_planes: 18, scalar_planes: 2, height: 8, width: 8, policy_planes: TYPES };

    fn start() -> Self {
        Chess::from_position(shakmaty::Chess::default())
    }

    fn from_fen(text: &str) -> Result<Self, GameError> {
        let error = |reason: String| GameError::Position { game: "chess", text: text.to_owned(), reason };
        let fen: Fen = text.trim().parse().map_err(|e: shakmaty::fen::ParseFenError| error(e.to_string()))?;
        fen.into_position::<shakmaty::Chess>(CastlingMode::Standard)
            .map(Chess::from_position)
            .map_err(|e| error(e.to_string()))
    }

    fn fen(&self) -> String {
        self.fen_with(EnPassantMode::Legal)
    }

    fn turn(&self) -> Color {
        match self.position.turn() {
            shakmaty::Color::White => Color::White,
            shakmaty::Color::Black => Color::Black,
        }
    }

    fn generate(&self, moves: &mut Vec<Move>) -> Outcome {
        moves.clear();
        moves.extend(self.legal_set().iter().map(|index| self.move_at(index)));
        let decided = |result, reason| Outcome::Decided { result, reason };
        if moves.is_empty() {
            return if self.position.is_check() {
                decided(GameResult::win(self.turn().other()), Termination::Checkmate)
            } else {
                decided(GameResult::Draw, Termination::Stalemate)
            };
        }
        if self.position.is_insufficient_material() {
            return decided(GameResult::Draw, Termination::InsufficientMaterial);
        }
        if self.hashes.len() >= 9 && self.repetitions() >= 3 {
            return decided(GameResult::Draw, Termination::Threefold);
        }
        if self.position.halfmoves() >= 100 {
            return decided(GameResult::Draw, Termination::FiftyMoves);
        }
        Outcome::Ongoing
    }

    fn legal_indices(&self, indices: &mut Vec<u16>) {
        indices.clear();
        indices.extend(self.legal_set().iter());
    }

    fn index_in(&self, indices: &[u16], m: Move) -> Option<u16> {
        let index = self.index(m);
        (self.move_at(index) == m && indices.binary_search(&index).is_ok()).then_some(index)
    }

    fn is_legal(&self, m: Move) -> bool {
        // Codes that no legal move has decode to one nevertheless.
        self.decode(m).is_some_and(|legal| Chess::encode(legal) == m && self.position.is_legal(legal))
    }

    fn play(&mut self, m: Move) {
        let Some(m) = self.decode(m) else {
            debug_assert!(false, "{m:?} has no piece to move in {}", self.fen());
            return;
        };
        let incremental = self.position.update_zobrist_hash(Zobrist64(self.hash()), m, EnPassantMode::Legal);
        if self.position.is_irreversible(m) {
            self.hashes.clear();
        }
        self.position.play_unchecked(m);
        self.hashes.push(incremental.map_or_else(|| hash(&self.position), |h| h.0));
    }

    fn index(&self, m: Move) -> u16 {
        let turn = self.turn();
        let promotion = (m.0 >> 12) as u8;
        encode_index(MoveShape {
            from: framed((m.0 & 63) as u8, turn),
            to: framed((m.0 >> 6 & 63) as u8, turn),
            underpromotion: if promotion == 4 { 0 } else { promotion },
        })
        .unwrap_or(0)
    }

    fn pack(&self) -> Packed {
        let mut packed = Packed::default();
        let us = self.position.turn();
        let board = self.position.board();
        let frame = |bits: u64| if us.is_white() { bits } else { bits.swap_bytes() };
        for (side, color) in [us, us.other()].into_iter().enumerate() {
            for (i, role) in Role::ALL.into_iter().enumerate() {
                packed.bits[side * 6 + i] = frame(u64::from(board.by_color(color) & board.by_role(role)));
            }
            for (i, castling) in [CastlingSide::KingSide, CastlingSide::QueenSide].into_iter().enumerate() {
                if self.position.castles().has(color, castling) {
                    packed.bits[13 + side * 2 + i] = u64::MAX;
                }
            }
        }
        packed.bits[12] = u64::MAX;
        if let Some(square) = self.position.ep_square(EnPassantMode::Legal) {
            packed.bits[17] = frame(1 << u32::from(square));
        }
        packed.scalars[0] = (self.position.halfmoves() as f32 / 100.0).min(1.0);
        packed.scalars[1] = (self.position.fullmoves().get() as f32 / 100.0).min(1.0);
        packed
    }

    fn move_text(&self, m: Move) -> String {
        self.uci_text(m, CastlingMode::Standard)
    }

    fn parse_move(&self, text: &str) -> Result<Move, GameError> {
        let illegal = || GameError::IllegalMove { text: text.to_owned(), fen: self.fen() };
        let uci = UciMove::from_ascii(text.as_bytes()).map_err(|_| illegal())?;
        uci.to_move(&self.position).map(Chess::encode).map_err(|_| illegal())
    }
}

#[cfg(test)]
mod tests;
