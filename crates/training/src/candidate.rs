//! The `train` step of an iteration: a candidate from the best network, recent self-play and a share of the corpus.

use dataset::{Augment, LoaderSpec, PolicyTarget, Source, Split, TargetSpec};
use games::Game;
use nn::{Best, Checkpoint, Schedule, Trainer};
use pipeline::{Progress, Stage, StageSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Result;
use crate::course::{Course, Ended, Place, info, metrics_from, trainer_config};
use crate::profile::{PretrainConfig, content};
use crate::stages::{NetworkRef, Stages, fingerprint, required};
use crate::window::Window;

/// What the step reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CandidateReport {
    /// There was too little to learn from.
    Skipped {
        /// Why.
        skipped: String,
    },
    /// A candidate.
    Trained {
        /// Optimizer steps.
        steps: u64,
        /// Positions trained on, with repetitions.
        positions: u64,
        /// Training rate, loading included.
        positions_per_second: f64,
        /// Means over the last steps.
        policy_loss: f64,
        value_loss: f64,
    },
}

/// What is to be trained, on what, from where.
pub(crate) struct Candidate<'a> {
    stages: Stages<'a>,
    iteration: u32,
    window: Window,
    start: NetworkRef,
    /// The corpus' fingerprint, where there is a corpus and it has a share.
    corpus: Option<String>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(stages: Stages<'a>, iteration: u32, window: Window, start: NetworkRef) -> Result<Self> {
        let wanted = stages.profile.train.teacher_share > 0.0;
        let dir = stages.layout.corpus();
        // Where there is no corpus, nothing of a batch comes from one; but one that is being extended is waited for.
        let corpus = match pipeline::read_stamp(&dir)? {
            Some(_) if wanted => Some(fingerprint(&required(dir, "the whole corpus", "corpus")?)),
            _ => None,
        };
        Ok(Candidate { stages, iteration, window, start, corpus })
    }

    /// The stamp of the step.
    pub(crate) fn spec<G: Game>(&self) -> StageSpec {
        let profile = self.stages.profile;
        let mut settings = json!({
            "game": G::NAME,
            "seed": profile.seed,
            "iteration": self.iteration,
            "net": profile.net,
            "train": content(&profile.train, &["checkpoint_steps"]),
        });
        // Not written at its default, so that candidates trained before it was looked at keep their stamps.
        if profile.pretrain.score_scale != PretrainConfig::default().score_scale {
            settings["score_scale"] = profile.pretrain.score_scale.into();
        }
        let mut inputs = self.window.inputs.clone();
        inputs.insert("start".to_owned(), self.start.fingerprint.clone());
        inputs.extend(self.corpus.clone().map(|c| ("corpus".to_owned(), c)));
        let dir = self.stages.layout.iteration(self.iteration, "train");
        self.stages.spec(&format!("refine/iter_{:04}/train", self.iteration), dir, settings, inputs)
    }

    /// Optimizer steps: as configured, but no new position is used more often than `max_reuse` says.
    fn steps(&self) -> u64 {
        let config = &self.stages.profile.train;
        if config.max_reuse <= 0.0 {
            return config.steps;
        }
        let own = config.batch as f64 * self.self_play_share();
        config.steps.min((config.max_reuse * self.window.new_positions as f64 / own).ceil() as u64).max(1)
    }

    fn self_play_share(&self) -> f64 {
        if self.corpus.is_some() { 1.0 - self.stages.profile.train.teacher_share } else { 1.0 }
    }

    /// Trains, or records why not.
    pub(crate) fn run<G: Game>(&self, stage: &Stage) -> Result<()> {
        let profile = self.stages.profile;
        let config = &profile.train;
        if self.window.positions < config.replay_minimum {
            let why =
                format!("{} positions, below train.replay_minimum = {}", self.window.positions, config.replay_minimum);
            pipeline::say!("train {}: skipped: {why}", self.iteration);
            return Ok(stage.finish("skipped", CandidateReport::Skipped { skipped: why })?);
        }
        let device = nn::select_device(&profile.device)?;
        let architecture = profile.architecture(G::SHAPE);
        let settings =
            trainer_config(config.optimizer, config.weight_decay, config.clip_norm, config.value_weight, 0.0);
        let store = stage.store();
        let (trainer, place) = match Checkpoint::find(store)? {
            Some(saved) => {
                let place: Place = saved.progress()?;
                (saved.trainer(&device, settings)?, place)
            }
            None => {
                let start = self.start.checkpoint(&architecture)?.best_network(&device)?;
                (Trainer::new(start, settings)?, Place::default())
            }
        };
        let steps = self.steps();
        let name = format!("train {}", self.iteration);
        let mut course = Course {
            stages: self.stages,
            store,
            sources: self.loader(place.epoch).open()?,
            learner: trainer,
            schedule: Schedule::new(config.learning_rate, config.learning_rate / 10.0, steps),
            checkpoint_steps: config.checkpoint_steps,
            looks: None,
            info: info(profile, self.iteration, &self.window.inputs.values().cloned().collect::<Vec<_>>().join(" ")),
            metrics: metrics_from(stage.dir(), place.step)?,
            place,
            progress: Progress::new(&name, Some(steps)),
        };
        let remember = |place: &Place| serde_json::to_value(place).unwrap_or_default();
        while course.train_epoch::<G>(self.loader(course.place.epoch), &remember)? == Ended::Epoch {
            course.place.epoch += 1;
            course.place.batch = 0;
        }
        course.save(Best::Candidate, &remember)?;
        course.progress.set(course.place.step, "");
        course.progress.finish("done");
        let (policy, value) = course.place.last.mean();
        let weights = Checkpoint::load(store)?.fingerprint();
        let place = &course.place;
        let report = CandidateReport::Trained {
            steps: place.step,
            positions: place.positions,
            positions_per_second: place.positions as f64 / place.seconds.max(1e-9),
            policy_loss: policy,
            value_loss: value,
        };
        Ok(stage.finish(&weights, report)?)
    }

    fn loader(&self, epoch: u64) -> LoaderSpec {
        let (profile, config) = (self.stages.profile, &self.stages.profile.train);
        let own = Source {
            share: self.self_play_share(),
            newest_positions: Some(config.replay_window),
            // The window lists the newest first, a source the oldest.
            ..Source::new(self.window.dirs.iter().rev().cloned())
        };
        let mut sources = vec![own];
        if self.corpus.is_some() {
            sources.push(Source { share: config.teacher_share, ..Source::new([self.stages.layout.corpus()]) });
        }
        LoaderSpec {
            sources,
            where_sql: None,
            seed: profile.seed ^ u64::from(self.iteration) << 32,
            epoch,
            batch: config.batch,
            pool: config.pool,
            targets: TargetSpec {
                value_lambda: config.value_lambda,
                score_scale: profile.pretrain.score_scale,
                // One target for all sources: the teacher's move, or visits where a game has them.
                policy: if profile.relabel.enabled { PolicyTarget::Best } else { PolicyTarget::Visits },
            },
            split: Split::default(),
            drop_duplicates: false,
            first_plies: None,
            augment: Augment::Random,
            on_bad: profile.on_bad_shard.into(),
            threads: profile.threads,
        }
    }
}
