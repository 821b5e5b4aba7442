//! The tree of one search in two flat vectors: nodes, and their edges side by side.
//!
//! A node is a position that is not over and that has been given to the evaluator; a move into a finished position is
//! an edge with a proof and no node. The root may be over by a draw rule and still have moves. Once the vectors have
//! grown to the size of a search, nothing here allocates.
//!
//! Points of view: a node's `sum` is of its side to move; an edge's `sum`, and its proof, are of the side that makes
//! the move, which is the node's own side to move. [`Tree::back_up`] is the only place where the view changes.

use games::{Move, MoverValue};

use crate::Proof;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;
/// The root's number.
pub(crate) const ROOT: u32 = 0;

/// A position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Its first edge.
    first: u32,
    /// Number of its edges.
    count: u16,
    /// Descents through it that are not answered yet.
    pub(crate) in_flight: u16,
    /// Its own evaluation and the visits of its edges; 0 while the evaluation is outstanding.
    pub(crate) visits: u32,
    /// Sum of the values of those visits, in the mover's view.
    pub(crate) sum: f32,
    /// What is proven of it.
    pub(crate) proof: Proof,
}

/// A legal move of a position; a node's edges are sorted by policy index.
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
    /// The move.
    pub(crate) m: Move,
    /// Visits that are not answered yet.
    pub(crate) in_flight: u16,
}

impl Node {
    /// The mean value, in the mover's view.
    pub(crate) fn mean(&self) -> MoverValue {
        MoverValue(if self.visits == 0 { 0.0 } else { self.sum / self.visits as f32 })
    }
}

/// Nodes, edges, and the scratch space of copying a subtree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    origin: Vec<u32>,
}

