use std::path::Path;

use polars::prelude::*;

use super::*;
use crate::testing::{chess_game, fill, meta, selfplay_game};
use crate::write_shard;

fn three(dir: &Path) -> Vec<PathBuf> {
    fill(dir, "corpus", 3, 4, |id| chess_game(id, 20))
}

#[test]
fn d1_bad_and_stray_files_are_named_and_skipped_or_fatal() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = three(dir.path());
    let victim = dir.path().join("shard-00001.parquet");
    let good = std::fs::read(&victim).unwrap();
    let whole = Dataset::open(&dirs, OnBad::Stop).unwrap();
    assert_eq!((whole.shards().len(), whole.games(), whole.warnings().len()), (3, 12, 0));
    let check = |mention: &str| {
        let skipped = Dataset::open(&dirs, OnBad::Skip).unwrap();
        assert_eq!(skipped.games(), 8, "{mention}");
        assert!(
            skipped.warnings().iter().any(|w| w.contains("shard-00001") && w.contains(mention)),
            "{:?}",
            skipped.warnings()
        );
        let rows = query::collect(skipped.scan().unwrap(), "test").unwrap().height();
        assert_eq!(rows, 8);
        let error = Dataset::open(&dirs, OnBad::Stop).unwrap_err().to_string();
        assert!(error.contains("shard-00001") && error.contains(mention), "{error}");
    };
    for cut in [0, 4, good.len() / 2, good.len() - 1] {
        std::fs::write(&victim, &good[..cut]).unwrap();
        check("bytes");
    }
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 4;
    std::fs::write(&victim, &flipped).unwrap();
    check("BLAKE3");
    std::fs::remove_file(&victim).unwrap();
    check("missing");
    std::fs::write(&victim, &good).unwrap();
    let side = dir.path().join("shard-00001.json");
    let text = std::fs::read(&side).unwrap();
    std::fs::write(&side, &text[..text.len() / 2]).unwrap();
    check("not a sidecar");
    std::fs::remove_file(&side).unwrap();
    check("half-written");
}

/// A file whose sidecar agrees with it, and which still is no shard.
#[test]
fn d1_content_is_checked_beyond_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = three(dir.path());
    let good = std::fs::read(dir.path().join("shard-00001.parquet")).unwrap();
    let sidecar: Sidecar =
        serde_json::from_slice(&std::fs::read(dir.path().join("shard-00001.json")).unwrap()).unwrap();
    for (bytes, mention) in [(good[..good.len() / 2].to_vec(), "not a Parquet file"), (vec![7; 100], "not a Parquet")] {
        let forged =
            Sidecar { bytes: bytes.len() as u64, blake3: blake3::hash(&bytes).to_hex().to_string(), ..sidecar.clone() };
        std::fs::write(dir.path().join("shard-00001.parquet"), &bytes).unwrap();
        std::fs::write(dir.path().join("shard-00001.json"), serde_json::to_vec(&forged).unwrap()).unwrap();
        let error = Dataset::open(&dirs, OnBad::Stop).unwrap_err().to_string();
        assert!(error.contains(mention), "{error}");
    }
    let mut other = df!("game" => ["chess"], "game_id" => [1i64]).unwrap();
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut other).unwrap();
    let forged =
        Sidecar { rows: 1, bytes: bytes.len() as u64, blake3: blake3::hash(&bytes).to_hex().to_string(), ..sidecar };
    std::fs::write(dir.path().join("shard-00001.parquet"), &bytes).unwrap();
    std::fs::write(dir.path().join("shard-00001.json"), serde_json::to_vec(&forged).unwrap()).unwrap();
    let error = Dataset::open(&dirs, OnBad::Stop).unwrap_err().to_string();
    assert!(error.contains("column") && error.contains("expected"), "{error}");
}

#[test]
fn ids_are_those_of_the_games_that_meet_a_condition() {
    let dir = tempfile::tempdir().unwrap();
    let data = Dataset::open(&fill(dir.path(), "corpus", 3, 4, |id| chess_game(id, 400)), OnBad::Stop).unwrap();
    let games: Vec<_> = (0..3).flat_map(|i| data.read_shard(i).unwrap()).collect();
    let decided = |g: &&GameRecord| g.result.is_some_and(|r| r != games::GameResult::Draw);
    let expected: HashSet<u64> = games.iter().filter(decided).map(|g| g.game_id).collect();
    assert!(!expected.is_empty() && expected.len() < games.len());
    assert_eq!(data.ids_where(Some("result <> 0")).unwrap(), expected);
    assert_eq!(data.ids_where(None).unwrap(), games.iter().map(|g| g.game_id).collect());
    assert!(data.ids_where(Some("nonsense")).is_err());
}

