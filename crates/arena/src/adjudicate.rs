//! Ending games by the players' own scores, before the rules do: lost positions and dead draws.

use games::{Color, GameResult, MoverValue, Score};
use serde::{Deserialize, Serialize};

/// The rules in force; none by default.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adjudication {
    /// Ends lost games.
    pub resign: Option<ResignRule>,
    /// Ends drawn games.
    pub draw: Option<DrawRule>,
}

/// A side loses that has thought itself lost for `moves` of its own moves in a row, whatever the other side thinks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResignRule {
    /// Moves in a row.
    pub moves: u32,
    /// Lost is at or below minus this many centipawns, or being mated.
    pub cp: i32,
    /// Lost is at or below minus this search value (0..1), for players that give no score.
    pub value: f32,
}

impl Default for ResignRule {
    fn default() -> Self {
        ResignRule { moves: 3, cp: 600, value: 0.95 }
    }
}

/// A game is drawn when both sides have thought it even for `moves` moves each in a row without a capture or a pawn
/// move.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrawRule {
    /// Moves of either side in a row.
    pub moves: u32,
    /// Even is within this many centipawns of 0.
    pub cp: i32,
    /// Even is within this search value (0..1) of 0, for players that give no score.
    pub value: f32,
    /// No draw before this many plies of the game, the opening's included.
    pub from_ply: u32,
}

impl Default for DrawRule {
    fn default() -> Self {
        DrawRule { moves: 8, cp: 10, value: 0.02, from_ply: 80 }
    }
}

impl Adjudication {
    /// What is wrong with the rules, if anything.
    pub fn fault(&self) -> Option<String> {
        let inside = |value: f32| value > 0.0 && value < 1.0;
        if let Some(rule) = self.resign.filter(|r| r.moves == 0 || r.cp <= 0 || !inside(r.value)) {
            return Some(format!("resign needs moves and cp above 0 and a value in 0..1, got {rule:?}"));
        }
        if let Some(rule) = self.draw.filter(|r| r.moves == 0 || r.cp < 0 || !inside(r.value)) {
            return Some(format!("draw needs moves above 0, cp of at least 0 and a value in 0..1, got {rule:?}"));
        }
        None
    }
}

/// The counters of one game.
#[derive(Clone, Debug)]
pub struct Adjudicator {
    rules: Adjudication,
    lost: [u32; 2],
    even_plies: u32,
    plies: u32,
}

impl Adjudicator {
    /// The counters at the end of an opening of `plies` plies.
    pub fn new(rules: Adjudication, plies: u32) -> Self {
        Adjudicator { rules, lost: [0; 2], even_plies: 0, plies }
    }

