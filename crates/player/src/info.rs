//! The `info` lines: what a search has found, in the protocol's units.

use std::fmt::Write;
use std::time::Duration;

use games::{Chess, Game, Move, MoverValue, Score};
use search::{Proof, RankedMove, Search};
use uci::server::{score_text, wdl};

/// Most centipawns; nearer to certainty a value has no more digits.
const MAX_CENTIPAWNS: f32 = 10_000.0;

/// What a report needs besides the search.
pub(crate) struct View {
    /// Lines to show.
    pub(crate) lines: usize,
    /// Centipawns that correspond to 400 Elo.
    pub(crate) score_scale: f32,
    /// Whether to show win, draw and loss.
    pub(crate) wdl: bool,
    /// Probability of a draw at the root by the network, if it gives one.
    pub(crate) draw: Option<f32>,
    /// Since `go`.
    pub(crate) elapsed: Duration,
    /// Simulations a second.
    pub(crate) speed: f64,
    /// Positions that the tree may have.
    pub(crate) room: usize,
}

/// One line of text for each of the best moves, each with its line end.
pub(crate) fn lines(search: &Search<Chess>, ranking: &[RankedMove], view: &View) -> String {
    let mut out = String::new();
    let full = (search.nodes() * 1000 / view.room.max(1)).min(1000);
    let (nodes, time) = (search.visits(), view.elapsed.as_millis());
    // A move that was not tried has no value of its own; the best one stands for the root then.
    let shown = ranking.iter().enumerate().filter(|(i, ranked)| *i == 0 || ranked.visits > 0);
    for (i, (_, ranked)) in shown.take(view.lines).enumerate() {
        let pv = search.line(ranked.m);
        let _ = write!(out, "info depth {} seldepth {}", pv.len(), search.deepest().max(pv.len()));
        let _ = write!(out, " multipv {} score {}", i + 1, score_text(score(ranked, view.score_scale)));
        if view.wdl {
            let [win, draw, loss] = chances(ranked, view.draw);
            let _ = write!(out, " wdl {win} {draw} {loss}");
        }
        let _ = write!(out, " nodes {nodes} nps {:.0} hashfull {full} time {time} pv", view.speed);
        for text in line_texts(search.root(), &pv) {
            let _ = write!(out, " {text}");
        }
        out.push('\n');
    }
    out
}

/// Moves from a position on as text.
pub(crate) fn line_texts(position: &Chess, moves: &[Move]) -> Vec<String> {
    let mut position = position.clone();
    moves
        .iter()
        .map(|m| {
            let text = position.move_text(*m);
            position.play(*m);
            text
        })
        .collect()
}

/// The score in the view of the side to move: mate where it is proven, else the centipawns of which the value is the
/// expectation (the inverse of [`Score::expectation`]).
fn score(ranked: &RankedMove, scale: f32) -> Score {
    ranked.proof.mate().unwrap_or_else(|| Score::Cp(centipawns(ranked.value, scale)))
}

fn centipawns(value: MoverValue, scale: f32) -> i32 {
    let v = value.0.clamp(-1.0, 1.0);
    (scale * ((1.0 + v) / (1.0 - v)).log10()).clamp(-MAX_CENTIPAWNS, MAX_CENTIPAWNS).round() as i32
}

/// Win, draw and loss in permille, in the view of the side to move: how likely a draw is is the network's opinion of the
/// root, if it has one.
fn chances(ranked: &RankedMove, draw: Option<f32>) -> [u32; 3] {
    match ranked.proof {
        Proof::Win(_) => [1000, 0, 0],
        Proof::Draw => [0, 1000, 0],
        Proof::Loss(_) => [0, 0, 1000],
        Proof::Unknown => wdl(ranked.value.0, draw),
    }
}

#[cfg(test)]
mod tests {
    use games::{Move, MoverValue, Score};
    use search::{Proof, RankedMove};

    use super::{centipawns, chances, score, score_text};

    fn ranked(value: f32, proof: Proof) -> RankedMove {
        RankedMove { m: Move(0), visits: 1, prior: 1.0, value: MoverValue(value), proof }
    }

    #[test]
    fn centipawns_are_the_inverse_of_the_expectation() {
        for scale in [290.0, 400.0] {
            for cp in [-900, -37, 0, 1, 150, 800] {
                assert_eq!(centipawns(MoverValue(Score::Cp(cp).expectation(scale)), scale), cp);
            }
        }
        assert_eq!([1.0, -1.0].map(|v| centipawns(MoverValue(v), 400.0)), [10_000, -10_000]);
    }

    #[test]
    fn proven_scores_are_mates() {
        let text = |proof| score_text(score(&ranked(0.5, proof), 400.0));
        assert_eq!(text(Proof::Win(1)), "mate 1");
        assert_eq!(text(Proof::Loss(4)), "mate -2");
        assert_eq!(score_text(score(&ranked(0.0, Proof::Draw), 400.0)), "cp 0");
    }

    #[test]
    fn what_is_proven_is_certain() {
        let all = |proof| chances(&ranked(0.3, proof), Some(0.5));
        let proofs = [Proof::Win(3), Proof::Draw, Proof::Loss(2)];
        assert_eq!(proofs.map(all), [[1000, 0, 0], [0, 1000, 0], [0, 0, 1000]]);
        assert_eq!(chances(&ranked(0.0, Proof::Unknown), Some(0.6)), [200, 600, 200]);
    }
}
