//! The tree of one search in flat vectors: nodes, the moves and priors of each node side by side, and what is known of
//! the moves that were tried.
//!
//! A node is a position that is not over and that has been given to the evaluator; a move into a finished position is
//! a tried move with a proof and no node. The root may be over by a draw rule and still have moves. Most positions have
//! thirty moves and none or few of them tried, so only these have statistics: a descent reads no more than it needs,
//! and the trees of many games stay in the processor's caches. Once the vectors have grown to the size of a search,
//! nothing here allocates.
//!
//! Points of view: a node's `sum` is of its side to move; an edge's `sum`, and its proof, are of the side that makes
//! the move, which is the node's own side to move. [`Tree::back_up`] is the only place where the view changes.

use std::ops::Range;

use games::{Move, MoverValue};

use crate::Proof;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;
/// The root's number.
pub(crate) const ROOT: u32 = 0;
/// No move of a node.
const NO_MOVE: u16 = u16::MAX;
/// Stands in the place of a tried move's prior, which its [`Edge`] has; below every prior.
const TRIED: f32 = -1.0;

/// A position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Its first move and prior.
    first: u32,
    /// Number of its moves.
    count: u16,
    /// Descents through it that are not answered yet.
    pub(crate) in_flight: u16,
    /// Its own evaluation and the visits of its edges; 0 while the evaluation is outstanding.
    pub(crate) visits: u32,
    /// Sum of the values of those visits, in the mover's view.
    pub(crate) sum: f32,
    /// What is proven of it.
    pub(crate) proof: Proof,
    /// Its first tried move in [`Tree::edges`]; the room there is `tried` rounded up to a power of two.
    edges: u32,
    /// Number of its tried moves.
    tried: u16,
    /// The untried move with the greatest prior, the first among equals, or [`NO_MOVE`].
    fresh: u16,
    /// That move's prior.
    fresh_prior: f32,
}

/// A move of a position that was tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Prior probability.
    pub(crate) prior: f32,
    /// Answered visits.
    pub(crate) visits: u32,
    /// Sum of their values, in the view of the side that makes the move.
    pub(crate) sum: f32,
    /// The position it leads to, or [`NONE`].
    pub(crate) child: u32,
    /// What is proven of it, in the view of the side that makes the move.
    pub(crate) proof: Proof,
    /// Its place among the position's moves.
    pub(crate) index: u16,
    /// Visits that are not answered yet.
    pub(crate) in_flight: u16,
}

impl Edge {
    /// A move before its first visit.
    fn new(index: u16, prior: f32) -> Self {
        Edge { prior, visits: 0, sum: 0.0, child: NONE, proof: Proof::Unknown, index, in_flight: 0 }
    }
}

/// One step of a path: a position and the place of a move among its moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) node: u32,
    pub(crate) index: u16,
    /// Where the edge was among the node's tried moves; it moves up when a lower move is tried.
    at: u16,
}

impl Node {
    /// The mean value, in the mover's view.
    pub(crate) fn mean(&self) -> MoverValue {
        MoverValue(if self.visits == 0 { 0.0 } else { self.sum / self.visits as f32 })
    }

    /// The likeliest untried move and its prior.
    pub(crate) fn fresh(&self) -> Option<(u16, f32)> {
        (self.fresh != NO_MOVE).then_some((self.fresh, self.fresh_prior))
    }

    /// Whether it has no moves.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn moves(&self) -> Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.count)
    }

    fn tried(&self) -> Range<usize> {
        self.edges as usize..self.edges as usize + usize::from(self.tried)
    }
}

/// Nodes with their moves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The moves of each node, sorted by policy index.
    moves: Vec<Move>,
    /// Their priors, or [`TRIED`].
    priors: Vec<f32>,
    /// The tried moves of each node, in the order of its moves. A node that outgrows its room gets another at the end.
    edges: Vec<Edge>,
    /// Scratch space of copying a subtree.
    places: Vec<u32>,
}