impl Tree {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
    }

    /// Adds a position with these moves, whose priors are still to come.
    pub(crate) fn add(&mut self, moves: &[Move]) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node {
            first: self.edges.len() as u32,
            count: moves.len() as u16,
            in_flight: 0,
            visits: 0,
            sum: 0.0,
            proof: Proof::Unknown,
        });
        self.edges.extend(moves.iter().map(|&m| Edge {
            prior: 0.0,
            visits: 0,
            sum: 0.0,
            child: NONE,
            proof: Proof::Unknown,
            m,
            in_flight: 0,
        }));
        node
    }

    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(crate) fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    pub(crate) fn edge(&self, edge: u32) -> &Edge {
        &self.edges[edge as usize]
    }

    pub(crate) fn edge_mut(&mut self, edge: u32) -> &mut Edge {
        &mut self.edges[edge as usize]
    }

    /// A position's moves.
    pub(crate) fn edges(&self, node: u32) -> &[Edge] {
        let node = self.node(node);
        &self.edges[node.first as usize..node.first as usize + usize::from(node.count)]
    }

    pub(crate) fn edges_mut(&mut self, node: u32) -> &mut [Edge] {
        let node = *self.node(node);
        &mut self.edges[node.first as usize..node.first as usize + usize::from(node.count)]
    }

    /// The number of a position's `i`-th edge.
    pub(crate) fn edge_number(&self, node: u32, i: usize) -> u32 {
        self.node(node).first + i as u32
    }

    /// Takes in the evaluator's answer about a position.
    pub(crate) fn evaluated(&mut self, node: u32, priors: &[f32], value: MoverValue) {
        for (edge, prior) in self.edges_mut(node).iter_mut().zip(priors) {
            edge.prior = *prior;
        }
        let node = self.node_mut(node);
        node.visits = 1;
        node.sum = value.0;
    }

    /// Counts an unanswered visit of `edge` of `node`.
    pub(crate) fn enter(&mut self, node: u32, edge: u32) {
        self.node_mut(node).in_flight += 1;
        self.edge_mut(edge).in_flight += 1;
    }

    /// Takes back the unanswered visits of a path from the root.
    pub(crate) fn cancel(&mut self, path: &[u32]) {
        let mut node = ROOT;
        for &edge in path {
            self.node_mut(node).in_flight -= 1;
            let edge = self.edge_mut(edge);
            edge.in_flight -= 1;
            node = edge.child;
        }
    }

    /// Answers the unanswered visits of a path from the root with the value of the path's last move, in the view of
    /// the side that makes that move.
    ///
    /// With `solve`, what is newly proven climbs along the path. A proven edge's sum is always exact: the values that
    /// were averaged into it before the proof are taken out of its ancestors too.
    pub(crate) fn back_up(&mut self, path: &[u32], value: MoverValue, solve: bool) {
        let mut value = value.0;
        // Beyond the new visit's value: what the correction of a proven edge adds to the sums above it.
        let mut correction = 0.0;
        for i in (0..path.len()).rev() {
            let parent = if i == 0 { ROOT } else { self.edge(path[i - 1]).child };
            let child = self.edge(path[i]).child;
            let child_proof = if child == NONE { Proof::Unknown } else { self.node(child).proof };
            let edge = self.edge_mut(path[i]);
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
            let node = self.node_mut(parent);
            node.in_flight -= 1;
            node.visits += 1;
            node.sum += value + correction;
            if solve && node.proof == Proof::Unknown && proven != Proof::Unknown {
                let proof = Proof::of_position(self.edges(parent).iter().map(|e| e.proof));
                self.node_mut(parent).proof = proof;
            }
            value = -value;
            correction = -correction;
        }
    }

    /// Replaces this tree by the part of `from` below `root`, in breadth-first order.
    pub(crate) fn copy_subtree(&mut self, from: &Tree, root: u32) {
        self.clear();
        self.origin.clear();
        self.nodes.push(*from.node(root));
        self.origin.push(root);
        let mut next = 0;
        while next < self.nodes.len() {
            let first = self.edges.len();
            self.nodes[next].first = first as u32;
            self.edges.extend_from_slice(from.edges(self.origin[next]));
            for edge in &mut self.edges[first..] {
                if edge.child != NONE {
                    self.origin.push(edge.child);
                    edge.child = self.nodes.len() as u32;
                    self.nodes.push(*from.node(self.origin[self.nodes.len()]));
                }
            }
            next += 1;
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

    use super::{ROOT, Tree};
    use crate::Proof;

    fn small() -> Tree {
        let mut tree = Tree::default();
        for (parent, moves) in [(None, 3), (Some((ROOT, 0)), 2), (Some((ROOT, 2)), 2), (Some((1, 1)), 1)] {
            let moves: Vec<Move> = (0..moves).map(Move).collect();
            let node = tree.add(&moves);
            tree.evaluated(node, &vec![1.0 / moves.len() as f32; moves.len()], MoverValue(0.25));
            if let Some((parent, i)) = parent {
                let edge = tree.edge_number(parent, i);
                tree.edge_mut(edge).child = node;
            }
        }
        tree
    }

    #[test]
    fn values_change_sides_at_every_ply() {
        let mut tree = small();
        let path = [tree.edge_number(ROOT, 0), tree.edge_number(1, 1), tree.edge_number(3, 0)];
        for (node, edge) in [(ROOT, path[0]), (1, path[1]), (3, path[2])] {
            tree.enter(node, edge);
        }
        tree.back_up(&path, MoverValue(1.0), true);
        let sums: Vec<f32> = path.iter().map(|e| tree.edge(*e).sum).collect();
        assert_eq!(sums, [1.0, -1.0, 1.0]);
        assert_eq!([tree.node(ROOT).sum, tree.node(1).sum, tree.node(3).sum], [1.25, -0.75, 1.25]);
        assert!(path.iter().all(|e| tree.edge(*e).in_flight == 0 && tree.edge(*e).visits == 1));
    }

    #[test]
    fn a_proof_climbs_and_takes_out_the_values_before_it() {
        let mut tree = small();
        let path = [tree.edge_number(ROOT, 0), tree.edge_number(1, 1), tree.edge_number(3, 0)];
        let visit = |tree: &mut Tree, value| {
            for (node, edge) in [(ROOT, path[0]), (1, path[1]), (3, path[2])] {
                tree.enter(node, edge);
            }
            tree.back_up(&path, MoverValue(value), true);
        };
        visit(&mut tree, -0.5);
        tree.edge_mut(path[2]).proof = Proof::Win(1);
        visit(&mut tree, 1.0);
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
        assert_eq!(copy.edges(ROOT).len(), 2);
        assert_eq!(copy.edges(ROOT)[1].child, 1);
        assert_eq!(copy.edges(1).len(), 1);
        assert_eq!(copy.node(1).visits, 1);
    }
}
