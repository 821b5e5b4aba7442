//! SIGKILL at random moments of every stage, then run again: nothing lost, nothing twice.

use std::time::Instant;

use games::Rng;

use crate::run_dir::{RunDir, finish, signal, small_profile};

/// Runs a job in `whole`; then starts it in `killed` and kills it after a random time, ten times over, and lets it finish.
/// The times are fractions of what the undisturbed run took, so that the kills come early and late on any machine.
pub(crate) fn disturbed(killed: &RunDir, whole: &RunDir, job: &str, args: &[&str], seed: u64) {
    let started = Instant::now();
    whole.ok(job, args);
    let longest = started.elapsed() / 2;
    let mut rng = Rng::new(seed);
    for _ in 0..10 {
        let child = killed.start(job, args);
        std::thread::sleep(longest.mul_f64(rng.unit()));
        signal(child.id(), "KILL");
        finish(child);
    }
    killed.ok(job, args);
}

/// Every record of a dataset has its own id, and their number is the manifest's.
pub(crate) fn assert_whole(run: &RunDir, dataset: &str, games: usize) {
    assert_whole_folder(&run.path(dataset), games);
}

pub(crate) fn assert_whole_folder(folder: &std::path::Path, games: usize) {
    let data = dataset::Dataset::open(&[folder.to_owned()], dataset::OnBad::Stop).unwrap();
    let mut ids = Vec::new();
    for i in 0..data.shards().len() {
        ids.extend(data.read_shard(i).unwrap().iter().map(|r| r.game_id));
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..games as u64).collect::<Vec<_>>());
    assert_eq!(data.games(), games as u64);
}

#[test]
fn a_killed_corpus_is_byte_identical_to_an_undisturbed_one() {
    let slow = ["--set", "engine.args=[\"--slow\", \"2\"]"];
    let (killed, whole) = (RunDir::new(&small_profile()), RunDir::new(&small_profile()));
    disturbed(&killed, &whole, "corpus", &slow, 1);
    assert_whole(&killed, "corpus", 12);
    assert!(killed.shards("corpus") == whole.shards("corpus"));
}

#[test]
fn a_killed_training_ends_with_the_weights_of_an_undisturbed_one() {
    let (killed, whole) = (RunDir::new(&small_profile()), RunDir::new(&small_profile()));
    for run in [&killed, &whole] {
        run.ok("corpus", &[]);
    }
    disturbed(&killed, &whole, "pretrain", &[], 2);
    let fingerprint = |run: &RunDir| run.json("pretrain/stage.json")["fingerprint"].clone();
    assert_eq!(fingerprint(&killed), fingerprint(&whole));
    // A finished run trains no step more.
    assert!(killed.ok("pretrain", &[]).contains("done already"));
}

#[test]
fn a_killed_refinement_plays_the_same_games_and_ends_with_the_same_network() {
    let (killed, whole) = (RunDir::new(&small_profile()), RunDir::new(&small_profile()));
    for run in [&killed, &whole] {
        run.ok("corpus", &[]);
        run.ok("pretrain", &[]);
    }
    disturbed(&killed, &whole, "refine", &[], 3);
    assert_whole(&killed, "refine/iter_0001/selfplay", 6);
    assert!(killed.shards("refine/iter_0001/selfplay") == whole.shards("refine/iter_0001/selfplay"));
    for stage in ["selfplay", "train", "gate"] {
        let fingerprint =
            |run: &RunDir| run.json(&format!("refine/iter_0001/{stage}/stage.json"))["fingerprint"].clone();
        assert_eq!(fingerprint(&killed), fingerprint(&whole), "{stage}");
    }
}

#[test]
fn a_killed_match_plays_every_game_once() {
    let (killed, whole) = (RunDir::new(&small_profile()), RunDir::new(&small_profile()));
    for run in [&killed, &whole] {
        run.ok("corpus", &[]);
        run.ok("pretrain", &[]);
    }
    let games = ["--set", "eval.games=10", "--set", "engine.args=[\"--slow\", \"2\"]"];
    disturbed(&killed, &whole, "eval", &games, 4);
    assert_whole(&killed, "eval/games", 10);
}
