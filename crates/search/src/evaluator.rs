//! What a search asks and who answers.

use games::{Game, Move, MoverValue, Packed};

use crate::SearchError;

/// A position to evaluate, and the answer. Its buffers are recycled by the search that made it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The network input.
    pub packed: Packed,
    /// Policy indices of the legal moves, ascending.
    pub legal: Vec<u16>,
    /// The answer: a probability for each entry of `legal`. They need not sum to one.
    pub priors: Vec<f32>,
    /// The answer: the value in -1..1 from the view of the side to move.
    pub value: MoverValue,
}

impl Request {
    /// Asks about `game`, whose legal moves are `moves` (as [`Game::generate`] gives them).
    pub fn fill<G: Game>(&mut self, game: &G, moves: impl IntoIterator<Item = Move>) {
        self.packed = game.pack();
        self.legal.clear();
        self.legal.extend(moves.into_iter().map(|m| game.index(m)));
        self.priors.clear();
        self.value = MoverValue(0.0);
    }

    /// A question about `game`.
    pub fn new<G: Game>(game: &G) -> Self {
        let mut request = Request::default();
        request.fill(game, game.legal_moves());
        request
    }
}

/// Answers requests.
pub trait Evaluator: Send {
    /// Fills `priors` and `value` of every request. The answer to a request does not depend on the others.
    ///
    /// # Errors
    /// Whatever keeps the evaluator from answering; the requests are then in no particular state.
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError>;
}

impl<E: Evaluator + ?Sized> Evaluator for Box<E> {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        (**self).evaluate(requests)
    }
}

impl<E: Evaluator + ?Sized> Evaluator for &mut E {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        (**self).evaluate(requests)
    }
}

/// Knows nothing: every legal move is as likely, every position is even.
#[derive(Clone, Copy, Debug, Default)]
pub struct UniformEvaluator;

impl Evaluator for UniformEvaluator {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        for request in requests {
            let n = request.legal.len();
            request.priors.clear();
            request.priors.resize(n, 1.0 / n as f32);
            request.value = MoverValue(0.0);
        }
        Ok(())
    }
}
