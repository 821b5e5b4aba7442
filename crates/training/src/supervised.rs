//! Supervised training on the corpus: the `pretrain` stage.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dataset::{LoaderSpec, Part, Source, Split};
use games::Game;
use nn::{Best, Checkpoint, Network, Schedule, Trainer};
use pipeline::{Progress, Stage, StageSpec, Stop};
use serde::{Deserialize, Serialize};

use crate::course::{Course, Looks, Place, count_batches, info, metrics_from, trainer_config};
use crate::profile::{Layout, Profile, content};
use crate::stages::{Stages, fingerprint, locked_stage, required};
use crate::{Error, Result};

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

/// What pre-training reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PretrainReport {
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

impl std::fmt::Display for PretrainReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} parameters, {} steps at {:.0} positions/s",
            self.parameters, self.steps, self.positions_per_second
        )?;
        for e in &self.epochs {
            let kept = if e.epoch == self.best_epoch { " (kept)" } else { "" };
            writeln!(
                f,
                "  after epoch {}: validation policy loss {:.3}, value loss {:.3}, top-1 {:.1} %, top-5 {:.1} %, value error {:.3}{kept}",
                e.epoch,
                e.policy_loss,
                e.value_loss,
                100.0 * e.top1,
                100.0 * e.top5,
                e.value_error
            )?;
        }
        Ok(())
    }
}

/// What the checkpoint remembers of a run that is not done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    place: Place,
    /// Steps of the whole schedule.
    total: u64,
    epochs: Vec<EpochReport>,
    best_epoch: u64,
    worse: u64,
}

impl State {
    /// The state with the course at `place`, for the checkpoint.
    fn at(&self, place: &Place) -> serde_json::Value {
        serde_json::to_value(State { place: place.clone(), ..self.clone() }).unwrap_or_default()
    }
}

/// Trains a network on the corpus.
///
/// # Errors
/// No corpus, nothing in it to train on, a loss that is not finite, a disk that cannot be written, or a stop request.
pub fn pretrain<G: Game>(profile: &Profile, layout: &Layout, stop: &Stop) -> Result<PretrainReport> {
    if profile.game != games::Chess::NAME {
        return Err(Error::NoTeacher(profile.game.clone()));
    }
    let lesson = Lesson { name: "pretrain".to_owned(), dir: layout.pretrain(), games: None };
    learn::<G>(Stages { profile, layout, stop }, &lesson)
}

/// A course of supervised training.
pub(crate) struct Lesson {
    /// The stage's.
    pub(crate) name: String,
    /// Where it is kept.
    pub(crate) dir: PathBuf,
    /// Learns only from the games whose id is below this. The held-out games stay those of the whole corpus.
    pub(crate) games: Option<u64>,
}

/// Trains as `[pretrain]` says, or reads what training has reached.
pub(crate) fn learn<G: Game>(stages: Stages<'_>, lesson: &Lesson) -> Result<PretrainReport> {
    let corpus = required(stages.layout.corpus(), "the corpus", "corpus")?;
    let Some(stage) = locked_stage(spec::<G>(stages, lesson, &fingerprint(&corpus)), stages.layout, None)? else {
        let stamp = required(lesson.dir.clone(), "the network", "pretrain")?;
        return serde_json::from_value(stamp.summary).map_err(|_| Error::Summary("pretrain"));
    };
    let report = Pretraining { stages, stage: &stage, lesson, corpus: fingerprint(&corpus) }.run::<G>()?;
    let weights = Checkpoint::load(stage.store())?.fingerprint();
    stage.finish(&weights, serde_json::to_value(&report).unwrap_or_default())?;
    Ok(report)
}

fn spec<G: Game>(stages: Stages<'_>, lesson: &Lesson, corpus: &str) -> StageSpec {
    let profile = stages.profile;
    let mut settings = serde_json::json!({
        "game": G::NAME,
        "seed": profile.seed,
        "net": profile.net,
        "pretrain": content(&profile.pretrain, &["checkpoint_steps", "looks"]),
    });
    if let Some(games) = lesson.games {
        settings["games"] = games.into();
    }
    let inputs = BTreeMap::from([("corpus".to_owned(), corpus.to_owned())]);
    stages.spec(&lesson.name, lesson.dir.clone(), settings, inputs)
}

struct Pretraining<'a> {
    stages: Stages<'a>,
    stage: &'a Stage,
    lesson: &'a Lesson,
    corpus: String,
}