impl Tree {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.moves.clear();
        self.priors.clear();
        self.edges.clear();
    }

    /// Adds a position with these moves, whose priors are still to come.
    pub(crate) fn add(&mut self, moves: &[Move]) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node {
            first: self.moves.len() as u32,
            count: moves.len() as u16,
            in_flight: 0,
            visits: 0,
            sum: 0.0,
            proof: Proof::Unknown,
            edges: 0,
            tried: 0,
            fresh: if moves.is_empty() { NO_MOVE } else { 0 },
            fresh_prior: 0.0,
        });
        self.moves.extend_from_slice(moves);
        self.priors.resize(self.moves.len(), 0.0);
        node
    }

    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(crate) fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// A position's moves.
    pub(crate) fn moves(&self, node: u32) -> &[Move] {
        &self.moves[self.node(node).moves()]
    }

    /// A position's tried moves, in the order of its moves.
    pub(crate) fn tried(&self, node: u32) -> &[Edge] {
        &self.edges[self.node(node).tried()]
    }

    /// The untried move with the greatest prior, the first among equals, as an edge without visits.
    pub(crate) fn likeliest_untried(&self, node: u32) -> Option<Edge> {
        self.node(node).fresh().map(|(index, prior)| Edge::new(index, prior))
    }

    /// All moves of a position, the untried ones as edges without visits.
    pub(crate) fn edges(&self, node: u32) -> impl Iterator<Item = (Move, Edge)> + '_ {
        let (tried, priors) = (self.tried(node), &self.priors[self.node(node).moves()]);
        self.moves(node).iter().enumerate().map(move |(i, m)| {
            let index = i as u16;
            let edge = match tried.binary_search_by_key(&index, |e| e.index) {
                Ok(at) => tried[at],
                Err(_) => Edge::new(index, priors[i]),
            };
            (*m, edge)
        })
    }

    /// A step by a position's `at`-th tried move.
    pub(crate) fn step(&self, node: u32, at: usize) -> Step {
        Step { node, index: self.tried(node)[at].index, at: at as u16 }
    }

    /// A step by a move that was not tried before, to be made by [`Tree::enter`].
    pub(crate) fn first_step(&self, node: u32, index: u16) -> Step {
        Step { node, index, at: NO_MOVE }
    }

    /// The move that a step makes.
    pub(crate) fn move_of(&self, step: Step) -> Move {
        self.moves[self.node(step.node).first as usize + usize::from(step.index)]
    }

    /// The edge of a step that was entered.
    pub(crate) fn edge(&self, step: Step) -> &Edge {
        &self.edges[self.place(step)]
    }

    /// The edge of a step that was entered.
    pub(crate) fn edge_mut(&mut self, step: Step) -> &mut Edge {
        let place = self.place(step);
        &mut self.edges[place]
    }

    fn place(&self, step: Step) -> usize {
        let tried = self.tried(step.node);
        let at = match tried.get(usize::from(step.at)) {
            Some(edge) if edge.index == step.index => usize::from(step.at),
            _ => tried.partition_point(|e| e.index < step.index),
        };
        self.node(step.node).edges as usize + at
    }

    /// Takes in the evaluator's answer about a position.
    pub(crate) fn evaluated(&mut self, node: u32, priors: &[f32], value: MoverValue) {
        let moves = self.node(node).moves();
        for (own, prior) in self.priors[moves].iter_mut().zip(priors) {
            *own = prior + 0.0; // -0 would be below 0
        }
        self.refresh(node);
        let node = self.node_mut(node);
        node.visits = 1;
        node.sum = value.0;
    }

    /// Changes every prior of a position, in the order of its moves.
    pub(crate) fn map_priors(&mut self, node: u32, mut change: impl FnMut(f32) -> f32) {
        let Range { start, end } = self.node(node).moves();
        let mut tried = self.node(node).tried();
        for i in start..end {
            if self.priors[i] == TRIED
                && let Some(place) = tried.next()
            {
                self.edges[place].prior = change(self.edges[place].prior);
            } else {
                self.priors[i] = change(self.priors[i]);
            }
        }
        self.refresh(node);
    }

    /// Finds the likeliest untried move.
    fn refresh(&mut self, node: u32) {
        let node = &mut self.nodes[node as usize];
        let priors = &self.priors[node.moves()];
        // Numbers that are not negative are ordered as their bits are, and integers are compared four at a time.
        let order = |prior: &f32| prior.to_bits() as i32;
        let greatest = priors.iter().map(order).fold(i32::MIN, i32::max);
        node.fresh = NO_MOVE;
        if greatest >= 0 {
            node.fresh = priors.iter().position(|p| order(p) == greatest).map_or(NO_MOVE, |i| i as u16);
            node.fresh_prior = f32::from_bits(greatest as u32);
        }
    }

    /// Counts an unanswered visit of a move, and says where its edge is now.
    pub(crate) fn enter(&mut self, mut step: Step) -> Step {
        if step.at == NO_MOVE {
            step.at = self.begin(step.node, step.index);
        }
        self.node_mut(step.node).in_flight += 1;
        self.edge_mut(step).in_flight += 1;
        step
    }

    /// Makes the edge of a move that is tried for the first time, and gives its place among the tried ones.
    fn begin(&mut self, number: u32, index: u16) -> u16 {
        let Node { first, edges, tried, .. } = *self.node(number);
        let (old, len) = (edges as usize, usize::from(tried));
        let mut start = old;
        if len == 0 || len.is_power_of_two() {
            start = self.edges.len();
            self.edges.extend_from_within(old..old + len);
            self.edges.resize(start + (len + 1).next_power_of_two(), Edge::new(NO_MOVE, 0.0));
        }
        let prior = &mut self.priors[first as usize + usize::from(index)];
        let edge = Edge::new(index, *prior);
        *prior = TRIED;
        let room = &mut self.edges[start..=start + len];
        let at = room[..len].partition_point(|e| e.index < index);
        room.copy_within(at..len, at + 1);
        room[at] = edge;
        let node = self.node_mut(number);
        (node.edges, node.tried) = (start as u32, tried + 1);
        self.refresh(number);
        at as u16
    }

    /// Takes back the unanswered visits of a path from the root.
    pub(crate) fn cancel(&mut self, path: &[Step]) {
        for &step in path {
            self.node_mut(step.node).in_flight -= 1;
            self.edge_mut(step).in_flight -= 1;
        }
    }

    /// Answers the unanswered visits of a path from the root with the value of the path's last move, in the view of
    /// the side that makes that move.
    ///
    /// With `solve`, what is newly proven climbs along the path. A proven edge's sum is always exact: the values that
    /// were averaged into it before the proof are taken out of its ancestors too.
    pub(crate) fn back_up(&mut self, path: &[Step], value: MoverValue, solve: bool) {
        let mut value = value.0;
        // Beyond the new visit's value: what the correction of a proven edge adds to the sums above it.
        let mut correction = 0.0;
        for &step in path.iter().rev() {
            let place = self.place(step);
            let child = self.edges[place].child;
            let child_proof = if child == NONE { Proof::Unknown } else { self.node(child).proof };
            let edge = &mut self.edges[place];
            edge.in_flight -= 1;
            edge.visits += 1;
            if child_proof != Proof::Unknown {
                edge.proof = child_proof.of_move();
            }
            let before = edge.sum;
            edge.sum += value + correction;
            let proven = edge.proof;
            if let Some(MoverValue(exact)) = proven.value() {
                edge.sum = exact * edge.visits as f32;
                correction = edge.sum - before - value;
            }
            let node = self.node_mut(step.node);
            node.in_flight -= 1;
            node.visits += 1;
            node.sum += value + correction;
            if solve && node.proof == Proof::Unknown && proven != Proof::Unknown {
                self.node_mut(step.node).proof = self.prove(step.node);
            }
            value = -value;
            correction = -correction;
        }
    }

    /// What follows for a position from the proofs of its moves.
    fn prove(&self, node: u32) -> Proof {
        let untried = usize::from(self.node(node).tried) < self.node(node).moves().len();
        Proof::of_position(self.tried(node).iter().map(|e| e.proof).chain(untried.then_some(Proof::Unknown)))
    }

    /// Replaces this tree by the part of `from` below `root`.
    pub(crate) fn copy_subtree(&mut self, from: &Tree, root: u32) {
        self.clear();
        // A child is younger than its parent, so that one pass meets parents first. For each child that is wanted,
        // the place of the edge that leads to it.
        self.places.clear();
        self.places.resize(from.nodes.len(), NONE);
        for number in root..from.nodes.len() as u32 {
            let parent = self.places[number as usize];
            if number != root && parent == NONE {
                continue;
            }
            let new = self.nodes.len() as u32;
            if number != root {
                self.edges[parent as usize].child = new;
            }
            let node = from.node(number);
            let edges = self.edges.len();
            self.nodes.push(Node { first: self.moves.len() as u32, edges: edges as u32, ..*node });
            self.moves.extend_from_slice(from.moves(number));
            self.priors.extend_from_slice(&from.priors[node.moves()]);
            if node.tried > 0 {
                self.edges.extend_from_slice(from.tried(number));
                for (edge, place) in self.edges[edges..].iter().zip(edges as u32..) {
                    if edge.child != NONE {
                        self.places[edge.child as usize] = place;
                    }
                }
                let room = usize::from(node.tried).next_power_of_two();
                self.edges.resize(edges + room, Edge::new(NO_MOVE, 0.0));
            }
        }
    }

    /// Positions in the tree.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use games::{Move, MoverValue};

    use super::{NONE, ROOT, Step, Tree};
    use crate::Proof;
    use crate::testing::step;

    fn small() -> Tree {
        let mut tree = Tree::default();
        for (parent, moves) in [(None, 3), (Some((ROOT, 0)), 2), (Some((ROOT, 2)), 2), (Some((1, 1)), 1)] {
            let moves: Vec<Move> = (0..moves).map(Move).collect();
            let node = tree.add(&moves);
            tree.evaluated(node, &vec![1.0 / moves.len() as f32; moves.len()], MoverValue(0.25));
            if let Some((parent, i)) = parent {
                let step = tree.enter(step(&tree, parent, i));
                tree.edge_mut(step).child = node;
                tree.cancel(&[step]);
            }
        }
        tree
    }

    /// Goes down by the first move of the root, the second move there, and the only one after it.
    fn descend(tree: &mut Tree) -> [Step; 3] {
        [(ROOT, 0), (1, 1), (3, 0)].map(|(node, index)| tree.enter(step(tree, node, index)))
    }

    #[test]
    fn values_change_sides_at_every_ply() {
        let mut tree = small();
        let path = descend(&mut tree);
        tree.back_up(&path, MoverValue(1.0), true);
        let sums: Vec<f32> = path.iter().map(|e| tree.edge(*e).sum).collect();
        assert_eq!(sums, [1.0, -1.0, 1.0]);
        assert_eq!([tree.node(ROOT).sum, tree.node(1).sum, tree.node(3).sum], [1.25, -0.75, 1.25]);
        assert!(path.iter().all(|e| tree.edge(*e).in_flight == 0 && tree.edge(*e).visits == 1));
    }

    #[test]
    fn a_proof_climbs_and_takes_out_the_values_before_it() {
        let mut tree = small();
        let path = descend(&mut tree);
        tree.back_up(&path, MoverValue(-0.5), true);
        let path = descend(&mut tree);
        tree.edge_mut(path[2]).proof = Proof::Win(1);
        tree.back_up(&path, MoverValue(1.0), true);
        assert_eq!(tree.node(3).proof, Proof::Win(1));
        assert_eq!(tree.edge(path[1]).proof, Proof::Loss(2));
        assert_eq!(tree.node(1).proof, Proof::Unknown, "its other move may still hold");
        assert_eq!(tree.edge(path[2]).sum, 2.0, "two visits of a win");
        assert_eq!(tree.edge(path[1]).sum, -2.0);
        assert_eq!(tree.edge(path[0]).sum, 2.0, "the half-loss before the proof is gone");
        assert_eq!(tree.node(ROOT).sum, 2.25);
    }

    #[test]
    fn a_subtree_is_copied_whole() {
        let tree = small();
        let mut copy = Tree::default();
        copy.copy_subtree(&tree, 1);
        assert_eq!(copy.len(), 2);
        assert_eq!(copy.moves(ROOT), [Move(0), Move(1)]);
        assert_eq!(copy.edges(ROOT).map(|(_, e)| e.child).collect::<Vec<_>>(), [NONE, 1]);
        assert_eq!(copy.moves(1).len(), 1);
        assert_eq!(copy.node(1).visits, 1);
    }

    #[test]
    fn tried_moves_stay_in_order_and_steps_find_them_again() {
        let mut tree = Tree::default();
        let moves: Vec<Move> = (0..40).map(Move).collect();
        let priors: Vec<f32> = (0..40).map(|i| (i * 29 % 40) as f32).collect();
        tree.add(&moves);
        tree.evaluated(ROOT, &priors, MoverValue(0.0));
        let mut path = Vec::new();
        for n in 1..=40 {
            let (index, prior) = tree.node(ROOT).fresh().unwrap();
            assert_eq!(
                (prior, priors[usize::from(index)]),
                (40.0 - n as f32, 40.0 - n as f32),
                "the likeliest is next"
            );
            path.push(tree.enter(step(&tree, ROOT, index)));
            assert!(tree.tried(ROOT).is_sorted_by_key(|e| e.index) && tree.tried(ROOT).len() == n);
            // Another node's edges grow in between.
            let other = tree.add(&moves);
            tree.evaluated(other, &priors, MoverValue(0.0));
            tree.enter(step(&tree, other, 7));
        }
        assert_eq!(tree.node(ROOT).fresh(), None);
        assert!(path.iter().all(|s| tree.edge(*s).index == s.index && tree.edge(*s).in_flight == 1));
        assert_eq!(tree.edges(ROOT).map(|(_, e)| e.prior).collect::<Vec<_>>(), priors);
        tree.map_priors(ROOT, |p| 2.0 * p);
        assert!(tree.edges(ROOT).zip(&priors).all(|((_, e), p)| e.prior == 2.0 * p));
    }
}