    /// Counts a move of `mover` with what the mover thought of it, both from the mover's view. `irreversible` marks a
    /// capture or a pawn move. A score goes before a value; a move with neither breaks every streak.
    pub fn after_move(
        &mut self,
        mover: Color,
        score: Option<Score>,
        value: Option<MoverValue>,
        irreversible: bool,
    ) -> Option<GameResult> {
        self.plies += 1;
        if let Some(rule) = self.rules.resign {
            let lost = match (score, value) {
                (Some(score), _) => score <= Score::Cp(-rule.cp),
                (None, Some(value)) => value.0 <= -rule.value,
                (None, None) => false,
            };
            let streak = &mut self.lost[usize::from(mover == Color::Black)];
            *streak = if lost { *streak + 1 } else { 0 };
            if *streak >= rule.moves {
                return Some(GameResult::win(mover.other()));
            }
        }
        if let Some(rule) = self.rules.draw {
            let even = match (score, value) {
                (Some(score), _) => score >= Score::Cp(-rule.cp) && score <= Score::Cp(rule.cp),
                (None, Some(value)) => value.0.abs() <= rule.value,
                (None, None) => false,
            };
            self.even_plies = if even && !irreversible { self.even_plies + 1 } else { 0 };
            if self.even_plies >= rule.moves.saturating_mul(2) && self.plies >= rule.from_ply {
                return Some(GameResult::Draw);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Score::{Cp, Mate};

    /// White's scores, with Black answering `black` each time; the result and the white moves it took.
    fn resign(white: &[Score], black: Option<Score>) -> Option<(usize, GameResult)> {
        let rules = Adjudication { resign: Some(ResignRule::default()), draw: None };
        let mut adjudicator = Adjudicator::new(rules, 0);
        for (i, score) in white.iter().enumerate() {
            for (mover, score) in [(Color::White, Some(*score)), (Color::Black, black)] {
                if let Some(result) = adjudicator.after_move(mover, score, None, false) {
                    return Some((i + 1, result));
                }
            }
        }
        None
    }

    #[test]
    fn c9_a_side_loses_on_its_third_lost_score() {
        let lost = [Cp(-610), Cp(-620), Mate(-5)];
        for black in [Some(Cp(0)), Some(Cp(-599)), Some(Mate(3)), None] {
            assert_eq!(resign(&lost, black), Some((3, GameResult::BlackWins)));
        }
        assert_eq!(resign(&[Cp(-600), Mate(-9), Mate(0)], None), Some((3, GameResult::BlackWins)));
        assert_eq!(resign(&[Cp(0); 9], Some(Cp(-700))), Some((3, GameResult::WhiteWins)));
    }

    #[test]
    fn c9_a_mate_for_the_mover_is_no_loss() {
        assert_eq!(resign(&[Mate(9); 3], None), None);
        assert_eq!(resign(&[Mate(9); 9], Some(Mate(9))), None);
    }

    #[test]
    fn c9_a_better_score_breaks_the_streak() {
        assert_eq!(resign(&[Cp(-610), Cp(-590), Cp(-620), Cp(-630)], None), None);
        assert_eq!(resign(&[Cp(-610), Cp(-590), Cp(-620), Cp(-630), Cp(-640)], None).map(|r| r.0), Some(5));
    }

    #[test]
    fn c9_a_move_without_a_score_breaks_the_streak() {
        let rules = Adjudication { resign: Some(ResignRule::default()), draw: None };
        let mut adjudicator = Adjudicator::new(rules, 0);
        for score in [Some(Cp(-700)), Some(Cp(-700)), None, Some(Cp(-700)), Some(Cp(-700))] {
            assert_eq!(adjudicator.after_move(Color::Black, score, None, false), None);
        }
    }

    fn even_plies(rule: DrawRule, irreversible_at: Option<u32>, scores: impl Fn(u32) -> Option<Score>) -> Option<u32> {
        let mut adjudicator = Adjudicator::new(Adjudication { resign: None, draw: Some(rule) }, 0);
        (1..=60).find(|ply| {
            let mover = if ply % 2 == 1 { Color::White } else { Color::Black };
            let result = adjudicator.after_move(mover, scores(*ply), None, irreversible_at == Some(*ply));
            result.inspect(|r| assert_eq!(*r, GameResult::Draw)).is_some()
        })
    }

    #[test]
    fn c9_draw_after_eight_even_moves_of_both() {
        let rule = DrawRule { from_ply: 0, ..DrawRule::default() };
        assert_eq!(even_plies(rule, None, |_| Some(Cp(-10))), Some(16));
        assert_eq!(even_plies(rule, Some(10), |_| Some(Cp(3))), Some(26), "a capture or a pawn move starts again");
        assert_eq!(even_plies(rule, None, |ply| Some(Cp(if ply == 16 { 11 } else { 0 }))), Some(32));
        assert_eq!(even_plies(rule, None, |ply| (ply % 2 == 1).then_some(Cp(0))), None, "both sides must agree");
        assert_eq!(even_plies(rule, None, |_| Some(Mate(4))), None);
        assert_eq!(even_plies(DrawRule { from_ply: 40, ..rule }, None, |_| Some(Cp(0))), Some(40));
    }

    #[test]
    fn values_stand_in_for_scores() {
        let rules = Adjudication {
            resign: Some(ResignRule::default()),
            draw: Some(DrawRule { from_ply: 0, ..DrawRule::default() }),
        };
        let mut adjudicator = Adjudicator::new(rules, 0);
        let mut last = None;
        for _ in 0..3 {
            last = adjudicator.after_move(Color::White, None, Some(MoverValue(-0.97)), false);
        }
        assert_eq!(last, Some(GameResult::BlackWins));
        let mut adjudicator = Adjudicator::new(rules, 0);
        for ply in 0..16 {
            let mover = if ply % 2 == 0 { Color::White } else { Color::Black };
            last = adjudicator.after_move(mover, None, Some(MoverValue(0.01)), false);
        }
        assert_eq!(last, Some(GameResult::Draw));
    }

    #[test]
    fn faulty_rules_are_named() {
        assert_eq!(Adjudication::default().fault(), None);
        let rules = Adjudication { resign: Some(ResignRule { moves: 0, ..ResignRule::default() }), draw: None };
        assert!(rules.fault().is_some_and(|f| f.contains("resign")));
    }
}
