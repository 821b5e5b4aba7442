//! Legal moves, in two parts: the noisy ones (captures and promotions to a queen) and the quiet ones (all others,
//! with the other promotions of a pawn's step).

use games::Move;
use shakmaty::{Bitboard, CastlingSide, Color, Rank, Role, Square, attacks};

use crate::board::Board;
use crate::moves::{Parts, plain, promoting};

/// Which moves to generate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Captures with all their promotions, and steps that make a queen.
    Noisy,
    /// The rest.
    Quiet,
}

const UNDER: [Role; 3] = [Role::Rook, Role::Bishop, Role::Knight];

/// Rank 2 and rank 7.
const DOUBLE_FROM: [Rank; 2] = [Rank::Seventh, Rank::Second];

impl Board {
    /// Gives every legal move to `emit`.
    pub(crate) fn legal_moves(&self, mut emit: impl FnMut(Move)) {
        self.generate(Part::Noisy, &mut emit);
        self.generate(Part::Quiet, &mut emit);
    }

    /// Whether there is any legal move.
    pub(crate) fn has_legal_move(&self) -> bool {
        let mut any = false;
        self.legal_moves(|_| any = true);
        any
    }

    /// Gives every legal move of a part to `emit`.
    pub(crate) fn generate(&self, part: Part, emit: &mut impl FnMut(Move)) {
        let (us, king) = (self.turn(), self.king(self.turn()));
        let goal = match part {
            Part::Noisy => self.by_color(!us),
            Part::Quiet => !self.occupied(),
        };
        for to in attacks::king_attacks(king) & goal {
            if self.is_safe_for_king(to) {
                emit(plain(king, to));
            }
        }
        let checkers = self.checkers();
        if checkers.more_than_one() {
            return;
        }
        // A check is met by taking the checker or by stepping between.
        let answer = match checkers.first() {
            None => Bitboard::FULL,
            Some(checker) => attacks::between(king, checker) | checkers,
        };
        let pinned = self.blockers(us) & self.by_color(us);
        self.generate_pawns(part, answer, pinned, emit);
        let (occupied, goal) = (self.occupied(), goal & answer);
        let mut pieces = |role: Role, attacks: fn(Square, Bitboard) -> Bitboard| {
            for from in self.of(us, role) {
                let mut to = attacks(from, occupied) & goal;
                if pinned.contains(from) {
                    to &= attacks::ray(king, from);
                }
                for to in to {
                    emit(plain(from, to));
                }
            }
        };
        pieces(Role::Knight, |square, _| attacks::knight_attacks(square));
        pieces(Role::Bishop, attacks::bishop_attacks);
        pieces(Role::Rook, attacks::rook_attacks);
        pieces(Role::Queen, attacks::queen_attacks);
        if part == Part::Quiet && checkers.is_empty() {
            for side in [CastlingSide::KingSide, CastlingSide::QueenSide] {
                if let Some(to) = self.castling(side) {
                    emit(plain(king, to));
                }
            }
        }
    }

    fn generate_pawns(&self, part: Part, answer: Bitboard, pinned: Bitboard, emit: &mut impl FnMut(Move)) {
        let (us, king) = (self.turn(), self.king(self.turn()));
        let (pawns, empty) = (self.of(us, Role::Pawn), !self.occupied());
        let forward = forward(us);
        let last = Bitboard::from_rank(us.relative_rank(Rank::Eighth));
        let fits = |from: Square, to: Square| !pinned.contains(from) || attacks::ray(king, from).contains(to);
        let back = |to: Square, steps: i32| to.offset(-forward * steps);

        let steps = pawns.shift(forward) & empty;
        for to in steps & answer {
            let Some(from) = back(to, 1).filter(|from| fits(*from, to)) else { continue };
            match (part, last.contains(to)) {
                (Part::Noisy, true) => emit(promoting(from, to, Role::Queen)),
                (Part::Quiet, true) => UNDER.iter().for_each(|role| emit(promoting(from, to, *role))),
                (Part::Quiet, false) => emit(plain(from, to)),
                (Part::Noisy, false) => {}
            }
        }
        if part == Part::Quiet {
            let starts = pawns & Bitboard::from_rank(DOUBLE_FROM[us as usize]);
            let doubles = (starts.shift(forward) & empty).shift(forward) & empty;
            for to in doubles & answer {
                if let Some(from) = back(to, 2).filter(|from| fits(*from, to)) {
                    emit(plain(from, to));
                }
            }
            return;
        }
        let goal = self.by_color(!us) & answer;
        for from in pawns {
            for to in attacks::pawn_attacks(us, from) & goal {
                if !fits(from, to) {
                    continue;
                }
                if last.contains(to) {
                    emit(promoting(from, to, Role::Queen));
                    UNDER.iter().for_each(|role| emit(promoting(from, to, *role)));
                } else {
                    emit(plain(from, to));
                }
            }
        }
        if let Some(to) = self.en_passant() {
            for from in attacks::pawn_attacks(!us, to) & pawns {
                if self.is_safe_en_passant(from, to) {
                    emit(plain(from, to));
                }
            }
        }
    }

