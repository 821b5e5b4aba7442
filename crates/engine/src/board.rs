//! The position as the search moves it: bitboards beside a table of squares, and what is carried from move to move,
//! so that nothing of it is counted anew: the Zobrist keys, the sum of the piece-square values, the checkers.
//!
//! A move makes a copy ([`Board::after`]); taking it back is dropping the copy, which cannot go wrong.

use games::Move;
use shakmaty::zobrist::{Zobrist64, ZobristValue};
use shakmaty::{Bitboard, CastlingSide, Color, EnPassantMode, Position, Role, Square, attacks};

use self::rights::Rights;
use crate::moves::Parts;
use crate::taper::Taper;
use crate::weights::{PHASES, PLACED};

mod rights;

/// A position of standard chess.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Board {
    roles: [Bitboard; 6],
    colors: [Bitboard; 2],
    squares: [Option<Role>; 64],
    turn: Color,
    rights: Rights,
    /// Where a pawn may be taken in passing; only if a capture there is legal.
    en_passant: Option<Square>,
    halfmoves: u32,
    key: u64,
    pawn_key: u64,
    placed: Taper,
    phase: i32,
    checkers: Bitboard,
}

impl From<&shakmaty::Chess> for Board {
    fn from(position: &shakmaty::Chess) -> Self {
        let mut board = Board {
            roles: [Bitboard::EMPTY; 6],
            colors: [Bitboard::EMPTY; 2],
            squares: [None; 64],
            turn: position.turn(),
            rights: Rights::NONE,
            en_passant: position.ep_square(EnPassantMode::Legal),
            // Far beyond the fifty moves it makes no difference how many there are.
            halfmoves: position.halfmoves().min(1 << 16),
            key: 0,
            pawn_key: 0,
            placed: Taper::ZERO,
            phase: 0,
            checkers: position.checkers(),
        };
        for (square, piece) in position.board().iter() {
            board.put(piece.color, piece.role, square);
        }
        board.rights = Rights::of(position.castles());
        board.key ^= board.rights.key();
        if board.turn.is_white() {
            board.key ^= Zobrist64::zobrist_for_white_turn().0;
        }
        if let Some(square) = board.en_passant {
            board.key ^= Zobrist64::zobrist_for_en_passant_file(square.file()).0;
        }
        board
    }
}

impl Board {
    #[inline]
    pub(crate) fn turn(&self) -> Color {
        self.turn
    }

    /// The Zobrist hash: Polyglot's values; en passant only where the capture is legal. It covers no clock.
    #[inline]
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The part of the key that stands for pawns.
    #[inline]
    pub(crate) fn pawn_key(&self) -> u64 {
        self.pawn_key
    }

    /// Half-moves since the last capture or pawn move.
    #[inline]
    pub(crate) fn halfmoves(&self) -> u32 {
        self.halfmoves
    }

    /// The sum of material and piece-square values, in White's view.
    #[inline]
    pub(crate) fn placed(&self) -> Taper {
        self.placed
    }

    /// How much of the pieces is left, 24 at the start; more after promotions.
    #[inline]
    pub(crate) fn phase(&self) -> i32 {
        self.phase
    }

    /// The pieces that give check to the side to move.
    #[inline]
    pub(crate) fn checkers(&self) -> Bitboard {
        self.checkers
    }

    #[inline]
    pub(crate) fn is_check(&self) -> bool {
        self.checkers.any()
    }

    /// Where a pawn may be taken in passing; only if a capture there is legal.
    #[inline]
    pub(crate) fn en_passant(&self) -> Option<Square> {
        self.en_passant
    }

    #[inline]
    pub(crate) fn role(&self, square: Square) -> Option<Role> {
        self.squares[square as usize]
    }

    #[inline]
    pub(crate) fn by_role(&self, role: Role) -> Bitboard {
        self.roles[role as usize - 1]
    }

    #[inline]
    pub(crate) fn by_color(&self, color: Color) -> Bitboard {
        self.colors[color as usize]
    }

    #[inline]
    pub(crate) fn of(&self, color: Color, role: Role) -> Bitboard {
        self.by_color(color) & self.by_role(role)
    }

    #[inline]
    pub(crate) fn occupied(&self) -> Bitboard {
        self.colors[0] | self.colors[1]
    }

    /// The square of a king.
    #[inline]
    pub(crate) fn king(&self, color: Color) -> Square {
        // A legal position has both kings; a1 stands for what cannot be.
        self.of(color, Role::King).first().unwrap_or(Square::A1)
    }

