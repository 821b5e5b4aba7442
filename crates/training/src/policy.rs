//! The policy network of the alpha-beta engine, in four steps with a stamp each: games of an engine against itself, a
//! deeper engine's moves at their positions, training, and the files for the engine.

use std::collections::BTreeMap;

use dataset::{Augment, LoaderSpec, Part, PolicyTarget, Source, Split, TargetSpec};
use games::{Chess, Game, PolicyChess};
use nn::{Checkpoint, OptimizerConfig, PolicyCnn, PolicyTrainer};
use pipeline::{Stage, Stop, Store};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::answers::{AnswersReport, Questions, played_games};
use crate::course::info;
use crate::engines::Teacher;
use crate::epochs::{Epochs, State, TrainingReport};
use crate::profile::{Layout, Profile, content};
use crate::stages::{Stages, fingerprint, locked_stage, required, summary};
use crate::teacher::{CorpusReport, Games};
use crate::{Error, Result};

/// One of the steps, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyStep {
    /// Games of an engine against itself.
    Games,
    /// A deeper engine's moves at their positions.
    Labels,
    /// The network.
    Train,
    /// `policy.bin` and `policy.onnx`.
    Export,
}

impl PolicyStep {
    /// In the order in which they run.
    pub const ALL: [PolicyStep; 4] = [PolicyStep::Games, PolicyStep::Labels, PolicyStep::Train, PolicyStep::Export];

    /// The name of the step and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            PolicyStep::Games => "games",
            PolicyStep::Labels => "labels",
            PolicyStep::Train => "train",
            PolicyStep::Export => "export",
        }
    }
}

/// The files for the engine.
#[derive(Clone, Debug, serde::Serialize, Deserialize)]
struct ExportReport {
    /// `policy.bin`, which the engine reads.
    bin_bytes: u64,
    /// `policy.onnx`, for anything else.
    onnx_bytes: u64,
    /// Of `policy.bin`.
    blake3: String,
}

/// Does a step, unless it is done already; what it reached, in words.
///
/// # Errors
/// A game other than chess, an engine that keeps failing, no game to learn from, an earlier step that is not done, a disk
/// that cannot be written, or a stop request.
pub fn policy(profile: &Profile, layout: &Layout, step: PolicyStep, stop: &Stop) -> Result<String> {
    if profile.game != Chess::NAME {
        return Err(Error::NoTeacher(profile.game.clone()));
    }
    let policy = Policy { stages: Stages { profile, layout, stop } };
    Ok(match step {
        PolicyStep::Games => policy.games()?.to_string(),
        PolicyStep::Labels => policy.labels()?.to_string(),
        PolicyStep::Train => policy.train()?.to_string(),
        PolicyStep::Export => policy.export()?,
    })
}

struct Policy<'a> {
    stages: Stages<'a>,
}

