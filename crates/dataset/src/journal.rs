//! Finished games of a shard that is not written yet, so that a kill costs only the game in hand.
//!
//! A file of frames: length (u32, little-endian), BLAKE3 of the payload (32 bytes), payload (a game as JSON, zstd).
//! A frame that was cut off or damaged ends the journal: it and all behind it are dropped, and those games are
//! played again from their ids.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use games::{GameResult, Move, Termination};
use serde::{Deserialize, Serialize};

use crate::{DatasetError, GameRecord};

const MAGIC: &[u8; 8] = b"TABIYAJ1";
const HEADER: usize = 4 + 32;
const LEVEL: i32 = 3;
/// A process that dies loses nothing that was written; only a machine that dies can lose this much.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The journal of an open shard.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The length up to the last whole frame.
    good: u64,
    synced: Option<Instant>,
}

impl Journal {
    /// Opens or creates a journal and gives the games in it, in the order in which they were appended.
    ///
    /// # Errors
    /// [`DatasetError::Io`]; [`DatasetError::BadFile`] if the file is something else than a journal.
    pub fn open(path: &Path) -> Result<(Journal, Vec<GameRecord>), DatasetError> {
        let error = || DatasetError::io(path);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(error())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(error())?;
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(DatasetError::BadFile {
                path: path.to_owned(),
                reason: "is not a journal of games; move it away and start again".into(),
            });
        }
        let (records, good) = if magic.len() == MAGIC.len() { recover(&bytes) } else { (Vec::new(), 0) };
        file.set_len(good as u64).map_err(error())?;
        file.seek(SeekFrom::Start(good as u64)).map_err(error())?;
        if good == 0 {
            file.write_all(MAGIC).map_err(error())?;
        }
        file.sync_all().map_err(error())?;
        let good = good.max(MAGIC.len()) as u64;
        Ok((Journal { path: path.to_owned(), file, good, synced: None }, records))
    }

    /// Appends a game in one write, and syncs it to the disk unless that was done less than a second ago.
    ///
    /// # Errors
    /// [`DatasetError::Io`]; the journal is then as it was, and the game can be appended again.
    pub fn append(&mut self, record: &GameRecord) -> Result<(), DatasetError> {
        let error = || DatasetError::io(&self.path);
        let json = serde_json::to_vec(&Plain::from(record)).map_err(|e| error()(e.into()))?;
        let payload = zstd::bulk::compress(&json, LEVEL).map_err(error())?;
        let mut frame = Vec::with_capacity(HEADER + payload.len());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(blake3::hash(&payload).as_bytes());
        frame.extend_from_slice(&payload);
        if let Err(e) = self.file.write_all(&frame) {
            // Half a frame would hide all that follow. Should this fail too, the first error says it all.
            let _ = self.file.set_len(self.good).and_then(|()| self.file.seek(SeekFrom::Start(self.good)));
            return Err(error()(e));
        }
        self.good += frame.len() as u64;
        if self.synced.is_none_or(|t| t.elapsed() >= SYNC_EVERY) {
            self.file.sync_data().map_err(error())?;
            self.synced = Some(Instant::now());
        }
        Ok(())
    }

    /// Deletes the journal, once the shard is written.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn remove(self) -> Result<(), DatasetError> {
        std::fs::remove_file(&self.path).map_err(DatasetError::io(&self.path))
    }
}

/// The games before the first bad frame, and where that frame begins.
fn recover(bytes: &[u8]) -> (Vec<GameRecord>, usize) {
    let (mut records, mut at) = (Vec::new(), MAGIC.len());
    while let Some((record, next)) = frame(bytes, at) {
        records.push(record);
        at = next;
    }
    (records, at)
}

