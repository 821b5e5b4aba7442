//! Supervised training on the corpus: the `pretrain` stage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dataset::{Augment, LoaderSpec, Part, Source, Split};
use games::Game;
use nn::{Checkpoint, Network, Trainer};
use pipeline::{Stage, StageSpec, Stop};

use crate::course::{info, trainer_config};
use crate::epochs::{Epochs, State, TrainingReport};
use crate::profile::{Layout, Profile, content};
use crate::stages::{NetworkRef, Stages, fingerprint, locked_stage, required, summary};
use crate::{Error, Result, origin};

/// Trains a network on the corpus.
///
/// # Errors
/// No corpus, nothing in it to train on, no network of this architecture where `pretrain.init` names one, a loss that is
/// not finite, a disk that cannot be written, or a stop request.
pub fn pretrain<G: Game>(profile: &Profile, layout: &Layout, stop: &Stop) -> Result<TrainingReport> {
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
pub(crate) fn learn<G: Game>(stages: Stages<'_>, lesson: &Lesson) -> Result<TrainingReport> {
    let corpus = required(stages.layout.corpus(), "the corpus", "corpus")?;
    let start = start(stages.profile)?;
    let spec = spec::<G>(stages, lesson, &fingerprint(&corpus), start.as_ref());
    let Some(stage) = locked_stage(spec, stages.layout, None)? else {
        let stamp = required(lesson.dir.clone(), "the network", "pretrain")?;
        return summary(&lesson.dir, &stamp);
    };
    Pretraining { stages, stage: &stage, lesson, corpus: fingerprint(&corpus), start }.run::<G>()
}

/// The network that `pretrain.init` names.
fn start(profile: &Profile) -> Result<Option<NetworkRef>> {
    match Path::new(&profile.pretrain.init) {
        path if path.as_os_str().is_empty() => Ok(None),
        path => NetworkRef::named("pretrain.init", path).map(Some),
    }
}

fn spec<G: Game>(stages: Stages<'_>, lesson: &Lesson, corpus: &str, start: Option<&NetworkRef>) -> StageSpec {
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
    let mut inputs = BTreeMap::from([("corpus".to_owned(), corpus.to_owned())]);
    inputs.extend(start.map(|network| ("init".to_owned(), network.fingerprint.clone())));
    stages.spec(&lesson.name, lesson.dir.clone(), settings, inputs)
}

struct Pretraining<'a> {
    stages: Stages<'a>,
    stage: &'a Stage,
    lesson: &'a Lesson,
    corpus: String,
    /// What training goes on from; random weights if there is none.
    start: Option<NetworkRef>,
}

impl Pretraining<'_> {
    fn run<G: Game>(&self) -> Result<TrainingReport> {
        let (profile, config, store) = (self.stages.profile, &self.stages.profile.pretrain, self.stage.store());
        let device = nn::select_device(&profile.device)?;
        let architecture = profile.architecture(G::SHAPE);
        let settings =
            trainer_config(config.optimizer, config.weight_decay, config.clip_norm, config.value_weight, config.ema);
        let saved = Checkpoint::find(store)?;
        let state = State::of(saved.as_ref())?;
        let mut info = info(profile, 0, &self.corpus);
        if let Some(start) = &self.start {
            info.provenance = serde_json::json!({ "init": origin::of_start(start)? });
        }
        let trainer = match (&saved, &self.start) {
            (Some(checkpoint), _) => {
                checkpoint.expect_architecture(&architecture)?;
                checkpoint.trainer(&device, settings)?
            }
            (None, Some(start)) => Trainer::new(start.checkpoint(&architecture)?.best_network(&device)?, settings)?,
            (None, None) => Trainer::new(Network::new(&architecture, &device, profile.seed)?, settings)?,
        };
        let epochs = Epochs {
            stages: self.stages,
            stage: self.stage,
            name: &self.lesson.name,
            epochs: config.epochs,
            max_steps: config.max_steps,
            peak_lr: config.peak_lr,
            end_lr: config.end_lr,
            patience: config.patience,
            value_weight: config.value_weight,
            checkpoint_steps: config.checkpoint_steps,
            looks: config.looks,
            parameters: architecture.parameters() as u64,
            hint: "check pretrain.where, pretrain.holdout and corpus.games",
            info,
            loader: &|epoch, part| self.loader(epoch, part),
        };
        epochs.run::<G, _>(trainer, state)
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
            first_plies: None,
            augment: if part == Part::Train { Augment::Random } else { Augment::Off },
            on_bad: profile.on_bad_shard.into(),
            threads: profile.threads,
        }
    }
}
