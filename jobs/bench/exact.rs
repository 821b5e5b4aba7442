//! Whether results are the same to the last bit, whatever the batch and the number of threads.

use games::{Game, Packed};
use nn::{Model, NnError, Trainer, TrainerConfig, Weights};
use tabiya::BoxError;

use crate::net::TrainingBatch;
use crate::{network, positions};

/// What a batch may look like: alone, a part of the kernels' group, more than one, many.
const BATCHES: [usize; 5] = [1, 3, 8, 64, 256];
const STEPS: usize = 10;

pub(crate) fn exact() -> Result<String, BoxError> {
    let word = |same: bool| if same { "yes" } else { "NO" };
    Ok(format!(
        "tabiya-exact: evaluations in batches of {BATCHES:?} bit-equal: {}; weights after {STEPS} steps, twice with one \
         thread and twice with two, bit-equal: {}",
        word(evaluations()?),
        word(training()?)
    ))
}

fn evaluations() -> Result<bool, BoxError> {
    let model = Model::from_network(&network(6, 64)?)?;
    let inputs: Vec<Packed> = positions(256).iter().map(Game::pack).collect();
    let bits = |batch: usize| -> Result<Vec<u32>, NnError> {
        let (mut executor, mut bits) = (model.executor(batch), Vec::new());
        for part in inputs.chunks(batch) {
            let (mut rows, outputs) = (Vec::new(), executor.evaluate(part)?);
            for (policy, value) in outputs.policy.chunks(outputs.policy.len() / part.len()).zip(outputs.value) {
                rows.extend(policy.iter().chain([value]).map(|x| x.to_bits()));
            }
            bits.extend(rows);
        }
        Ok(bits)
    };
    let alone = bits(1)?;
    BATCHES.into_iter().try_fold(true, |same, batch| Ok(same && bits(batch)? == alone))
}

fn training() -> Result<bool, BoxError> {
    let data = TrainingBatch::new(64);
    let train = || -> Result<Weights, BoxError> {
        let mut trainer = Trainer::new(network(6, 64)?, TrainerConfig::default())?;
        for _ in 0..STEPS {
            trainer.step(&data.view(), 1e-3)?;
        }
        Ok(trainer.network().weights()?)
    };
    let bits = |weights: Weights| -> Vec<u32> {
        weights.into_values().flat_map(|tensor| tensor.data).map(f32::to_bits).collect()
    };
    let mut runs = Vec::new();
    for threads in [1, 1, 2, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        runs.push(bits(pool.install(train)?));
    }
    Ok(runs.windows(2).all(|pair| pair[0] == pair[1]))
}