fn frame(bytes: &[u8], at: usize) -> Option<(GameRecord, usize)> {
    let (length, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
    let (hash, rest) = rest.split_first_chunk::<32>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let payload = rest.get(..length)?;
    if blake3::hash(payload).as_bytes() != hash {
        return None;
    }
    let json = zstd::stream::decode_all(payload).ok()?;
    let plain: Plain = serde_json::from_slice(&json).ok()?;
    Some((plain.into_record()?, at + HEADER + length))
}

/// A record in types that JSON keeps exactly; floating-point numbers as their bits.
#[derive(Serialize, Deserialize)]
struct Plain {
    game: String,
    game_id: u64,
    white: String,
    black: String,
    start_fen: Option<String>,
    opening_plies: u16,
    moves: Vec<u16>,
    best: Vec<Option<u16>>,
    score: Vec<Option<i16>>,
    value: Option<Vec<Option<u32>>>,
    visits: Vec<Option<Vec<(u16, u32)>>>,
    result: Option<i8>,
    termination: String,
    generation: u32,
    opening: Option<String>,
    phase: Option<String>,
    rung: Option<i16>,
    reward: Option<Vec<u32>>,
}

impl From<&GameRecord> for Plain {
    fn from(r: &GameRecord) -> Self {
        let bits = |v: &Vec<Option<f32>>| v.iter().map(|x| x.map(f32::to_bits)).collect();
        let pairs = |v: &Vec<(Move, u32)>| v.iter().map(|(m, n)| (m.0, *n)).collect();
        Plain {
            game: r.game.clone(),
            game_id: r.game_id,
            white: r.white.clone(),
            black: r.black.clone(),
            start_fen: r.start_fen.clone(),
            opening_plies: r.opening_plies,
            moves: r.moves.iter().map(|m| m.0).collect(),
            best: r.best.iter().map(|m| m.map(|m| m.0)).collect(),
            score: r.score.clone(),
            value: r.value.as_ref().map(bits),
            visits: r.visits.iter().map(|v| v.as_ref().map(pairs)).collect(),
            result: r.result.map(GameResult::white),
            termination: r.termination.as_str().to_owned(),
            generation: r.generation,
            opening: r.opening.clone(),
            phase: r.phase.clone(),
            rung: r.rung,
            reward: r.reward.as_ref().map(|v| v.iter().map(|x| x.to_bits()).collect()),
        }
    }
}

impl Plain {
    fn into_record(self) -> Option<GameRecord> {
        let floats = |v: Vec<Option<u32>>| v.into_iter().map(|x| x.map(f32::from_bits)).collect();
        let pairs = |v: Vec<(u16, u32)>| v.into_iter().map(|(m, n)| (Move(m), n)).collect();
        Some(GameRecord {
            game: self.game,
            game_id: self.game_id,
            white: self.white,
            black: self.black,
            start_fen: self.start_fen,
            opening_plies: self.opening_plies,
            moves: self.moves.into_iter().map(Move).collect(),
            best: self.best.into_iter().map(|m| m.map(Move)).collect(),
            score: self.score,
            value: self.value.map(floats),
            visits: self.visits.into_iter().map(|v| v.map(pairs)).collect(),
            result: match self.result {
                Some(result) => Some(GameResult::from_white(result)?),
                None => None,
            },
            termination: Termination::parse(&self.termination)?,
            generation: self.generation,
            opening: self.opening,
            phase: self.phase,
            rung: self.rung,
            reward: self.reward.map(|v| v.into_iter().map(f32::from_bits).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chess_game, selfplay_game};

    #[test]
    fn a_torn_tail_is_dropped_at_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard-00000.journal");
        let games = [chess_game(0, 20), selfplay_game(1, 12)];
        let mut ends = vec![MAGIC.len() as u64];
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert!(found.is_empty());
        for game in &games {
            journal.append(game).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len());
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let complete = |cut: usize| ends[1..].iter().filter(|e| **e <= cut as u64).count();
        for cut in MAGIC.len()..=whole.len() {
            let (found, end) = recover(&whole[..cut]);
            assert_eq!((found.as_slice(), end as u64), (&games[..complete(cut)], ends[complete(cut)]), "cut at {cut}");
        }
        for cut in [0, 3, 8, 9, 40, ends[1] as usize - 1, ends[1] as usize, ends[1] as usize + 1, whole.len()] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (_, found) = Journal::open(&path).unwrap();
            assert_eq!(found, games[..complete(cut)], "cut at {cut}");
            let length = std::fs::metadata(&path).unwrap().len();
            assert_eq!(length, ends[complete(cut)], "the tail is gone from the file");
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&games[1]).unwrap();
        drop(journal);
        assert_eq!(std::fs::read(&path).unwrap(), whole, "appending after a recovery goes on where it stopped");
    }

    #[test]
    fn damage_ends_the_journal_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open(&path).unwrap();
        (0..3).for_each(|id| journal.append(&chess_game(id, 10)).unwrap());
        drop(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let (journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, [chess_game(0, 10)]);
        journal.remove().unwrap();
        assert!(!path.exists());
        std::fs::write(&path, "hello").unwrap();
        assert!(Journal::open(&path).unwrap_err().to_string().contains("not a journal"));
    }
}
