//! The numbers of the evaluation, in centipawns for the middlegame and the endgame.
//!
//! Material and piece-square values are those of PeSTO, which Ronald Friederich published for his engine RofChade
//! (<https://www.chessprogramming.org/PeSTO%27s_Evaluation_Function>). The others are ours.

use crate::taper::{Taper, t};

/// How much each role adds to the phase.
pub(crate) static PHASES: [i32; 6] = [0, 1, 1, 2, 4, 0];

/// Values of the roles for exchanges and pruning, where only their order and rough size matter. A king outweighs all.
pub(crate) static EXCHANGE: [i32; 6] = [100, 320, 330, 500, 950, 20_000];

const MATERIAL: [Taper; 6] = [t(82, 94), t(337, 281), t(365, 297), t(477, 512), t(1025, 936), t(0, 0)];

/// As White sees the board: the first number is a8.
type Table = [i16; 64];

#[rustfmt::skip]
const MIDDLE: [Table; 6] = [
    [
          0,    0,    0,    0,    0,    0,    0,    0,
         98,  134,   61,   95,   68,  126,   34,  -11,
         -6,    7,   26,   31,   65,   56,   25,  -20,
        -14,   13,    6,   21,   23,   12,   17,  -23,
        -27,   -2,   -5,   12,   17,    6,   10,  -25,
        -26,   -4,   -4,  -10,    3,    3,   33,  -12,
        -35,   -1,  -20,  -23,  -15,   24,   38,  -22,
          0,    0,    0,    0,    0,    0,    0,    0,
    ],
    [
       -167,  -89,  -34,  -49,   61,  -97,  -15, -107,
        -73,  -41,   72,   36,   23,   62,    7,  -17,
        -47,   60,   37,   65,   84,  129,   73,   44,
         -9,   17,   19,   53,   37,   69,   18,   22,
        -13,    4,   16,   13,   28,   19,   21,   -8,
        -23,   -9,   12,   10,   19,   17,   25,  -16,
        -29,  -53,  -12,   -3,   -1,   18,  -14,  -19,
       -105,  -21,  -58,  -33,  -17,  -28,  -19,  -23,
    ],
    [
        -29,    4,  -82,  -37,  -25,  -42,    7,   -8,
        -26,   16,  -18,  -13,   30,   59,   18,  -47,
        -16,   37,   43,   40,   35,   50,   37,   -2,
         -4,    5,   19,   50,   37,   37,    7,   -2,
         -6,   13,   13,   26,   34,   12,   10,    4,
          0,   15,   15,   15,   14,   27,   18,   10,
          4,   15,   16,    0,    7,   21,   33,    1,
        -33,   -3,  -14,  -21,  -13,  -12,  -39,  -21,
    ],
    [
         32,   42,   32,   51,   63,    9,   31,   43,
         27,   32,   58,   62,   80,   67,   26,   44,
         -5,   19,   26,   36,   17,   45,   61,   16,
        -24,  -11,    7,   26,   24,   35,   -8,  -20,
        -36,  -26,  -12,   -1,    9,   -7,    6,  -23,
        -45,  -25,  -16,  -17,    3,    0,   -5,  -33,
        -44,  -16,  -20,   -9,   -1,   11,   -6,  -71,
        -19,  -13,    1,   17,   16,    7,  -37,  -26,
    ],
    [
        -28,    0,   29,   12,   59,   44,   43,   45,
        -24,  -39,   -5,    1,  -16,   57,   28,   54,
        -13,  -17,    7,    8,   29,   56,   47,   57,
        -27,  -27,  -16,  -16,   -1,   17,   -2,    1,
         -9,  -26,   -9,  -10,   -2,   -4,    3,   -3,
        -14,    2,  -11,   -2,   -5,    2,   14,    5,
        -35,   -8,   11,    2,    8,   15,   -3,    1,
         -1,  -18,   -9,   10,  -15,  -25,  -31,  -50,
    ],
    [
        -65,   23,   16,  -15,  -56,  -34,    2,   13,
         29,   -1,  -20,   -7,   -8,   -4,  -38,  -29,
         -9,   24,    2,  -16,  -20,    6,   22,  -22,
        -17,  -20,  -12,  -27,  -30,  -25,  -14,  -36,
        -49,   -1,  -27,  -39,  -46,  -44,  -33,  -51,
        -14,  -14,  -22,  -46,  -44,  -30,  -15,  -27,
          1,    7,   -8,  -64,  -43,  -16,    9,    8,
        -15,   36,   12,  -54,    8,  -28,   24,   14,
    ],
];

