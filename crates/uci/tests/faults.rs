//! The client against an engine that fails in every way that the fake engine knows.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use games::{Chess, Game, Line, Outcome, Score, Termination};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use uci::{Clocks, Engine, EngineError, EngineSpec, Exit, Limit, MAX_FAILURES, OptionFault, Phase, Supervised};

const FAKE: &str = env!("CARGO_BIN_EXE_tabiya-fake-engine");
const NODES: Limit = Limit::Nodes(1000);

/// The fake engine with short deadlines, where a wait is expected to run out.
fn fake(args: &[&str]) -> EngineSpec {
    let mut spec = EngineSpec::new(FAKE).args(args.iter().copied());
    spec.deadlines.answer = Duration::from_secs(5);
    spec
}

fn impatient(args: &[&str]) -> EngineSpec {
    let mut spec = fake(args);
    spec.deadlines.start = Duration::from_millis(400);
    spec.deadlines.ready = Duration::from_millis(400);
    spec.deadlines.answer = Duration::from_millis(400);
    spec
}

fn shell(script: &str) -> EngineSpec {
    EngineSpec::new("/bin/sh").args(["-c", script])
}

fn start(spec: &EngineSpec) -> Engine {
    Engine::start(spec).unwrap_or_else(|e| panic!("{e}"))
}

fn opening() -> Line<Chess> {
    Line::new(Chess::start())
}

fn position(fen: &str) -> Line<Chess> {
    Line::new(Chess::from_fen(fen).unwrap())
}

fn pid(engine: &Engine) -> Pid {
    Pid::from_raw(i32::try_from(engine.pid()).unwrap())
}

/// Whether a child of ours has been waited for: a zombie can still be signalled.
fn is_reaped(pid: Pid) -> bool {
    kill(pid, None) == Err(Errno::ESRCH)
}

/// Whether any process has run to its end; orphans may remain as zombies where nobody reaps them.
fn has_ended(pid: &str) -> bool {
    let state = if Path::new("/proc/self/stat").exists() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().trim().to_owned()
    } else {
        let out = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    state.is_empty() || state.starts_with(['Z', 'X'])
}

