//! Shards are functions of their game ids, whoever writes them, in whatever order.

use crate::run_dir::{RunDir, finish, small_profile};

#[test]
fn one_worker_and_four_write_identical_shards() {
    let profile = small_profile();
    let (one, four) = (RunDir::new(&profile), RunDir::new(&profile));
    one.ok("corpus", &["--set", "corpus.workers=1"]);
    four.ok("corpus", &["--set", "corpus.workers=4"]);
    assert_eq!(one.shards("corpus").len(), 4);
    assert!(one.shards("corpus") == four.shards("corpus"));
}

#[test]
fn a_range_writes_exactly_its_shards_and_the_whole_run_takes_them_over() {
    let profile = small_profile();
    let (whole, parts) = (RunDir::new(&profile), RunDir::new(&profile));
    whole.ok("corpus", &["--set", "corpus.games=20"]);
    parts.ok("corpus", &["--set", "corpus.games=20", "--shards", "3..5"]);
    let names: Vec<String> = parts.shards("corpus").into_keys().collect();
    assert_eq!(names, ["shard-00003.parquet", "shard-00004.parquet", "shard-00005.parquet"]);
    // Two ranges at a time, from two processes.
    let jobs = ["0..0", "1..2", "6..6"].map(|r| parts.start("corpus", &["--set", "corpus.games=20", "--shards", r]));
    for job in jobs {
        let ran = finish(job);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let said = parts.ok("corpus", &["--set", "corpus.games=20"]);
    assert!(said.contains("20 games"), "{said}");
    assert!(whole.shards("corpus") == parts.shards("corpus"));
    assert_eq!(parts.json("corpus/stage.json")["status"], "done");
}

#[test]
fn more_games_extend_a_corpus_and_keep_its_full_shards() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &["--set", "corpus.games=7"]);
    let before = run.shards("corpus");
    assert_eq!(before.len(), 3);
    run.ok("corpus", &["--set", "corpus.games=11"]);
    let after = run.shards("corpus");
    assert_eq!(after.len(), 4);
    for full in ["shard-00000.parquet", "shard-00001.parquet"] {
        assert!(before[full] == after[full]);
    }
    let fresh = RunDir::new(&small_profile());
    fresh.ok("corpus", &["--set", "corpus.games=11"]);
    assert!(fresh.shards("corpus") == after, "an extended corpus is the corpus that was asked for at once");
}

#[test]
fn another_setting_moves_the_old_corpus_aside() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &["--set", "corpus.games=3"]);
    let before = run.shards("corpus");
    let said = run.ok("corpus", &["--set", "corpus.games=3", "--set", "seed=8"]);
    assert!(run.shards("corpus") != before);
    let aside = std::fs::read_dir(run.path("")).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    let aside: Vec<String> = aside.filter(|n| n.starts_with("corpus.")).collect();
    assert_eq!(aside.len(), 1, "{said}");
    assert!(run.shards(&aside[0]) == before, "nothing is deleted");
}

#[test]
fn an_engine_that_dies_every_twentieth_move_still_gives_every_game() {
    let run = RunDir::new(&small_profile());
    let said = run.ok("corpus", &["--set", "engine.args=[\"--die-every\", \"20\"]"]);
    assert!(said.contains("12 games") && said.contains("goes on from ply"), "{said}");
    assert_eq!(run.json("corpus/stage.json")["summary"]["games"], 12);
    // Games that the engine could not play through in one life say so beside their shard.
    let sidecars = run.files("corpus", ".json");
    assert!(sidecars.values().any(|text| String::from_utf8_lossy(text).contains("resumed_games")));
}
