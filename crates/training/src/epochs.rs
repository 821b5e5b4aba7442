//! Epochs of supervised training, each judged on held-out games: the best is kept, and training ends when it gets no
//! better. Where a killed run stood is in the checkpoint.

use dataset::{LoaderSpec, Part, Sources};
use games::Game;
use nn::{Best, Checkpoint, CheckpointInfo, Schedule};
use pipeline::{Progress, Stage};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::course::{Course, Learner, Looks, Place, count_batches, metrics_from};
use crate::stages::Stages;

/// What one epoch reached on the held-out games.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epochs of training before this; 0 is the untrained network.
    pub epoch: u64,
    /// Cross-entropy over the legal moves, in nats.
    pub policy_loss: f64,
    /// Value loss as trained.
    pub value_loss: f64,
    /// Fraction of positions whose most probable move is the target's.
    pub top1: f64,
    /// Fraction of positions whose target move is among the five most probable.
    pub top5: f64,
    /// Mean distance of value and target, both in -1..1.
    pub value_error: f64,
}

impl EpochReport {
    /// What the best epoch is chosen by.
    fn loss(&self, value_weight: f64) -> f64 {
        self.policy_loss + value_weight * self.value_loss
    }
}

impl std::fmt::Display for EpochReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A network without a value head has no value loss.
        let valued = self.value_loss > 0.0;
        write!(f, "after epoch {}: validation policy loss {:.3}, ", self.epoch, self.policy_loss)?;
        if valued {
            write!(f, "value loss {:.3}, ", self.value_loss)?;
        }
        write!(f, "top-1 {:.1} %, top-5 {:.1} %", 100.0 * self.top1, 100.0 * self.top5)?;
        if valued { write!(f, ", value error {:.3}", self.value_error) } else { Ok(()) }
    }
}

/// What supervised training reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainingReport {
    /// The validation after each epoch; the first is the untrained network.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose weights were kept.
    pub best_epoch: u64,
    /// Optimizer steps.
    pub steps: u64,
    /// Training rate, loading included.
    pub positions_per_second: f64,
    /// Trained numbers of the network.
    pub parameters: u64,
}

impl std::fmt::Display for TrainingReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} parameters, {} steps at {:.0} positions/s",
            self.parameters, self.steps, self.positions_per_second
        )?;
        // Each epoch was told when it was judged.
        let last = self.epochs.last().map_or(0, |e| e.epoch);
        writeln!(f, "the weights after epoch {} of {last} are kept", self.best_epoch)
    }
}

/// What the checkpoint remembers of a run that is not done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) place: Place,
    /// Steps of the whole schedule.
    total: u64,
    /// The validation after each epoch; the first is the untrained network.
    epochs: Vec<EpochReport>,
    /// The epoch whose weights were kept.
    best_epoch: u64,
    worse: u64,
}

impl State {
    /// What a checkpoint remembers; the start where there is none yet.
    pub(crate) fn of(saved: Option<&Checkpoint>) -> Result<Self> {
        saved.map_or_else(|| Ok(State::default()), |checkpoint| Ok(checkpoint.progress()?))
    }

    /// The state with the course at `place`, for the checkpoint.
    fn at(&self, place: &Place) -> serde_json::Value {
        serde_json::to_value(State { place: place.clone(), ..self.clone() }).unwrap_or_default()
    }
}

/// How a stage trains.
pub(crate) struct Epochs<'a> {
    pub(crate) stages: Stages<'a>,
    pub(crate) stage: &'a Stage,
    /// In messages.
    pub(crate) name: &'a str,
    /// Most passes over the data.
    pub(crate) epochs: u64,
    /// Most steps; 0 for no limit.
    pub(crate) max_steps: u64,
    /// Highest learning rate, and that of the last step.
    pub(crate) peak_lr: f64,
    pub(crate) end_lr: f64,
    /// Epochs without a better validation loss after which training stops.
    pub(crate) patience: u64,
    /// Weight of the value loss in the validation loss.
    pub(crate) value_weight: f64,
    pub(crate) checkpoint_steps: u64,
    /// Looks at some of the held-out games within the schedule, for the metrics; 0 for none.
    pub(crate) looks: u64,
    /// Trained numbers of the network.
    pub(crate) parameters: u64,
    /// What to check if there is nothing to train on.
    pub(crate) hint: &'static str,
    /// What the checkpoints say beside weights and place.
    pub(crate) info: CheckpointInfo,
    /// The data of an epoch.
    pub(crate) loader: &'a dyn Fn(u64, Part) -> LoaderSpec,
}

