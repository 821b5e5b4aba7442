//! A course of training: batches of a loader through a trainer under a schedule, with checkpoints from which a killed run
//! goes on in the middle of an epoch. Pre-training, refinement and the policy network's training are all courses.
//!
//! The loader is a function of seed and epoch, so that a course resumes by skipping the batches it has had.

use std::path::Path;
use std::time::{Duration, Instant};

use dataset::{Batch, Loader, LoaderSpec, Sources};
use games::Game;
use nn::{
    BatchView, Best, Checkpoint, CheckpointInfo, EvalReport, Network, NnError, OptimizerConfig, PolicyTrainer,
    Schedule, StepReport, Trainer, TrainerConfig,
};
use pipeline::{Metrics, Progress, Store};
use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::stages::Stages;
use crate::{Error, Result};

/// Held-out positions at a look in the middle of an epoch.
const LOOK_POSITIONS: usize = 16_384;
/// A kill costs at most this much training, whatever `checkpoint_steps` says.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
/// Steps between two lines of metrics.
const METRICS_STEPS: u64 = 20;

/// Where a course stands; saved in the checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The epoch in hand, from 0.
    pub(crate) epoch: u64,
    /// Batches of it that have been trained on.
    pub(crate) batch: u64,
    /// Optimizer steps in all.
    pub(crate) step: u64,
    /// Seconds spent in steps.
    pub(crate) seconds: f64,
    /// Positions trained on, with repetitions.
    pub(crate) positions: u64,
    /// Sums of the losses since the last line of metrics, and their number.
    pub(crate) recent: Losses,
    /// The same of the last line of metrics.
    pub(crate) last: Losses,
}

/// Means of recent losses.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Losses {
    pub(crate) policy: f64,
    pub(crate) value: f64,
    /// Absent from checkpoints of an earlier version.
    #[serde(default)]
    pub(crate) top1: f64,
    pub(crate) steps: u64,
}

impl Losses {
    pub(crate) fn mean(&self) -> (f64, f64) {
        let n = self.steps.max(1) as f64;
        (self.policy / n, self.value / n)
    }
}

/// Looks at some of the held-out games while training goes on, for the curves in the metrics.
pub(crate) struct Looks {
    pub(crate) every: u64,
    pub(crate) loader: LoaderSpec,
}

