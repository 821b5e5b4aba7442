//! Games replayed into samples: the planes of a position with what the network should say there.

use games::{Game, Move, MoverValue, Packed, Score, WhiteValue};
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
    /// The distribution of root visits, or of a teacher's lines; no target at plies without. Games without any give their
    /// `Best`, so that a corpus can be mixed into self-play.
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

/// One position of training; a part of it lies in [`Samples`] or in the shuffle pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) head: Head,
    /// Legal moves, then targets.
    pub(crate) words: &'a [u16],
}

/// The part of a sample that has one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Head {
    /// The planes, compact.
    pub(crate) packed: Packed,
    /// Value target, mover's view, -1..1; `None` = no value target.
    pub(crate) value: Option<f32>,
    /// Legal moves.
    legal: u16,
}

/// A policy index and its probability in two halves: targets lie in one array with the legal moves.
type Target = [u16; 3];

impl<'a> Sample<'a> {
    /// Policy indices of the legal moves, ascending.
    pub(crate) fn legal(&self) -> &'a [u16] {
        &self.words[..usize::from(self.head.legal)]
    }

    /// Policy target: indices ascending, probabilities summing to 1; empty = no policy target.
    pub(crate) fn target(&self) -> impl Iterator<Item = (u16, f32)> + use<'a> {
        let (targets, _) = self.words[usize::from(self.head.legal)..].as_chunks::<3>();
        targets.iter().map(|&[index, high, low]| (index, f32::from_bits(u32::from(high) << 16 | u32::from(low))))
    }

    /// The key under which two positions are duplicates: the planes but for the move clocks.
    pub(crate) fn position_key(&self) -> u64 {
        position_key(&self.head.packed)
    }
}

/// Samples in their order, in two arrays whatever their number.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Samples {
    heads: Vec<Head>,
    words: Vec<u16>,
    /// Where each sample's words end.
    ends: Vec<u32>,
}

impl Samples {
    /// Room for so many samples of a usual length.
    pub(crate) fn with_capacity(samples: usize) -> Self {
        const WORDS: usize = 40;
        Samples {
            heads: Vec::with_capacity(samples),
            words: Vec::with_capacity(samples * WORDS),
            ends: Vec::with_capacity(samples),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn get(&self, i: usize) -> Option<Sample<'_>> {
        let head = self.heads.get(i)?;
        Some(Sample { head: *head, words: &self.words[self.start(i)..self.ends[i] as usize] })
    }

    /// Keeps the samples for which `keep` holds, asked in order.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Sample<'_>) -> bool) {
        let mut kept = Samples::with_capacity(self.len());
        for i in 0..self.len() {
            if let Some(sample) = self.get(i).filter(|s| keep(*s)) {
                kept.heads.push(sample.head);
                kept.words.extend_from_slice(sample.words);
                kept.ends.push(kept.words.len() as u32);
            }
        }
        *self = kept;
    }

    fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] as usize }
    }

    fn push(&mut self, packed: Packed, legal: &[u16], targets: impl Iterator<Item = Target>, value: Option<f32>) {
        self.words.extend_from_slice(legal);
        self.words.extend(targets.flatten());
        self.heads.push(Head { packed, value, legal: legal.len() as u16 });
        self.ends.push(self.words.len() as u32);
    }

    /// A sample with one wanted move and no value.
    #[cfg(test)]
    pub(crate) fn push_plain(&mut self, packed: Packed, legal: &[u16], wanted: u16) {
        self.push(packed, legal, std::iter::once(target((wanted, 1.0))), None);
    }

    fn truncate(&mut self, samples: usize) {
        self.words.truncate(self.start(samples));
        self.heads.truncate(samples);
        self.ends.truncate(samples);
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
/// result: there q counts alone. With `images` each sample is followed by its [`Game::images`].
///
/// # Errors
/// [`DatasetError::OtherGame`], [`DatasetError::Illegal`] and [`DatasetError::Record`]; `out` is then as it was.
pub(crate) fn replay<G: Game>(
    record: &GameRecord,
    targets: &TargetSpec,
    images: bool,
    out: &mut Samples,
) -> Result<(), DatasetError> {
    let before = out.len();
    let result = append::<G>(record, targets, images, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

fn append<G: Game>(
    record: &GameRecord,
    targets: &TargetSpec,
    images: bool,
    out: &mut Samples,
) -> Result<(), DatasetError> {
    record.validate()?;
    let mut state: G = record.start()?;
    let (mut legal, mut shares) = (Vec::new(), Vec::new());
    for (ply, &played) in record.moves.iter().enumerate() {
        if ply >= usize::from(record.opening_plies) {
            state.legal_indices(&mut legal);
            let index = |m| state.index_in(&legal, m).ok_or_else(|| record.illegal(&state, ply, m));
            let played_index = index(played)?;
            shares.clear();
            match wanted(record, targets, ply) {
                Wanted::Move(m) => shares.push((if m == played { played_index } else { index(m)? }, 1.0)),
                Wanted::Visits(visits) => {
                    let counts = visits.iter().map(|(m, n)| Ok((index(*m)?, *n)));
                    distribute(counts.collect::<Result<Vec<_>, DatasetError>>()?, &mut shares);
                }
            }
            let value = value(record, targets, ply, state.turn()).map(|v| v.0);
            out.push(state.pack(), &legal, shares.iter().copied().map(target), value);
            if images {
                let wanted: Vec<u16> = shares.iter().map(|(index, _)| *index).collect();
                for image in state.images(&wanted) {
                    let mut moved: Vec<(u16, f32)> =
                        image.wanted.into_iter().zip(&shares).map(|(index, (_, p))| (index, *p)).collect();
                    moved.sort_unstable_by_key(|(index, _)| *index);
                    out.push(image.packed, &image.legal, moved.into_iter().map(target), value);
                }
            }
        } else if !state.is_legal(played) {
            return Err(record.illegal(&state, ply, played));
        }
        state.play(played);
    }
    Ok(())
}

/// What the policy should say at a ply.
enum Wanted<'a> {
    Move(Move),
    Visits(&'a [(Move, u32)]),
}

fn wanted<'a>(record: &'a GameRecord, targets: &TargetSpec, ply: usize) -> Wanted<'a> {
    match targets.policy {
        PolicyTarget::Visits if !record.visits.is_empty() => {
            Wanted::Visits(record.visits[ply].as_deref().unwrap_or_default())
        }
        PolicyTarget::Played => Wanted::Move(record.moves[ply]),
        PolicyTarget::Best | PolicyTarget::Visits => Wanted::Move(record.best[ply].unwrap_or(record.moves[ply])),
    }
}

/// Walks through the positions that [`replay`] would sample, with its errors and without making samples.
pub(crate) fn walk<G: Game>(
    record: &GameRecord,
    targets: &TargetSpec,
    mut visit: impl FnMut(&G),
) -> Result<(), DatasetError> {
    record.validate()?;
    let mut state: G = record.start()?;
    for (ply, &played) in record.moves.iter().enumerate() {
        let legal = |m| if state.is_legal(m) { Ok(()) } else { Err(record.illegal(&state, ply, m)) };
        legal(played)?;
        if ply >= usize::from(record.opening_plies) {
            match wanted(record, targets, ply) {
                Wanted::Move(m) if m == played => {}
                Wanted::Move(m) => legal(m)?,
                Wanted::Visits(visits) => visits.iter().try_for_each(|(m, _)| legal(*m))?,
            }
            visit(&state);
        }
        state.play(played);
    }
    Ok(())
}

fn target((index, probability): (u16, f32)) -> Target {
    let bits = probability.to_bits();
    [index, (bits >> 16) as u16, bits as u16]
}

/// Visit counts as probabilities, by ascending index; nothing where nothing was visited.
fn distribute(mut counts: Vec<(u16, u32)>, shares: &mut Vec<(u16, f32)>) {
    counts.retain(|(_, n)| *n > 0);
    counts.sort_unstable();
    let sum: f64 = counts.iter().map(|(_, n)| f64::from(*n)).sum();
    shares.extend(counts.into_iter().map(|(i, n)| (i, (f64::from(n) / sum) as f32)));
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
