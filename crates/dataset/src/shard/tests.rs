use proptest::prelude::*;

use super::*;
use crate::testing::{chess_game, connect4_game, meta, selfplay_game, tictactoe_game};

fn mixed(first: u64, n: u64) -> Vec<GameRecord> {
    let game = |id: u64| match id % 4 {
        0 => chess_game(id, 50),
        1 => selfplay_game(id, 30),
        2 => connect4_game(id),
        _ => tictactoe_game(id),
    };
    (first..first + n).map(game).collect()
}

fn read(store: &Store, shard: u32) -> Vec<GameRecord> {
    frame::records_from_bytes(store.get(&shard_name(shard)).unwrap(), "test").unwrap()
}

#[test]
fn a_shard_reads_back_and_its_sidecar_describes_it() {
    let store = Store::memory();
    let mut records = mixed(800, 12);
    records[0].moves.clear();
    (records[0].best, records[0].score, records[0].opening_plies) = (vec![], vec![], 0);
    (records[1].start_fen, records[1].visits) = (Some("a \"fen\"\nü".into()), vec![None; records[1].plies()]);
    let sidecar = write_shard_as(&store, 42, &records, &meta("corpus"), &json!({"workers": 2})).unwrap();
    let normalized = |r: &GameRecord| r.clone().normalized();
    assert!(read(&store, 42).iter().eq(records.iter().map(normalized).collect::<Vec<_>>().iter()));
    assert_eq!((sidecar.shard, sidecar.first_game, sidecar.rows), (42, 800, 12));
    assert_eq!(sidecar.positions, records.iter().map(|r| r.plies() as u64).sum::<u64>());
    assert_eq!(sidecar.writer["workers"], 2);
    let written: Sidecar = serde_json::from_slice(&store.get("shard-00042.json").unwrap()).unwrap();
    assert_eq!(written, sidecar);
    let finished = finished_shards(&store).unwrap();
    assert_eq!(finished.into_iter().collect::<Vec<_>>(), [(42, sidecar)]);
}

#[test]
fn the_same_games_give_the_same_bytes() {
    let records = mixed(0, 8);
    let bytes: Vec<Vec<u8>> = (0..2)
        .map(|workers| {
            let store = Store::memory();
            write_shard_as(&store, 1, &records, &meta("corpus"), &json!({"workers": workers})).unwrap();
            store.get(&shard_name(1)).unwrap()
        })
        .collect();
    assert_eq!(bytes[0], bytes[1]);
    let other = encode_shard(&records, &Meta { seed: 1, ..meta("corpus") }, "").unwrap();
    assert_ne!(bytes[0], other, "the seed is part of the content");
    let same = encode_shard(&records, &Meta { reproducible: false, ..meta("corpus") }, "").unwrap();
    assert_eq!(bytes[0], same, "whether it can be reproduced is the sidecar's matter");
}

#[test]
fn best_is_null_where_it_was_played() {
    let mut record = chess_game(3, 30);
    record.best[9] = Some(record.moves[9]);
    let store = Store::memory();
    write_shard(&store, 0, std::slice::from_ref(&record), &meta("corpus")).unwrap();
    assert_eq!(read(&store, 0)[0].best[9], None);
}

#[test]
fn records_that_break_the_schema_leave_no_file() {
    let store = Store::memory();
    let mut records = mixed(0, 3);
    records[1].score.push(None);
    assert!(write_shard(&store, 0, &records, &meta("c")).unwrap_err().to_string().contains("game 1: score"));
    let mut records = mixed(0, 3);
    records.swap(1, 2);
    assert!(write_shard(&store, 0, &records, &meta("c")).unwrap_err().to_string().contains("ascending"));
    assert!(write_shard(&store, 0, &[], &meta("c")).is_err());
    assert!(store.list("").unwrap().is_empty());
}

/// Four bytes a position, scores included, on games that are less predictable than an engine's.
#[test]
fn a_corpus_costs_at_most_four_bytes_a_position() {
    let store = Store::memory();
    let records: Vec<GameRecord> = (0..400).map(|id| chess_game(id, 120)).collect();
    let sidecar = write_shard(&store, 0, &records, &meta("corpus")).unwrap();
    let bytes = sidecar.bytes as f64 / sidecar.positions as f64;
    println!("{bytes:.3} bytes a position");
    assert!(bytes <= 4.0, "{bytes:.3} bytes a position");
}

#[test]
fn row_groups_stay_below_16_mib() {
    let big = selfplay_game(0, 200);
    let records: Vec<GameRecord> = (0..400).map(|id| GameRecord { game_id: id, ..big.clone() }).collect();
    let bytes = encode_shard(&records, &meta("selfplay"), "").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let groups = reader.metadata().row_groups();
    assert!(groups.len() > 1, "the games weigh more than one group may");
    assert!(groups.iter().all(|g| g.total_byte_size() <= 16 << 20));
    let statistics = |name: &str| {
        let column = groups[0].columns().iter().find(|c| c.column_path().string() == name).unwrap();
        column.statistics().is_some()
    };
    assert!(statistics("game_id") && statistics("result") && !statistics("white"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_games_round_trip(first in 0u64..1 << 40, n in 1u64..9, plies in 1usize..60, fen in "\\PC{0,20}", null in any::<bool>()) {
        let mut records = mixed(first, n);
        records.push(selfplay_game(first + n, plies));
        if let Some(r) = records.last_mut() {
            r.start_fen = (!null).then_some(fen);
            if null {
                r.value = None;
                r.score = vec![Some(-32_000); r.plies()];
            }
        }
        let bytes = encode_shard(&records, &meta("p"), "").unwrap();
        let normalized: Vec<GameRecord> = records.into_iter().map(GameRecord::normalized).collect();
        prop_assert!(frame::records_from_bytes(bytes, "p").unwrap() == normalized);
    }
}
