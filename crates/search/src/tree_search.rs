//! The search of one game, step by step.
//!
//! A step is [`Search::gather`], the evaluator's work, and [`Search::apply`]. The state of a leaf is made by replaying
//! its path from the root into one scratch state, so that the tree holds no states; moves are generated once per
//! position; requests and paths come from buffers that are used again.

use std::mem;

use games::{Game, Move, MoverValue, Outcome, Rng, WhiteValue};

use crate::config::MAX_LEAVES;
use crate::priors::{normalise, temper};
use crate::select::Rules;
use crate::tree::{NONE, ROOT, Step, Tree};
use crate::{Proof, Request, SearchConfig, SearchError};

/// Most descents into known values in one [`Search::gather`]: less than a millisecond.
const KNOWN_AT_ONCE: usize = 1024;

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    node: u32,
    /// Its path in `Search::paths`: from here to the next one's beginning; empty for the root.
    path: usize,
}

enum Descent {
    /// The descent found a position to evaluate.
    Leaf,
    /// The descent ended in a known value, which is backed up.
    Known,
    /// The descent met a position whose answer is outstanding.
    Collision,
}

/// A tree, its root and its random numbers.
#[derive(Clone, Debug)]
pub struct Search<G: Game> {
    pub(crate) config: SearchConfig,
    pub(crate) root: G,
    pub(crate) tree: Tree,
    pub(crate) rng: Rng,
    spare: Tree,
    scratch: G,
    moves: Vec<Move>,
    path: Vec<Step>,
    paths: Vec<Step>,
    pending: Vec<Pending>,
    pool: Vec<Request>,
    noise_allowed: bool,
    full: bool,
    uniform_priors: u64,
    /// Lines that the root is kept wide for (see [`Search::set_breadth`]).
    pub(crate) breadth: usize,
    /// Plies of the longest path so far.
    pub(crate) deepest: usize,
}

impl<G: Game> Search<G> {
    /// A search at `root`. Its random numbers (root noise, playout caps, the choice of moves) come from `rng`.
    ///
    /// The configuration is taken as it is; check it with [`SearchConfig::check`] when it comes from outside.
    pub fn new(config: SearchConfig, root: G, rng: Rng) -> Self {
        let mut search = Search {
            config,
            scratch: root.clone(),
            root,
            tree: Tree::default(),
            rng,
            spare: Tree::default(),
            moves: Vec::new(),
            path: Vec::new(),
            paths: Vec::new(),
            pending: Vec::new(),
            pool: Vec::new(),
            noise_allowed: true,
            full: true,
            uniform_priors: 0,
            breadth: 1,
            deepest: 0,
        };
        search.plant();
        search.begin();
        search
    }

    /// Begins anew at another root, for another game, with the memory that the search already has.
    ///
    /// Answers that are outstanding must not be applied any more.
    pub fn reset(&mut self, root: G, rng: Rng) {
        self.pending.clear();
        self.paths.clear();
        self.root = root;
        self.rng = rng;
        self.plant();
        self.begin();
    }

    /// Allows or forbids root noise for the roots that are evaluated or advanced to from now on; `noise_weight` says how
    /// much of it.
    pub fn set_noise(&mut self, allowed: bool) {
        self.noise_allowed = allowed;
    }

    /// Where the search stands.
    pub fn root(&self) -> &G {
        &self.root
    }

    /// Whether this search is a full one, which gives a policy target; quick ones come from playout caps.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Visits of the root's moves that are answered.
    pub fn visits(&self) -> u32 {
        self.tree.node(ROOT).visits.saturating_sub(1)
    }

    /// Visits at which this search is finished.
    pub fn target(&self) -> u32 {
        match self.config.playout_cap {
            Some(cap) if !self.full => cap.simulations.max(1),
            _ => self.config.simulations.max(1),
        }
    }

    /// Whether there is nothing left to gather: the visits are done, or the root has no moves.
    pub fn finished(&self) -> bool {
        self.tree.node(ROOT).is_empty() || (self.pending.is_empty() && self.visits() >= self.target())
    }

    /// Evaluations whose priors had no mass and were taken as uniform (pains M5), since the search was made.
    pub fn uniform_priors(&self) -> u64 {
        self.uniform_priors
    }

