//! The executable as its users run it: spoken to by python-chess, through pipes that break, and by hand.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const ENGINE: &str = env!("CARGO_BIN_EXE_tabiya-ab");

/// Runs a script of python-chess against the engine.
fn python(script: &str) {
    let venv = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    // Without the `with` a failed assertion would leave the engine, and Python's thread that waits for it, running.
    let body = script.trim().replace('\n', "\n    ");
    let script = format!(
        "import os, random, time, chess, chess.engine\n\
         with chess.engine.SimpleEngine.popen_uci(os.environ['ENGINE']) as engine:\n    \
         {body}\n    \
         engine.quit()\n\
         assert engine.returncode.result(5) == 0\n"
    );
    let out = Command::new(venv).args(["-c", &script]).env("ENGINE", ENGINE).output().unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
}

/// The engine with these commands on its standard input, which then ends.
fn piped(args: &[&str], commands: &str) -> Output {
    let mut command = Command::new(ENGINE);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // An engine that has ended by then does not read it.
    let _ = child.stdin.take().unwrap().write_all(commands.as_bytes());
    child.wait_with_output().unwrap()
}

/// Games of 1 s + 0.02 s with pondering, against a mover that plays the expected reply or a random one.
#[test]
fn games_on_the_clock_are_played_to_their_end() {
    python(
        "
rng, moves, hits, lost = random.Random(1), 0, 0, []
for game in range(6):
    board, clock, increment, expected = chess.Board(), 1.0, 0.02, None
    side = chess.WHITE if game % 2 == 0 else chess.BLACK
    while not board.is_game_over(claim_draw=True):
        if board.turn == side:
            limit = chess.engine.Limit(white_clock=clock, black_clock=clock, white_inc=increment, black_inc=increment)
            begun = time.monotonic()
            result = engine.play(board, limit, game=game, info=chess.engine.INFO_ALL, ponder=True)
            clock -= time.monotonic() - begun
            if clock <= 0:
                lost.append((game, board.fen(), clock))
                break
            assert result.move in board.legal_moves, (board.fen(), result.move)
            clock, moves, expected = clock + increment, moves + 1, result.ponder
            board.push(result.move)
        else:
            legal = list(board.legal_moves)
            hit = expected in legal and rng.random() < 0.5
            hits += hit
            board.push(expected if hit else rng.choice(legal))
            time.sleep(0.01)
    assert board.ply() < 300 and (lost or board.outcome(claim_draw=True).winner == side), board.fen()
assert moves >= 30 and hits >= 1, (moves, hits)
# A machine that runs other tests at the same time may stop for half a second, once.
assert len(lost) <= 1, lost
",
    );
}

#[test]
fn python_chess_analyses_with_it() {
    python(
        "
engine.configure({'Hash': 16, 'Threads': 2, 'NullMove': False, 'LateMoveReductions': True})
for fen in [chess.STARTING_FEN, 'r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 4 4']:
    board = chess.Board(fen)
    infos = engine.analyse(board, chess.engine.Limit(depth=7), multipv=3)
    assert [info['multipv'] for info in infos] == [1, 2, 3], infos
    assert len({info['pv'][0] for info in infos}) == 3
assert infos[0]['score'].relative == chess.engine.Mate(1), infos[0]
with engine.analysis(chess.Board()) as analysis:
    for count, info in enumerate(analysis):
        if count > 20 or info.get('nodes', 0) > 50000:
            break
only = engine.play(chess.Board(), chess.engine.Limit(nodes=500), root_moves=[chess.Move.from_uci('a2a4')])
assert only.move == chess.Move.from_uci('a2a4')
mated = chess.Board('7k/6Q1/5K2/8/8/8/8/8 b - - 0 1')
assert engine.play(mated, chess.engine.Limit(time=1)).move is None
",
    );
}

/// A match against itself at a few nodes a move: every move is legal, every game ends by the rules.
#[test]
fn fast_games_against_itself_end_by_the_rules() {
    python(
        "
rng = random.Random(5)
for game in range(20):
    board = chess.Board()
    while board.ply() < 8 and not board.is_game_over():
        board.push(rng.choice(list(board.legal_moves)))
    while not board.is_game_over(claim_draw=True):
        result = engine.play(board, chess.engine.Limit(nodes=300), game=game)
        assert result.move in board.legal_moves, (board.fen(), result.move)
        board.push(result.move)
    assert board.ply() < 800
",
    );
}

#[test]
fn s1_a_closed_input_ends_it_within_a_second() {
    for commands in ["uci\nposition startpos\ngo infinite\n", "uci\ngo ponder\n", "uci\n"] {
        let start = Instant::now();
        let out = piped(&[], commands);
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let answers = said.lines().filter(|l| l.starts_with("bestmove")).count();
        assert!(said.contains("uciok") && answers == usize::from(commands.contains("go")), "{said}");
    }
}

#[test]
fn a_closed_output_ends_it_without_a_panic() {
    for args in [&[][..], &["bench", "1"], &["perft", "2"]] {
        let mut command = Command::new(ENGINE);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let _ = child.stdin.take().unwrap().write_all(b"uci\ngo infinite\n");
        let out = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(0) && error.is_empty(), "{args:?}: {:?} {error}", out.status);
    }
}

#[test]
fn what_it_counts_can_be_asked_by_hand() {
    let said = |args: &[&str]| {
        let out = piped(args, "");
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let nodes = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    let (one, again) = (said(&["bench", "4"]), said(&["bench", "4"]));
    assert!(nodes(&one) > 1000 && nodes(&one) == nodes(&again), "{one} {again}");
    assert!(said(&["perft", "3"]).contains("\n8902 leaves, "));
    let kiwipete = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";
    assert!(said(&["perft", "3", kiwipete]).contains("\n97862 leaves, "));
    assert!(said(&["--help"]).contains("perft DEPTH [FEN]"));
    for args in [&["perft"][..], &["perft", "x"], &["perft", "2", "8/8"], &["bench", "0"], &["--hash", "3"]] {
        let out = piped(args, "");
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && error.starts_with("error: "), "{args:?}: {error}");
    }
}

/// Nothing reads the answers for a while: the engine waits, and goes on when they are read.
#[test]
fn a_reader_that_is_slow_loses_nothing() {
    let mut command = Command::new(ENGINE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for _ in 0..2000 {
        input.write_all(b"uci\n").unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    drop(input);
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("uciok").count(), 2000);
    assert!(child.wait().unwrap().success());
}