fn eventually(what: &str, within: Duration, mut test: impl FnMut() -> bool) {
    let until = Instant::now() + within;
    while !test() {
        assert!(Instant::now() < until, "{what} within {within:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Plays both sides to the end of the game or `plies`.
fn play_out(engine: &mut Engine, line: &mut Line<Chess>, plies: usize) -> Vec<Option<Score>> {
    let mut scores = Vec::new();
    while scores.len() < plies && line.state().outcome() == Outcome::Ongoing {
        let answer = engine.play(line, NODES).unwrap();
        scores.push(answer.score);
        line.play(answer.m);
    }
    scores
}

#[test]
fn u1_a_flood_on_stderr_blocks_nothing_and_its_end_is_in_the_error() {
    let mut engine = start(&fake(&["--stderr-flood", "200000"]));
    play_out(&mut engine, &mut opening(), 4);
    let mut engine = start(&fake(&["--stderr-flood", "200000", "--die-at", "go"]));
    let error = engine.play(&opening(), NODES).unwrap_err();
    let EngineError::Disconnect { phase: Phase::BestMove, exit: Exit::Code(3), last_words, .. } = &error else {
        panic!("{error}")
    };
    assert!(last_words.contains("dies at go") && last_words.len() < 4096, "{last_words}");
}

#[test]
fn u2_twenty_dropped_engines_leave_no_zombie() {
    let engines: Vec<Engine> = (0..20).map(|_| start(&fake(&[]))).collect();
    let pids: Vec<Pid> = engines.iter().map(pid).collect();
    assert!(pids.iter().all(|p| !is_reaped(*p)));
    let began = Instant::now();
    drop(engines);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(pids.iter().all(|p| is_reaped(*p)));
}

const ORPHANS: &str = "TABIYA_TEST_ORPHANS";

/// Not a test: the parent that `u2_engines_do_not_outlive_a_killed_parent` kills.
#[test]
#[ignore = "a helper process of another test"]
fn helper_parent_that_is_killed() {
    if std::env::var_os(ORPHANS).is_none() {
        return;
    }
    let engines: Vec<Engine> = (0..5).map(|_| start(&fake(&["--slow", "60000"]))).collect();
    let pids: Vec<String> = engines.iter().map(|e| e.pid().to_string()).collect();
    for mut engine in engines {
        thread::spawn(move || engine.play(&opening(), NODES));
    }
    thread::sleep(Duration::from_millis(100));
    println!("\npids {}", pids.join(" "));
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn u2_engines_do_not_outlive_a_killed_parent() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["helper_parent_that_is_killed", "--exact", "--ignored", "--nocapture"])
        .env(ORPHANS, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pids = lines.filter_map(|l| l.strip_prefix("pids ").map(str::to_owned)).next().unwrap();
    assert!(pids.split(' ').all(|p| !has_ended(p)));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(pids.split(' ').count(), 5);
    eventually("the engines end", Duration::from_secs(2), || pids.split(' ').all(has_ended));
}

#[test]
fn u2_engines_lead_their_own_process_group_which_ends_with_them() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("pid");
    let engine = start(&shell(&format!("sleep 50 & echo $! > '{}'; exec '{FAKE}'", file.display())));
    assert_eq!(getpgid(Some(pid(&engine))), Ok(pid(&engine)), "so that Ctrl-C does not reach it");
    let helper = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert!(!has_ended(&helper));
    drop(engine);
    eventually("the engine's helper ends", Duration::from_secs(2), || has_ended(&helper));
}

#[test]
fn u3_engines_that_ignore_quit_or_are_stopped_are_killed_in_time() {
    let deaf = start(&fake(&["--ignore-quit"]));
    let stopped = start(&fake(&[]));
    kill(pid(&stopped), Signal::SIGSTOP).unwrap();
    for engine in [deaf, stopped] {
        let (pid, began) = (pid(&engine), Instant::now());
        drop(engine);
        assert!(began.elapsed() < Duration::from_secs(3) && is_reaped(pid), "{:?}", began.elapsed());
    }
}

#[test]
fn u3_closing_a_dead_engine_is_no_error() {
    let engine = start(&fake(&[]));
    let pid = pid(&engine);
    kill(pid, Signal::SIGKILL).unwrap();
    thread::sleep(Duration::from_millis(50));
    drop(engine);
    assert!(is_reaped(pid));
}

#[test]
fn u4_an_engine_that_dies_at_start_is_told_with_its_last_words() {
    let error = Engine::start(&EngineSpec::new("/bin/false")).unwrap_err();
    let EngineError::Disconnect { phase: Phase::UciOk, exit: Exit::Code(1), .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains("/bin/false"), "{error}");

    let error = Engine::start(&EngineSpec::new("/no/such/engine")).unwrap_err();
    assert!(matches!(error, EngineError::Spawn { .. }) && !error.is_transient());
    assert!(error.to_string().contains("/no/such/engine"), "{error}");

    // One that dies before `uci` reaches it, and one that dies after.
    for wait in ["", "read uci; "] {
        let script = format!("{wait}printf 'id na'; echo 'no licence' >&2; exit 3");
        let text = Engine::start(&shell(&script)).unwrap_err().to_string();
        for part in ["/bin/sh", "waiting for `uciok`", "status 3", "no licence", "id na"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    let error = Engine::start(&shell("kill -SEGV $$")).unwrap_err();
    assert!(error.to_string().contains("SIGSEGV"), "{error}");
}

#[test]
fn u5_every_wait_has_its_deadline() {
    for (hang, expected) in [("id", Phase::UciOk), ("uciok", Phase::ReadyOk), ("isready", Phase::ReadyOk)] {
        let began = Instant::now();
        let error = Engine::start(&impatient(&["--hang", hang])).unwrap_err();
        let EngineError::Stall { phase, .. } = &error else { panic!("{hang}: {error}") };
        assert_eq!((*phase, error.termination()), (expected, Some(Termination::Stall)));
        assert!(began.elapsed() < Duration::from_secs(2), "{hang}: {:?}", began.elapsed());
    }
    let mut engine = start(&impatient(&["--hang", "go"]));
    let pid = pid(&engine);
    let error = engine.play(&opening(), NODES).unwrap_err();
    assert!(matches!(error, EngineError::Stall { phase: Phase::BestMove, .. }), "{error}");
    assert!(is_reaped(pid), "a silent engine is killed at once");
    let error = engine.play(&opening(), NODES).unwrap_err();
    assert!(matches!(error, EngineError::Disconnect { exit: Exit::Killed, .. }), "{error}");
}

#[test]
fn u5_an_engine_that_exits_is_a_disconnect() {
    let mut engine = start(&fake(&["--die-every", "2"]));
    let mut line = opening();
    line.play(engine.play(&line, NODES).unwrap().m);
    let error = engine.play(&line, NODES).unwrap_err();
    assert_eq!(error.termination(), Some(Termination::Disconnect));
    assert!(error.to_string().contains("dies at move 2"), "{error}");
}

#[test]
fn u5_talking_without_an_answer_does_not_move_the_deadline() {
    let began = Instant::now();
    let mut spec = shell("while :; do echo 'info string still thinking'; echo noise; done");
    spec.deadlines.start = Duration::from_millis(300);
    let error = Engine::start(&spec).unwrap_err();
    assert!(matches!(error, EngineError::Stall { .. }), "{error}");
    let mut spec = shell("yes | tr -d '\\n'");
    spec.deadlines.start = Duration::from_millis(300);
    let error = Engine::start(&spec).unwrap_err();
    assert!(matches!(error, EngineError::Stall { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn u6_noise_and_odd_spacing_change_nothing() {
    let (mut plain, mut odd) = (opening(), opening());
    let scores = play_out(&mut start(&fake(&[])), &mut plain, 60);
    let mut engine = start(&fake(&["--odd-spacing"]).option("Hash", "32"));
    assert_eq!(engine.name(), "Tabiya Fake 1.0");
    assert_eq!(play_out(&mut engine, &mut odd, 60), scores);
    assert_eq!(plain.moves(), odd.moves());
    assert!(scores.iter().all(Option::is_some));
}

#[test]
fn u8_no_move_where_there_is_one_is_an_illegal_move() {
    let mut engine = start(&fake(&["--none-every", "2"]));
    engine.play(&opening(), NODES).unwrap();
    let error = engine.play(&opening(), NODES).unwrap_err();
    assert!(matches!(&error, EngineError::IllegalMove { text, .. } if text == "(none)"), "{error}");
    assert_eq!(error.termination(), Some(Termination::IllegalMove));
    engine.play(&opening(), NODES).expect("the engine itself is still in order");
}

#[test]
fn u8_a_finished_game_is_no_question() {
    let mut engine = start(&fake(&[]));
    let mated = position("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3");
    let stalemated = position("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1");
    for (line, score) in [(&mated, Score::Mate(0)), (&stalemated, Score::Cp(0))] {
        let error = engine.play(line, NODES).unwrap_err();
        assert!(matches!(error, EngineError::NoMove { .. }) && error.termination().is_none(), "{error}");
        let analysis = engine.analyse(line, NODES).unwrap();
        assert_eq!((analysis.m, analysis.score), (None, Some(score)));
    }
    let error = engine.play(&opening(), Limit::Nodes(0)).unwrap_err();
    assert!(matches!(error, EngineError::ZeroLimit(_)), "{error}");
}

#[test]
fn u9_only_legal_moves_of_our_board_are_sent() {
    // The engine exits on any move list that it would not follow to its end.
    let mut engine = start(&fake(&["--strict", "--seed", "3"]));
    for fen in ["r3k2r/pppq1ppp/8/3Pp3/8/8/PPPQ1PPP/R3K2R w KQkq e6 0 1", "8/P6k/8/8/8/8/p6K/8 w - - 0 1"] {
        play_out(&mut engine, &mut position(fen), 150);
        engine.new_game().unwrap();
    }
    play_out(&mut engine, &mut opening(), 300);
}

#[test]
fn u9_an_answer_for_another_position_ends_the_game() {
    // This engine always answers as if the game stood at its start.
    let script = "while read a b; do case $a in uci) echo uciok;; isready) echo readyok;; go) echo bestmove e2e4;; \
                  quit) exit;; esac; done";
    let mut engine = start(&shell(script));
    assert_eq!(engine.name(), "sh");
    let mut line = opening();
    let first = engine.play(&line, NODES).unwrap();
    assert_eq!((first.m, first.score, first.depth), (line.state().parse_move("e2e4").unwrap(), None, None));
    line.play(first.m);
    let error = engine.play(&line, NODES).unwrap_err();
    assert!(matches!(&error, EngineError::IllegalMove { text, .. } if text == "e2e4"), "{error}");
    assert!(error.to_string().contains(&line.state().fen()), "{error}");
}

#[test]
fn u11_both_spellings_of_a_castle_are_understood() {
    let fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    for spelling in ["e1g1", "e1h1"] {
        let script = format!(
            "while read a b; do case $a in uci) echo uciok;; isready) echo readyok;; quit) exit;; \
             go) echo 'info depth 1 score cp 5 pv {spelling}'; echo bestmove {spelling};; esac; done"
        );
        let line = position(fen);
        let answer = start(&shell(&script)).play(&line, NODES).unwrap();
        assert_eq!(line.state().move_text(answer.m), "e1g1");
        assert_eq!(answer.score, Some(Score::Cp(5)));
    }
}

#[test]
fn u16_the_score_of_another_move_is_not_taken() {
    let mut engine = start(&fake(&["--other-pv"]));
    let mut line = opening();
    assert!(play_out(&mut engine, &mut line, 10).iter().all(Option::is_none));
    let mut weak = start(&fake(&[]).option("Skill Level", "0"));
    let scores = play_out(&mut weak, &mut opening(), 40);
    assert!(scores.iter().any(Option::is_none) && scores.iter().any(Option::is_some));
}

#[test]
fn u17_options_are_checked_before_they_are_sent() {
    let spec = fake(&[]).option("UCI_LimitStrength", "true").option("UCI_Elo", "800");
    let text = Engine::start(&spec).unwrap_err().to_string();
    assert!(text.contains("option name UCI_Elo type spin default 1350 min 1350 max 2850"), "{text}");
    assert!(text.contains("800") && text.contains(FAKE), "{text}");
    for (spec, known) in [(fake(&[]).option("UCI_Elo", "1500"), true), (fake(&[]).option("Contempt", "0"), false)] {
        let error = Engine::start(&spec).unwrap_err();
        assert!(!error.is_transient() && error.termination().is_none());
        let EngineError::Option { fault, .. } = error else { panic!("{error}") };
        assert_eq!(matches!(fault, OptionFault::Inert { .. }), known, "{fault}");
    }
    let engine = start(&fake(&[]).option("UCI_LimitStrength", "true").option("UCI_Elo", "1500"));
    assert_eq!(engine.option_table().range("uci_elo"), Some((1350, 2850)));
}

#[test]
fn u20_a_late_answer_loses_and_the_engine_stays_usable() {
    let mut spec = fake(&["--late", "300"]);
    spec.deadlines.margin = Duration::from_millis(100);
    let mut engine = start(&spec);
    let error = engine.play(&opening(), Limit::MoveTime(Duration::from_millis(20))).unwrap_err();
    assert!(matches!(error, EngineError::Late { .. }), "{error}");
    assert_eq!(error.termination(), Some(Termination::Time));
    engine.play(&opening(), NODES).expect("a node limit knows no lateness");
    let mut prompt = start(&fake(&[]));
    prompt.play(&opening(), Limit::MoveTime(Duration::from_millis(20))).unwrap();
}

#[test]
fn u20_an_engine_that_repeats_illegal_moves_is_given_up() {
    let mut supervised = Supervised::new(fake(&["--illegal-every", "1"]));
    let mut failures = 0;
    let error = loop {
        let error = supervised.engine().and_then(|e| e.play(&opening(), NODES)).unwrap_err();
        assert!(matches!(&error, EngineError::IllegalMove { text, .. } if text == "a1a1"), "{error}");
        failures += 1;
        if let Err(error) = supervised.failed(error) {
            break error;
        }
    };
    assert_eq!(failures, MAX_FAILURES);
    assert!(error.to_string().contains("a1a1") && error.termination().is_none(), "{error}");
}

#[test]
fn u21_an_answer_without_info_has_no_score() {
    let mut engine = start(&fake(&["--no-info"]));
    let answer = engine.play(&opening(), NODES).unwrap();
    assert_eq!((answer.score, answer.depth, answer.nodes), (None, None, None));
}

#[test]
fn u22_the_fake_engine_plays_the_same_game_again_and_another_for_another_seed() {
    let game = |seed: &str| {
        let mut line = opening();
        let scores = play_out(&mut start(&fake(&["--seed", seed])), &mut line, 80);
        (line.moves().to_vec(), scores)
    };
    assert_eq!(game("1"), game("1"));
    assert_ne!(game("1").0, game("2").0);
}

#[test]
fn an_interrupt_ends_a_wait_and_the_old_answer_is_not_taken_for_the_next() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut engine = start(&fake(&["--slow", "700"]).interrupt(Arc::clone(&flag)));
    let setter = Arc::clone(&flag);
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(150));
        setter.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let error = engine.play(&opening(), NODES).unwrap_err();
    let ended = Instant::now();
    assert!(error.is_interrupted() && !error.is_transient(), "{error}");
    let set = waker.join().unwrap();
    assert!(ended.duration_since(set) < Duration::from_millis(250), "{:?}", ended.duration_since(set));
    assert!(engine.play(&opening(), NODES).unwrap_err().is_interrupted());

    flag.store(false, Ordering::Relaxed);
    let line = position("4k3/8/8/8/8/8/8/4K2R b - - 0 1");
    engine.play(&line, NODES).expect("legal in this position");

    flag.store(true, Ordering::Relaxed);
    assert!(Engine::start(&fake(&["--hang", "id"]).interrupt(flag)).unwrap_err().is_interrupted());
}

#[test]
fn a_supervised_engine_is_restarted_and_the_game_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    let state = temp.path().join("moves");
    let mut supervised = Supervised::new(fake(&["--die-every", "10", "--state", state.to_str().unwrap()]));
    let mut line = opening();
    while line.moves().len() < 30 && line.state().outcome() == Outcome::Ongoing {
        match supervised.engine().and_then(|e| e.play(&line, NODES)) {
            Ok(answer) => {
                line.play(answer.m);
                supervised.succeeded();
            }
            Err(error) => supervised.failed(error).unwrap(),
        }
    }
    assert_eq!(supervised.restarts(), 3);
}

#[test]
fn u4_a_supervised_engine_that_cannot_start_is_given_up_with_its_last_words() {
    let mut supervised = Supervised::new(shell("echo 'no such cpu' >&2; exit 7"));
    let began = Instant::now();
    let error = loop {
        let error = supervised.engine().map(|_| ()).unwrap_err();
        if let Err(error) = supervised.failed(error) {
            break error;
        }
    };
    let text = error.to_string();
    for part in ["/bin/sh", "5 times", "waiting for `uciok`", "status 7", "no such cpu"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    let error = Supervised::new(EngineSpec::new("/no/such/engine")).engine().map(|_| ()).unwrap_err();
    assert!(Supervised::new(EngineSpec::new("/no/such/engine")).failed(error).is_err(), "at once");
}

#[test]
fn an_engine_runs_in_the_folder_that_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = fake(&["--state", "moves"]);
    spec.folder = Some(folder.path().to_owned());
    start(&spec).play(&opening(), NODES).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("moves")).unwrap(), "1");
}

#[test]
fn an_engine_is_told_the_clocks() {
    let script = "while read line; do case $line in uci) echo uciok;; isready) echo readyok;; quit) exit;; \
                  'go wtime 900 winc 20') echo bestmove e2e4;; esac; done";
    let left = [Some(Duration::from_millis(900)), None];
    let clocks = Clocks { left, increment: [Duration::from_millis(20); 2] };
    start(&shell(script)).play(&opening(), clocks).unwrap();
    // The clock is no deadline of the client's: an engine that oversteps it is judged by who keeps the clocks.
    let mut late = start(&fake(&["--slow", "950"]));
    assert!(late.play(&opening(), clocks).unwrap().time > Duration::from_millis(900));
}

#[test]
fn an_engine_that_dies_in_a_search_is_told_with_its_last_lines() {
    let script = "read l; echo 'id name Crasher'; echo 'id author Someone Important'; echo uciok; read l; echo readyok; \
                  read l; read l; echo 'info depth 1 score cp 1 pv e2e4'; \
                  echo 'info string ERROR: the network file is missing'; \
                  echo 'info string ERROR: the engine will be terminated now'; exit 1";
    let mut engine = start(&shell(script));
    let text = engine.play(&opening(), NODES).unwrap_err().to_string();
    for part in ["status 1", "the network file is missing", "will be terminated now"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("Someone Important") && !text.contains("score cp"), "{text}");

    // An engine that talks without end: the last of it is kept, cut to a readable length.
    let chatty = "read l; echo uciok; read l; echo readyok; read l; read l; \
                  for i in 1 2 3 4 5 6 7 8; do printf 'info string line %s %0900d\\n' $i 0; done; exit 1";
    let text = start(&shell(chatty)).play(&opening(), NODES).unwrap_err().to_string();
    assert!(text.contains("line 8") && text.contains("line 5") && !text.contains("line 4"), "{text}");
    assert!(text.len() < 3000, "{}", text.len());
}

#[test]
fn default_options_are_sent_only_where_they_are_declared() {
    let wants = |args: &[&str]| fake(args).default_option("Threads", "1").default_option("Hash", "16");
    assert!(start(&wants(&[])).unset().is_empty());
    // This fake engine exits when an option is set that it does not have.
    let mut engine = start(&wants(&["--lacks", "Hash", "--lacks", "Threads"]));
    assert_eq!(engine.unset(), ["Threads", "Hash"]);
    engine.play(&opening(), NODES).unwrap();
    // What the user asks for goes before the default, and is refused where it is not declared.
    let engine = start(&wants(&[]).option("hash", "32"));
    assert!(engine.unset().is_empty());
    let error = Engine::start(&wants(&["--lacks", "Hash"]).option("hash", "32")).unwrap_err().to_string();
    assert!(error.contains("there is no option `hash`"), "{error}");
    // A default that the engine has but does not take is no less wrong than a setting.
    let error = Engine::start(&fake(&[]).default_option("Hash", "0")).unwrap_err().to_string();
    assert!(error.contains("option name Hash type spin"), "{error}");
}
