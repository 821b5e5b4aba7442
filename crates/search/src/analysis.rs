//! What an engine with a clock needs beside [`Search::root_report`]: limits that move, every root move in order with
//! its line, roots that are narrowed to some moves or kept wide for several lines.

use games::{Game, Move, MoverValue};

use crate::report::compare;
use crate::tree::{NONE, ROOT};
use crate::{Proof, Search};

/// A move of the root and what the search thinks of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RankedMove {
    /// The move.
    pub m: Move,
    /// Answered visits.
    pub visits: u32,
    /// Prior probability.
    pub prior: f32,
    /// The mean of its visits, or what is proven, in the view of the root's side to move; the root's own value while
    /// it has no visits.
    pub value: MoverValue,
    /// What is proven of it, in the same view.
    pub proof: Proof,
}

impl<G: Game> Search<G> {
    /// Changes the visits at which the search is finished (see [`crate::SearchConfig::simulations`]).
    pub fn set_simulations(&mut self, simulations: u32) {
        self.config.simulations = simulations;
    }

    /// Keeps the root wide enough for this many lines: so many of its moves are tried before one is tried twice, and
    /// with more than one a proof does not end the search of the others. 1 is the search without it.
    pub fn set_breadth(&mut self, lines: usize) {
        self.breadth = lines;
    }

    /// Whether the root has its evaluation; before that its moves have no order.
    pub fn is_evaluated(&self) -> bool {
        self.tree.node(ROOT).visits > 0
    }

    /// What is proven of the root, in the view of its side to move.
    pub fn proof(&self) -> Proof {
        self.tree.node(ROOT).proof
    }

    /// Plies of the longest path that was searched since the root was set or advanced to.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    /// Leaves only these of the root's moves, with their priors renormalised, and forgets what was searched below it.
    /// The root must be evaluated and no answer outstanding. Moves that it does not have are ignored; if none remains
    /// the root stays as it is.
    pub fn restrict(&mut self, moves: &[Move]) {
        let mut kept: Vec<(Move, f32)> =
            self.tree.edges(ROOT).filter(|(m, _)| moves.contains(m)).map(|(m, e)| (m, e.prior)).collect();
        if kept.is_empty() {
            return;
        }
        let value = self.tree.node(ROOT).mean();
        let sum: f32 = kept.iter().map(|(_, prior)| prior).sum();
        let even = 1.0 / kept.len() as f32;
        kept.iter_mut().for_each(|(_, p)| *p = if sum < f32::MIN_POSITIVE { even } else { *p / sum });
        let (moves, priors): (Vec<Move>, Vec<f32>) = kept.into_iter().unzip();
        self.tree.clear();
        self.tree.add(&moves);
        self.tree.evaluated(ROOT, &priors, value);
    }

    /// The root's moves, the best to play first: by proof, visits, prior, and the lower policy index.
    pub fn ranking(&self) -> Vec<RankedMove> {
        let root = self.tree.node(ROOT).mean();
        let mut edges: Vec<_> = self.tree.edges(ROOT).collect();
        edges.sort_by(|(_, a), (_, b)| compare(b, a, self.config.solve));
        let ranked = |(m, edge): (Move, crate::tree::Edge)| RankedMove {
            m,
            visits: edge.visits,
            prior: edge.prior,
            value: match (edge.proof.value(), edge.visits) {
                (Some(proven), _) => proven,
                (None, 0) => root,
                (None, visits) => MoverValue(edge.sum / visits as f32),
            },
            proof: edge.proof,
        };
        edges.into_iter().map(ranked).collect()
    }

    /// The expected line after a root move, which it begins with.
    pub fn line(&self, m: Move) -> Vec<Move> {
        let mut line = vec![m];
        let mut node = self.tree.edges(ROOT).find(|(own, _)| *own == m).map_or(NONE, |(_, edge)| edge.child);
        while node != NONE {
            let Some((m, edge)) = self.best_edge(node).filter(|(_, edge)| edge.visits > 0) else { break };
            line.push(m);
            node = edge.child;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use games::{Chess, Game, Rng};

    use crate::testing::HashEvaluator;
    use crate::{Proof, Search, SearchConfig, UniformEvaluator, drive};

    fn searched(fen: &str, simulations: u32, breadth: usize) -> Search<Chess> {
        let config = SearchConfig { simulations, ..SearchConfig::default() };
        let mut search = Search::new(config, Chess::from_fen(fen).unwrap(), Rng::new(1));
        search.set_breadth(breadth);
        drive(slice::from_mut(&mut search), &mut HashEvaluator).unwrap();
        search
    }

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    const MATE_IN_1: &str = "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1";

    #[test]
    fn the_ranking_agrees_with_the_report() {
        for simulations in [1, 10, 300] {
            let search = searched(START, simulations, 1);
            let (report, ranking) = (search.root_report().unwrap(), search.ranking());
            assert_eq!((ranking[0].m, search.line(ranking[0].m)), (report.best, report.pv));
            assert_eq!(ranking.len(), 20);
            assert_eq!(ranking.iter().map(|r| r.visits).sum::<u32>(), simulations);
            assert!(ranking.windows(2).all(|w| w[0].visits >= w[1].visits));
            assert!(search.deepest() >= search.line(ranking[0].m).len());
        }
    }

    #[test]
    fn a_search_goes_on_to_a_later_target() {
        let mut search = searched(START, 50, 1);
        search.set_simulations(120);
        assert!(!search.finished());
        drive(slice::from_mut(&mut search), &mut HashEvaluator).unwrap();
        assert_eq!(search.ranking(), searched(START, 120, 1).ranking());
    }

    #[test]
    fn a_wide_root_tries_its_moves_first_and_goes_on_after_a_proof() {
        let search = searched(START, 8, 8);
        assert_eq!(search.ranking().iter().filter(|r| r.visits == 1).count(), 8);
        let search = searched(MATE_IN_1, 400, 6);
        let ranking = search.ranking();
        assert_eq!((search.proof(), ranking[0].proof), (Proof::Win(1), Proof::Win(1)));
        assert!(ranking.iter().filter(|r| r.visits > 0).count() >= 6);
        assert!(ranking[1..].iter().map(|r| r.visits).sum::<u32>() > 6, "{ranking:?}");
    }

    #[test]
    fn a_restricted_root_has_only_the_moves_it_was_given() {
        let mut search = searched(MATE_IN_1, 1, 1);
        let moves: Vec<_> = ["g5g2", "g5g4", "a2a3"].iter().filter_map(|m| search.root().parse_move(m).ok()).collect();
        search.restrict(&moves);
        search.set_simulations(200);
        drive(slice::from_mut(&mut search), &mut UniformEvaluator).unwrap();
        let ranking = search.ranking();
        assert_eq!(ranking.len(), 2);
        assert!(ranking.iter().all(|r| moves.contains(&r.m) && r.visits > 0));
        assert!((ranking.iter().map(|r| r.prior).sum::<f32>() - 1.0).abs() < 1e-6);
        search.restrict(&[]);
        assert_eq!(search.ranking().len(), 2, "no move is no restriction");
    }
}