    /// Whether a side has more than king and pawns.
    #[inline]
    pub(crate) fn has_pieces(&self, color: Color) -> bool {
        (self.by_color(color) & !self.by_role(Role::Pawn) & !self.by_role(Role::King)).any()
    }

    /// Whether the mover may still castle to a side, as far as king and rook have not moved.
    #[inline]
    pub(crate) fn may_castle(&self, side: CastlingSide) -> bool {
        self.rights.has(self.turn, side)
    }

    /// Pieces of both sides that attack a square when `occupied` squares block.
    pub(crate) fn attackers(&self, square: Square, occupied: Bitboard) -> Bitboard {
        let diagonal = self.by_role(Role::Bishop) | self.by_role(Role::Queen);
        let straight = self.by_role(Role::Rook) | self.by_role(Role::Queen);
        (attacks::pawn_attacks(Color::White, square) & self.of(Color::Black, Role::Pawn))
            | (attacks::pawn_attacks(Color::Black, square) & self.of(Color::White, Role::Pawn))
            | (attacks::knight_attacks(square) & self.by_role(Role::Knight))
            | (attacks::king_attacks(square) & self.by_role(Role::King))
            | (attacks::bishop_attacks(square, occupied) & diagonal)
            | (attacks::rook_attacks(square, occupied) & straight)
    }

    /// Pieces of either side that stand alone between a king and a slider of the other side.
    pub(crate) fn blockers(&self, king_of: Color) -> Bitboard {
        let king = self.king(king_of);
        let diagonal = self.by_role(Role::Bishop) | self.by_role(Role::Queen);
        let straight = self.by_role(Role::Rook) | self.by_role(Role::Queen);
        let snipers = ((attacks::bishop_attacks(king, Bitboard::EMPTY) & diagonal)
            | (attacks::rook_attacks(king, Bitboard::EMPTY) & straight))
            & self.by_color(!king_of);
        let occupied = self.occupied();
        let mut blockers = Bitboard::EMPTY;
        for sniper in snipers {
            let line = attacks::between(king, sniper) & occupied;
            if !line.more_than_one() {
                blockers |= line;
            }
        }
        blockers
    }

    /// Whether neither side can ever mate, by the rule of [`games::Chess::is_insufficient_material`].
    pub(crate) fn is_insufficient_material(&self) -> bool {
        let heavy = self.by_role(Role::Pawn) | self.by_role(Role::Rook) | self.by_role(Role::Queen);
        if heavy.any() {
            return false;
        }
        let (knights, bishops) = (self.by_role(Role::Knight), self.by_role(Role::Bishop));
        if knights.any() {
            return bishops.is_empty() && !knights.more_than_one();
        }
        (bishops & Bitboard::DARK_SQUARES).is_empty() || (bishops & Bitboard::LIGHT_SQUARES).is_empty()
    }

    /// Whether a move takes something, or makes a queen.
    #[inline]
    pub(crate) fn is_noisy(&self, m: Move) -> bool {
        self.captured(m).is_some() || m.promotion() == Some(Role::Queen)
    }

    /// What a move takes.
    #[inline]
    pub(crate) fn captured(&self, m: Move) -> Option<Role> {
        let taken = self.role(m.to());
        if taken.is_none() && self.is_en_passant(m) { Some(Role::Pawn) } else { taken }
    }

    #[inline]
    pub(crate) fn is_en_passant(&self, m: Move) -> bool {
        Some(m.to()) == self.en_passant && self.role(m.from()) == Some(Role::Pawn)
    }

    #[inline]
    fn put(&mut self, color: Color, role: Role, square: Square) {
        let bit = Bitboard::from_square(square);
        self.roles[role as usize - 1] ^= bit;
        self.colors[color as usize] ^= bit;
        self.squares[square as usize] = Some(role);
        self.count(color, role, square, 1);
    }

    #[inline]
    fn take(&mut self, color: Color, role: Role, square: Square) {
        let bit = Bitboard::from_square(square);
        self.roles[role as usize - 1] ^= bit;
        self.colors[color as usize] ^= bit;
        self.squares[square as usize] = None;
        self.count(color, role, square, -1);
    }

    /// Keeps the keys and sums for a piece that comes (1) or goes (-1).
    #[inline]
    fn count(&mut self, color: Color, role: Role, square: Square, sign: i32) {
        let key = Zobrist64::zobrist_for_piece(square, role.of(color)).0;
        self.key ^= key;
        if role == Role::Pawn {
            self.pawn_key ^= key;
        }
        self.placed += PLACED[color as usize][role as usize - 1][square as usize] * sign;
        self.phase += PHASES[role as usize - 1] * sign;
    }