impl Policy<'_> {
    fn dir(&self, step: PolicyStep) -> std::path::PathBuf {
        self.stages.layout.policy(step.name())
    }

    /// The stamp of an earlier step, and the input that it is.
    fn earlier(&self, step: PolicyStep) -> Result<(pipeline::Stamp, BTreeMap<String, String>)> {
        let what = match step {
            PolicyStep::Games => "the policy's games",
            PolicyStep::Labels => "the policy's labels",
            PolicyStep::Train | PolicyStep::Export => "the policy network",
        };
        let stamp = required(self.dir(step), what, "policy")?;
        let input = BTreeMap::from([(step.name().to_owned(), fingerprint(&stamp))]);
        Ok((stamp, input))
    }

    /// Does a step, unless it is done; what it reported.
    fn step<R: DeserializeOwned>(
        &self,
        step: PolicyStep,
        settings: serde_json::Value,
        inputs: BTreeMap<String, String>,
        run: impl FnOnce(&Stage) -> Result<R>,
    ) -> Result<R> {
        let name = format!("policy/{}", step.name());
        let spec = self.stages.spec(&name, self.dir(step), settings, inputs);
        match locked_stage(spec, self.stages.layout, None)? {
            Some(stage) => run(&stage),
            None => {
                let (stamp, _) = self.earlier(step)?;
                summary(&self.dir(step), &stamp)
            }
        }
    }

    fn condition(&self) -> Option<&str> {
        Some(self.stages.profile.policy.filter.as_str()).filter(|sql| !sql.is_empty())
    }

    fn games(&self) -> Result<CorpusReport> {
        let config = &self.stages.profile.policy;
        let games = Games {
            name: "policy/games",
            table: "policy.games",
            dataset: "policy",
            dir: self.dir(PolicyStep::Games),
            config: &config.games,
        };
        games.write(self.stages, &config.engine, None)
    }

    fn labels(&self) -> Result<AnswersReport> {
        let config = &self.stages.profile.policy;
        let (played, inputs) = self.earlier(PolicyStep::Games)?;
        let engine = config.labels.engine.as_ref().unwrap_or(&config.engine);
        // Only asked who it is: the stamp names it. Workers start their own.
        let teacher = Teacher::start(engine, self.stages.stop)?.0;
        let limit = config.labels.limit;
        let settings = json!({
            "where": config.filter,
            "plies": config.plies,
            "labels": { "limit": limit },
            "engine": teacher.identity(),
        });
        self.step(PolicyStep::Labels, settings.clone(), inputs, |stage| {
            let games = played_games(self.dir(PolicyStep::Games), &played, "policy")?;
            let chosen = games.ids_where(self.condition())?;
            if chosen.is_empty() {
                let (path, hint) = (self.dir(PolicyStep::Games), "check policy.where and policy.games");
                return Err(Error::NoPositions { path, hint });
            }
            let questions = Questions {
                name: "policy/labels",
                games,
                games_per_shard: config.games.games_per_shard,
                dataset: "policy".to_owned(),
                made_by: "policy",
                settings,
                teacher: &teacher,
                limit,
                workers: config.labels.workers,
                plies: &|game| if chosen.contains(&game.game_id) { config.plies } else { 0 },
            };
            questions.ask(self.stages, stage)
        })
    }

    fn train(&self) -> Result<TrainingReport> {
        let profile = self.stages.profile;
        let (labels, inputs) = self.earlier(PolicyStep::Labels)?;
        let settings = json!({
            "seed": profile.seed,
            "net": PolicyCnn::ID,
            "where": profile.policy.filter,
            "plies": profile.policy.plies,
            "training": content(&profile.policy.training, &["checkpoint_steps"]),
        });
        self.step(PolicyStep::Train, settings, inputs, |stage| {
            let config = &profile.policy.training;
            let optimizer = OptimizerConfig {
                weight_decay: config.weight_decay,
                clip: config.clip_norm,
                ..OptimizerConfig::default()
            };
            let saved = Checkpoint::find(stage.store())?;
            let state = State::of(saved.as_ref())?;
            let trainer = match &saved {
                Some(checkpoint) => checkpoint.policy_trainer(optimizer)?,
                None => PolicyTrainer::new(PolicyCnn::new(profile.seed)?, optimizer)?,
            };
            let epochs = Epochs {
                stages: self.stages,
                stage,
                name: "policy/train",
                epochs: config.epochs,
                max_steps: 0,
                peak_lr: config.peak_lr,
                end_lr: config.end_lr,
                patience: config.patience,
                value_weight: 0.0,
                checkpoint_steps: config.checkpoint_steps,
                looks: 0,
                parameters: PolicyCnn::parameters() as u64,
                hint: "check policy.where, policy.training.holdout and policy.games",
                info: info(profile, 0, &fingerprint(&labels)),
                loader: &|epoch, part| self.loader(epoch, part),
            };
            epochs.run::<PolicyChess, _>(trainer, state)
        })
    }

    fn loader(&self, epoch: u64, part: Part) -> LoaderSpec {
        let (profile, config) = (self.stages.profile, &self.stages.profile.policy.training);
        let training = part == Part::Train;
        LoaderSpec {
            sources: vec![Source::new([self.dir(PolicyStep::Labels)])],
            where_sql: self.condition().map(str::to_owned),
            seed: profile.seed,
            epoch,
            batch: config.batch,
            // Validation needs no shuffling.
            pool: if training { config.pool } else { 1 },
            targets: TargetSpec { policy: PolicyTarget::Best, ..TargetSpec::default() },
            split: Split { holdout: config.holdout, part },
            drop_duplicates: config.drop_duplicates,
            first_plies: Some(profile.policy.plies),
            // Judged on positions as they were.
            augment: if training && config.augment { Augment::All } else { Augment::Off },
            on_bad: profile.on_bad_shard.into(),
            threads: profile.threads,
        }
    }

    fn export(&self) -> Result<String> {
        let (_, inputs) = self.earlier(PolicyStep::Train)?;
        let dir = self.dir(PolicyStep::Export);
        let report = self.step(PolicyStep::Export, json!({ "net": PolicyCnn::ID }), inputs, |stage| {
            let network = Checkpoint::load(&Store::open_existing(self.dir(PolicyStep::Train))?)?.best_policy()?;
            let (bin, onnx) = (network.to_bin()?, network.to_onnx()?);
            stage.store().put("policy.bin", &bin)?;
            stage.store().put("policy.onnx", &onnx)?;
            let hash = blake3::hash(&bin).to_hex().to_string();
            let report =
                ExportReport { bin_bytes: bin.len() as u64, onnx_bytes: onnx.len() as u64, blake3: hash.clone() };
            stage.finish(&hash, &report)?;
            Ok(report)
        })?;
        let ExportReport { bin_bytes, onnx_bytes, .. } = report;
        let place = dir.display();
        Ok(format!("policy.bin ({bin_bytes} bytes) and policy.onnx ({onnx_bytes} bytes) in {place}"))
    }
}
