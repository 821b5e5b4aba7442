//! What the stages share: their stamps, and finding the network that a stage starts from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use games::Game;
use nn::{Architecture, Checkpoint, Model};
use pipeline::{Plan, STAMP_FILE, Stage, StageSpec, Stamp, Status, Stop, Store};
use serde::de::DeserializeOwned;

use crate::profile::{Layout, Profile};
use crate::{Error, Result};

/// A run: its settings, its folders, and the request to stop.
#[derive(Clone, Copy)]
pub(crate) struct Stages<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) layout: &'a Layout,
    pub(crate) stop: &'a Stop,
}

impl Stages<'_> {
    /// The stamp of a stage: its name, where it writes, what determines its content.
    pub(crate) fn spec(
        &self,
        name: &str,
        dir: PathBuf,
        settings: serde_json::Value,
        inputs: BTreeMap<String, String>,
    ) -> StageSpec {
        StageSpec {
            name: name.to_owned(),
            dir,
            settings,
            growable: BTreeMap::new(),
            inputs,
            resolved_config: serde_json::to_value(self.profile).unwrap_or_default(),
        }
    }
}

/// Opens a stage for work, or says that it is done.
pub(crate) fn locked_stage(spec: StageSpec, layout: &Layout, range: Option<Range<u32>>) -> Result<Option<Stage>> {
    let name = spec.name.clone();
    let growable = spec.growable.keys().next().cloned();
    let stage = match range {
        Some(range) => Stage::open_range(spec, &layout.locks(), u64::from(range.start)..u64::from(range.end))?,
        None => Stage::open(spec, &layout.locks())?,
    };
    match stage.plan() {
        Plan::Done => {
            let more = growable.map(|name| format!(" (a larger `{name}` extends it)")).unwrap_or_default();
            pipeline::say!("{name}: done already, in {}{more}", stage.dir().display());
            return Ok(None);
        }
        Plan::Resume => pipeline::say!("{name}: continues in {}", stage.dir().display()),
        Plan::Extend => pipeline::say!("{name}: extends {}", stage.dir().display()),
        Plan::Fresh => pipeline::say!("{name}: starts in {}", stage.dir().display()),
    }
    Ok(Some(stage))
}

/// The stamp of a finished stage.
pub(crate) fn finished(dir: &Path) -> Result<Option<Stamp>> {
    let stamp = pipeline::read_stamp(dir)?;
    Ok(stamp.filter(|s| s.status == Status::Done))
}

/// The stamp of a stage that has to be there, or an error that names the stage to run.
pub(crate) fn required(dir: PathBuf, what: &'static str, stage: &'static str) -> Result<Stamp> {
    finished(&dir)?.ok_or(Error::Missing { what, path: dir, stage })
}

/// Whether a stage has nothing left to do, without opening it.
pub(crate) fn is_done(spec: &StageSpec) -> Result<bool> {
    let same = |a: &serde_json::Value, b: &serde_json::Value| pipeline::content_hash(a) == pipeline::content_hash(b);
    Ok(finished(&spec.dir)?.is_some_and(|stamp| {
        same(&stamp.settings, &spec.settings) && stamp.inputs == spec.inputs && stamp.holds(&spec.growable)
    }))
}

/// What a finished stage in `dir` has reported.
///
/// # Errors
/// [`Error::Content`] if its stamp says something else: nothing stands in for a fact that cannot be read.
pub(crate) fn summary<T: DeserializeOwned>(dir: &Path, stamp: &Stamp) -> Result<T> {
    T::deserialize(&stamp.summary).map_err(|source| Error::Content { path: dir.join(STAMP_FILE), source })
}

/// The fingerprint of a finished stage's output; a stamp that is done has one, or it is not read.
pub(crate) fn fingerprint(stamp: &Stamp) -> String {
    stamp.fingerprint.clone().unwrap_or_default()
}

/// A checkpoint folder and the fingerprint of the weights that play.
#[derive(Clone, Debug)]
pub(crate) struct NetworkRef {
    pub(crate) dir: PathBuf,
    pub(crate) fingerprint: String,
}

impl NetworkRef {
    /// A checkpoint that lies anywhere. Until a stage's first epoch is over, its best network has learned nothing.
    pub(crate) fn at(dir: &Path) -> Result<Self> {
        if let Some(stamp) = pipeline::read_stamp(dir)?.filter(|stamp| stamp.status == Status::Running) {
            return Err(Error::Unfinished { path: dir.to_owned(), stage: stamp.stage });
        }
        let fingerprint = Checkpoint::load(&Store::open_existing(dir)?)?.fingerprint();
        Ok(NetworkRef { dir: dir.to_owned(), fingerprint })
    }

    /// The network in the folder that a setting names.
    ///
    /// # Errors
    /// No folder, or one whose network cannot be used; each names the setting.
    pub(crate) fn named(setting: &'static str, dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(Error::NoNetwork { setting, path: dir.to_owned() });
        }
        NetworkRef::at(dir).map_err(|source| Error::NamedNetwork { setting, source: Box::new(source) })
    }

    /// The checkpoint, if it has the architecture that the profile asks for.
    pub(crate) fn checkpoint(&self, expected: &Architecture) -> Result<Checkpoint> {
        let checkpoint = self.load()?;
        checkpoint.expect_architecture(expected)?;
        Ok(checkpoint)
    }

    /// The checkpoint, if it is still the one that is meant.
    fn load(&self) -> Result<Checkpoint> {
        let checkpoint = Checkpoint::load(&Store::open_existing(&self.dir)?)?;
        if let Some(why) = &checkpoint.recovered {
            pipeline::say!("warning: {}: {why}", self.dir.display());
        }
        if checkpoint.fingerprint() != self.fingerprint {
            return Err(Error::OtherNetwork { path: self.dir.clone() });
        }
        Ok(checkpoint)
    }

    /// The network to play with, on a device as a profile names it.
    pub(crate) fn model<G: Game>(&self, device: &str) -> Result<Model> {
        let device = nn::select_device(device)?;
        let checkpoint = self.load()?;
        checkpoint.expect_game(G::SHAPE)?;
        Ok(Model::from_network(&checkpoint.best_network(&device)?)?)
    }

    /// A short name for reports and the `white` and `black` columns.
    pub(crate) fn name(&self) -> String {
        format!("tabiya {}", &self.fingerprint[..self.fingerprint.len().min(8)])
    }
}

/// The content of a file, as it stands in stamps: an engine's executable, a network in one piece.
pub(crate) fn file_hash(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let read = std::fs::File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    read.map_err(|source| Error::File { path: path.to_owned(), source })?;
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}
