//! Which move a descent takes: PUCT with first-play urgency, virtual loss, forced playouts and proofs.

use crate::proof::Proof;
use crate::tree::{Step, Tree};

/// What selection needs of the configuration, for one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) c_puct: f32,
    pub(crate) fpu_reduction: f32,
    pub(crate) virtual_loss: f32,
    pub(crate) solve: bool,
    /// KataGo's factor at the root of a full search, else 0.
    pub(crate) forced_playouts: f32,
    /// Moves that are tried before one is tried twice.
    pub(crate) breadth: usize,
}

/// The exploration term without its prior: PUCT of Silver et al. (2017).
pub(crate) fn exploration(c_puct: f32, total: u32) -> f32 {
    c_puct * (total.max(1) as f32).sqrt()
}

impl Tree {
    /// The step that the next descent takes from `node`. Ties go to the lower policy index, so that a position and its
    /// mirror image are searched alike.
    pub(crate) fn select(&self, node: u32, rules: &Rules) -> Step {
        let place = self.node(node);
        let total = place.visits.saturating_sub(1) + u32::from(place.in_flight);
        let scale = exploration(rules.c_puct, total);
        let mean = place.mean().0;
        let (mut best, mut best_score) = (usize::MAX, f32::NEG_INFINITY);
        let mut prior_tried = 0.0;
        let tried = self.tried(node);
        if tried.len() < rules.breadth
            && let Some((fresh, _)) = place.fresh()
        {
            return self.first_step(node, fresh);
        }
        for (at, edge) in tried.iter().enumerate() {
            let n = edge.visits + u32::from(edge.in_flight);
            prior_tried += edge.prior;
            if rules.solve && excluded(place.proof, edge.proof) {
                continue;
            }
            if rules.forced_playouts > 0.0 && (n as f32) < forced(rules.forced_playouts, edge.prior, total) {
                return self.step(node, at);
            }
            let mut value = if edge.visits > 0 { edge.sum / edge.visits as f32 } else { mean };
            if edge.in_flight > 0 {
                value -= rules.virtual_loss * f32::from(edge.in_flight) / n as f32;
            }
            let score = value + scale * edge.prior / (1 + n) as f32;
            if score > best_score {
                (best, best_score) = (at, score);
            }
        }
        // Untried moves differ by their prior only, so that the likeliest stands for all of them. Nothing is proven of
        // them, so that they do not count in a proven position.
        if let Some((fresh, prior)) = place.fresh().filter(|_| !(rules.solve && place.proof != Proof::Unknown)) {
            let score = mean - rules.fpu_reduction * prior_tried.sqrt() + scale * prior;
            if score > best_score || (score == best_score && fresh < tried[best].index) {
                return self.first_step(node, fresh);
            }
        }
        // A position in the tree has moves and finite numbers, so that there is a best one.
        self.step(node, best)
    }
}

/// Moves proven lost are left alone while there are others; in a proven position only the best proof counts.
fn excluded(position: Proof, edge: Proof) -> bool {
    match position {
        Proof::Unknown => edge.is_loss(),
        known => edge != known,
    }
}

/// The visits that a tried root move has at least.
pub(crate) fn forced(factor: f32, prior: f32, total: u32) -> f32 {
    (factor * prior * total as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use games::{Move, MoverValue};

    use super::Rules;
    use crate::Proof;
    use crate::testing::step;
    use crate::tree::{ROOT, Tree};

    const RULES: Rules =
        Rules { c_puct: 1.0, fpu_reduction: 0.5, virtual_loss: 1.0, solve: true, forced_playouts: 0.0, breadth: 1 };

    fn tree(priors: &[f32], value: f32) -> Tree {
        let mut tree = Tree::default();
        let moves: Vec<Move> = (0..priors.len() as u16).map(Move).collect();
        tree.add(&moves);
        tree.evaluated(ROOT, priors, MoverValue(value));
        tree
    }

    fn visit(tree: &mut Tree, index: u16, value: f32) {
        let step = tree.enter(step(tree, ROOT, index));
        tree.back_up(&[step], MoverValue(value), true);
    }

    fn prove(tree: &mut Tree, index: u16, proof: Proof) {
        let step = tree.enter(step(tree, ROOT, index));
        tree.edge_mut(step).proof = proof;
        tree.back_up(&[step], proof.value().unwrap(), true);
    }

    #[test]
    fn ties_go_to_the_lower_index_and_priors_decide_first() {
        assert_eq!(tree(&[0.25; 4], 0.0).select(ROOT, &RULES).index, 0);
        assert_eq!(tree(&[0.2, 0.4, 0.4], 0.0).select(ROOT, &RULES).index, 1);
    }

    #[test]
    fn an_untried_move_is_worth_its_parents_value_less_a_reduction() {
        let mut t = tree(&[0.9, 0.1], 0.8);
        visit(&mut t, 0, 0.8);
        // Tried: 0.8 + 1 * 0.9 / 2 = 1.25; untried: 0.8 - 0.5 * sqrt(0.9) + 0.1 = 0.43.
        assert_eq!(t.select(ROOT, &RULES).index, 0);
        let mut t = tree(&[0.9, 0.1], 0.8);
        visit(&mut t, 0, -0.9);
        assert_eq!(t.select(ROOT, &RULES).index, 1, "the tried move failed");
    }

    #[test]
    fn unanswered_visits_repel() {
        let mut t = tree(&[0.5, 0.5], 0.0);
        t.enter(step(&t, ROOT, 0));
        assert_eq!(t.select(ROOT, &RULES).index, 1);
    }

    #[test]
    fn lost_moves_are_left_alone_and_won_ones_taken() {
        let mut t = tree(&[0.9, 0.05, 0.05], 0.0);
        prove(&mut t, 0, Proof::Loss(2));
        assert_eq!(t.select(ROOT, &RULES).index, 1);
        prove(&mut t, 2, Proof::Win(1));
        assert_eq!(t.node(ROOT).proof, Proof::Win(1));
        assert_eq!(t.select(ROOT, &RULES).index, 2);
    }

    #[test]
    fn in_a_lost_position_the_longest_line_is_taken() {
        let mut t = tree(&[0.5, 0.5], 0.0);
        prove(&mut t, 0, Proof::Loss(2));
        prove(&mut t, 1, Proof::Loss(4));
        assert_eq!(t.node(ROOT).proof, Proof::Loss(4));
        assert_eq!(t.select(ROOT, &RULES).index, 1);
    }

    #[test]
    fn forced_playouts_bring_a_tried_move_up() {
        let mut t = tree(&[0.9, 0.1], 0.0);
        for _ in 0..80 {
            visit(&mut t, 0, 0.9);
        }
        visit(&mut t, 1, -0.9);
        assert_eq!(t.select(ROOT, &RULES).index, 0);
        assert_eq!(t.select(ROOT, &Rules { forced_playouts: 2.0, ..RULES }).index, 1);
    }
}
