//! The window of recent self-play that refinement trains on, as it was played or as the teacher relabelled it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::Result;
use crate::profile::Layout;
use crate::stages::{fingerprint, required, summary};

/// How much self-play or relabelling has reported.
#[derive(Deserialize)]
pub(crate) struct Amount {
    pub(crate) games: u64,
    pub(crate) positions: u64,
}

/// Folders of games, newest first, whose positions fill the window.
pub(crate) struct Window {
    pub(crate) dirs: Vec<PathBuf>,
    /// Positions in these folders, capped at the window's size.
    pub(crate) positions: u64,
    /// Positions of the newest iteration.
    pub(crate) new_positions: u64,
    /// What the folders contain.
    pub(crate) inputs: BTreeMap<String, String>,
}

impl Window {
    /// The newest iterations up to `iteration` that hold `size` positions together; `relabelled` takes the teacher's
    /// answers to them.
    pub(crate) fn ending_at(layout: &Layout, iteration: u32, size: u64, relabelled: bool) -> Result<Self> {
        let (what, step) = if relabelled { ("relabelled self-play", "relabel") } else { ("self-play", "selfplay") };
        let mut window = Window { dirs: Vec::new(), positions: 0, new_positions: 0, inputs: BTreeMap::new() };
        for i in (1..=iteration).rev() {
            if window.positions >= size {
                break;
            }
            let dir = layout.iteration(i, step);
            let stamp = required(dir.clone(), what, step)?;
            let Amount { positions, .. } = summary(&dir, &stamp)?;
            window.inputs.insert(format!("{step}_{i:04}"), fingerprint(&stamp));
            window.positions += positions;
            if i == iteration {
                window.new_positions = positions;
            }
            window.dirs.push(dir);
        }
        window.positions = window.positions.min(size);
        Ok(window)
    }
}
