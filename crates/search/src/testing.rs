//! Evaluators for the tests of this crate.

use games::{MoverValue, Rng};

use crate::{Evaluator, Request, SearchError};

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
