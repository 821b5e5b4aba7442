//! What the evaluation counts, and what each of it is worth.
//!
//! A term is something that a position has so many times more for White than for Black; the evaluation is the sum of
//! its terms' values. The values are fitted to games (`tune`), so that a term costs no more than a line here and its
//! count.

use shakmaty::{Color, Role, Square};

use crate::taper::{Taper, t};

mod values;

pub(crate) use values::VALUES;

/// How much each role adds to the phase.
pub(crate) static PHASES: [i32; 6] = [0, 1, 1, 2, 4, 0];

/// Values of the roles for exchanges and pruning, where only their order and rough size matter. A king outweighs all.
pub(crate) static EXCHANGE: [i32; 6] = [100, 320, 330, 500, 950, 20_000];

/// Whoever counts the terms of one side.
pub(crate) trait Count {
    /// The side has a term so many times.
    fn add(&mut self, term: usize, times: i32);
}

/// The sum of the terms' values.
impl Count for Taper {
    #[inline]
    fn add(&mut self, term: usize, times: i32) {
        *self += VALUES[term] * times;
    }
}

macro_rules! terms {
    ($($(#[$doc:meta])* $name:ident: $len:literal;)*) => {
        terms!(@ 0; $($(#[$doc])* $name: $len;)*);
        /// The name of each group of terms and how many there are of it, in order.
        pub(crate) const GROUPS: &[(&str, usize)] = &[$((stringify!($name), $len),)*];
        /// Terms in all.
        pub(crate) const TERMS: usize = 0 $(+ $len)*;
    };
    (@ $first:expr; $(#[$doc:meta])* $name:ident: $len:literal; $($rest:tt)*) => {
        $(#[$doc])*
        pub(crate) const $name: usize = $first;
        terms!(@ $first + $len; $($rest)*);
    };
    (@ $first:expr;) => {};
}

terms! {
    /// A piece by its role (pawns first) and square as its side sees the board (a1 first, h8 last).
    PLACE: 384;
    /// The right to move.
    TEMPO: 1;
    /// Two bishops.
    BISHOP_PAIR: 1;
    /// For each bishop, own pawns on squares of its color.
    BISHOP_PAWNS: 1;
    /// A knight or bishop on the fourth to sixth rank that a pawn protects and none can drive away.
    KNIGHT_OUTPOST: 1;
    BISHOP_OUTPOST: 1;
    /// For each square of distance of a knight or bishop from its king.
    KNIGHT_AWAY: 1;
    BISHOP_AWAY: 1;
    /// A rook on a file without pawns, and without own pawns.
    ROOK_OPEN: 1;
    ROOK_HALF_OPEN: 1;
    /// By the number of squares that a piece reaches.
    KNIGHT_MOBILITY: 9;
    BISHOP_MOBILITY: 14;
    ROOK_MOBILITY: 15;
    QUEEN_MOBILITY: 28;
    /// A knight, bishop, rook and queen of the other side that a pawn attacks, else a minor piece, else a rook.
    PAWN_THREAT: 4;
    MINOR_THREAT: 4;
    ROOK_THREAT: 4;
    /// A piece of the other side that a pawn's safe step would attack.
    PUSH_THREAT: 1;
    /// A pawn and a piece of the other side that is attacked and not protected.
    LOOSE_PAWN: 1;
    LOOSE_PIECE: 1;
    /// A square that the other side attacks and does not hold, and that is attacked too.
    CONTESTED: 1;
    /// On the king's file and on each beside it, by the rank of the nearest own pawn before the king as its side counts;
    /// the first if there is none.
    SHELTER: 8;
    SHELTER_BESIDE: 8;
    /// The same of the other side's pawns that do not stand against an own one, and of those that do.
    STORM: 8;
    STORM_BESIDE: 8;
    STORM_STOPPED: 8;
    /// By a third of what the attack on the other king weighs.
    DANGER: 20;
    /// A pawn without others on the files beside it.
    ISOLATED: 1;
    /// A pawn behind another of its side.
    DOUBLED: 1;
    /// A pawn whose neighbours have gone ahead, and whose step would be taken.
    BACKWARD: 1;
    /// By its rank as its side counts: a pawn that another protects, one beside another, and one that none can stop.
    PROTECTED: 8;
    PHALANX: 8;
    PASSED: 8;
    /// A passed pawn by the distances of the kings from the square before it.
    PASSER_OWN_KING: 8;
    PASSER_OTHER_KING: 8;
    /// A passed pawn from the fourth rank on, by its rank: with a piece before it; with nothing and no attack on its way;
    /// with no attack on its next square.
    PASSER_BLOCKED: 8;
    PASSER_FREE: 8;
    PASSER_STEP: 8;
}

/// The term of a piece on a square.
pub(crate) fn place(color: Color, role: Role, square: Square) -> usize {
    let seen = if color.is_white() { square } else { square.flip_vertical() };
    PLACE + (role as usize - 1) * 64 + seen as usize
}

/// The terms of the mobility of knight, bishop, rook and queen: the first, and how many.
pub(crate) const MOBILITY: [(usize, usize); 4] =
    [(KNIGHT_MOBILITY, 9), (BISHOP_MOBILITY, 14), (ROOK_MOBILITY, 15), (QUEEN_MOBILITY, 28)];

/// The values of pieces by their squares, in White's view, by color (Black first, as shakmaty counts), role and square.
pub(crate) static PLACED: [[[Taper; 64]; 6]; 2] = {
    let mut placed = [[[Taper::ZERO; 64]; 6]; 2];
    let mut role = 0;
    while role < 6 {
        let mut square = 0;
        while square < 64 {
            let white = VALUES[PLACE + role * 64 + square];
            placed[1][role][square] = white;
            placed[0][role][square ^ 56] = t(-white.middle, -white.end);
            square += 1;
        }
        role += 1;
    }
    placed
};
