//! A small network that has an opinion of moves, used to order quiet ones and for nothing else.
//!
//! Two 3x3 convolutions of 16 channels, 64 hidden numbers, and a logit for each pair of squares; every layer but the
//! last is followed by a ReLU. Only the logits of moves that are asked for are computed.
//!
//! # Stability
//! The file is a format: 32-bit floats, little-endian, in C order `c1w[16][13][3][3] c1b[16] c2w[16][16][3][3] c2b[16]
//! f1w[64][1024] f1b[64] f2w[4096][64] f2b[4096]`, and nothing else. The input is [`planes`]; the first linear layer
//! takes `[channel][row][column]`; the label of a move is `from * 64 + to` with a1 = 0 and h8 = 63, for castling the
//! king's squares. What a pawn becomes is not told apart.

use std::fs;
use std::path::{Path, PathBuf};

use games::Move;
use shakmaty::{Bitboard, Color, Position, Role, Square};

use crate::board::Board;
use crate::moves::Parts;

mod thoughts;

pub(crate) use thoughts::Thoughts;

/// Planes of the input: white P N B R Q K, black p n b r q k, and ones when Black is to move.
pub const PLANES: usize = 13;
/// Numbers in an input.
pub const INPUTS: usize = PLANES * SQUARES;
/// Logits: one for each pair of squares.
pub const LABELS: usize = SQUARES * SQUARES;
/// Size of a policy file in bytes.
pub const FILE_SIZE: usize = 4 * PARAMETERS;

const SQUARES: usize = 64;
const CHANNELS: usize = 16;
const HIDDEN: usize = 64;
/// Sums that fit into the registers of any processor.
const HALF: usize = HIDDEN / 2;
const TAPS: usize = 9;
/// Squares of a row that are convolved side by side; a divisor of 8.
const ABREAST: usize = 2;
/// The plane that tells who is to move.
const TURN: usize = PLANES - 1;
const SIZES: [usize; 8] = [
    CHANNELS * PLANES * TAPS,
    CHANNELS,
    CHANNELS * CHANNELS * TAPS,
    CHANNELS,
    HIDDEN * CHANNELS * SQUARES,
    HIDDEN,
    LABELS * HIDDEN,
    LABELS,
];
const PARAMETERS: usize = {
    let (mut sum, mut i) = (0, 0);
    while i < SIZES.len() {
        sum += SIZES[i];
        i += 1;
    }
    sum
};

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read the policy {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The size is not that of the format.
    #[error("{} has {size} bytes and a policy {FILE_SIZE}: export it again", name(path))]
    Size {
        /// The file, if it came from one.
        path: Option<PathBuf>,
        /// Its size in bytes.
        size: usize,
    },
    /// A weight is no number.
    #[error("{} holds an infinite or undefined weight: its training has failed", name(path))]
    Weights {
        /// The file, if it came from one.
        path: Option<PathBuf>,
    },
}

fn name(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(|| "the policy".to_owned(), |path| path.display().to_string())
}

/// Numbers of each square of a board with a border, ten rows of ten: so every square has nine neighbours.
type Bordered = [[f32; CHANNELS]; 100];

/// The weights, turned so that the innermost loops run over outputs.
pub struct Policy {
    /// By plane and tap.
    first: Vec<[f32; CHANNELS]>,
    /// What the bias is for each square, without and with the plane of ones.
    first_bias: [Box<Bordered>; 2],
    /// By tap and input channel.
    second: Vec<[[f32; CHANNELS]; CHANNELS]>,
    second_bias: [f32; CHANNELS],
    /// For each half of the outputs, by square and channel.
    hidden: [Vec<[f32; HALF]>; 2],
    hidden_bias: [[f32; HALF]; 2],
    /// By label.
    last: Vec<[f32; HIDDEN]>,
    last_bias: Vec<f32>,
}

