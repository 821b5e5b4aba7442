//! Values whose type says whose point of view they have, so that a sign error does not compile.

use crate::{Color, GameResult};

/// A value in -1..1 from the view of the side to move.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct MoverValue(pub f32);

/// A value in -1..1 from White's view.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct WhiteValue(pub f32);

impl MoverValue {
    /// The same value from the opponent's view: what a parent sees of its child.
    #[must_use]
    pub fn opponent(self) -> Self {
        MoverValue(-self.0)
    }

    /// The same value from White's view, when `mover` is to move.
    #[must_use]
    pub fn white(self, mover: Color) -> WhiteValue {
        WhiteValue(if mover == Color::White { self.0 } else { -self.0 })
    }
}

impl WhiteValue {
    /// The same value from the view of `mover`.
    #[must_use]
    pub fn mover(self, mover: Color) -> MoverValue {
        MoverValue(if mover == Color::White { self.0 } else { -self.0 })
    }
}

impl From<GameResult> for WhiteValue {
    fn from(result: GameResult) -> Self {
        WhiteValue(f32::from(result.white()))
    }
}