#[rustfmt::skip]
const END: [Table; 6] = [
    [
          0,    0,    0,    0,    0,    0,    0,    0,
        178,  173,  158,  134,  147,  132,  165,  187,
         94,  100,   85,   67,   56,   53,   82,   84,
         32,   24,   13,    5,   -2,    4,   17,   17,
         13,    9,   -3,   -7,   -7,   -8,    3,   -1,
          4,    7,   -6,    1,    0,   -5,   -1,   -8,
         13,    8,    8,   10,   13,    0,    2,   -7,
          0,    0,    0,    0,    0,    0,    0,    0,
    ],
    [
        -58,  -38,  -13,  -28,  -31,  -27,  -63,  -99,
        -25,   -8,  -25,   -2,   -9,  -25,  -24,  -52,
        -24,  -20,   10,    9,   -1,   -9,  -19,  -41,
        -17,    3,   22,   22,   22,   11,    8,  -18,
        -18,   -6,   16,   25,   16,   17,    4,  -18,
        -23,   -3,   -1,   15,   10,   -3,  -20,  -22,
        -42,  -20,  -10,   -5,   -2,  -20,  -23,  -44,
        -29,  -51,  -23,  -15,  -22,  -18,  -50,  -64,
    ],
    [
        -14,  -21,  -11,   -8,   -7,   -9,  -17,  -24,
         -8,   -4,    7,  -12,   -3,  -13,   -4,  -14,
          2,   -8,    0,   -1,   -2,    6,    0,    4,
         -3,    9,   12,    9,   14,   10,    3,    2,
         -6,    3,   13,   19,    7,   10,   -3,   -9,
        -12,   -3,    8,   10,   13,    3,   -7,  -15,
        -14,  -18,   -7,   -1,    4,   -9,  -15,  -27,
        -23,   -9,  -23,   -5,   -9,  -16,   -5,  -17,
    ],
    [
         13,   10,   18,   15,   12,   12,    8,    5,
         11,   13,   13,   11,   -3,    3,    8,    3,
          7,    7,    7,    5,    4,   -3,   -5,   -3,
          4,    3,   13,    1,    2,    1,   -1,    2,
          3,    5,    8,    4,   -5,   -6,   -8,  -11,
         -4,    0,   -5,   -1,   -7,  -12,   -8,  -16,
         -6,   -6,    0,    2,   -9,   -9,  -11,   -3,
         -9,    2,    3,   -1,   -5,  -13,    4,  -20,
    ],
    [
         -9,   22,   22,   27,   27,   19,   10,   20,
        -17,   20,   32,   41,   58,   25,   30,    0,
        -20,    6,    9,   49,   47,   35,   19,    9,
          3,   22,   24,   45,   57,   40,   57,   36,
        -18,   28,   19,   47,   31,   34,   39,   23,
        -16,  -27,   15,    6,    9,   17,   10,    5,
        -22,  -23,  -30,  -16,  -16,  -23,  -36,  -32,
        -33,  -28,  -22,  -43,   -5,  -32,  -20,  -41,
    ],
    [
        -74,  -35,  -18,  -18,  -11,   15,    4,  -17,
        -12,   17,   14,   17,   17,   38,   23,   11,
         10,   17,   23,   15,   20,   45,   44,   13,
         -8,   22,   24,   27,   26,   33,   26,    3,
        -18,   -4,   21,   24,   27,   23,    9,  -11,
        -19,   -3,   11,   21,   23,   16,    7,   -9,
        -27,  -11,    4,   13,   14,    4,   -5,  -17,
        -53,  -34,  -21,  -11,  -28,  -14,  -24,  -43,
    ],
];

/// Material and piece-square values in White's view, by color (Black first, as shakmaty counts), role and square.
pub(crate) static PLACED: [[[Taper; 64]; 6]; 2] = {
    let mut placed = [[[Taper::ZERO; 64]; 6]; 2];
    let mut role = 0;
    while role < 6 {
        let mut square = 0;
        while square < 64 {
            // The tables begin with a8: White's squares are turned over, Black's are as they are.
            let white = t(
                MATERIAL[role].middle + MIDDLE[role][square ^ 56] as i32,
                MATERIAL[role].end + END[role][square ^ 56] as i32,
            );
            placed[1][role][square] = white;
            placed[0][role][square ^ 56] = t(-white.middle, -white.end);
            square += 1;
        }
        role += 1;
    }
    placed
};

/// The right to move.
pub(crate) const TEMPO: i32 = 12;
/// Two bishops.
pub(crate) const BISHOP_PAIR: Taper = t(24, 46);
/// A rook on a file without pawns, and without own pawns.
pub(crate) const ROOK_OPEN: Taper = t(26, 8);
pub(crate) const ROOK_HALF_OPEN: Taper = t(12, 8);

/// A pawn without others on the files beside it.
pub(crate) const ISOLATED: Taper = t(-10, -12);
/// A pawn behind another of its side.
pub(crate) const DOUBLED: Taper = t(-4, -16);
/// A pawn whose neighbours have gone ahead, and whose step would be taken.
pub(crate) const BACKWARD: Taper = t(-8, -10);
/// A pawn beside or protected by another, by its rank as its side counts.
pub(crate) static SUPPORTED: [Taper; 8] =
    [t(0, 0), t(3, 0), t(7, 4), t(9, 7), t(16, 14), t(32, 30), t(60, 60), t(0, 0)];
/// A pawn that no other can stop, by its rank as its side counts; on top of its piece-square value.
pub(crate) static PASSED: [Taper; 8] =
    [t(0, 0), t(0, 6), t(-4, 8), t(-4, 26), t(14, 44), t(24, 70), t(30, 60), t(0, 0)];
/// For each rank of a passed pawn and each square of distance of the kings from the square before it, twice for the
/// other king's and less its own king's.
pub(crate) const PASSER_KINGS: Taper = t(0, 1);

/// For each square that a knight, bishop, rook and queen reaches, beyond so many.
pub(crate) static MOBILITY: [(Taper, i32); 4] = [(t(5, 5), 4), (t(5, 5), 6), (t(3, 5), 7), (t(2, 5), 13)];

/// An own pawn before the king, and two squares before it.
pub(crate) const SHIELD_NEAR: Taper = t(12, -2);
pub(crate) const SHIELD_FAR: Taper = t(7, -1);
/// A king on a file without pawns, and without own pawns.
pub(crate) const KING_FILE_OPEN: Taper = t(-28, 0);
pub(crate) const KING_FILE_HALF_OPEN: Taper = t(-14, 4);
/// What each square around the king weighs that a knight, bishop, rook or queen attacks. Their sum's square divided by
/// the part is centipawns, up to the limit.
pub(crate) static ATTACKERS: [i32; 4] = [3, 3, 4, 5];
pub(crate) const DANGER_PART: i32 = 10;
pub(crate) const DANGER_LIMIT: i32 = 400;