/// What the network makes of a position before it looks at single moves.
pub struct Thought([f32; HIDDEN]);

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`PolicyError`]: a file that cannot be read, of another size, or with weights that are no numbers.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let bytes = fs::read(path).map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        Policy::read(&bytes, Some(path))
    }

    /// Reads the content of a policy file.
    ///
    /// # Errors
    /// [`PolicyError::Size`] or [`PolicyError::Weights`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        Policy::read(bytes, None)
    }

    fn read(bytes: &[u8], path: Option<&Path>) -> Result<Self, PolicyError> {
        let path = path.map(Path::to_owned);
        if bytes.len() != FILE_SIZE {
            return Err(PolicyError::Size { path, size: bytes.len() });
        }
        let all: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        if !all.iter().all(|w| w.is_finite()) {
            return Err(PolicyError::Weights { path });
        }
        let mut rest = all.as_slice();
        let parts = SIZES.map(|size| {
            let (part, others) = rest.split_at(size);
            rest = others;
            part
        });
        Ok(Policy::turned(parts))
    }

    fn turned([c1w, c1b, c2w, c2b, f1w, f1b, f2w, f2b]: [&[f32]; 8]) -> Self {
        let outputs = |f: &dyn Fn(usize) -> f32| std::array::from_fn::<f32, CHANNELS, _>(f);
        let tap = |weights: &[f32], inputs: usize, input: usize, tap: usize| {
            outputs(&|o| weights[(o * inputs + input) * TAPS + tap])
        };
        let pairs = |a: usize, b: usize| (0..a).flat_map(move |i| (0..b).map(move |j| (i, j)));
        let first: Vec<_> = pairs(PLANES, TAPS).map(|(plane, k)| tap(c1w, PLANES, plane, k)).collect();
        let mut bias: Bordered = [[0.0; CHANNELS]; 100];
        (0..SQUARES).for_each(|square| bias[bordered(square)] = outputs(&|o| c1b[o]));
        let mut ones = bias;
        for square in 0..SQUARES {
            neighbours(square, |k, near| add(&mut ones[near], &first[TURN * TAPS + k]));
        }
        let hidden = |half: usize| {
            let weight = |h: usize, square, c| f1w[(half * HALF + h) * CHANNELS * SQUARES + c * SQUARES + square];
            pairs(SQUARES, CHANNELS).map(|(square, c)| std::array::from_fn(|h| weight(h, square, c))).collect()
        };
        Policy {
            first,
            first_bias: [Box::new(bias), Box::new(ones)],
            second: (0..TAPS).map(|k| std::array::from_fn(|input| tap(c2w, CHANNELS, input, k))).collect(),
            second_bias: outputs(&|o| c2b[o]),
            hidden: [0, 1].map(hidden),
            hidden_bias: [0, 1].map(|half| std::array::from_fn(|h| f1b[half * HALF + h])),
            last: f2w.as_chunks::<HIDDEN>().0.to_vec(),
            last_bias: f2b.to_vec(),
        }
    }

    /// The logits of all labels, legal or not.
    pub fn logits(&self, position: &shakmaty::Chess) -> Vec<f32> {
        let thought = self.consider(position);
        (0..LABELS).map(|label| self.logit(&thought, label)).collect()
    }

    /// Everything that does not depend on the move: the cost of the network but for 64 products a move.
    pub fn consider(&self, position: &shakmaty::Chess) -> Thought {
        let board = position.board();
        self.forward(|color, role| board.by_color(color) & board.by_role(role), position.turn())
    }

    /// The logit of a move by its label, `from * 64 + to`.
    #[inline]
    pub fn logit(&self, thought: &Thought, label: usize) -> f32 {
        self.last_bias[label] + dot(&self.last[label], &thought.0)
    }

    pub(crate) fn consider_board(&self, board: &Board) -> Thought {
        self.forward(|color, role| board.of(color, role), board.turn())
    }

    /// The logit of a move.
    #[inline]
    pub(crate) fn logit_of(&self, thought: &Thought, m: Move) -> f32 {
        self.logit(thought, m.squares())
    }

    fn forward(&self, pieces: impl Fn(Color, Role) -> Bitboard, turn: Color) -> Thought {
        // The first layer's input is zero but for some thirty pieces: each adds its weights to the squares around it.
        let mut low: Bordered = *self.first_bias[usize::from(turn.is_black())];
        for (plane, color, role) in piece_planes() {
            for square in pieces(color, role) {
                let weights = &self.first[plane * TAPS..][..TAPS];
                neighbours(place(square), |k, near| add(&mut low[near], &weights[k]));
            }
        }
        relu(low.as_flattened_mut());
        let mut high = [[0.0; CHANNELS]; SQUARES];
        for (pair, out) in high.as_chunks_mut::<ABREAST>().0.iter_mut().enumerate() {
            *out = self.convolve(&low, pair * ABREAST);
        }
        relu(high.as_flattened_mut());
        // Many of these are zero.
        let (mut given, mut count) = ([(0u16, 0.0f32); CHANNELS * SQUARES], 0);
        for (at, number) in high.as_flattened().iter().enumerate() {
            given[count] = (at as u16, *number);
            count += usize::from(*number > 0.0);
        }
        let mut hidden = [0.0; HIDDEN];
        for ((out, weights), bias) in
            hidden.as_chunks_mut::<HALF>().0.iter_mut().zip(&self.hidden).zip(&self.hidden_bias)
        {
            let mut sums = *bias;
            for (at, number) in &given[..count] {
                for (sum, weight) in sums.iter_mut().zip(&weights[usize::from(*at)]) {
                    *sum += number * weight;
                }
            }
            *out = sums;
        }
        relu(&mut hidden);
        Thought(hidden)
    }

    /// The second convolution at squares of one row, side by side so that a weight is read once for them all.
    #[inline]
    fn convolve(&self, low: &Bordered, square: usize) -> [[f32; CHANNELS]; ABREAST] {
        let mut sums = [self.second_bias; ABREAST];
        for (k, weights) in self.second.iter().enumerate() {
            let inputs: &[[f32; CHANNELS]] = &low[bordered(square) - 11 + k / 3 * 10 + k % 3..][..ABREAST];
            for (i, weights) in weights.iter().enumerate() {
                for (sums, input) in sums.iter_mut().zip(inputs) {
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum += input[i] * weight;
                    }
                }
            }
        }
        sums
    }
}

