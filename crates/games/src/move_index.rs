//! The chess policy index: 8x8x73 slots, of which 1858 can occur.
//!
//! `index = from * 73 + type`, squares a1 = 0 .. h8 = 63 in the mover's frame. Types 0-55 are queen moves, directions
//! N NE E SE S SW W NW with 7 distances each; 56-63 knight moves; 64-72 underpromotions, piece N B R times file delta
//! -1 0 +1. A queen promotion is the plain direction move and castling is the king's two-square move.
//!
//! # Stability
//! The index is a file format: networks and their checkpoints depend on it.

/// Slots of the 4672 that some legal move can have.
pub const REACHABLE_INDICES: usize = 1858;

/// Policy planes a square.
pub(crate) const TYPES: usize = 73;

/// (rank delta, file delta) of N NE E SE S SW W NW.
const DIRECTIONS: [(i8, i8); 8] = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)];
const KNIGHT: [(i8, i8); 8] = [(2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1)];

/// A move as the policy sees it, in the mover's frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MoveShape {
    /// From square.
    pub from: u8,
    /// To square.
    pub to: u8,
    /// 0 none or queen, 1 knight, 2 bishop, 3 rook.
    pub underpromotion: u8,
}

/// The policy index of a move, or `None` if the squares are no queen or knight move apart.
pub const fn encode_index(m: MoveShape) -> Option<u16> {
    if m.from > 63 || m.to > 63 {
        return None;
    }
    if m.underpromotion > 0 {
        let (dr, df) = delta(m.from, m.to);
        if m.underpromotion > 3 || dr != 1 || df < -1 || df > 1 {
            return None;
        }
        return Some(m.from as u16 * TYPES as u16 + 64 + (m.underpromotion as u16 - 1) * 3 + (df + 1) as u16);
    }
    match INDEX[m.from as usize][m.to as usize] {
        NONE => None,
        index => Some(index),
    }
}

/// In [`INDEX`]: no queen or knight move apart.
const NONE: u16 = u16::MAX;
/// The index of a plain move by from and to square, since every legal move of every position asks for it.
static INDEX: [[u16; 64]; 64] = {
    let mut table = [[NONE; 64]; 64];
    let mut i = 0;
    while i < 64 * 64 {
        let (from, to) = ((i / 64) as u8, (i % 64) as u8);
        if let Some(kind) = plain_type(delta(from, to)) {
            table[from as usize][to as usize] = from as u16 * TYPES as u16 + kind;
        }
        i += 1;
    }
    table
};

/// Ranks and files from one square to another.
const fn delta(from: u8, to: u8) -> (i8, i8) {
    ((to / 8) as i8 - (from / 8) as i8, (to % 8) as i8 - (from % 8) as i8)
}

/// The type of a queen or knight move.
const fn plain_type((dr, df): (i8, i8)) -> Option<u16> {
    let mut i = 0;
    while i < 8 {
        if KNIGHT[i].0 == dr && KNIGHT[i].1 == df {
            return Some(56 + i as u16);
        }
        i += 1;
    }
    let (ar, af) = (dr.unsigned_abs(), df.unsigned_abs());
    let distance = if ar > af { ar } else { af };
    if distance == 0 || (ar != 0 && af != 0 && ar != af) {
        return None;
    }
    let mut i = 0;
    while i < 8 {
        if DIRECTIONS[i].0 * distance as i8 == dr && DIRECTIONS[i].1 * distance as i8 == df {
            return Some(i as u16 * 7 + distance as u16 - 1);
        }
        i += 1;
    }
    None
}

/// A set of indices that gives them in order: for the legal moves of a position faster than sorting them.
pub(crate) struct IndexSet {
    words: [u64; WORDS],
    /// Which words hold an index.
    used: u128,
    len: usize,
}

/// The 4672 slots in words of 64 bits.
const WORDS: usize = TYPES;

impl IndexSet {
    pub(crate) fn new() -> Self {
        IndexSet { words: [0; WORDS], used: 0, len: 0 }
    }

    /// Adds an index below 4672 that is not there.
    pub(crate) fn insert(&mut self, index: u16) {
        let word = usize::from(index / 64);
        self.words[word] |= 1 << (index % 64);
        self.used |= 1 << word;
        self.len += 1;
    }

    /// The indices, ascending.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = u16> {
        let (mut used, mut word, mut left) = (self.used, 0, 0);
        (0..self.len).map(move |_| {
            if left == 0 {
                word = used.trailing_zeros() as usize;
                used &= used.wrapping_sub(1);
                left = self.words[word % WORDS];
            }
            let bit = left.trailing_zeros() as u16;
            left &= left.wrapping_sub(1);
            (word * 64) as u16 + bit
        })
    }
}

/// The move of a policy index, or `None` if it leaves the board.
pub const fn decode_index(index: u16) -> Option<MoveShape> {
    let (from, kind) = (index / TYPES as u16, (index % TYPES as u16) as usize);
    if from > 63 {
        return None;
    }
    let from = from as u8;
    let ((dr, df), underpromotion) = match kind {
        0..56 => {
            let ((dr, df), distance) = (DIRECTIONS[kind / 7], (kind % 7 + 1) as i8);
            ((dr * distance, df * distance), 0)
        }
        56..64 => (KNIGHT[kind - 56], 0),
        _ => ((1, ((kind - 64) % 3) as i8 - 1), ((kind - 64) / 3 + 1) as u8),
    };
    let (rank, file) = ((from / 8) as i8 + dr, (from % 8) as i8 + df);
    if rank < 0 || rank > 7 || file < 0 || file > 7 || (underpromotion > 0 && rank != 7) {
        return None;
    }
    Some(MoveShape { from, to: (rank * 8 + file) as u8, underpromotion })
}

/// Whether some legal move has this index.
pub fn is_reachable(index: u16) -> bool {
    decode_index(index).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m2_1858_slots_are_reachable() {
        let slots: Vec<u16> = (0..4672).filter(|i| is_reachable(*i)).collect();
        assert_eq!(slots.len(), REACHABLE_INDICES);
        for i in slots {
            assert_eq!(encode_index(decode_index(i).unwrap()), Some(i));
        }
        assert_eq!(decode_index(4672), None);
    }

    #[test]
    fn the_table_of_the_design() {
        let at = |from, to, underpromotion| encode_index(MoveShape { from, to, underpromotion });
        assert_eq!(at(12, 28, 0), Some(12 * 73 + 1), "e2e4 is N, distance 2");
        assert_eq!(at(6, 21, 0), Some(6 * 73 + 56 + 7), "g1f3 is (2,-1)");
        assert_eq!(at(4, 6, 0), Some(4 * 73 + 2 * 7 + 1), "castling is E, distance 2");
        assert_eq!(at(48, 57, 3), Some(48 * 73 + 64 + 6 + 2), "a7b8r");
        assert_eq!(at(0, 0, 0), None);
        assert_eq!(at(0, 25, 0), None);
    }
}
