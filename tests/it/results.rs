//! The page of results and its experiments, on runs of seconds.

use std::collections::BTreeMap;

use dataset::{Dataset, OnBad, Part, Split};
use serde_json::Value;

use crate::kills::{assert_whole, disturbed};
use crate::run_dir::{RunDir, small_profile};

const PAGE: [&str; 2] = ["--out", "page/results.md"];

/// The small profile with experiments as small, games that are played to their end, and a gate that lets everything
/// through.
fn profile() -> String {
    let results = "\n[results]\nsimulations = [0, 4]\nshares = [2, 1]\nfixed_simulations = 4\ngames = 4\n\
                   elo = 1600\nlimit = { nodes = 30 }\nrefined_games = 4\n";
    let played_out =
        small_profile().replace("max_plies = 30", "max_plies = 2000").replace("max_plies = 40", "max_plies = 2000");
    played_out.replace("[gate]", "[gate]\nthreshold = 0") + results
}

fn trained(profile: &str) -> RunDir {
    let run = RunDir::new(profile);
    for job in ["corpus", "pretrain"] {
        run.ok(job, &[]);
    }
    run
}

fn page(run: &RunDir) -> String {
    std::fs::read_to_string(run.root().join("page/results.md")).unwrap()
}

/// Everything under the run's data and beside the page, locks apart.
fn files(run: &RunDir) -> BTreeMap<String, Vec<u8>> {
    let mut all = run.files("", "");
    all.retain(|name, _| !name.contains(".lock"));
    all.extend(run.files("../../page", ""));
    all
}

/// The Elo of a match as a table shows it.
fn elo(report: &Value) -> String {
    let report: arena::MatchReport = serde_json::from_value(report.clone()).unwrap();
    format!(
        "| {} | {} |",
        report.score.map_or("no decided game".to_owned(), |s| format!("{:.1} %", 100.0 * s)),
        report.elo
    )
}

#[test]
fn the_page_shows_what_the_run_has_measured() {
    let run = trained(&profile());
    for job in ["refine", "eval", "results"] {
        run.ok(job, if job == "results" { &PAGE } else { &[] });
    }
    let (page, found) = (page(&run), run.json("results/results.json"));
    let corpus = run.json("corpus/stage.json");
    for text in [
        "Written by `make results PROFILE=run OUT=page/results.md`",
        "make corpus pretrain refine eval results PROFILE=run",
        "Teacher: Tabiya Fake 1.0 Threads=1 Hash=16, nodes=50 a move. Corpus: 12 games, ",
        corpus["fingerprint"].as_str().unwrap(),
        &format!("Machine: {}.", pipeline::machine()),
        "| iteration 1: gate | ",
        "accepted at ",
        "against Tabiya Fake 1.0 UCI_Elo=1600 nodes=30. 0 simulations",
        "Tabiya Fake 1.0 UCI_Elo=1500 nodes=50 | 4 | +",
    ] {
        assert!(page.contains(text), "{text} is not in\n{page}");
    }
    assert!(
        page.lines()
            .any(|l| l.starts_with("| corpus | ") && l.contains(" | 1 | 12 games of Tabiya Fake 1.0 nodes=50, ")),
        "{page}"
    );
    for report in ["eval/report.json", "refine/iter_0001/eval/report.json"] {
        let shown = elo(&run.json(report));
        assert!(page.contains(&shown), "{shown} is not in\n{page}");
    }
    let gate: arena::MatchReport = serde_json::from_value(run.json("refine/iter_0001/gate/report.json")).unwrap();
    assert!(page.contains(&format!("(needs 0.000) | {} |", gate.elo)), "{page}");
    let lists = ["simulations", "shares"].map(|list| found[list].as_array().unwrap());
    assert_eq!(lists.map(Vec::len), [2, 2]);
    for experiment in lists.into_iter().flatten().map(|e| &e["report"]).chain([&found["refinement"]]) {
        let shown = elo(experiment);
        assert!(page.contains(&shown), "{shown} is not in\n{page}");
    }
    assert!(found["refinement"]["player_a"].as_str().unwrap().contains("refined"));

    // Each plot that is named is there, with the points of its table.
    let plots: Vec<&str> = page.split("](results/").skip(1).map(|rest| rest.split_once(')').unwrap().0).collect();
    assert_eq!(plots.len(), 6, "{plots:?}");
    for plot in plots {
        let svg = std::fs::read_to_string(run.root().join("page/results").join(plot)).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
        let (dots, bars) = (svg.matches("<circle").count(), svg.matches("stroke-opacity").count());
        match plot {
            // Every Elo has its interval or its bound, and a point where both ends are known.
            "run-simulations.svg" | "run-positions.svg" => assert!(bars == 2 && dots <= 2, "{plot}: {dots}, {bars}"),
            "run-positions-top1.svg" => assert_eq!((dots, bars), (2, 0)),
            _ => assert!(dots >= 4 && bars == 0, "{plot}: {dots}, {bars}"),
        }
    }

    // The networks of a part learn from the first games, less the held-out ones, once.
    let data = Dataset::open(&[run.path("corpus")], OnBad::Stop).unwrap();
    let games: Vec<_> = (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).collect();
    let split = Split { holdout: 0.2, part: Part::Train };
    for (share, most) in found["shares"].as_array().unwrap().iter().zip([6, 12]) {
        let learned = games.iter().filter(|g| g.game_id < most && split.contains("corpus", g.game_id));
        let positions: usize = learned.map(|g| g.moves.len() - usize::from(g.opening_plies)).sum();
        assert_eq!(share["positions"], positions);
    }
}