/// The input as the network is trained on it: `[plane][row][column]`, row 0 the eighth rank, column 0 the a-file.
pub fn planes(position: &shakmaty::Chess) -> [f32; INPUTS] {
    let mut planes = [0.0; INPUTS];
    let board = position.board();
    for (plane, color, role) in piece_planes() {
        for square in board.by_color(color) & board.by_role(role) {
            planes[plane * SQUARES + place(square)] = 1.0;
        }
    }
    if position.turn().is_black() {
        planes[TURN * SQUARES..].fill(1.0);
    }
    planes
}

fn piece_planes() -> impl Iterator<Item = (usize, Color, Role)> {
    let pieces = [Color::White, Color::Black].into_iter().flat_map(|color| Role::ALL.map(|role| (color, role)));
    pieces.enumerate().map(|(plane, (color, role))| (plane, color, role))
}

/// Where a square lies in a plane.
fn place(square: Square) -> usize {
    square.flip_vertical() as usize
}

/// A place with a border around the board.
#[inline]
fn bordered(place: usize) -> usize {
    (place / 8 + 1) * 10 + place % 8 + 1
}

/// Calls `f` with every tap by which a square's number comes to a neighbour on the board, and with that neighbour's place within
/// the border: the square at row r and column c is the tap (ky, kx) of the one at r - ky + 1, c - kx + 1.
#[inline]
fn neighbours(square: usize, mut f: impl FnMut(usize, usize)) {
    let (row, column) = (square / 8, square % 8);
    for ky in 0..3 {
        for kx in 0..3 {
            let (r, c) = (row + 1, column + 1);
            if (ky..8 + ky).contains(&r) && (kx..8 + kx).contains(&c) {
                f(ky * 3 + kx, bordered((r - ky) * 8 + c - kx));
            }
        }
    }
}

#[inline]
fn add(sum: &mut [f32; CHANNELS], other: &[f32; CHANNELS]) {
    for (a, b) in sum.iter_mut().zip(other) {
        *a += b;
    }
}

fn relu(numbers: &mut [f32]) {
    for x in numbers {
        *x = x.max(0.0);
    }
}

/// Eight sums side by side, so that it can be done in vectors.
#[inline]
fn dot(a: &[f32; HIDDEN], b: &[f32; HIDDEN]) -> f32 {
    let mut sums = [0.0; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests;
