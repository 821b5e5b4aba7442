//! The folders of a run.

use std::path::{Path, PathBuf};

/// The folders of a run.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of a run kept at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into() }
    }
    /// The run's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Lock files; beside the stages, since a stage's folder can be moved aside.
    pub fn locks(&self) -> PathBuf {
        self.root.join(".locks")
    }
    /// Games of the teacher.
    pub fn corpus(&self) -> PathBuf {
        self.root.join("corpus")
    }
    /// The pre-trained network.
    pub fn pretrain(&self) -> PathBuf {
        self.root.join("pretrain")
    }
    /// One step (`selfplay`, `relabel`, `train`, `gate`, `eval`) of an iteration, counted from 1.
    pub fn iteration(&self, iteration: u32, step: &str) -> PathBuf {
        self.root.join("refine").join(format!("iter_{iteration:04}")).join(step)
    }
    /// One step (`games`, `labels`, `train`, `export`) of the policy network.
    pub fn policy(&self, step: &str) -> PathBuf {
        self.root.join("policy").join(step)
    }
    /// The match that measures strength.
    pub fn eval(&self) -> PathBuf {
        self.root.join("eval")
    }
}
