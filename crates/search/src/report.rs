//! What a finished search says: visits, value, the best move and the expected line; and the choice of a move.

use std::cmp::Ordering;

use games::{Game, Move, MoverValue};

use crate::select::{exploration, forced};
use crate::tree::{Edge, NONE, ROOT};
use crate::{Proof, Search, SearchError};

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct RootReport {
    /// The root's moves in order of policy index, with their visits as a policy target: without forced playouts and,
    /// with `solve`, without those of moves proven lost where others are not; a proven win has all visits.
    pub visits: Vec<(Move, u32)>,
    /// The root's value in the view of its side to move: the mean of all visits, or what is proven.
    pub value: MoverValue,
    /// The move to play: the best proof, else the most visits, else the greatest prior, else the lowest policy index.
    pub best: Move,
    /// The expected line, beginning with `best`.
    pub pv: Vec<Move>,
    /// What is proven of the root, in the view of its side to move.
    pub proof: Proof,
    /// Visits of the root's moves in all.
    pub simulations: u32,
    /// Whether the visits are a policy target; false for the quick searches of a playout cap.
    pub full: bool,
}

/// Orders moves by how good they are to play.
pub(crate) fn compare(a: &Edge, b: &Edge, solve: bool) -> Ordering {
    let rank = |e: &Edge| if solve { e.proof.rank() } else { 0 };
    rank(a).cmp(&rank(b)).then(a.visits.cmp(&b.visits)).then(a.prior.total_cmp(&b.prior))
}

impl<G: Game> Search<G> {
    /// What the search has found so far.
    ///
    /// # Errors
    /// [`SearchError::NoMoves`] if the root has no legal move.
    pub fn root_report(&self) -> Result<RootReport, SearchError> {
        let pv = self.expected_line();
        let Some(&best) = pv.first() else {
            return Err(SearchError::NoMoves { fen: self.root.fen() });
        };
        let root = self.tree.node(ROOT);
        Ok(RootReport {
            visits: self.policy_target(),
            value: root.proof.value().unwrap_or_else(|| root.mean()),
            best,
            pv,
            proof: root.proof,
            simulations: self.visits(),
            full: self.is_full(),
        })
    }

    /// A move drawn with probability proportional to `visits ^ (1 / temperature)`; temperature 0 is the best move. A
    /// move that is proven to win is played at any temperature.
    ///
    /// # Errors
    /// [`SearchError::NoMoves`] if the root has no legal move.
    pub fn choose(&mut self, temperature: f32) -> Result<Move, SearchError> {
        let report = self.root_report()?;
        if temperature <= 0.0 || report.proof.is_win() {
            return Ok(report.best);
        }
        // Relative to the greatest, so that no power overflows.
        let most = report.visits.iter().map(|v| v.1).max().unwrap_or(0).max(1);
        let weights: Vec<f64> = report
            .visits
            .iter()
            .map(|(_, n)| (f64::from(*n) / f64::from(most)).powf(1.0 / f64::from(temperature)))
            .collect();
        Ok(self.rng.weighted(&weights).map_or(report.best, |i| report.visits[i].0))
    }

    /// The move to play in a position of the tree.
    pub(crate) fn best_edge(&self, node: u32) -> Option<(Move, Edge)> {
        // Of the untried moves only the likeliest can be it.
        let edges = self.tree.tried(node).iter().copied().chain(self.tree.likeliest_untried(node));
        let best = edges.max_by(|a, b| compare(a, b, self.config.solve).then(b.index.cmp(&a.index)))?;
        Some((self.tree.moves(node)[usize::from(best.index)], best))
    }

    fn expected_line(&self) -> Vec<Move> {
        let mut line = Vec::new();
        let mut node = ROOT;
        while let Some((m, edge)) = self.best_edge(node) {
            if edge.visits == 0 && !line.is_empty() {
                break;
            }
            line.push(m);
            if edge.child == NONE {
                break;
            }
            node = edge.child;
        }
        line
    }

    /// The root's visits as a policy target.
    fn policy_target(&self) -> Vec<(Move, u32)> {
        let proof = self.tree.node(ROOT).proof;
        let total = self.visits();
        let factor = self.rules(ROOT).forced_playouts;
        let scale = exploration(self.config.c_puct, total);
        let score = |e: &Edge, n: u32| e.sum / e.visits.max(1) as f32 + scale * e.prior / (1 + n) as f32;
        let best = self.best_edge(ROOT);
        let best_score = best.map_or(0.0, |(_, e)| score(&e, e.visits));
        self.tree
            .edges(ROOT)
            .map(|(m, edge)| {
                let is_best = best.is_some_and(|b| b.0 == m);
                let mut n = match proof {
                    Proof::Win(_) => {
                        if is_best {
                            total
                        } else {
                            0
                        }
                    }
                    Proof::Unknown | Proof::Draw if self.config.solve && edge.proof.is_loss() => 0,
                    _ => edge.visits,
                };
                if factor > 0.0 && proof == Proof::Unknown && !is_best {
                    // Wu 2019: take the forced visits away as long as the move stays less attractive than the best.
                    let least = n.saturating_sub(forced(factor, edge.prior, total) as u32);
                    while n > least && score(&edge, n - 1) < best_score {
                        n -= 1;
                    }
                    if n <= 1 {
                        n = 0;
                    }
                }
                (m, n)
            })
            .collect()
    }
}
