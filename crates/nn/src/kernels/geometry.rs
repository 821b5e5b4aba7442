//! Which squares of a board a convolution reads.

/// Marks a neighbour that is not on the board.
pub(crate) const OFF: u8 = u8::MAX;

/// The neighbours of every square, tap by tap.
///
/// Tap `3 * i + j` of a 3x3 convolution reads the square `i - 1` ranks and `j - 1` files away, as `conv2d` with
/// padding 1 does. A pointwise geometry has one tap, the square itself.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    squares: usize,
    taps: usize,
    source: Vec<u8>,
    tiles: Vec<Tile>,
}

/// The squares that a 4x4 tile of outputs covers, and those that it reads, in rows; [`OFF`] beyond the board.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) outputs: [u8; 16],
    pub(super) inputs: [u8; 36],
}

impl Geometry {
    /// A 3x3 convolution on a board; at most 255 squares.
    pub(crate) fn conv3x3(height: usize, width: usize) -> Self {
        let square = |r: isize, f: isize| {
            let on = (0..height as isize).contains(&r) && (0..width as isize).contains(&f);
            if on { (r * width as isize + f) as u8 } else { OFF }
        };
        let mut source = Vec::with_capacity(height * width * 9);
        for rank in 0..height as isize {
            for file in 0..width as isize {
                for (dr, df) in (-1..=1).flat_map(|dr| (-1..=1).map(move |df| (dr, df))) {
                    source.push(square(rank + dr, file + df));
                }
            }
        }
        let corners = (0..height as isize).step_by(4).flat_map(|r| (0..width as isize).step_by(4).map(move |f| (r, f)));
        let tile = |(r, f): (isize, isize)| Tile {
            outputs: std::array::from_fn(|i| square(r + i as isize / 4, f + i as isize % 4)),
            inputs: std::array::from_fn(|i| square(r - 1 + i as isize / 6, f - 1 + i as isize % 6)),
        };
        let tiles = corners.map(tile).collect();
        Geometry { squares: height * width, taps: 9, source, tiles }
    }

    /// A 1x1 convolution on `squares` squares; with one square, a linear layer.
    pub(crate) fn pointwise(squares: usize) -> Self {
        Geometry { squares, taps: 1, source: (0..squares as u8).collect(), tiles: Vec::new() }
    }

    /// Squares of a board.
    pub(crate) fn squares(&self) -> usize {
        self.squares
    }

    /// 9 or 1.
    pub(crate) fn taps(&self) -> usize {
        self.taps
    }

    /// The 4x4 tiles that cover a board; none for a pointwise geometry.
    pub(super) fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// Multiplications that a direct convolution needs for a board and a pair of channels.
    pub(super) fn multiplications(&self) -> usize {
        self.source.iter().filter(|s| **s != OFF).count()
    }

    /// The square that `tap` reads for the output on `square`, or [`OFF`].
    #[inline]
    pub(crate) fn source(&self, square: usize, tap: usize) -> u8 {
        self.source[square * self.taps + tap]
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, OFF};

    #[test]
    fn corners_have_four_neighbours_and_the_middle_nine() {
        for (height, width) in [(8, 8), (6, 7), (3, 3), (1, 1)] {
            let g = Geometry::conv3x3(height, width);
            let on = |s| (0..9).filter(|&t| g.source(s, t) != OFF).count();
            assert_eq!(on(0), 2.min(height) * 2.min(width));
            assert!((0..g.squares()).all(|s| usize::from(g.source(s, 4)) == s));
            let all: usize = (0..g.squares()).map(on).sum();
            assert_eq!(all, (3 * height - 2) * (3 * width - 2));
        }
    }
}