/// What learns in a course.
pub(crate) trait Learner {
    /// One step on a batch at the rate `lr`.
    fn step(&mut self, view: &BatchView<'_>, lr: f64) -> std::result::Result<StepReport, NnError>;

    /// Writes a checkpoint of the candidate with its optimizer.
    fn save(&self, store: &Store, best: Best<'_>, info: &CheckpointInfo) -> std::result::Result<(), NnError>;

    /// Judges batches with the candidate as it is now.
    fn judge(&self) -> std::result::Result<Judge, NnError>;
}

/// The losses and hits of a batch.
pub(crate) type Judge = Box<dyn FnMut(&BatchView<'_>) -> std::result::Result<EvalReport, NnError>>;

impl Learner for Trainer {
    fn step(&mut self, view: &BatchView<'_>, lr: f64) -> std::result::Result<StepReport, NnError> {
        Trainer::step(self, view, lr)
    }

    fn save(&self, store: &Store, best: Best<'_>, info: &CheckpointInfo) -> std::result::Result<(), NnError> {
        Checkpoint::save_trainer(store, self, best, info)
    }

    fn judge(&self) -> std::result::Result<Judge, NnError> {
        let validator = self.validator()?;
        Ok(Box::new(move |view| validator.evaluate(view)))
    }
}

impl Learner for PolicyTrainer {
    fn step(&mut self, view: &BatchView<'_>, lr: f64) -> std::result::Result<StepReport, NnError> {
        PolicyTrainer::step(self, view, lr)
    }

    fn save(&self, store: &Store, best: Best<'_>, info: &CheckpointInfo) -> std::result::Result<(), NnError> {
        Checkpoint::save_policy(store, self, best, info)
    }

    fn judge(&self) -> std::result::Result<Judge, NnError> {
        let mut validator = self.validator()?;
        Ok(Box::new(move |view| validator.evaluate(view)))
    }
}

/// What a course is made of.
pub(crate) struct Course<'a, L> {
    pub(crate) stages: Stages<'a>,
    pub(crate) store: &'a Store,
    /// The data, verified once for all epochs.
    pub(crate) sources: Sources,
    pub(crate) learner: L,
    pub(crate) schedule: Schedule,
    pub(crate) place: Place,
    pub(crate) checkpoint_steps: u64,
    pub(crate) looks: Option<Looks>,
    /// What a checkpoint says beside the weights.
    pub(crate) info: CheckpointInfo,
    pub(crate) metrics: Metrics,
    pub(crate) progress: Progress,
}

/// How an epoch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// The loader had no more.
    Epoch,
    /// The schedule's last step is done.
    Schedule,
}

impl<L: Learner> Course<'_, L> {
    /// Trains to the end of the epoch in hand, or of the schedule.
    ///
    /// `state` is asked for what the caller wants to find in the checkpoint when it resumes.
    pub(crate) fn train_epoch<G: Game>(
        &mut self,
        spec: LoaderSpec,
        state: &dyn Fn(&Place) -> serde_json::Value,
    ) -> Result<Ended> {
        let mut loader = Loader::<G>::over(&self.sources, spec)?;
        warn(&loader.warnings());
        self.skip(&mut loader)?;
        let mut saved = Instant::now();
        while self.place.step < self.schedule.total {
            if self.stages.stop.requested() {
                self.save(Best::Keep, state)?;
                self.stages.stop.check()?;
            }
            let started = Instant::now();
            let Some(batch) = loader.next()? else { return Ok(Ended::Epoch) };
            let lr = self.schedule.lr(self.place.step);
            let report = self.learner.step(&view(&batch), lr)?;
            let place = &mut self.place;
            place.seconds += started.elapsed().as_secs_f64();
            place.batch += 1;
            place.step += 1;
            place.positions += batch.rows as u64;
            place.recent.policy += report.policy_loss;
            place.recent.value += report.value_loss;
            place.recent.top1 += report.top1;
            place.recent.steps += 1;
            if place.step.is_multiple_of(METRICS_STEPS) {
                self.log(lr, report.grad_norm)?;
            }
            // A stop in the middle of a look shall not cost the steps before it.
            if let Err(error) = self.look::<G>() {
                if self.stages.stop.check().is_err() {
                    self.save(Best::Keep, state)?;
                }
                return Err(error);
            }
            if self.place.step.is_multiple_of(self.checkpoint_steps.max(1)) || saved.elapsed() > CHECKPOINT_EVERY {
                self.save(Best::Keep, state)?;
                saved = Instant::now();
            }
        }
        Ok(Ended::Schedule)
    }

    /// Goes to the batch in hand, looking for a stop request now and then.
    fn skip<G: Game>(&self, loader: &mut Loader<G>) -> Result<()> {
        let mut left = self.place.batch;
        while left > 0 {
            self.stages.stop.check()?;
            let some = left.min(16);
            loader.skip(some)?;
            left -= some;
        }
        Ok(())
    }

    fn log(&mut self, lr: f64, grad_norm: f64) -> Result<()> {
        let (policy, value) = self.place.recent.mean();
        let top1 = self.place.recent.top1 / self.place.recent.steps.max(1) as f64;
        self.place.last = std::mem::take(&mut self.place.recent);
        let rate = self.place.positions as f64 / self.place.seconds.max(1e-9);
        self.metrics.log(
            self.place.step,
            &[
                ("train/policy_loss", policy),
                ("train/value_loss", value),
                ("train/top1", top1),
                ("train/learning_rate", lr),
                ("train/grad_norm", grad_norm),
                ("train/positions_per_second", rate),
            ],
        )?;
        // A network without a value head has no value loss.
        let value = if value > 0.0 { format!(", value {value:.3}") } else { String::new() };
        let note = format!("policy {policy:.3}{value}, {rate:.0} positions/s");
        self.progress.set(self.place.step, &note);
        Ok(())
    }

    /// Writes a checkpoint of the candidate with optimizer and place.
    pub(crate) fn save(&mut self, best: Best<'_>, state: &dyn Fn(&Place) -> serde_json::Value) -> Result<()> {
        self.info.loader = state(&self.place);
        Ok(self.learner.save(self.store, best, &self.info)?)
    }