    /// Positions in the tree.
    pub fn nodes(&self) -> usize {
        self.tree.len()
    }

    /// Appends the positions that the search wants evaluated next, at most `leaves`. Descents that end in a known
    /// value need no answer and are backed up at once, so that a search may finish without asking anything. After many of
    /// these it comes back with what it has, so that the caller can look at a clock.
    ///
    /// Does nothing while answers are outstanding.
    pub fn gather(&mut self, out: &mut Vec<Request>) {
        if !self.pending.is_empty() || self.finished() {
            return;
        }
        if self.tree.node(ROOT).visits == 0 {
            let mut request = self.pool.pop().unwrap_or_default();
            request.fill(&self.root, self.tree.moves(ROOT).iter().copied());
            self.pending.push(Pending { node: ROOT, path: 0 });
            out.push(request);
            return;
        }
        let leaves = self.config.leaves.clamp(1, MAX_LEAVES) as usize;
        let mut known = 0;
        while self.pending.len() < leaves
            && known < KNOWN_AT_ONCE
            && self.visits() + (self.pending.len() as u32) < self.target()
        {
            match self.descend(out) {
                Descent::Leaf => {}
                Descent::Known => known += 1,
                Descent::Collision => break,
            }
        }
    }

    /// Takes the answers to the requests of the last [`Search::gather`], in their order, and keeps their buffers.
    ///
    /// # Errors
    /// [`SearchError::AnswerCount`] or [`SearchError::NotFinite`] on answers that cannot be used; the tree is then as
    /// it was, and the answers may be applied again once they are good.
    pub fn apply(&mut self, answers: &mut [Request]) -> Result<(), SearchError> {
        if answers.len() != self.pending.len() {
            let (expected, got) = (self.pending.len(), answers.len());
            return Err(SearchError::AnswerCount { what: "answers", expected, got });
        }
        let mut uniform = 0;
        for (pending, answer) in self.pending.iter().zip(answers.iter_mut()) {
            let (expected, got) = (self.tree.moves(pending.node).len(), answer.priors.len());
            if expected != got {
                return Err(SearchError::AnswerCount { what: "priors", expected, got });
            }
            if !answer.value.0.is_finite() {
                return Err(SearchError::NotFinite { what: "a value that is not a number" });
            }
            uniform += u64::from(normalise(&mut answer.priors)?);
        }
        self.uniform_priors += uniform;
        for (i, answer) in answers.iter_mut().enumerate() {
            let Pending { node, path } = self.pending[i];
            let end = self.pending.get(i + 1).map_or(self.paths.len(), |next| next.path);
            temper(&mut answer.priors, self.config.policy_temperature);
            let value = MoverValue(answer.value.0.clamp(-1.0, 1.0));
            self.tree.evaluated(node, &answer.priors, value);
            if node == ROOT {
                self.add_noise();
            } else {
                self.tree.back_up(&self.paths[path..end], value.opponent(), self.config.solve);
            }
            self.pool.push(mem::take(answer));
        }
        self.pending.clear();
        self.paths.clear();
        Ok(())
    }

    /// Plays a move at the root and goes on from there, with the subtree of the move if `reuse_tree` says so.
    ///
    /// # Errors
    /// [`SearchError::IllegalMove`]; [`SearchError::Pending`] while answers are outstanding. The search is unchanged.
    pub fn advance(&mut self, m: Move) -> Result<(), SearchError> {
        if !self.pending.is_empty() {
            return Err(SearchError::Pending(self.pending.len()));
        }
        let Some((_, edge)) = self.tree.edges(ROOT).find(|(own, _)| *own == m) else {
            return Err(SearchError::IllegalMove { text: self.root.move_text(m), fen: self.root.fen() });
        };
        let child = edge.child;
        self.root.play(m);
        if self.config.reuse_tree && child != NONE {
            self.spare.copy_subtree(&self.tree, child);
            mem::swap(&mut self.tree, &mut self.spare);
        } else {
            self.plant();
        }
        self.begin();
        Ok(())
    }

    /// Makes the tree of a root that nothing is known of. A root that is over by a draw rule keeps its moves, since it
    /// may still have to be played (pains S3).
    fn plant(&mut self) {
        self.tree.clear();
        self.root.generate(&mut self.moves);
        self.tree.add(&self.moves);
    }

