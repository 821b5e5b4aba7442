//! What users met who came from outside: engines of every kind, runs that are stopped, asked about or asked for less.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arena::MatchReport;
use dataset::book::{PgnGame, read_pgn};

use crate::run_dir::{RunDir, fake_engine, finish, job_path, signal, small_profile, wait_until};

/// Two engines of one build.
fn match_of_twins(rules: &str) -> String {
    let engine = fake_engine().display().to_string();
    format!(
        "[first]\nengine = \"{engine}\"\nargs = [\"--seed\", \"1\"]\n[second]\nengine = \"{engine}\"\n\
         args = [\"--seed\", \"2\"]\n[match]\nlimit = {{ nodes = 50 }}\nmax_plies = 60\n{rules}\n"
    )
}

fn folder(run: &RunDir) -> PathBuf {
    run.root().join("data/match/run")
}

fn report(run: &RunDir) -> MatchReport {
    serde_json::from_str(&std::fs::read_to_string(folder(run).join("report.json")).unwrap()).unwrap()
}

fn pgn(run: &RunDir) -> Vec<PgnGame> {
    read_pgn(&folder(run).join("games.pgn")).unwrap().0
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

const LACKS_BOTH: &str = "engine.args=[\"--lacks\", \"Threads\", \"--lacks\", \"Hash\"]";

#[test]
fn engines_get_only_the_options_that_they_declare() {
    // The fake engine exits when an option is set that it does not have.
    let run = RunDir::new(&small_profile());
    let said = "has no option Threads and no option Hash: not set";
    let corpus = run.ok("corpus", &["--set", LACKS_BOTH]);
    assert_eq!(corpus.matches(said).count(), 1, "once, whatever the number of workers: {corpus}");
    run.ok("pretrain", &["--set", LACKS_BOTH]);
    let eval = run.ok("eval", &["--set", LACKS_BOTH]);
    assert_eq!(eval.matches(said).count(), 1, "{eval}");

    let run = RunDir::new(&match_of_twins("games = 2"));
    let first = "first.args=[\"--lacks\", \"Threads\", \"--lacks\", \"Hash\"]";
    let said_of_first = format!("first: Tabiya Fake 1.0 {said}");
    let played = run.ok("match", &["--set", first]);
    assert_eq!(played.matches(said).count(), 1, "{played}");
    assert!(played.contains(&said_of_first), "{played}");
}

#[test]
fn an_option_that_the_user_set_and_the_engine_lacks_is_refused_under_its_key() {
    let run = RunDir::new(&small_profile());
    for (setting, key) in
        [("engine.options.Style=\"wild\"", "engine.options.Style"), ("engine.hash_mb=0", "engine.hash_mb")]
    {
        let said = run.fails("corpus", &["--set", setting]);
        assert!(said.contains(key), "{setting}: {said}");
    }
    let said = run.fails("corpus", &["--set", LACKS_BOTH, "--set", "engine.options.Hash=8"]);
    assert!(said.contains("engine.options.Hash"), "asked for by name: {said}");
    let run = RunDir::new(&match_of_twins("games = 2"));
    let lacks = "second.args=[\"--lacks\", \"Threads\"]";
    let said = run.fails("match", &["--set", lacks, "--set", "second.options.Threads=1"]);
    assert!(said.contains("`second.options.Threads`"), "{said}");
}

#[test]
fn a_match_that_is_stopped_leaves_report_and_pgn_and_goes_on() {
    let rules = "games = 20\nsprt = { elo0 = 0, elo1 = 5 }";
    let run = RunDir::new(&match_of_twins(rules).replace("\"--seed\"", "\"--slow\", \"3\", \"--seed\""));
    let journal = || std::fs::metadata(folder(&run).join("games.journal")).map_or(0, |m| m.len());
    let job = run.start("match", &[]);
    wait_until("two games are over", || journal() > 3000);
    signal(job.id(), "INT");
    let ran = finish(job);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let unfinished = report(&run);
    assert_eq!(unfinished.unfinished_of, Some(20));
    assert!((1..20).contains(&unfinished.games), "{unfinished}");
    assert_eq!(pgn(&run).len() as u64, unfinished.games);
    let text = std::fs::read_to_string(folder(&run).join("report.txt")).unwrap();
    assert!(text.contains(&format!("unfinished      {} of 20 games", unfinished.games)), "{text}");
    assert!(ran.stderr.contains("report.txt") && ran.stderr.contains("games.pgn"), "{}", ran.stderr);

    let said = run.ok("match", &[]);
    assert_eq!((report(&run).games, report(&run).unfinished_of, pgn(&run).len()), (20, None, 20), "{said}");
    // The last line of the display: result, Elo with its interval, the test's ratio and bounds.
    let line = said.lines().find(|l| l.starts_with("match/run: 20")).unwrap_or_else(|| panic!("{said}"));
    for part in [" %), Elo ", "LLR ", " in -2.94 to 2.94"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn fewer_games_than_there_are_change_nothing() {
    let run = RunDir::new(&match_of_twins("games = 8"));
    run.ok("match", &[]);
    let before = std::fs::read(folder(&run).join("games.pgn")).unwrap();
    let said = run.ok("match", &["--set", "match.games=4"]);
    assert!(said.contains("holds 8 games, more than the 4 asked for") && said.contains("done already"), "{said}");
    assert_eq!(report(&run).games, 8);
    assert!(std::fs::read(folder(&run).join("games.pgn")).unwrap() == before);
    let beside = std::fs::read_dir(run.root().join("data/match")).unwrap().flatten();
    let aside: Vec<_> = beside.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with("run.")).collect();
    assert!(aside.is_empty(), "{aside:?}");

    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    let shards = run.shards("corpus");
    assert!(run.ok("corpus", &["--set", "corpus.games=6"]).contains("holds 12 games, more than the 6 asked for"));
    assert!(run.shards("corpus") == shards);
}

#[test]
fn two_builds_of_one_engine_have_two_names() {
    let run = RunDir::new(&match_of_twins("games = 2"));
    run.ok("match", &[]);
    let names = |run: &RunDir| {
        let report = report(run);
        let mut in_pgn: Vec<String> = pgn(run).iter().map(|g| g.tag("White").unwrap().to_owned()).collect();
        in_pgn.sort();
        assert_eq!(in_pgn, [report.player_a.clone(), report.player_b.clone()]);
        [report.player_a, report.player_b]
    };
    let own = "Tabiya Fake 1.0 Threads=1 Hash=16 nodes=50";
    assert_eq!(names(&run), [own.to_owned(), format!("{own} (2)")]);
    let said = run.ok("match", &["--set", "first.name=\"base\"", "--set", "second.name=\"patched\""]);
    assert!(names(&run)[0].starts_with("base Threads=1") && names(&run)[1].starts_with("patched Threads=1"), "{said}");
    assert!(said.contains("note            base is Tabiya Fake 1.0"), "{said}");
    let said = run.fails("match", &["--set", "first.name=\" a\\n\""]);
    assert!(said.contains("`first.name`"), "{said}");
}

#[test]
fn other_programs_read_scores_clocks_date_and_time_control() {
    let clocks = match_of_twins("games = 2\ntc = \"30+0.1\"").replace("limit = { nodes = 50 }\n", "");
    let run = RunDir::new(&clocks);
    let said = run.ok("match", &[]);
    assert!(said.contains("nodes a move    A: "), "{said}");
    let script = "
import sys, datetime, chess.pgn
games, scored, clocked = 0, 0, 0
with open(sys.argv[1]) as file:
    while game := chess.pgn.read_game(file):
        games += 1
        assert not game.errors, game.errors
        assert game.headers['TimeControl'] == '30+0.1', game.headers
        day = datetime.datetime.strptime(game.headers['Date'], '%Y.%m.%d')
        assert abs((datetime.datetime.now() - day).days) < 3, day
        clocks = {True: 30.0, False: 30.0}
        for node in game.mainline():
            mover = not node.turn()
            if (clock := node.clock()) is not None:
                assert 0 < clock < 60, clock
                clocked += 1
            if (score := node.eval()) is not None:
                scored += 1
assert games == 2 and clocked > 20 and scored > 10, (games, clocked, scored)
";
    let python = project().join(".venv/bin/python");
    let mut command = Command::new(python);
    command.args(["-c", script]).arg(folder(&run).join("games.pgn"));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_report_says_where_a_stage_stands_and_of_no_run_that_there_is_none() {
    let run = RunDir::new(&small_profile());
    let said = run.fails("report", &[]);
    assert!(said.contains("nothing has been run in data/run"), "{said}");
    assert!(!run.path("").exists());

    let slow = ["--set", "engine.args=[\"--slow\", \"5\"]"];
    let job = run.start("corpus", &slow);
    let stamp = || std::fs::read_to_string(run.path("corpus/stage.json")).unwrap_or_default();
    wait_until("the stamp tells how far it is", || stamp().contains("\"progress\""));
    let said = run.ok("report", &[]);
    assert!(said.contains("corpus (") && said.contains("running, ") && said.contains(" of 12 ("), "{said}");
    signal(job.id(), "TERM");
    finish(job);
    let said = run.ok("report", &[]);
    assert!(said.contains("stopped, ") && said.contains("the same command goes on"), "{said}");
    run.ok("corpus", &[]);
    assert!(!stamp().contains("progress"), "a stamp that is done is as it was");
    assert!(run.ok("report", &[]).contains("12 games"));
}

#[test]
fn shards_beyond_the_corpus_and_addresses_are_refused() {
    let run = RunDir::new(&small_profile());
    for range in ["4..9", "5..9", "3..4", "9"] {
        let said = run.fails("corpus", &["--shards", range]);
        assert!(said.contains("--shards") && said.contains("12 games") && said.contains("0..3"), "{range}: {said}");
    }
    for job in ["corpus", "report", "publish"] {
        let said = run.fails(job, &["--set", "data=s3://bucket/x"]);
        assert!(said.contains("data") && said.contains("s3://bucket/x"), "{said}");
    }
    let said = run.fails("publish", &["--to", "s3://bucket/x"]);
    assert!(said.contains("--to") && said.contains("s3://bucket/x"), "{said}");
    let left: Vec<_> = std::fs::read_dir(run.root()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["run.toml"], "nothing was written");
}

#[test]
fn a_job_with_nothing_to_do_says_what_asks_for_more() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    assert!(run.ok("corpus", &[]).contains("a larger `games` extends it"));
    run.ok("pretrain", &[]);
    let said = run.ok("refine", &[]);
    assert!(!said.contains("nothing to do"), "{said}");
    let said = run.ok("refine", &[]);
    assert!(said.contains("all 1 iterations are done; a larger refine.num_iterations asks for more"), "{said}");
    let said = run.ok("selfplay", &[]);
    assert!(said.contains("selfplay: nothing to do") && said.contains("refine.num_iterations"), "{said}");
}

#[test]
fn pre_training_tells_each_epoch_once_and_ends_at_the_total() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    let said = run.ok("pretrain", &[]);
    for epoch in 0..=2 {
        assert_eq!(said.matches(&format!("after epoch {epoch}: validation")).count(), 1, "{said}");
    }
    let steps = run.json("pretrain/stage.json")["summary"]["steps"].as_u64().unwrap();
    assert!(said.lines().any(|l| l.starts_with(&format!("pretrain: {steps},"))), "{steps}: {said}");
}

/// What replaces a page or a network has no default.
#[test]
fn make_wants_a_profile_before_it_replaces_what_others_rely_on() {
    let make = |args: &[&str]| {
        let mut make = Command::new("make");
        make.current_dir(project()).env_remove("PROFILE").env_remove("MAKEFLAGS").env_remove("MAKELEVEL").args(args);
        let out = make.stdin(Stdio::null()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for (target, elsewhere) in [("publish", "TO=x"), ("results", "OUT=x.md")] {
        let check = format!("{target}-named");
        let (code, said) = make(&[&check]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("PROFILE=") && said.contains(elsewhere.split('=').next().unwrap()), "{said}");
        assert_eq!(make(&[&check, "PROFILE=quick"]).0, Some(0));
        assert_eq!(make(&[&check, elsewhere]).0, Some(0));
    }
}

#[test]
fn scripts_find_the_executables_in_another_target_folder() {
    let run = RunDir::new(&match_of_twins("games = 2"));
    run.ok("match", &[]);
    let target = job_path("corpus").parent().unwrap().parent().unwrap().to_owned();
    let mut script = Command::new(project().join(".venv/bin/python"));
    script.arg(project().join("scripts/depth_nodes.py")).arg(folder(&run).join("games.pgn"));
    script.args(["--positions", "2", "--depth", "3", "--set", "NullMove=false History=false Killers=false"]);
    let out = script.current_dir(run.root()).env("CARGO_TARGET_DIR", target).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("positions to depth 3"), "{said}");
}
