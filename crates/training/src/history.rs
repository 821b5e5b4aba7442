//! What the stages of a run have left: their stamps, in the order in which they ran.

use std::path::Path;

use nn::Checkpoint;
use pipeline::{Stamp, Status, Store};
use serde_json::Value;

use crate::policy::PolicyStep;
use crate::profile::{Layout, Profile};
use crate::stages::{fingerprint, required};
use crate::{Error, Result};

/// The steps of an iteration of refinement, in order.
const STEPS: [&str; 5] = ["selfplay", "relabel", "train", "gate", "eval"];

/// The stamps of a run.
#[derive(Default)]
pub(crate) struct History {
    /// Of the teacher's games, if they are complete.
    pub(crate) corpus: Option<Stamp>,
    /// Of the pre-trained network, if it is done.
    pub(crate) pretrain: Option<Stamp>,
    /// What that network's training went on from (see `origin`); null for random weights.
    pub(crate) init: Value,
    /// Of the steps that are done, by iteration.
    pub(crate) iterations: Vec<Vec<(&'static str, Stamp)>>,
    /// Of the match that measures strength, if it was played.
    pub(crate) eval: Option<Stamp>,
    /// Of the steps of the alpha-beta engine's policy network that are done.
    pub(crate) policy: Vec<(PolicyStep, Stamp)>,
    /// Stages that have begun and are not done.
    pub(crate) begun: Vec<Stamp>,
}

impl History {
    /// Reads the stamps of the stages that a profile has.
    pub(crate) fn read(profile: &Profile, layout: &Layout) -> Result<Self> {
        let mut history = History::default();
        history.corpus = history.look(&layout.corpus())?;
        history.pretrain = history.look(&layout.pretrain())?;
        if history.pretrain.as_ref().is_some_and(|stamp| stamp.inputs.contains_key("init")) {
            let checkpoint = Checkpoint::load(&Store::open_existing(layout.pretrain())?)?;
            history.init = checkpoint.info.provenance["init"].clone();
        }
        for i in 1..=profile.refine.num_iterations {
            let mut steps = Vec::new();
            for step in STEPS {
                steps.extend(history.look(&layout.iteration(i, step))?.map(|stamp| (step, stamp)));
            }
            history.iterations.push(steps);
        }
        history.eval = history.look(&layout.eval())?;
        for step in PolicyStep::ALL {
            let stamp = history.look(&layout.policy(step.name()))?;
            history.policy.extend(stamp.map(|stamp| (step, stamp)));
        }
        Ok(history)
    }

    /// The stamps of a run whose network can be measured or published.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::Stale`], naming the stage to run.
    pub(crate) fn whole(profile: &Profile, layout: &Layout) -> Result<Self> {
        if profile.refine.init == "pretrained" {
            let corpus = required(layout.corpus(), "the corpus", "corpus")?;
            let pretrained = required(layout.pretrain(), "the pre-trained network", "pretrain")?;
            if pretrained.inputs.get("corpus") != Some(&fingerprint(&corpus)) {
                let what = "has not learned from the corpus that is there";
                return Err(Error::Stale { path: layout.pretrain(), what, stage: "pretrain" });
            }
        } else {
            required(layout.iteration(1, "gate"), "a refined network", "refine")?;
        }
        History::read(profile, layout)
    }

    /// The stamp of a folder if it is done; notes it if it is not.
    fn look(&mut self, dir: &Path) -> Result<Option<Stamp>> {
        match pipeline::read_stamp(dir)? {
            Some(stamp) if stamp.status == Status::Running => {
                self.begun.push(stamp);
                Ok(None)
            }
            stamp => Ok(stamp),
        }
    }

    /// Whether no stage has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.stages().is_empty() && self.policy.is_empty() && self.begun.is_empty()
    }

    /// Whether a candidate has met the gate.
    pub(crate) fn has_refined(&self) -> bool {
        self.iterations.iter().flatten().any(|(step, _)| *step == "gate")
    }

    /// All stages that are done, in order: name for people, kind, stamp.
    pub(crate) fn stages(&self) -> Vec<(String, &'static str, &Stamp)> {
        let single = |kind: &'static str, stamp| Some((kind.to_owned(), kind, Option::as_ref(stamp)?));
        let mut all: Vec<_> =
            [single("corpus", &self.corpus), single("pretrain", &self.pretrain)].into_iter().flatten().collect();
        for (i, steps) in (1..).zip(&self.iterations) {
            all.extend(steps.iter().map(|(step, stamp)| (format!("iteration {i}: {step}"), *step, stamp)));
        }
        all.extend(single("eval", &self.eval));
        all
    }
}
