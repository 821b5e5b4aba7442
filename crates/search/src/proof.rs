//! What a search knows for certain about a position: the MCTS solver of Winands, Bjornsson and Saito (2008), with
//! distances, so that the quickest mate is played and the slowest one suffered.

use games::{MoverValue, Score};

/// A proven outcome from the view of the side to move, with the plies to the end of the game.
///
/// On a move (an edge of the tree) the view is that of the side that makes it, and the distance counts the move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Proof {
    /// Nothing is proven.
    #[default]
    Unknown,
    /// The mover wins in that many plies.
    Win(u16),
    /// Neither side can do better than a draw.
    Draw,
    /// The mover loses in that many plies, against best play.
    Loss(u16),
}

impl Proof {
    /// The proof of a move whose resulting position has this proof.
    #[must_use]
    pub fn of_move(self) -> Self {
        match self {
            Proof::Unknown => Proof::Unknown,
            Proof::Win(n) => Proof::Loss(n.saturating_add(1)),
            Proof::Draw => Proof::Draw,
            Proof::Loss(n) => Proof::Win(n.saturating_add(1)),
        }
    }

    /// The proof of a position whose moves have these proofs: won if one wins, else known only if all are.
    pub fn of_position(moves: impl Iterator<Item = Proof>) -> Self {
        let (mut win, mut loss, mut unknown, mut draw) = (None::<u16>, 0, false, false);
        for proof in moves {
            match proof {
                Proof::Unknown => unknown = true,
                Proof::Win(n) => win = Some(win.map_or(n, |w| w.min(n))),
                Proof::Draw => draw = true,
                Proof::Loss(n) => loss = loss.max(n),
            }
        }
        match win {
            Some(n) => Proof::Win(n),
            None if unknown => Proof::Unknown,
            None if draw => Proof::Draw,
            None => Proof::Loss(loss),
        }
    }

    /// The value that is proven, in the same view.
    pub fn value(self) -> Option<MoverValue> {
        match self {
            Proof::Unknown => None,
            Proof::Win(_) => Some(MoverValue(1.0)),
            Proof::Draw => Some(MoverValue(0.0)),
            Proof::Loss(_) => Some(MoverValue(-1.0)),
        }
    }

    /// A proven win or loss of the side to move as an engine would report it: mate in full moves.
    pub fn mate(self) -> Option<Score> {
        match self {
            Proof::Win(n) => Some(Score::Mate((i32::from(n) + 1) / 2)),
            Proof::Loss(n) => Some(Score::Mate(-(i32::from(n) / 2))),
            Proof::Unknown | Proof::Draw => None,
        }
    }

    /// Whether the mover is proven to lose.
    pub fn is_loss(self) -> bool {
        matches!(self, Proof::Loss(_))
    }

    /// Whether the mover is proven to win.
    pub fn is_win(self) -> bool {
        matches!(self, Proof::Win(_))
    }

    /// Greater is better to play: a quick win, a slow win, no loss, a late loss, an early loss.
    pub(crate) fn rank(self) -> i32 {
        match self {
            Proof::Win(n) => 200_000 - i32::from(n),
            Proof::Unknown | Proof::Draw => 0,
            Proof::Loss(n) => -200_000 + i32::from(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use games::Score;

    use super::Proof::{self, Draw, Loss, Unknown, Win};

    #[test]
    fn positions_from_moves() {
        let of = |moves: &[Proof]| Proof::of_position(moves.iter().copied());
        assert_eq!(of(&[Unknown, Win(5), Loss(2), Win(3)]), Win(3), "the quickest win");
        assert_eq!(of(&[Loss(2), Unknown]), Unknown);
        assert_eq!(of(&[Loss(2), Draw, Loss(4)]), Draw);
        assert_eq!(of(&[Loss(2), Loss(6)]), Loss(6), "the slowest loss");
        assert_eq!(Loss(0).of_move(), Win(1));
    }

    #[test]
    fn mates_count_full_moves_of_the_mover() {
        assert_eq!(Win(1).mate(), Some(Score::Mate(1)));
        assert_eq!(Win(3).mate(), Some(Score::Mate(2)));
        assert_eq!(Loss(2).mate(), Some(Score::Mate(-1)));
        assert_eq!(Draw.mate(), None);
    }
}