    /// Decides what kind of search the new root gets.
    fn begin(&mut self) {
        self.deepest = 0;
        self.full = match self.config.playout_cap {
            Some(cap) => self.rng.chance(f64::from(cap.full)),
            None => true,
        };
        if self.tree.node(ROOT).visits > 0 {
            self.add_noise();
        }
    }

    fn noisy(&self) -> bool {
        self.noise_allowed && self.full && self.config.noise_weight > 0.0
    }

    /// Mixes Dirichlet noise into the root's priors: once per root, as soon as it has priors.
    fn add_noise(&mut self) {
        let noisy = self.noisy();
        let moves = self.tree.moves(ROOT).len();
        if !noisy || moves == 0 {
            return;
        }
        let alpha = match self.config.noise_alpha {
            alpha if alpha > 0.0 => f64::from(alpha),
            _ => 10.0 / moves as f64,
        };
        let weight = self.config.noise_weight;
        let noise = self.rng.dirichlet(alpha, moves);
        let mut noise = noise.into_iter();
        self.tree.map_priors(ROOT, |prior| (1.0 - weight) * prior + weight * noise.next().unwrap_or(0.0) as f32);
    }

    /// Selection's constants at the root and below it.
    pub(crate) fn rules(&self, node: u32) -> Rules {
        let root = node == ROOT;
        Rules {
            c_puct: self.config.c_puct,
            fpu_reduction: if root && self.noisy() { 0.0 } else { self.config.fpu_reduction },
            virtual_loss: self.config.virtual_loss,
            solve: self.config.solve && !(root && self.breadth > 1),
            forced_playouts: if root && self.full { self.config.forced_playouts } else { 0.0 },
            breadth: if root { self.breadth } else { 0 },
        }
    }

    /// One simulation down to a position that needs an evaluation or to a value that is known.
    fn descend(&mut self, out: &mut Vec<Request>) -> Descent {
        let (at_root, below) = (self.rules(ROOT), self.rules(NONE));
        self.path.clear();
        let mut node = ROOT;
        loop {
            let step = self.tree.select(node, if node == ROOT { &at_root } else { &below });
            let step = self.tree.enter(step);
            self.path.push(step);
            let edge = self.tree.edge(step);
            if let Some(value) = edge.proof.value() {
                self.tree.back_up(&self.path, value, self.config.solve);
                return Descent::Known;
            }
            if edge.child == NONE {
                return self.expand(step, out);
            }
            node = edge.child;
            if self.tree.node(node).visits == 0 {
                self.tree.cancel(&self.path);
                return Descent::Collision;
            }
        }
    }

    /// Makes the position behind the path's last edge: a node and a request, or a proof if the game is over there.
    fn expand(&mut self, step: Step, out: &mut Vec<Request>) -> Descent {
        self.scratch.clone_from(&self.root);
        for &step in &self.path {
            self.scratch.play(self.tree.move_of(step));
        }
        self.deepest = self.deepest.max(self.path.len());
        let outcome = self.scratch.generate(&mut self.moves);
        let value = match outcome {
            Outcome::Decided { result, .. } => WhiteValue::from(result).mover(self.scratch.turn().other()),
            Outcome::Ongoing => {
                let child = self.tree.add(&self.moves);
                self.tree.edge_mut(step).child = child;
                let mut request = self.pool.pop().unwrap_or_default();
                request.fill(&self.scratch, self.moves.iter().copied());
                out.push(request);
                self.pending.push(Pending { node: child, path: self.paths.len() });
                self.paths.extend_from_slice(&self.path);
                return Descent::Leaf;
            }
        };
        // In the view of the side that made the move.
        self.tree.edge_mut(step).proof = match value.0 {
            v if v > 0.0 => Proof::Win(1),
            v if v < 0.0 => Proof::Loss(1),
            _ => Proof::Draw,
        };
        self.tree.back_up(&self.path, value, self.config.solve);
        Descent::Known
    }
}

impl<G: Game> AsMut<Search<G>> for Search<G> {
    fn as_mut(&mut self) -> &mut Search<G> {
        self
    }
}

#[cfg(test)]
mod tests;
