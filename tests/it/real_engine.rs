//! The chain on the real Stockfish, where there is one (`make setup` installs it).

use crate::run_dir::{RunDir, small_profile};

fn real(profile: &str) -> RunDir {
    assert!(uci::find_engine("stockfish").is_ok(), "Stockfish is missing: run `make setup`");
    let engine = profile.lines().find(|l| l.starts_with("engine = ")).unwrap();
    RunDir::new(&profile.replace(engine, "engine = { path = \"stockfish\" }"))
}

/// A shard of 400 games costs at most 4 bytes a position, moves, scores and all.
#[test]
fn four_bytes_a_position() {
    let run = real(&small_profile());
    let set = "corpus={games=400, games_per_shard=400, limit={nodes=60}, random_plies=[2, 9], max_plies=200, \
               mistakes=[{share=0.25, rate=0.05}, {share=0.25, rate=0.12}]}";
    run.ok("corpus", &["--set", set]);
    let shard = run.json("corpus/shard-00000.json");
    let per_position = shard["bytes"].as_f64().unwrap() / shard["positions"].as_f64().unwrap();
    assert!(per_position <= 4.0, "{per_position} bytes a position");
    let summary = run.json("corpus/stage.json")["summary"].clone();
    assert!(summary["distinct_games"].as_u64().unwrap() >= 390, "{summary}");
}

/// Real Stockfish through every stage; the teacher is deterministic, so two runs have the same shards.
#[test]
fn the_chain_runs_on_stockfish() {
    let run = real(&small_profile());
    for stage in ["corpus", "pretrain", "refine"] {
        run.ok(stage, &[]);
    }
    let said = run.ok("eval", &["--set", "eval.limit={movetime_ms=10}"]);
    assert!(said.contains("Stockfish") && said.contains("UCI_Elo=1500") && said.contains("movetime=10ms"), "{said}");
    for file in ["report.txt", "report.json", "games.pgn"] {
        assert!(run.path("eval").join(file).exists(), "{file}");
    }
    let again = real(&small_profile());
    again.ok("corpus", &[]);
    assert!(run.shards("corpus") == again.shards("corpus"));
}

/// It learns, not only searches: taught by a few hundred games, the network beats an untrained one, and a gate lets it
/// replace random weights and not the reverse.
#[test]
fn a_pre_trained_network_beats_an_untrained_one() {
    let profile = small_profile()
        .replace(
            "games = 12\ngames_per_shard = 3\nlimit = { nodes = 50 }",
            "games = 400\ngames_per_shard = 100\nlimit = { nodes = 60 }",
        )
        .replace("max_plies = 60", "max_plies = 160")
        .replace("blocks = 1\nchannels = 8", "blocks = 2\nchannels = 32\npolicy_conv = true")
        .replace(
            "epochs = 2\nbatch = 16\npool = 256\nholdout = 0.2",
            "epochs = 2\nbatch = 64\npool = 16384\nholdout = 0.1\npeak_lr = 3e-3",
        )
        .replace("threads = 1", "threads = 2");
    let run = real(&profile);
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    let summary = run.json("pretrain/stage.json")["summary"].clone();
    let losses: Vec<f64> =
        summary["epochs"].as_array().unwrap().iter().map(|e| e["policy_loss"].as_f64().unwrap()).collect();
    assert!(losses.last() < losses.first(), "the validation loss falls: {losses:?}");
    let settings = [
        "--set",
        "eval.opponent=\"untrained\"",
        "--set",
        "eval.games=40",
        "--set",
        "eval.simulations=16",
        "--set",
        "eval.max_plies=200",
    ];
    run.ok("eval", &settings);
    let score = run.json("eval/stage.json")["summary"]["score"].as_f64().unwrap();
    assert!(score >= 0.75, "scored {score} against untrained weights");

    let (trained, untrained) = (run.path("pretrain"), run.path("refine/untrained"));
    let judge = |candidate: &std::path::Path, best: &std::path::Path| {
        let args = [
            "--candidate",
            candidate.to_str().unwrap(),
            "--best",
            best.to_str().unwrap(),
            "--set",
            "gate.games=20",
            "--set",
            "gate.simulations=16",
            "--set",
            "gate.max_plies=200",
        ];
        run.run("gate", &args)
    };
    let (forward, reverse) = (judge(&trained, &untrained), judge(&untrained, &trained));
    assert_eq!(forward.code, 0, "{}\n{}", forward.stdout, forward.stderr);
    assert!(reverse.code == 1 && reverse.stdout.contains("refused"), "{}\n{}", reverse.stdout, reverse.stderr);
}