#[test]
fn a_second_run_does_nothing_and_a_larger_one_plays_only_what_is_missing() {
    let run = trained(&profile().replace("epochs = 2", "epochs = 1"));
    run.ok("results", &PAGE);
    let before = files(&run);
    let said = run.ok("results", &PAGE);
    assert!(said.contains("results: done already, page/results.md"), "{said}");
    assert!(before == files(&run), "a second run changed files");
    assert!(!run.path("results/one_in_1").exists(), "one pass over everything is what the run itself has made");
    let page_before = page(&run);
    assert!(page_before.contains("### Strength by training positions") && !page_before.contains("### Refinement"));
    assert!(page_before.contains("None was played: `make eval PROFILE=run` does."), "{page_before}");

    let more = [&PAGE[..], &["--set", "results.simulations=[0, 4, 6]"]].concat();
    let said = run.ok("results", &more);
    assert_eq!(said.matches(": starts").count(), 1, "{said}");
    assert!(page(&run).contains("| 6 | 4 | +"));
    // Another opponent is another measurement of everything.
    let said = run.ok("results", &[&PAGE[..], &["--set", "results.elo=1700"]].concat());
    assert!(said.contains("moved to") && page(&run).contains("UCI_Elo=1700"), "{said}");
}

#[test]
fn a_killed_run_goes_on() {
    // Without held-out games the trained weights are kept, whatever they are worth: no two networks are the same.
    let profile = profile().replace("holdout = 0.2", "holdout = 0");
    let (killed, whole) = (trained(&profile), trained(&profile));
    let args = [&PAGE[..], &["--set", "engine.args=[\"--slow\", \"2\"]"]].concat();
    for run in [&killed, &whole] {
        run.ok("refine", &[]);
    }
    disturbed(&killed, &whole, "results", &args, 6);
    let fingerprint = |run: &RunDir| run.json("results/one_in_2/stage.json")["fingerprint"].clone();
    assert_eq!(fingerprint(&killed), fingerprint(&whole));
    let games = whole.shards("results");
    assert_eq!(games.len(), 5, "four matches with the engine and one without: {:?}", games.keys());
    assert!(games == killed.shards("results"));
    for name in games.keys() {
        assert_whole(&killed, &format!("results/{}", name.rsplit_once('/').unwrap().0), 4);
    }
    assert!(page(&killed).contains("### Strength by simulations"));
}

#[test]
fn what_is_missing_is_named_with_its_target() {
    let run = RunDir::new(&profile());
    let said = run.fails("results", &PAGE);
    assert!(said.contains("the corpus is missing") && said.contains("make corpus"), "{said}");
    run.ok("corpus", &[]);
    let said = run.fails("results", &PAGE);
    assert!(said.contains("the pre-trained network is missing") && said.contains("make pretrain"), "{said}");
    run.ok("pretrain", &[]);
    run.ok("corpus", &["--set", "corpus.games=15"]);
    let said = run.fails("results", &PAGE);
    assert!(said.contains("has not learned from the corpus") && said.contains("make pretrain"), "{said}");
    assert!(!run.root().join("page").exists());

    let said = run.fails("results", &[&PAGE[..], &["--also", "night"]].concat());
    assert!(said.contains("night.toml"), "{said}");
    for (set, key) in [("results.shares=[0]", "results.shares"), ("results.games=0", "results.games")] {
        let said = run.fails("results", &["--set", set]);
        assert!(said.contains(key), "{said}");
    }
    let config = format!("{}/configs/tictactoe.toml", env!("CARGO_MANIFEST_DIR"));
    let other = RunDir::new(&std::fs::read_to_string(config).unwrap());
    let said = other.fails("results", &PAGE);
    assert!(said.contains("a refined network is missing") && said.contains("make refine"), "{said}");
}

#[test]
fn another_profile_stands_on_the_same_page() {
    let run = trained(&profile());
    let elsewhere = RunDir::new("");
    let night = |data: &str| std::fs::write(run.root().join("night.toml"), format!("data = \"{data}\"\n{}", profile()));
    let both = [&PAGE[..], &["--also", "night"]].concat();
    night(&elsewhere.path("").display().to_string()).unwrap();
    let said = run.fails("results", &both);
    assert!(said.contains("a finished stage is missing") && said.contains("make corpus"), "{said}");
    night("data/run").unwrap();
    run.ok("results", &both);
    let page = page(&run);
    assert!(page.contains("make results PROFILE=run ALSO=\"night\"") && page.contains("## run\n"), "{page}");
    assert!(page.contains("## night\n") && page.contains("(results/night-simulations.svg)"), "{page}");
}

/// Without a teacher there is no corpus to take parts of; the opponent is the game's own.
#[test]
fn a_game_without_a_teacher_has_results_too() {
    let config = format!("{}/configs/tictactoe.toml", env!("CARGO_MANIFEST_DIR"));
    let small = "\n[results]\nsimulations = [0, 8]\nfixed_simulations = 8\ngames = 4\nrefined_games = 8\n";
    let run = RunDir::new(&(std::fs::read_to_string(config).unwrap() + small));
    let quick = ["refine.num_iterations=1", "selfplay.games=120", "train.steps=20", "gate.threshold=0", "gate.games=4"];
    let quick: Vec<&str> = quick.iter().flat_map(|set| ["--set", set]).collect();
    run.ok("refine", &quick);
    run.ok("results", &[&PAGE[..], &quick].concat());
    let page = page(&run);
    for text in [
        "make refine results PROFILE=run",
        "### Refinement",
        " refined simulations=8 | ",
        "### Strength by simulations",
    ] {
        assert!(page.contains(text), "{text} is not in\n{page}");
    }
    assert!(!page.contains("Teacher") && !page.contains("training positions"), "{page}");
}