    /// Losses and accuracies over all batches of a loader, into the metrics.
    pub(crate) fn validate<G: Game>(&mut self, spec: LoaderSpec) -> Result<EvalReport> {
        self.validate_some::<G>(spec, usize::MAX)
    }

    /// Validates on some of the held-out games if it is time to; the metrics are all that comes of it.
    fn look<G: Game>(&mut self) -> Result<()> {
        let step = self.place.step;
        let due = |looks: &&Looks| step.is_multiple_of(looks.every.max(1)) && step < self.schedule.total;
        let Some(loader) = self.looks.as_ref().filter(due).map(|looks| looks.loader.clone()) else { return Ok(()) };
        self.validate_some::<G>(loader, LOOK_POSITIONS)?;
        Ok(())
    }

    fn validate_some<G: Game>(&mut self, spec: LoaderSpec, most: usize) -> Result<EvalReport> {
        let mut loader = Loader::<G>::over(&self.sources, spec)?;
        let (mut judge, mut total) = (self.learner.judge()?, EvalReport::default());
        while total.rows < most
            && let Some(batch) = loader.next()?
        {
            self.stages.stop.check()?;
            total.add(&judge(&view(&batch))?);
        }
        if total.rows == 0 {
            return Ok(total);
        }
        self.metrics.log(
            self.place.step,
            &[
                ("validation/policy_loss", total.policy_loss()),
                ("validation/value_loss", total.value_loss()),
                ("validation/top1", total.top1_share()),
                ("validation/top5", total.top5_share()),
                ("validation/value_error", total.value_abs_error()),
            ],
        )?;
        Ok(total)
    }
}

/// The metrics of a course that stands at `step`: a killed run may have logged steps that are made again.
pub(crate) fn metrics_from(dir: &Path, step: u64) -> Result<Metrics> {
    let mut metrics = Metrics::open(dir)?;
    metrics.rewind(step)?;
    Ok(metrics)
}

/// Says what a reader skipped.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        pipeline::say!("warning: {warning}");
    }
}

/// A loader's batch as the network takes it.
pub fn view(batch: &Batch) -> BatchView<'_> {
    BatchView {
        rows: batch.rows,
        planes: &batch.planes,
        legal_offsets: &batch.legal_offsets,
        legal: &batch.legal,
        target: &batch.target,
        value: &batch.value,
        value_weight: &batch.value_weight,
    }
}

/// What the trainer is told by a stage's settings.
pub(crate) fn trainer_config(
    method: nn::Method,
    weight_decay: f64,
    clip: f64,
    value_factor: f64,
    ema: f64,
) -> TrainerConfig {
    let optimizer = OptimizerConfig { method, weight_decay, clip, ..OptimizerConfig::default() };
    TrainerConfig { optimizer, value_factor, ema: (ema > 0.0).then_some(ema) }
}

/// What every checkpoint of a run says.
pub(crate) fn info(profile: &Profile, iteration: u32, data: &str) -> CheckpointInfo {
    CheckpointInfo {
        iteration: u64::from(iteration),
        config: serde_json::to_value(profile).unwrap_or_default(),
        data_fingerprint: data.to_owned(),
        ..CheckpointInfo::default()
    }
}

/// Writes a checkpoint of random weights from the run's seed; the weights' fingerprint.
pub(crate) fn save_untrained<G: Game>(profile: &Profile, store: &Store) -> Result<String> {
    let network = Network::new(&profile.architecture(G::SHAPE), &nn::select_device(&profile.device)?, profile.seed)?;
    Checkpoint::save_network(store, &network, Best::Candidate, &info(profile, 0, ""))?;
    Ok(Checkpoint::load(store)?.fingerprint())
}

/// The batches of an epoch, counted by reading it through once. Stops early on request.
pub(crate) fn count_batches<G: Game>(
    stages: Stages<'_>,
    sources: &Sources,
    spec: &LoaderSpec,
    hint: &'static str,
) -> Result<u64> {
    let batches = Loader::<G>::count_batches(sources, spec, || Ok::<_, Error>(stages.stop.check()?))?;
    if batches == 0 {
        let dir = spec.sources[0].dirs[0].clone();
        return Err(Error::NoPositions { path: dir, hint });
    }
    Ok(batches)
}
