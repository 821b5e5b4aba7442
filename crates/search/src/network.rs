//! A network behind the [`Evaluator`] trait, with a cache in front.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use games::{MoverValue, Packed};
use nn::{Executor, Model, NnError, Outputs};

use crate::cache::Cache;
use crate::{Evaluator, Request, SearchError, legal_softmax};

/// What an evaluator has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EvaluatorStats {
    /// Positions answered.
    pub requests: u64,
    /// Of these, from the cache.
    pub cached: u64,
    /// Of these, equal to another position of the same batch.
    pub duplicates: u64,
}

/// The hash of a key that is a hash already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// A network's executors and a cache of its answers. One thread uses one evaluator.
pub struct NetworkEvaluator {
    /// Each takes a share of a batch; one is the usual number.
    executors: Vec<Executor>,
    max_batch: usize,
    actions: usize,
    cache: Cache,
    /// Positions that the network has to look at, each once.
    unique: Vec<Packed>,
    keys: Vec<u64>,
    places: HashMap<u64, usize, BuildHasherDefault<KeyHasher>>,
    /// (request, its place in `unique`), ascending in neither.
    wanted: Vec<(usize, usize)>,
    stats: EvaluatorStats,
}

impl NetworkEvaluator {
    /// An evaluator that asks `model` about at most `max_batch` positions at once and remembers about
    /// `cache_entries` answers (200 bytes each; 0 for none). The answers do not depend on either number.
    ///
    /// # Errors
    /// [`SearchError::Memory`]: there is no memory for the answers.
    pub fn new(model: &Model, max_batch: usize, cache_entries: usize) -> Result<Self, SearchError> {
        NetworkEvaluator::with_threads(model, 1, max_batch, cache_entries)
    }

    /// An evaluator that shares a batch out among `threads` threads, each of which asks about at most `max_batch`
    /// positions at once: for a search that has the machine to itself. The answers are the same.
    ///
    /// # Errors
    /// [`SearchError::Memory`]: there is no memory for the answers.
    pub fn with_threads(
        model: &Model,
        threads: usize,
        max_batch: usize,
        cache_entries: usize,
    ) -> Result<Self, SearchError> {
        let max_batch = max_batch.max(1);
        Ok(NetworkEvaluator {
            executors: (0..threads.max(1)).map(|_| model.executor(max_batch)).collect(),
            max_batch,
            actions: model.architecture().shape().actions(),
            cache: Cache::new(cache_entries).map_err(|_| SearchError::Memory { entries: cache_entries })?,
            unique: Vec::new(),
            keys: Vec::new(),
            places: HashMap::default(),
            wanted: Vec::new(),
            stats: EvaluatorStats::default(),
        })
    }

    /// What it has done since it was made.
    pub fn stats(&self) -> EvaluatorStats {
        self.stats
    }

    /// Answers from the cache, and lists what is left in `unique` and `wanted`.
    fn look_up(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        self.unique.clear();
        self.keys.clear();
        self.places.clear();
        self.wanted.clear();
        for (i, request) in requests.iter_mut().enumerate() {
            // Before the network sees planes that are not its own; the last index is the greatest.
            if let Some(&index) = request.legal.last().filter(|index| usize::from(**index) >= self.actions) {
                return Err(SearchError::Actions { index, actions: self.actions });
            }
            let key = request.packed.key();
            if let Some(value) = self.cache.get(key, request.legal.len(), &mut request.priors) {
                request.value = value;
                self.stats.cached += 1;
                continue;
            }
            let next = self.unique.len();
            let place = *self.places.entry(key).or_insert(next);
            if place == next {
                self.unique.push(request.packed);
                self.keys.push(key);
            } else {
                self.stats.duplicates += 1;
            }
            self.wanted.push((i, place));
        }
        self.wanted.sort_unstable_by_key(|(i, place)| (*place, *i));
        self.stats.requests += requests.len() as u64;
        Ok(())
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        self.look_up(requests)?;
        let mut wanted = self.wanted.iter().peekable();
        let actions = self.actions;
        let share = self.unique.len().div_ceil(self.executors.len()).clamp(1, self.max_batch);
        let mut first = 0;
        for inputs in self.unique.chunks(share * self.executors.len()) {
            for outputs in evaluate_side_by_side(&mut self.executors, inputs, share) {
                let outputs = outputs?;
                let rows = outputs.value.len();
                while let Some(&(i, place)) = wanted.next_if(|(_, place)| *place < first + rows) {
                    let request = &mut requests[i];
                    let row = place - first;
                    let logits = &outputs.policy[row * actions..(row + 1) * actions];
                    legal_softmax(logits, &request.legal, &mut request.priors)?;
                    let value = outputs.value[row];
                    if !value.is_finite() {
                        return Err(SearchError::NotFinite { what: "a value that is not a number" });
                    }
                    request.value = MoverValue(value);
                    self.cache.put(self.keys[place], &request.priors, request.value);
                }
                first += rows;
            }
        }
        Ok(())
    }
}

