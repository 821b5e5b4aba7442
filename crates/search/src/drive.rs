//! Many searches, one evaluator: the loop of self-play and of every test.

use games::Game;

use crate::{Evaluator, Request, Search, SearchError};

/// The buffers of joint rounds over many searches, kept from round to round.
#[derive(Clone, Debug, Default)]
pub struct Driver {
    requests: Vec<Request>,
    shares: Vec<usize>,
}

impl Driver {
    /// A driver without buffers yet.
    pub fn new() -> Self {
        Driver::default()
    }

    /// One round: gathers from every search that is not finished, evaluates all requests at once, applies the
    /// answers. Returns how many searches are unfinished after it.
    ///
    /// Between two rounds the caller may play moves in finished searches and let them go on, so that a batch does not
    /// shrink while games end. `S` is a search, or what the caller keeps with one.
    ///
    /// # Errors
    /// The evaluator's error, or the answers' refusal; the searches must then be reset.
    pub fn round<G, S>(&mut self, searches: &mut [S], evaluator: &mut dyn Evaluator) -> Result<usize, SearchError>
    where
        G: Game,
        S: AsMut<Search<G>>,
    {
        self.requests.clear();
        self.shares.clear();
        for search in searches.iter_mut() {
            let before = self.requests.len();
            search.as_mut().gather(&mut self.requests);
            self.shares.push(self.requests.len() - before);
        }
        if !self.requests.is_empty() {
            evaluator.evaluate(&mut self.requests)?;
        }
        let mut answers = self.requests.as_mut_slice();
        let mut unfinished = 0;
        for (search, share) in searches.iter_mut().zip(&self.shares) {
            let (own, rest) = answers.split_at_mut(*share);
            answers = rest;
            let search = search.as_mut();
            if !own.is_empty() {
                search.apply(own)?;
            }
            unfinished += usize::from(!search.finished());
        }
        Ok(unfinished)
    }
}

/// Runs all searches to their simulation count, in joint batches.
///
/// # Errors
/// See [`Driver::round`].
pub fn drive<G: Game>(searches: &mut [Search<G>], evaluator: &mut dyn Evaluator) -> Result<(), SearchError> {
    let mut driver = Driver::new();
    while driver.round(searches, evaluator)? > 0 {}
    Ok(())
}