impl Pretraining<'_> {
    fn run<G: Game>(&self) -> Result<PretrainReport> {
        let (profile, config, store) = (self.stages.profile, &self.stages.profile.pretrain, self.stage.store());
        let device = nn::select_device(&profile.device)?;
        let architecture = profile.architecture(G::SHAPE);
        let settings =
            trainer_config(config.optimizer, config.weight_decay, config.clip_norm, config.value_weight, config.ema);
        let saved = Checkpoint::find(store)?;
        let remembered = saved.as_ref().map(|c| serde_json::from_value(c.info.loader.clone()));
        let mut state: State = remembered.and_then(std::result::Result::ok).unwrap_or_default();
        let trainer = match &saved {
            Some(checkpoint) => {
                checkpoint.expect_architecture(&architecture)?;
                checkpoint.trainer(&device, settings)?
            }
            None => Trainer::new(Network::new(&architecture, &device, profile.seed)?, settings)?,
        };
        let first = self.loader(0, Part::Train);
        let sources = first.open()?;
        if state.total == 0 {
            let batches = count_batches::<G>(self.stages, &sources, &first)?;
            let steps = batches * config.epochs.max(1);
            state.total = if config.max_steps > 0 { steps.min(config.max_steps) } else { steps };
        }
        let mut course = Course {
            stages: self.stages,
            store,
            sources,
            trainer,
            schedule: Schedule::new(config.peak_lr, config.end_lr, state.total),
            place: state.place.clone(),
            checkpoint_steps: config.checkpoint_steps,
            looks: (config.looks > 0).then(|| Looks {
                every: state.total.div_ceil(config.looks + 1),
                loader: self.loader(0, Part::Validation),
            }),
            info: info(profile, 0, &self.corpus),
            metrics: metrics_from(self.stage.dir(), state.place.step)?,
            progress: Progress::new(&self.lesson.name, Some(state.total)),
        };
        loop {
            // An epoch that was trained and not yet judged: also where a run goes on that was killed in between.
            if state.epochs.len() as u64 <= course.place.epoch {
                self.judge::<G>(&mut course, &mut state)?;
            }
            let over = course.place.epoch >= config.epochs.max(1) || course.place.step >= state.total;
            if over || state.worse >= config.patience.max(1) {
                break;
            }
            let remember = |place: &Place| state.at(place);
            let loader = self.loader(course.place.epoch, Part::Train);
            course.train_epoch::<G>(loader, &remember)?;
            course.place.epoch += 1;
            course.place.batch = 0;
            course.save(Best::Keep, &remember)?;
        }
        course.progress.finish("done");
        let place = &course.place;
        Ok(PretrainReport {
            best_epoch: state.best_epoch,
            epochs: state.epochs,
            steps: place.step,
            positions_per_second: place.positions as f64 / place.seconds.max(1e-9),
            parameters: architecture.parameters() as u64,
        })
    }

    /// Validates, keeps the weights if they are the best so far, and saves.
    fn judge<G: Game>(&self, course: &mut Course<'_>, state: &mut State) -> Result<()> {
        let sums = course.validate::<G>(self.loader(0, Part::Validation))?;
        let report = EpochReport {
            epoch: course.place.epoch,
            policy_loss: sums.policy_loss(),
            value_loss: sums.value_loss(),
            top1: sums.top1_share(),
            top5: sums.top5_share(),
            value_error: sums.value_abs_error(),
        };
        let weight = self.stages.profile.pretrain.value_weight;
        pipeline::say!(
            "{}: after epoch {}: validation policy loss {:.3}, value loss {:.3}, top-1 {:.1} %",
            self.lesson.name,
            report.epoch,
            report.policy_loss,
            report.value_loss,
            100.0 * report.top1
        );
        // Without held-out games nothing can be compared: the last epoch counts as the best.
        let best = state.epochs.iter().find(|e| e.epoch == state.best_epoch);
        let better = sums.rows == 0 || best.is_none_or(|b| report.loss(weight) < b.loss(weight));
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

    /// The games of a part of the split.
    fn filter(&self, part: Part) -> Option<String> {
        let configured = &self.stages.profile.pretrain.filter;
        match (self.lesson.games.filter(|_| part == Part::Train), configured.as_str()) {
            (None, "") => None,
            (None, _) => Some(configured.clone()),
            (Some(games), "") => Some(format!("game_id < {games}")),
            (Some(games), _) => Some(format!("game_id < {games} AND ({configured})")),
        }
    }

    fn loader(&self, epoch: u64, part: Part) -> LoaderSpec {
        let (profile, config) = (self.stages.profile, &self.stages.profile.pretrain);
        LoaderSpec {
            sources: vec![Source::new([self.stages.layout.corpus()])],
            where_sql: self.filter(part),
            seed: profile.seed,
            epoch,
            batch: config.batch,
            // Validation needs no shuffling.
            pool: if part == Part::Train { config.pool } else { 1 },
            targets: profile.teacher_targets(),
            split: Split { holdout: config.holdout, part },
            drop_duplicates: config.drop_duplicates,
            augment: part == Part::Train,
            on_bad: profile.on_bad_shard.into(),
            threads: profile.threads,
        }
    }
}
