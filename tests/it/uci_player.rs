//! The UCI engine as its users run it: the executable, spoken to by python-chess.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use games::{Chess, Game};
use nn::{Best, Checkpoint, CheckpointInfo, NetConfig, Network};
use tempfile::TempDir;

const ENGINE: &str = env!("CARGO_BIN_EXE_tabiya");

/// A checkpoint of random weights.
fn untrained(folder: &Path) {
    let config = NetConfig { blocks: 1, channels: 16, ..NetConfig::default() };
    let network = Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu").unwrap(), 3).unwrap();
    let store = pipeline::Store::open(folder).unwrap();
    Checkpoint::save_network(&store, &network, Best::Candidate, &CheckpointInfo::default()).unwrap();
}

/// Runs a script of python-chess against the engine on an untrained network.
fn python(script: &str) {
    let venv = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    let folder = TempDir::new().unwrap();
    untrained(folder.path());
    // Without the `with` a failed assertion would leave the engine, and Python's thread that waits for it, running.
    let body = script.trim().replace('\n', "\n    ");
    let script = format!(
        "import os, random, time, chess, chess.engine\n\
         with chess.engine.SimpleEngine.popen_uci([os.environ['ENGINE'], '--network', os.environ['NETWORK']]) as engine:\n    \
         {body}\n    \
         engine.quit()\n\
         assert engine.returncode.result(5) == 0\n"
    );
    let mut command = Command::new(venv);
    command.args(["-c", &script]).env("ENGINE", ENGINE).env("NETWORK", folder.path());
    let out = command.output().unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
}

/// The engine with these commands on its standard input, which then ends.
fn piped(args: &[&str], commands: &str, folder: &Path) -> Output {
    let mut command = Command::new(ENGINE);
    command.args(args).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // An engine that has failed by then does not read it.
    let _ = child.stdin.take().unwrap().write_all(commands.as_bytes());
    child.wait_with_output().unwrap()
}

/// Games of 2 s + 0.05 s with pondering, against a mover that plays the expected reply or a random one.
#[test]
fn games_on_the_clock_are_played_to_their_end() {
    python(
        "
rng, moves, hits, lost = random.Random(1), 0, 0, []
for game in range(4):
    board, clock, increment, expected = chess.Board(), 2.0, 0.05, None
    side = chess.WHITE if game % 2 == 0 else chess.BLACK
    while not board.is_game_over(claim_draw=True) and board.ply() < 160:
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
assert moves >= 16 and hits >= 1, (moves, hits)
# A machine that runs other tests at the same time may stop for half a second, once.
assert len(lost) <= 1, lost
",
    );
}

#[test]
fn python_chess_analyses_with_it() {
    python(
        "
board = chess.Board()
engine.configure({'Hash': 16, 'Threads': 2, 'UCI_ShowWDL': True})
for fen in [chess.STARTING_FEN, 'r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 4 4']:
    board = chess.Board(fen)
    infos = engine.analyse(board, chess.engine.Limit(nodes=400), multipv=3)
    assert [info['multipv'] for info in infos] == [1, 2, 3], infos
    assert len({info['pv'][0] for info in infos}) == 3
    assert all(info['wdl'].relative.total() == 1000 for info in infos)
assert infos[0]['score'].relative == chess.engine.Mate(1), infos[0]
with engine.analysis(chess.Board()) as analysis:
    for count, info in enumerate(analysis):
        if count > 20 or info.get('nodes', 0) > 500:
            break
only = engine.play(chess.Board(), chess.engine.Limit(nodes=50), root_moves=[chess.Move.from_uci('a2a4')])
assert only.move == chess.Move.from_uci('a2a4')
assert 'UCI_Chess960' not in engine.options
castle = chess.Board('r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1')
move = engine.play(castle, chess.engine.Limit(nodes=20), root_moves=[castle.parse_san('O-O')]).move
assert castle.is_castling(move) and move in castle.legal_moves
mated = chess.Board('7k/6Q1/5K2/8/8/8/8/8 b - - 0 1')
assert engine.play(mated, chess.engine.Limit(time=1)).move is None
",
    );
}

#[test]
fn a_closed_input_ends_it_and_a_missing_network_is_said() {
    let folder = TempDir::new().unwrap();
    untrained(&folder.path().join("net"));
    let out = piped(&["--network", "net"], "uci\nposition startpos\ngo infinite\n", folder.path());
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("uciok") && said.lines().filter(|l| l.starts_with("bestmove")).count() == 1, "{said}");

    for args in [&["--network", "elsewhere"][..], &[]] {
        let out = piped(args, "uci\nisready\ngo nodes 1\n", folder.path());
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains("make corpus pretrain") && !error.contains("panicked"), "{error}");
    }
}