    /// Whether the mover's king would not be in check on a square.
    fn is_safe_for_king(&self, to: Square) -> bool {
        let us = self.turn();
        let occupied = self.occupied() ^ self.of(us, Role::King);
        (self.attackers(to, occupied) & self.by_color(!us)).is_empty()
    }

    /// Where the king goes if castling is legal.
    fn castling(&self, side: CastlingSide) -> Option<Square> {
        if !self.may_castle(side) || self.is_check() {
            return None;
        }
        let us = self.turn();
        let king = self.king(us);
        let (rook, over, to) = match side {
            CastlingSide::KingSide => (king.offset(3)?, king.offset(1)?, king.offset(2)?),
            CastlingSide::QueenSide => (king.offset(-4)?, king.offset(-1)?, king.offset(-2)?),
        };
        let free = (attacks::between(king, rook) & self.occupied()).is_empty();
        // Here the king itself shields nothing: the rook's rank is empty between them.
        let safe = |square| (self.attackers(square, self.occupied()) & self.by_color(!us)).is_empty();
        (free && safe(over) && safe(to)).then_some(to)
    }

    /// Whether a move from elsewhere (the table, a killer) is legal here.
    pub(crate) fn is_legal(&self, m: Move) -> bool {
        let (from, to, us) = (m.from(), m.to(), self.turn());
        let king = self.king(us);
        let Some(role) = self.role(from).filter(|_| self.by_color(us).contains(from)) else { return false };
        let last = Bitboard::from_rank(us.relative_rank(Rank::Eighth));
        let promotes = role == Role::Pawn && last.contains(to);
        if promotes != m.promotion().is_some() || (!promotes && m.0 >> 12 != 0) || self.by_color(us).contains(to) {
            return false;
        }
        if role == Role::King {
            if attacks::king_attacks(king).contains(to) {
                return self.is_safe_for_king(to);
            }
            return [CastlingSide::KingSide, CastlingSide::QueenSide].iter().any(|s| self.castling(*s) == Some(to));
        }
        let reaches = match role {
            Role::Pawn => {
                let passing = Some(to) == self.en_passant();
                if attacks::pawn_attacks(us, from).contains(to) {
                    if passing {
                        return self.is_safe_en_passant(from, to);
                    }
                    self.by_color(!us).contains(to)
                } else {
                    self.is_pawn_step(from, to)
                }
            }
            Role::Knight => attacks::knight_attacks(from).contains(to),
            Role::Bishop => attacks::bishop_attacks(from, self.occupied()).contains(to),
            Role::Rook => attacks::rook_attacks(from, self.occupied()).contains(to),
            _ => attacks::queen_attacks(from, self.occupied()).contains(to),
        };
        if !reaches {
            return false;
        }
        if let Some(checker) = self.checkers().first() {
            let answer = attacks::between(king, checker) | self.checkers();
            if self.checkers().more_than_one() || !answer.contains(to) {
                return false;
            }
        }
        !self.blockers(us).contains(from) || attacks::ray(king, from).contains(to)
    }

    fn is_pawn_step(&self, from: Square, to: Square) -> bool {
        let (us, empty) = (self.turn(), !self.occupied());
        let one = Bitboard::from_square(from).shift(forward(us)) & empty;
        if one.contains(to) {
            return true;
        }
        from.rank() == DOUBLE_FROM[us as usize] && (one.shift(forward(us)) & empty).contains(to)
    }
}

/// A pawn's step in squares.
#[inline]
pub(crate) fn forward(color: Color) -> i32 {
    if color.is_white() { 8 } else { -8 }
}

#[cfg(test)]
mod tests;