/// Evaluates consecutive parts of `share` positions, each by an executor of its own; there are enough of them.
fn evaluate_side_by_side<'a>(
    executors: &'a mut [Executor],
    inputs: &[Packed],
    share: usize,
) -> Vec<Result<Outputs<'a>, NnError>> {
    let mut parts = executors.iter_mut().zip(inputs.chunks(share));
    let Some((own, first)) = parts.next() else { return Vec::new() };
    if first.len() == inputs.len() {
        return vec![own.evaluate(first)];
    }
    let mut others: Vec<Option<Result<Outputs<'a>, NnError>>> = Vec::new();
    others.resize_with(inputs.len().div_ceil(share) - 1, || None);
    // Rayon's threads are awake already where starting new ones would take as long as a small network.
    let own = rayon::in_place_scope(|scope| {
        for ((executor, part), slot) in parts.zip(&mut others) {
            scope.spawn(move |_| *slot = Some(executor.evaluate(part)));
        }
        own.evaluate(first)
    });
    std::iter::once(own).chain(others.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use games::{Connect4, Game, MoverValue, Rng};
    use nn::{Model, NetConfig, Network};

    use super::NetworkEvaluator;
    use crate::{Evaluator, Request, Search, SearchConfig, SearchError, Service, ServiceConfig, drive};

    fn model() -> Model {
        let config = NetConfig { blocks: 1, channels: 16, ..NetConfig::default() };
        let device = nn::select_device("cpu").unwrap();
        Model::from_network(&Network::new(&config.architecture(Connect4::SHAPE), &device, 3).unwrap()).unwrap()
    }

    /// Positions of random play, some of them twice.
    fn requests(count: u64) -> Vec<Request> {
        let position = |seed: u64| {
            let (mut game, mut rng) = (Connect4::start(), Rng::new(seed));
            for _ in 0..1 + seed % 6 {
                let moves = game.legal_moves();
                game.play(moves[rng.below(moves.len())]);
            }
            Request::new(&game)
        };
        (0..count).map(|i| position(if i % 5 == 4 { i - 1 } else { i })).collect()
    }

    fn answers(evaluator: &mut NetworkEvaluator, mut requests: Vec<Request>) -> Vec<(Vec<f32>, MoverValue)> {
        evaluator.evaluate(&mut requests).unwrap();
        requests.into_iter().map(|r| (r.priors, r.value)).collect()
    }

    #[test]
    fn answers_do_not_depend_on_batch_or_cache() {
        let model = model();
        let mut alone = NetworkEvaluator::new(&model, 1, 0).unwrap();
        let expected: Vec<_> = requests(60).into_iter().flat_map(|r| answers(&mut alone, vec![r])).collect();
        assert!(expected.iter().all(|(p, _)| (p.iter().sum::<f32>() - 1.0).abs() < 1e-5));
        let mut joint = NetworkEvaluator::new(&model, 7, 1000).unwrap();
        assert_eq!(answers(&mut joint, requests(60)), expected);
        let first = joint.stats();
        assert!(first.duplicates >= 12 && first.cached == 0, "{first:?}");
        assert_eq!(answers(&mut joint, requests(60)), expected);
        assert_eq!(joint.stats().cached, 60, "now all are known");
        for (threads, batch) in [(3, 4), (2, 64), (64, 1)] {
            let mut shared = NetworkEvaluator::with_threads(&model, threads, batch, 0).unwrap();
            assert_eq!(answers(&mut shared, requests(60)), expected, "{threads} threads");
        }
    }

    #[test]
    fn searches_are_the_same_with_a_network_of_their_own_and_through_the_service() {
        let model = model();
        let config = SearchConfig { simulations: 60, leaves: 2, noise_weight: 0.25, ..SearchConfig::default() };
        let searches = || -> Vec<_> { (0..6).map(|i| Search::new(config, Connect4::start(), Rng::new(i))).collect() };
        let mut own = searches();
        drive(&mut own, &mut NetworkEvaluator::new(&model, 16, 0).unwrap()).unwrap();
        let service_config = ServiceConfig { executors: 2, batch: 8, ..ServiceConfig::default() };
        let service = Service::start(service_config, |_| NetworkEvaluator::new(&model, 8, 500)).unwrap();
        let served = service.run_workers(2, |worker, client| {
            let mut part: Vec<_> = searches().into_iter().skip(3 * worker).take(3).collect();
            drive(&mut part, client).map(|()| part)
        });
        for (own, served) in own.iter().zip(served.unwrap().iter().flatten()) {
            assert_eq!(own.root_report().unwrap(), served.root_report().unwrap());
        }
    }

    #[test]
    fn a_network_of_another_game_is_refused() {
        let mut evaluator = NetworkEvaluator::new(&model(), 1, 0).unwrap();
        let error = evaluator.evaluate(&mut [Request::new(&games::Chess::start())]).unwrap_err();
        assert!(matches!(error, SearchError::Actions { .. }), "{error}");
    }
}
