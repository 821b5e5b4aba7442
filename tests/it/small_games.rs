//! Every framework part on the small games, from random weights, with no engine: it learns, not only searches.

use crate::run_dir::RunDir;

fn config(name: &str) -> String {
    let path = format!("{}/configs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn score(run: &RunDir) -> f64 {
    run.json("eval/stage.json")["summary"]["score"].as_f64().unwrap()
}

fn report(run: &RunDir) -> serde_json::Value {
    run.json("eval/report.json")
}

/// After self-play from scratch the raw policy, without search, loses none of 100 games against the perfect solver;
/// untrained weights lose.
#[test]
fn tic_tac_toe_is_learned_to_perfection() {
    let run = RunDir::new(&config("tictactoe"));
    let untrained = ["--set", "refine.num_iterations=0"];
    run.ok("eval", &untrained);
    assert!(report(&run)["total"]["losses"].as_u64().unwrap() > 0, "{}", report(&run));
    run.ok("refine", &[]);
    run.ok("eval", &[]);
    assert_eq!(report(&run)["total"]["losses"].as_u64().unwrap(), 0, "{}", report(&run));
    assert_eq!(report(&run)["games"].as_u64().unwrap(), 100);
}

/// Trained beats untrained at equal simulations, and gains against the minimax by more than the interval.
#[test]
fn connect_4_is_learned() {
    let run = RunDir::new(&config("connect4"));
    let versus = |opponent: &str, extra: &[&str]| {
        let opponent = format!("eval.opponent=\"{opponent}\"");
        let mut args = vec!["--set", &opponent, "--set", "eval.games=100", "--set", "eval.simulations=60"];
        args.extend(extra);
        run.ok("eval", &args);
        (score(&run), report(&run))
    };
    let (before, _) = versus("reference", &["--set", "refine.num_iterations=0"]);
    run.ok("refine", &["--set", "refine.eval_interval=0"]);
    let (untrained, text) = versus("untrained", &[]);
    assert!(untrained >= 0.75, "{text}");
    let (after, text) = versus("reference", &[]);
    // Two standard errors of a score over 100 games are at most 0.1.
    assert!(after - before > 0.1, "{before} before, {after} after: {text}");
}

/// `eval.movetime_ms` ends searches that have not made their simulations; the match says so, and the stamp of one without it is
/// what it was before there was such a limit.
#[test]
fn a_match_can_be_limited_in_time() {
    let run = RunDir::new(&config("connect4"));
    let mut set = ["refine.num_iterations=0", "eval.opponent=random", "eval.games=2", "eval.simulations=20"]
        .iter()
        .flat_map(|setting| ["--set", setting])
        .collect::<Vec<_>>();
    run.ok("eval", &set);
    assert!(run.json("eval/stage.json")["settings"]["eval"].get("movetime_ms").is_none());
    // Without proofs a tree of finished games is searched on and on, without a question to the network.
    set.extend(["--set", "eval.simulations=8000000", "--set", "eval.movetime_ms=30", "--set", "search.solve=false"]);
    run.ok("eval", &set);
    let report = report(&run);
    let name = report["player_a"].as_str().unwrap();
    assert!(name.ends_with("simulations=8000000 movetime=30ms"), "{name}");
    let [mean, longest] = ["mean_ms", "longest_ms"].map(|key| report["thinking"][0][key].as_f64().unwrap());
    assert!(mean >= 25.0 && longest < 1000.0, "{mean} ms a move, {longest} the longest");
}
