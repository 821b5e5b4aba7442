//! What the records of a match have no column for: how long the players thought, what they searched, what their clocks
//! showed, and the day. A file beside the journal keeps it, a line a game.

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
    /// Median of the nodes (of an engine) or simulations (of a network's search) a move, where they are known.
    #[serde(default)]
    pub median_nodes: Option<u64>,
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

    fn thinking(self, mut nodes: Vec<u64>) -> Thinking {
        let Spent(moves, total, longest) = self;
        // In whole microseconds, which JSON gives back exactly.
        let mean = (total as f64 / moves.max(1) as f64).round();
        nodes.sort_unstable();
        let median_nodes = nodes.get(nodes.len() / 2).copied();
        Thinking { moves, mean_ms: mean / 1000.0, longest_ms: longest as f64 / 1000.0, median_nodes }
    }
}

/// One finished game; of each pair A's comes first.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct GameLog {
    pub(crate) spent: [Spent; 2],
    more: More,
}

/// What older versions did not keep.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct More {
    /// The day on which the game ended, UTC: `2026-12-07`.
    #[serde(default)]
    date: String,
    /// Nodes or simulations of each move.
    #[serde(default)]
    nodes: [Vec<u64>; 2],
    /// What the mover had left after each ply, milliseconds; empty in a game without clocks.
    #[serde(default)]
    left: Vec<Option<u64>>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct LogLine(u64, [Spent; 2], #[serde(default)] More);

impl GameLog {
    /// A game that ends now.
    pub(crate) fn new(spent: [Spent; 2], nodes: [Vec<u64>; 2], left: Vec<Option<u64>>) -> Self {
        let date = pipeline::utc_now().chars().take(10).collect();
        GameLog { spent, more: More { date, nodes, left } }
    }

    /// The same with the sides in the other order.
    pub(crate) fn swapped(mut self) -> Self {
        self.spent.swap(0, 1);
        self.more.nodes.swap(0, 1);
        self
    }

    /// The day on which the game ended, as `2026-12-07`.
    pub(crate) fn date(&self) -> Option<&str> {
        Some(self.more.date.as_str()).filter(|date| !date.is_empty())
    }

    /// What the mover had left after a ply.
    pub(crate) fn left(&self, ply: usize) -> Option<Duration> {
        self.more.left.get(ply).copied().flatten().map(Duration::from_millis)
    }
}

/// The logs of the finished games, and the file that keeps them.
pub(crate) struct TimeLog {
    path: PathBuf,
    file: File,
    games: BTreeMap<u64, GameLog>,
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
            if let Ok(LogLine(game, spent, more)) = serde_json::from_str(line) {
                games.insert(game, GameLog { spent, more });
            }
        }
        if bytes.last().is_some_and(|b| *b != b'\n') {
            file.write_all(b"\n").map_err(error)?;
        }
        Ok(TimeLog { path: path.to_owned(), file, games })
    }

    /// Notes a game, before it goes into the journal: so a game that is journaled has its times, and the line of a game
    /// that a kill kept out of the journal is replaced when the game is played again.
    pub(crate) fn append(&mut self, game: u64, log: GameLog) -> Result<(), ArenaError> {
        let error = |source| ArenaError::File { path: self.path.clone(), source };
        let line = LogLine(game, log.spent, log.more);
        let mut text = serde_json::to_vec(&line).map_err(|e| error(e.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(error)?;
        self.games.insert(game, GameLog { spent: line.1, more: line.2 });
        Ok(())
    }

    /// A game's log, if it was kept.
    pub(crate) fn game(&self, game: u64) -> Option<&GameLog> {
        self.games.get(&game)
    }

    /// A's and B's thinking over some games.
    pub(crate) fn over(&self, games: impl Iterator<Item = u64>) -> [Thinking; 2] {
        let (mut spent, mut nodes) = ([Spent::default(); 2], [Vec::new(), Vec::new()]);
        for log in games.filter_map(|game| self.games.get(&game)) {
            for side in 0..2 {
                spent[side].join(log.spent[side]);
                nodes[side].extend_from_slice(&log.more.nodes[side]);
            }
        }
        let [a, b] = nodes;
        [spent[0].thinking(a), spent[1].thinking(b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(ms: [&[u64]; 2], nodes: [&[u64]; 2]) -> GameLog {
        let spent = ms.map(|ms| {
            let mut spent = Spent::default();
            ms.iter().for_each(|ms| spent.add(Duration::from_millis(*ms)));
            spent
        });
        GameLog::new(spent, nodes.map(<[u64]>::to_vec), vec![None, Some(900), Some(850)])
    }

    #[test]
    fn logs_survive_and_a_cut_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.jsonl");
        let first = log([&[10, 20], &[5]], [&[100, 300], &[7]]);
        let mut times = TimeLog::open(&path).unwrap();
        times.append(0, first.clone()).unwrap();
        times.append(1, log([&[30], &[7]], [&[200], &[9]])).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        let mut times = TimeLog::open(&path).unwrap();
        assert_eq!((times.game(0), times.game(1)), (Some(&first), None));
        assert_eq!(first.date().map(str::len), Some(10));
        assert_eq!([0, 1, 9].map(|ply| first.left(ply)), [None, Some(Duration::from_millis(900)), None]);
        times.append(1, log([&[40], &[8]], [&[], &[]])).unwrap();
        times.append(1, log([&[60], &[8]], [&[200], &[9, 11]]).swapped().swapped()).unwrap();
        let [a, b] = TimeLog::open(&path).unwrap().over(0..9);
        assert_eq!(
            a,
            Thinking { moves: 3, mean_ms: 30.0, longest_ms: 60.0, median_nodes: Some(200) },
            "the last line of a game counts"
        );
        assert_eq!(b, Thinking { moves: 2, mean_ms: 6.5, longest_ms: 8.0, median_nodes: Some(9) });
        assert_eq!(times.over(5..9)[0], Thinking::default());
    }

    #[test]
    fn logs_of_older_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.jsonl");
        std::fs::write(&path, "[3,[[2,30000,20000],[1,5000,5000]]]\n").unwrap();
        let times = TimeLog::open(&path).unwrap();
        assert_eq!(times.game(3).unwrap().date(), None);
        let [a, _] = times.over(0..9);
        assert_eq!(a, Thinking { moves: 2, mean_ms: 15.0, longest_ms: 20.0, median_nodes: None });
        let thinking = serde_json::from_str::<Thinking>(r#"{"moves":2,"mean_ms":15.0,"longest_ms":20.0}"#).unwrap();
        assert_eq!(thinking, a);
    }
}
