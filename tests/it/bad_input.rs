//! Bad input: exit code 2, one clear message, earlier files intact, no panic.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::run_dir::{RunDir, job_path, small_profile};

#[test]
fn configs_that_cannot_be_followed_name_file_and_key() {
    let cases = [
        ("corpus.gamez=3", "gamez"),
        ("corpus.games=\"many\"", "corpus.games"),
        ("corpus.limit={nodes=0}", "nodes"),
        ("corpus.random_plies=[5, 2]", "corpus.random_plies"),
        ("corpus.mistakes=[{share=0.9, rate=0.1}, {share=0.9, rate=0.1}]", "corpus.mistakes"),
        ("game=\"draughts\"", "draughts"),
        ("net.blocks=0", "net"),
        ("pretrain.holdout=1.5", "pretrain.holdout"),
    ];
    let run = RunDir::new(&small_profile());
    for (setting, named) in cases {
        let said = run.fails("corpus", &["--set", setting]);
        assert!(said.contains(named) && said.contains("run.toml") || said.contains("--set"), "{setting}: {said}");
        assert_eq!(said.lines().filter(|l| l.starts_with("error")).count(), 1, "{said}");
    }
    assert!(!run.path("corpus").exists());
    let missing = Command::new(job_path("corpus")).args(["--config", "no.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no.toml"));
}

#[test]
fn u4_engines_that_do_not_start_are_named() {
    let run = RunDir::new(&small_profile());
    for path in ["/bin/false", "/no/such/engine", "no-such-engine-anywhere"] {
        let said = run.fails("corpus", &["--set", &format!("engine.path=\"{path}\"")]);
        assert!(said.contains(path), "{said}");
    }
}

#[test]
fn u17_an_elo_out_of_range_quotes_the_engine() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    let said = run.fails("eval", &["--set", "eval.elo=800"]);
    assert!(said.contains("UCI_Elo") && said.contains("min 1350"), "{said}");
}

/// Settings that are words or folders are refused under their own key by the stage that uses them.
#[test]
fn a_network_or_an_opponent_that_is_not_there_is_refused_under_its_own_key() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    std::fs::create_dir(run.root().join("empty")).unwrap();
    for (job, key) in [
        ("pretrain", "pretrain.init"),
        ("refine", "refine.init"),
        ("selfplay", "refine.init"),
        ("eval", "refine.init"),
        ("eval", "eval.opponent"),
        ("eval", "eval.network"),
    ] {
        for wrong in ["grandmaster", "empty"] {
            let said = run.fails(job, &["--set", &format!("{key}={wrong}")]);
            assert!(said.contains(key) && said.contains(wrong), "{job} with {key} = {wrong}: {said}");
            for other in ["pretrain.init", "refine.init", "eval.opponent", "eval.network"].iter().filter(|k| **k != key)
            {
                assert!(!said.contains(other), "{job} with {key} = {wrong} speaks of {other}: {said}");
            }
        }
    }
}

#[test]
fn a_stage_without_its_input_says_which_stage_to_run() {
    let run = RunDir::new(&small_profile());
    assert!(run.fails("pretrain", &[]).contains("make corpus"));
    assert!(run.fails("refine", &[]).contains("make pretrain"));
    assert!(run.fails("eval", &[]).contains("make pretrain"));
}

#[test]
fn t6_a_checkpoint_of_another_shape_is_refused() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    // Another network is another run: the old one is moved aside, never loaded.
    let other = run.ok("pretrain", &["--set", "net.channels=12"]);
    assert!(other.contains("net"), "{other}");
    let init = format!("refine.init=\"{}\"", run.path("pretrain").display());
    let said = run.fails("refine", &["--set", &init]);
    assert!(said.contains("12") && said.contains("8"), "both architectures are named: {said}");
}

/// A limit on the size of files stands for a full disk: earlier files stay, and more room lets the run go on.
#[test]
fn d2_a_full_disk_leaves_the_previous_checkpoint() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    let limited = |kib: u32, job: &str| {
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec {} --config run.toml", job_path(job).display());
        let out = Command::new("bash").args(["-c", &script]).current_dir(run.root()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = limited(4, "pretrain");
    assert_eq!(code, Some(2), "{said}");
    assert!(!said.contains("panicked") && said.contains("pretrain"), "{said}");
    run.ok("pretrain", &[]);
    let before = run.json("pretrain/stage.json")["fingerprint"].clone();
    let (code, _) = limited(4, "refine");
    assert_eq!(code, Some(2));
    assert_eq!(run.json("pretrain/stage.json")["fingerprint"], before);
    run.ok("refine", &[]);
}

#[test]
fn a_read_only_folder_is_named() {
    if Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.starts_with(b"0")) {
        // Root writes anywhere: a file where the folder should be has to do.
        let run = RunDir::new(&small_profile());
        std::fs::write(run.root().join("data"), "in the way").unwrap();
        assert!(run.fails("corpus", &[]).contains("data"));
        return;
    }
    let run = RunDir::new(&small_profile());
    let data = run.root().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o555)).unwrap();
    assert!(run.fails("corpus", &[]).contains("data"));
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn d1_bad_and_stray_files_are_named_and_skipped_or_fatal() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    let good = std::fs::read(run.path("corpus/shard-00001.parquet")).unwrap();
    for length in [0, 4, good.len() / 2, good.len() - 1] {
        std::fs::write(run.path("corpus/shard-00001.parquet"), &good[..length]).unwrap();
        let folder = run.path("corpus").display().to_string();
        let skipped = run.run("stats", &[&folder]);
        assert_eq!(skipped.code, 0, "{}", skipped.stderr);
        assert!(skipped.stderr.contains("shard-00001"), "{}", skipped.stderr);
        let said = run.fails("stats", &[&folder, "--on-bad-shard", "stop"]);
        assert!(said.contains("shard-00001"), "{said}");
    }
    for stray in ["notes.txt", "part-3.parquet.tmp"] {
        std::fs::write(run.path("corpus").join(stray), "mine").unwrap();
    }
    let said = run.ok("pretrain", &["--on-bad-shard", "skip"]);
    for named in ["shard-00001", "notes.txt", "part-3.parquet.tmp"] {
        assert!(said.contains(named), "{said}");
    }
    let other = RunDir::new(&small_profile());
    other.ok("corpus", &[]);
    std::fs::write(other.path("corpus/shard-00001.parquet"), &good[..9]).unwrap();
    assert!(other.fails("pretrain", &["--on-bad-shard", "stop"]).contains("shard-00001"));
}
