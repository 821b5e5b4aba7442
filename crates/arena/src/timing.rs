//! How long the players think. Game records have no column for it, so a file beside the journal keeps it, a line a game.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ArenaError;

/// What a player thought in a match, by our clock: from the question to the answer, an engine's pipe included.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Thinking {
    /// Moves that were timed.
    pub moves: u64,
    /// Mean time a move, milliseconds.
    pub mean_ms: f64,
    /// Longest time of a move, milliseconds.
    pub longest_ms: f64,
}

/// Moves, their time together and the longest, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent(u64, u64, u64);

impl Spent {
    /// Adds a move.
    pub(crate) fn add(&mut self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.join(Spent(1, time, time));
    }

    pub(crate) fn join(&mut self, other: Spent) {
        *self = Spent(self.0 + other.0, self.1.saturating_add(other.1), self.2.max(other.2));
    }

    pub(crate) fn thinking(self) -> Thinking {
        let Spent(moves, total, longest) = self;
        // In whole microseconds, which JSON gives back exactly.
        let mean = (total as f64 / moves.max(1) as f64).round();
        Thinking { moves, mean_ms: mean / 1000.0, longest_ms: longest as f64 / 1000.0 }
    }
}

/// The times of the finished games, A's and B's, and the file that keeps them.
pub(crate) struct TimeLog {
    path: PathBuf,
    file: File,
    games: BTreeMap<u64, [Spent; 2]>,
}

impl TimeLog {
    /// Opens or creates the file. A line that a kill has cut is left out; so is the whole of an older match's times,
    /// which has no such file.
    pub(crate) fn open(path: &Path) -> Result<Self, ArenaError> {
        let error = |source| ArenaError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(error)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(error)?;
        let mut games = BTreeMap::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            if let Ok((game, spent)) = serde_json::from_str::<(u64, [Spent; 2])>(line) {
                games.insert(game, spent);
            }
        }
        if bytes.last().is_some_and(|b| *b != b'\n') {
            file.write_all(b"\n").map_err(error)?;
        }
        Ok(TimeLog { path: path.to_owned(), file, games })
    }

    /// Notes a game, before it goes into the journal: so a game that is journaled has its times, and the line of a game
    /// that a kill kept out of the journal is replaced when the game is played again.
    pub(crate) fn append(&mut self, game: u64, spent: [Spent; 2]) -> Result<(), ArenaError> {
        let error = |source| ArenaError::File { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&(game, spent)).map_err(|e| error(e.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(error)?;
        self.games.insert(game, spent);
        Ok(())
    }

    /// A's and B's times over some games.
    pub(crate) fn over(&self, games: impl Iterator<Item = u64>) -> [Spent; 2] {
        let mut sum = [Spent::default(); 2];
        for [a, b] in games.filter_map(|game| self.games.get(&game)) {
            sum[0].join(*a);
            sum[1].join(*b);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_and_a_cut_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.jsonl");
        let spent = |ms: &[u64]| {
            let mut spent = Spent::default();
            ms.iter().for_each(|ms| spent.add(Duration::from_millis(*ms)));
            spent
        };
        let mut log = TimeLog::open(&path).unwrap();
        log.append(0, [spent(&[10, 20]), spent(&[5])]).unwrap();
        log.append(1, [spent(&[30]), spent(&[7])]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        let mut log = TimeLog::open(&path).unwrap();
        assert_eq!(log.over(0..9), [spent(&[10, 20]), spent(&[5])]);
        log.append(1, [spent(&[40]), spent(&[8])]).unwrap();
        log.append(1, [spent(&[60]), spent(&[8])]).unwrap();
        let [a, b] = TimeLog::open(&path).unwrap().over(0..9);
        assert_eq!(
            a.thinking(),
            Thinking { moves: 3, mean_ms: 30.0, longest_ms: 60.0 },
            "the last line of a game counts"
        );
        assert_eq!(b.thinking(), Thinking { moves: 2, mean_ms: 6.5, longest_ms: 8.0 });
        assert_eq!(log.over(5..9)[0].thinking(), Thinking::default());
    }
}
