//! Policy targets from several lines of the teacher.

use dataset::{Dataset, GameRecord, OnBad};

use crate::run_dir::{RunDir, small_profile};

const SOFT: &str = "\n[corpus.soft]\nmultipv = 4\ntemperature = 0.05\n";

fn games(run: &RunDir) -> Vec<GameRecord> {
    let data = Dataset::open(&[run.path("corpus")], OnBad::Stop).unwrap();
    (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).collect()
}

#[test]
fn every_answer_has_its_lines_and_nothing_else_changes() {
    let (hard, soft) = (RunDir::new(&small_profile()), RunDir::new(&(small_profile() + SOFT)));
    hard.ok("corpus", &[]);
    soft.ok("corpus", &[]);
    let mut spread = 0;
    let (hard_games, soft_games) = (games(&hard), games(&soft));
    assert_eq!((hard_games.len(), soft_games.len()), (12, 12));
    for (with, without) in soft_games.iter().zip(&hard_games) {
        assert_eq!(&GameRecord { visits: Vec::new(), ..with.clone() }, without);
        for (ply, lines) in with.visits.iter().enumerate() {
            if ply < usize::from(with.opening_plies) {
                assert_eq!(lines, &None);
                continue;
            }
            let lines = lines.as_ref().unwrap();
            let best = with.best[ply].unwrap_or(with.moves[ply]);
            let most = lines.iter().map(|(_, count)| *count).max();
            assert_eq!(lines.iter().find(|(m, _)| *m == best).map(|(_, count)| *count), most);
            let sum: u32 = lines.iter().map(|(_, count)| count).sum();
            assert!(lines.len() <= 4 && sum.abs_diff(1000) <= 2, "{lines:?}");
            spread += usize::from(lines.len() > 1);
        }
    }
    assert!(spread > 100, "{spread} positions with several moves");
    let other = RunDir::new(&(small_profile() + SOFT));
    other.ok("corpus", &["--set", "corpus.workers=1"]);
    assert!(other.shards("corpus") == soft.shards("corpus"));
}

#[test]
fn pretraining_learns_what_it_is_told_to() {
    let run = RunDir::new(&(small_profile() + SOFT));
    run.ok("corpus", &[]);
    let mut loss = |policy: &str| {
        run.ok("pretrain", &["--set", &format!("pretrain.policy={policy}")]);
        run.json("pretrain/stage.json")["summary"]["epochs"][0]["policy_loss"].as_f64().unwrap()
    };
    let losses = ["best", "played", "visits"].map(&mut loss);
    assert!(losses[0] != losses[1] && losses[1] != losses[2] && losses[2] != losses[0], "{losses:?}");
}

#[test]
fn lines_that_an_engine_cannot_show_and_settings_without_sense_are_refused() {
    let run = RunDir::new(&(small_profile() + SOFT));
    for (setting, named) in [("multipv=1", "corpus.soft"), ("temperature=0", "corpus.soft"), ("multipv=900", "MultiPV")]
    {
        let ran = run.run("corpus", &["--set", &format!("corpus.soft.{setting}")]);
        assert!(ran.code == 2 && ran.stderr.contains(named), "{setting}: {}", ran.stderr);
    }
}
