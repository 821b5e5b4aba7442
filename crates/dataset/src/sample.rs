//! Games replayed into samples: the planes of a position with what the network should say there.

use games::{Game, MoverValue, Packed, Score, WhiteValue};
use serde::{Deserialize, Serialize};

use crate::{DatasetError, GameRecord};

/// What the policy learns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyTarget {
    /// The teacher's move (the move played where the teacher has no other).
    #[default]
    Best,
    /// The move played.
    Played,
    /// The distribution of root visits; no target at plies without. Games without any visits (a teacher's) give
    /// their `Best`, so that a corpus can be mixed into self-play.
    Visits,
}

/// How targets are made from a record.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TargetSpec {
    /// `lambda` of `lambda * q + (1 - lambda) * z`: q is the search value, or else the logistic of the score; z is
    /// the result. Without one of the two the other counts alone.
    pub value_lambda: f32,
    /// Centipawns that correspond to 400 Elo in [`Score::expectation`].
    pub score_scale: f32,
    /// What the policy learns.
    pub policy: PolicyTarget,
}

impl Default for TargetSpec {
    fn default() -> Self {
        TargetSpec { value_lambda: 0.5, score_scale: 400.0, policy: PolicyTarget::Best }
    }
}

impl TargetSpec {
    pub(crate) fn validate(&self) -> Result<(), DatasetError> {
        let wrong = |field, reason: String| Err(DatasetError::Setting { field, reason });
        if !(0.0..=1.0).contains(&self.value_lambda) {
            return wrong("value_lambda", format!("{} is not in 0..=1", self.value_lambda));
        }
        if !(self.score_scale.is_finite() && self.score_scale > 0.0) {
            return wrong("score_scale", format!("{} is not a positive number of centipawns", self.score_scale));
        }
        Ok(())
    }
}

/// One position of training.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The planes, compact.
    pub packed: Packed,
    /// Policy indices of the legal moves, ascending.
    pub legal: Box<[u16]>,
    /// Policy target: indices ascending, probabilities summing to 1; empty = no policy target.
    pub target: Box<[(u16, f32)]>,
    /// Value target, mover's view, -1..1; `None` = no value target.
    pub value: Option<f32>,
}

impl Sample {
    /// The key under which two positions are duplicates: the planes but for the move clocks.
    pub fn position_key(&self) -> u64 {
        position_key(&self.packed)
    }
}

/// Hashes the planes of zeros and ones: pieces, castling rights and en passant, in the mover's frame.
pub(crate) fn position_key(packed: &Packed) -> u64 {
    let mut packed = *packed;
    packed.scalars = Default::default();
    packed.key()
}

/// Replays a game and appends a sample for each ply that a player chose (opening plies are played, not sampled).
///
/// The result alternates its sign with the mover and is 0 for both in a draw. A game that ended at the ply cap has no
/// result: there q counts alone.
///
/// # Errors
/// [`DatasetError::OtherGame`], [`DatasetError::Illegal`] and [`DatasetError::Record`]; `out` is then as it was.
pub fn replay<G: Game>(record: &GameRecord, targets: &TargetSpec, out: &mut Vec<Sample>) -> Result<(), DatasetError> {
    let before = out.len();
    let result = append::<G>(record, targets, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

fn append<G: Game>(record: &GameRecord, targets: &TargetSpec, out: &mut Vec<Sample>) -> Result<(), DatasetError> {
    record.validate()?;
    let mut state: G = record.start()?;
    let mut legal = Vec::new();
    for (ply, &played) in record.moves.iter().enumerate() {
        state.generate(&mut legal);
        let index = |m| match legal.contains(&m) {
            true => Ok(state.index(m)),
            false => Err(record.illegal(&state, ply, m)),
        };
        let played_index = index(played)?;
        if ply >= usize::from(record.opening_plies) {
            let best = || record.best[ply].map_or(Ok(played_index), index);
            let target = match targets.policy {
                PolicyTarget::Played => vec![(played_index, 1.0)],
                PolicyTarget::Visits if !record.visits.is_empty() => {
                    let visits = record.visits[ply].iter().flatten();
                    let counts = visits.map(|(m, n)| Ok((index(*m)?, *n))).collect::<Result<Vec<_>, DatasetError>>()?;
                    shares(counts)
                }
                PolicyTarget::Best | PolicyTarget::Visits => vec![(best()?, 1.0)],
            };
            out.push(Sample {
                packed: state.pack(),
                legal: legal.iter().map(|m| state.index(*m)).collect(),
                target: target.into_boxed_slice(),
                value: value(record, targets, ply, state.turn()).map(|v| v.0),
            });
        }
        state.play(played);
    }
    Ok(())
}

/// Visit counts as probabilities, by ascending index; nothing where nothing was visited.
fn shares(mut counts: Vec<(u16, u32)>) -> Vec<(u16, f32)> {
    counts.retain(|(_, n)| *n > 0);
    counts.sort_unstable();
    let sum: f64 = counts.iter().map(|(_, n)| f64::from(*n)).sum();
    counts.into_iter().map(|(i, n)| (i, (f64::from(n) / sum) as f32)).collect()
}

fn value(record: &GameRecord, targets: &TargetSpec, ply: usize, turn: games::Color) -> Option<MoverValue> {
    let z = record.result.map(|r| WhiteValue::from(r).mover(turn));
    let searched = record.value.as_ref().and_then(|v| v[ply]).map(MoverValue);
    let scored = || record.score[ply].map(|s| MoverValue(Score::from_i16(s).expectation(targets.score_scale)));
    match (searched.or_else(scored), z) {
        (Some(q), Some(z)) => Some(MoverValue(targets.value_lambda * q.0 + (1.0 - targets.value_lambda) * z.0)),
        (q, z) => q.or(z),
    }
}

#[cfg(test)]
#[path = "sample/tests.rs"]
mod tests;
