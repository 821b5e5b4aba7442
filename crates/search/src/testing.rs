//! Evaluators and shorthands for the tests of this crate.

use games::{MoverValue, Rng};

use crate::tree::{Step, Tree};
use crate::{Evaluator, Request, SearchError};

/// The step by a position's `index`-th move, whether it was tried or not.
pub(crate) fn step(tree: &Tree, node: u32, index: u16) -> Step {
    let tried = tree.tried(node).iter().position(|e| e.index == index);
    tried.map_or_else(|| tree.first_step(node, index), |at| tree.step(node, at))
}

/// A pseudo-network: priors and value are a function of the planes alone, as a real network's are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HashEvaluator;

impl Evaluator for HashEvaluator {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        for request in requests {
            let mut rng = Rng::new(request.packed.key());
            request.priors.clear();
            request.priors.extend(request.legal.iter().map(|_| rng.unit() as f32 + 0.05));
            request.value = MoverValue((rng.unit() * 1.6 - 0.8) as f32);
        }
        Ok(())
    }
}

/// Answers by a function, request by request.
pub(crate) struct With<F>(pub(crate) F);

impl<F: FnMut(&mut Request) -> Result<(), SearchError> + Send> Evaluator for With<F> {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        requests.iter_mut().try_for_each(&mut self.0)
    }
}