impl Epochs<'_> {
    /// Trains from `state` to the end, and closes the stage.
    pub(crate) fn run<G: Game, L: Learner>(&self, learner: L, mut state: State) -> Result<TrainingReport> {
        let first = (self.loader)(0, Part::Train);
        let sources: Sources = first.open()?;
        if state.total == 0 {
            let steps = count_batches::<G>(self.stages, &sources, &first, self.hint)? * self.epochs.max(1);
            state.total = if self.max_steps > 0 { steps.min(self.max_steps) } else { steps };
        }
        let mut course = Course {
            stages: self.stages,
            store: self.stage.store(),
            sources,
            learner,
            schedule: Schedule::new(self.peak_lr, self.end_lr, state.total),
            place: state.place.clone(),
            checkpoint_steps: self.checkpoint_steps,
            looks: (self.looks > 0).then(|| Looks {
                every: state.total.div_ceil(self.looks + 1),
                loader: (self.loader)(0, Part::Validation),
            }),
            info: self.info.clone(),
            metrics: metrics_from(self.stage.dir(), state.place.step)?,
            progress: Progress::new(self.name, Some(state.total)),
        };
        loop {
            // An epoch that was trained and not yet judged: also where a run goes on that was killed in between.
            if state.epochs.len() as u64 <= course.place.epoch {
                self.judge::<G, L>(&mut course, &mut state)?;
            }
            let over = course.place.epoch >= self.epochs.max(1) || course.place.step >= state.total;
            if over || state.worse >= self.patience.max(1) {
                break;
            }
            let remember = |place: &Place| state.at(place);
            course.train_epoch::<G>((self.loader)(course.place.epoch, Part::Train), &remember)?;
            course.place.epoch += 1;
            course.place.batch = 0;
            course.save(Best::Keep, &remember)?;
        }
        course.progress.set(course.place.step, "");
        course.progress.finish("done");
        let place = course.place;
        let report = TrainingReport {
            best_epoch: state.best_epoch,
            epochs: state.epochs,
            steps: place.step,
            positions_per_second: place.positions as f64 / place.seconds.max(1e-9),
            parameters: self.parameters,
        };
        let weights = Checkpoint::load(self.stage.store())?.fingerprint();
        self.stage.finish(&weights, &report)?;
        Ok(report)
    }

    /// Validates, keeps the weights if they are the best so far, and saves.
    fn judge<G: Game, L: Learner>(&self, course: &mut Course<'_, L>, state: &mut State) -> Result<()> {
        let sums = course.validate::<G>((self.loader)(0, Part::Validation))?;
        let report = EpochReport {
            epoch: course.place.epoch,
            policy_loss: sums.policy_loss(),
            value_loss: sums.value_loss(),
            top1: sums.top1_share(),
            top5: sums.top5_share(),
            value_error: sums.value_abs_error(),
        };
        pipeline::say!("{}: {report}", self.name);
        // Without held-out games nothing can be compared: the last epoch counts as the best.
        let best = state.epochs.iter().find(|e| e.epoch == state.best_epoch);
        let better = sums.rows == 0 || best.is_none_or(|b| report.loss(self.value_weight) < b.loss(self.value_weight));
        if better {
            state.best_epoch = report.epoch;
            state.worse = 0;
        } else {
            state.worse += 1;
        }
        state.epochs.push(report);
        let state = &*state;
        course.save(if better { Best::Candidate } else { Best::Keep }, &|place| state.at(place))
    }
}