    /// The position after a legal move.
    #[inline]
    pub(crate) fn after(&self, m: Move) -> Board {
        let mut next = self.clone();
        next.play(m);
        next
    }

    /// The position after the mover passes. Only when it is not in check.
    pub(crate) fn after_pass(&self) -> Board {
        let mut next = self.clone();
        next.clear_en_passant();
        next.halfmoves += 1;
        next.turn_over();
        next
    }

    /// The key, counted anew from the pieces, rights and en-passant square.
    #[cfg(test)]
    pub(crate) fn key_anew(&self) -> u64 {
        let mut key = self.rights.key();
        for color in [Color::White, Color::Black] {
            for square in self.by_color(color) {
                let role = self.squares[square as usize].unwrap_or(Role::Pawn);
                key ^= Zobrist64::zobrist_for_piece(square, role.of(color)).0;
            }
        }
        key ^= self.en_passant.map_or(0, |square| Zobrist64::zobrist_for_en_passant_file(square.file()).0);
        key ^ if self.turn.is_white() { Zobrist64::zobrist_for_white_turn().0 } else { 0 }
    }

    /// The position with the key of another: a mistake for tests.
    #[cfg(test)]
    pub(crate) fn with_key_of(mut self, other: &Board) -> Board {
        self.key = other.key;
        self
    }

    #[inline]
    fn clear_en_passant(&mut self) {
        if let Some(square) = self.en_passant.take() {
            self.key ^= Zobrist64::zobrist_for_en_passant_file(square.file()).0;
        }
    }

    #[inline]
    fn turn_over(&mut self) {
        self.turn = !self.turn;
        self.key ^= Zobrist64::zobrist_for_white_turn().0;
    }

    fn play(&mut self, m: Move) {
        let (from, to, us) = (m.from(), m.to(), self.turn);
        let Some(role) = self.role(from) else {
            debug_assert!(false, "{m:?} has no piece to move");
            return;
        };
        self.halfmoves += 1;
        if let Some(victim) = self.role(to) {
            self.take(!us, victim, to);
            self.halfmoves = 0;
        }
        self.take(us, role, from);
        self.put(us, m.promotion().unwrap_or(role), to);
        let mut doubled = None;
        if role == Role::Pawn {
            self.halfmoves = 0;
            if Some(to) == self.en_passant {
                self.take(!us, Role::Pawn, behind(to));
            } else if from as u8 ^ to as u8 == 16 {
                doubled = Some(behind(to));
            }
        } else if role == Role::King && (from as u8).abs_diff(to as u8) == 2 {
            let (rook, goal) = if to > from { (to as u32 + 1, to as u32 - 1) } else { (to as u32 - 2, to as u32 + 1) };
            self.take(us, Role::Rook, Square::new(rook));
            self.put(us, Role::Rook, Square::new(goal));
        }
        self.clear_en_passant();
        self.key ^= self.rights.leave(from, to);
        self.turn_over();
        self.checkers = self.attackers(self.king(!us), self.occupied()) & self.by_color(us);
        if let Some(square) = doubled.filter(|s| self.can_take_in_passing(*s)) {
            self.en_passant = Some(square);
            self.key ^= Zobrist64::zobrist_for_en_passant_file(square.file()).0;
        }
    }

    /// Whether the mover has a legal capture of the pawn that has just passed over a square.
    fn can_take_in_passing(&self, square: Square) -> bool {
        let us = self.turn;
        let takers = attacks::pawn_attacks(!us, square) & self.of(us, Role::Pawn);
        takers.into_iter().any(|from| self.is_safe_en_passant(from, square))
    }

    /// Whether the king is not in check after a capture in passing.
    pub(crate) fn is_safe_en_passant(&self, from: Square, to: Square) -> bool {
        let (us, victim) = (self.turn, Bitboard::from_square(behind(to)));
        let occupied = (self.occupied() ^ Bitboard::from_square(from) ^ victim) | Bitboard::from_square(to);
        (self.attackers(self.king(us), occupied) & self.by_color(!us) & !victim).is_empty()
    }
}

/// The square behind one of the third or sixth rank, as a pawn that has moved two squares sees it, and the other way
/// about.
#[inline]
fn behind(square: Square) -> Square {
    square.xor(Square::A2)
}

#[cfg(test)]
mod tests;