#[test]
fn d1_stray_files_and_empty_folders() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = three(dir.path());
    for expected in [
        "stage.json",
        "config.json",
        "match.pgn",
        "report.txt",
        "metrics.jsonl",
        "shard-00003.journal",
        "shard-00003.parquet#1",
        ".hidden",
    ] {
        std::fs::write(dir.path().join(expected), "x").unwrap();
    }
    std::fs::create_dir(dir.path().join("older.20260101")).unwrap();
    Dataset::open(&dirs, OnBad::Stop).unwrap();
    for stray in ["notes.txt", "part-3.parquet.tmp", "shard-1.parquet", "shard-1.json"] {
        std::fs::write(dir.path().join(stray), "x").unwrap();
        let error = Dataset::open(&dirs, OnBad::Stop).unwrap_err().to_string();
        assert!(error.contains(stray), "{error}");
        let skipped = Dataset::open(&dirs, OnBad::Skip).unwrap();
        assert!(skipped.games() == 12 && skipped.warnings()[0].contains(stray));
        std::fs::remove_file(dir.path().join(stray)).unwrap();
    }
    let empty = vec![tempfile::tempdir().unwrap().keep()];
    let data = Dataset::open(&empty, OnBad::Skip).unwrap();
    assert!(data.warnings()[0].contains("no shard") && data.games() == 0);
    assert!(data.scan().err().unwrap().to_string().contains("no finished shard"));
    assert!(Dataset::open(&empty, OnBad::Stop).is_err());
    std::fs::remove_dir_all(&empty[0]).unwrap();
    assert!(Dataset::open(&empty, OnBad::Skip).is_err(), "a folder that does not exist is always an error");
}

#[test]
fn several_folders_keep_their_order_and_one_query_reads_all() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut dirs = fill(a.path(), "corpus", 3, 4, |id| chess_game(id, 20));
    dirs.extend(fill(b.path(), "selfplay", 2, 3, |id| selfplay_game(id, 20)));
    let data = Dataset::open(&dirs, OnBad::Stop).unwrap();
    let names: Vec<(String, u32)> = data.shards().iter().map(|s| (s.dataset.clone(), s.sidecar.shard)).collect();
    let corpus = (0..3).map(|i| ("corpus".to_owned(), i));
    assert_eq!(names, corpus.chain((0..2).map(|i| ("selfplay".to_owned(), i))).collect::<Vec<_>>());
    let frame = query::collect(data.scan().unwrap(), "test").unwrap();
    let streamed = frame::records_from_frame(&frame, "test").unwrap();
    let read: Vec<GameRecord> = (0..5).flat_map(|i| data.read_shard(i).unwrap()).collect();
    assert_eq!(streamed, read, "the streaming engine keeps the order and the content");
    let condition = "generation = 3 AND plies >= 10 AND game_id < 4";
    let some = query::collect(data.scan_where(Some(condition)).unwrap(), "test").unwrap();
    let expected = read.iter().filter(|r| r.generation == 3 && r.plies() >= 10 && r.game_id < 4).count();
    assert_eq!(some.height(), expected);
    assert_eq!(data.clone().newest(1).shards().len(), 1);
    assert_eq!(data.clone().newest(1).shards()[0].sidecar.shard, 1);
    assert_eq!(data.clone().newest(u64::MAX).shards().len(), 5);
}

#[test]
fn conditions_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let data = Dataset::open(&three(dir.path()), OnBad::Stop).unwrap();
    for (sql, mention) in [("plies >", "plies >"), ("no_such = 1", "no_such"), ("plies + 1", "expected a condition")] {
        let error = data.scan_where(Some(sql)).err().unwrap().to_string();
        assert!(error.contains(mention), "{error}");
    }
}

#[test]
fn the_fingerprint_is_of_the_content() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let print = |dirs: &[PathBuf]| Dataset::open(dirs, OnBad::Stop).unwrap().fingerprint();
    let first = print(&three(a.path()));
    assert_eq!(first, print(&three(b.path())), "wherever it lies");
    let store = pipeline::Store::open(b.path()).unwrap();
    write_shard(&store, 2, &[chess_game(8, 19)], &meta("corpus")).unwrap();
    assert_ne!(first, print(&[b.path().to_owned()]));
}
