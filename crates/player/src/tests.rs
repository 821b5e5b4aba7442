//! The engine in a thread, spoken to through pipes as a chess program does it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use games::{Chess, Game};
use nn::{Best, Checkpoint, CheckpointInfo, NetConfig, Network};
use pipeline::{Stop, Store};
use tempfile::TempDir;

use crate::{PlayError, serve};

/// How long an answer may take before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

const MATE_IN_1: &str = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1";
const MATED: &str = "7k/6Q1/5K2/8/8/8/8/8 b - - 0 1";
const STALEMATE: &str = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1";
const CASTLING: &str = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
const ONE_MOVE: &str = "7k/8/8/8/8/8/6q1/7K w - - 0 1";

/// An untrained network in a folder of its own.
fn network() -> TempDir {
    let dir = TempDir::new().unwrap();
    let config = NetConfig { blocks: 1, channels: 16, ..NetConfig::default() };
    let network = Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu").unwrap(), 5).unwrap();
    let store = Store::open(dir.path()).unwrap();
    Checkpoint::save_network(&store, &network, Best::Candidate, &CheckpointInfo::default()).unwrap();
    dir
}

struct Client {
    input: Option<PipeWriter>,
    lines: Receiver<String>,
    engine: JoinHandle<Result<(), PlayError>>,
    /// What was said until the latest answer.
    said: Vec<String>,
    _network: Option<TempDir>,
}

impl Client {
    fn new() -> Self {
        let mut client = Client::with(Some(network()));
        client.expect("info string network resnet-1x16");
        client
    }

    fn with(network: Option<TempDir>) -> Self {
        let (engine_input, input) = std::io::pipe().unwrap();
        let (output, engine_output) = std::io::pipe().unwrap();
        let path = network.as_ref().map(|n| n.path().to_owned());
        let engine =
            thread::spawn(move || serve(BufReader::new(engine_input), engine_output, path.as_deref(), &Stop::manual()));
        Client { input: Some(input), lines: read(output), engine, said: Vec::new(), _network: network }
    }

    fn send(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Reads on to the line that begins so, and gives it.
    fn expect(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        self.said.clear();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(line) => self.said.push(line),
                Err(_) => panic!("no `{start}` after {:?}", self.said),
            }
        }
    }

    /// The move of the next `bestmove`.
    fn best(&mut self) -> String {
        self.expect("bestmove").split(' ').nth(1).unwrap().to_owned()
    }

    fn ask(&mut self, text: &str) -> String {
        self.send(text);
        self.best()
    }

    /// Everything that is said within a time.
    fn listen(&mut self, millis: u64) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_millis(millis);
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            lines.push(line);
        }
        lines
    }

    /// What is said until everything that was sent is done: the engine answers in order.
    fn settle(&mut self) -> Vec<String> {
        self.send("isready");
        self.expect("readyok");
        self.said.clone()
    }

    /// A number of the last `info` line that was said.
    fn number(&self, key: &str) -> i64 {
        number(self.said.iter().rev().find(|l| l.starts_with("info depth")).unwrap(), key).unwrap()
    }

    /// Closes the input; what else is said, and how the engine ended.
    fn close(mut self) -> (Vec<String>, Result<(), PlayError>) {
        drop(self.input.take());
        let start = Instant::now();
        let rest = self.listen(5000);
        assert!(start.elapsed() < Duration::from_millis(4500), "it goes on after the end of its input");
        (rest, self.engine.join().unwrap())
    }
}

fn read(output: PipeReader) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| sender.send(l)));
    lines
}

fn number(line: &str, key: &str) -> Option<i64> {
    let mut words = line.split(' ').skip_while(|w| *w != key);
    words.nth(1)?.parse().ok()
}

fn moves_after_pv(line: &str) -> Vec<&str> {
    line.split_once(" pv ").map_or(Vec::new(), |(_, pv)| pv.split(' ').collect())
}

fn is_best(line: &str) -> bool {
    line.starts_with("bestmove")
}

#[test]
fn it_introduces_itself_and_ignores_what_it_does_not_know() {
    let mut client = Client::new();
    client.send("hello\n\nuci");
    client.expect("uciok");
    assert!(client.said[0].starts_with("id name Tabiya ") && client.said[1].starts_with("id author "));
    for option in ["NetworkFile type string", "Hash type spin", "Ponder type check", "Clear Hash type button"] {
        assert!(client.said.iter().any(|l| l.starts_with(&format!("option name {option}"))), "{option}");
    }
    assert_eq!(client.settle(), [""; 0]);
    client.send("xyzzy\ndebug on\nregister later\nponderhit\nstop\nstop");
    assert_eq!(client.settle(), [""; 0], "nothing to say to an idle `stop`");
    let (rest, end) = client.close();
    assert!(rest.is_empty() && end.is_ok());
}

#[test]
fn infinite_ends_by_stop_alone_and_stop_twice_gives_one_move() {
    let mut client = Client::new();
    client.send("position startpos\ngo infinite");
    let lines = client.listen(1300);
    assert!(lines.iter().any(|l| l.starts_with("info depth")) && !lines.iter().any(|l| is_best(l)), "{lines:?}");
    client.send("isready");
    client.expect("readyok");
    client.send("stop\nstop");
    client.best();
    assert_eq!(client.settle().iter().filter(|l| is_best(l)).count(), 0);
    // What is proven at once waits for `stop` too.
    client.send(&format!("position fen {MATE_IN_1}\ngo infinite"));
    let lines = client.listen(500);
    assert!(lines.last().unwrap().contains("score mate 1") && !lines.iter().any(|l| is_best(l)), "{lines:?}");
    assert_eq!(client.ask("stop"), "d1d8");
}

#[test]
fn pondering_waits_for_the_opponent() {
    let mut client = Client::new();
    client.send("position startpos moves e2e4 e7e5\ngo ponder wtime 3000 btime 3000");
    assert!(!client.listen(600).iter().any(|l| is_best(l)));
    let hit = Instant::now();
    client.ask("ponderhit");
    assert!(hit.elapsed() < Duration::from_millis(1500), "{:?}", hit.elapsed());
    client.send("go ponder wtime 1 btime 1 nodes 5");
    assert!(!client.listen(300).iter().any(|l| is_best(l)));
    client.ask("stop");
    client.send(&format!("position fen {ONE_MOVE}\ngo ponder wtime 60000 btime 60000"));
    assert!(!client.listen(200).iter().any(|l| is_best(l)), "not even an only move is played on the opponent's time");
    assert_eq!(client.ask("ponderhit"), "h1g2");
    client.send("ponderhit");
    assert_eq!(client.settle(), [""; 0]);
}

#[test]
fn the_end_of_the_input_ends_everything() {
    for (sent, moves) in [("", 0), ("go infinite", 1), ("go ponder", 1), ("quit", 0), ("go infinite\nquit", 1)] {
        let mut client = Client::new();
        client.send(sent);
        let mut said = client.listen(200);
        assert!(sent.ends_with("quit") || !said.iter().any(|l| is_best(l)), "{sent}: {said:?}");
        let (rest, end) = client.close();
        said.extend(rest);
        assert_eq!(said.iter().filter(|l| is_best(l)).count(), moves, "{sent}: {said:?}");
        assert!(end.is_ok());
    }
}

#[test]
fn a_reader_that_went_away_is_an_error_and_no_panic() {
    let (engine_input, mut input) = std::io::pipe().unwrap();
    let (output, engine_output) = std::io::pipe().unwrap();
    drop(output);
    input.write_all(b"uci\n").unwrap();
    let end = serve(BufReader::new(engine_input), engine_output, None, &Stop::manual());
    assert!(matches!(end, Err(PlayError::Output(_))));
}

#[test]
fn roots_that_are_over() {
    let mut client = Client::new();
    for (fen, score) in [(MATED, "mate 0"), (STALEMATE, "cp 0")] {
        client.send(&format!("position fen {fen}"));
        for go in ["go movetime 5000", "go nodes 3", "go wtime 1000 btime 1000"] {
            assert_eq!(client.ask(go), "(none)");
            assert_eq!(client.said.last().unwrap(), &format!("info depth 0 score {score}"));
        }
        client.send("go infinite");
        assert!(!client.listen(200).iter().any(|l| is_best(l)));
        assert_eq!(client.ask("stop"), "(none)");
    }
    // Drawn by a rule, and still to be played: threefold repetition, the fifty moves, a king each.
    let back_and_forth = "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8";
    for position in [
        format!("startpos moves {back_and_forth}"),
        "fen 7k/8/5K2/6Q1/8/8/8/8 w - - 120 150".to_owned(),
        "fen 7k/8/5K2/8/8/8/8/8 w - - 0 1".to_owned(),
    ] {
        client.send(&format!("position {position}"));
        assert_ne!(client.ask("go nodes 20"), "(none)", "{position}");
    }
}

#[test]
fn after_a_position_that_is_wrong_there_is_none() {
    let mut client = Client::new();
    for (position, named) in [
        ("fen rnbqkbnr/pppppppp/8/8 w KQkq - 0 1", "rnbqkbnr/pppppppp/8/8"),
        ("fen 8/8/8/8/8/8/8/8 w - - 0 1", "8/8/8/8"),
        ("fen", "``"),
        ("startpos moves e2e4 e7e6 e4e6", "e4e6"),
        ("startpos moves e2e4 0000", "0000"),
        ("startpos moves e2e5", "e2e5"),
        ("startpos moves \u{1F600}", "\u{1F600}"),
        ("startpos e2e4", "e2e4"),
        ("somewhere", "somewhere"),
        ("", "nothing"),
    ] {
        client.send(&format!("position fen {ONE_MOVE}\nposition {position}"));
        let said = client.settle();
        assert!(
            said.len() == 1 && said[0].starts_with("info string error: position: ") && said[0].contains(named),
            "{said:?}"
        );
        for go in ["go nodes 2", "go infinite"] {
            assert_eq!(client.ask(go), "0000", "{position}");
            assert!(
                client.said.len() == 1 && client.said[0].starts_with("info string error: go:"),
                "{:?}",
                client.said
            );
        }
    }
    client.send(&format!("position fen {ONE_MOVE}"));
    assert_eq!(client.ask("go nodes 2"), "h1g2");
    client.send("go infinite\nposition nowhere");
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.ask("go infinite"), "0000");
    assert_eq!(client.ask("ucinewgame\ngo nodes 3 searchmoves e2e4"), "e2e4", "a new game begins at the start");
}

#[test]
fn a_clock_that_cannot_be_read_or_is_missing_is_no_endless_search() {
    let mut client = Client::new();
    client.send("position startpos");
    for (go, named) in [
        ("go wtime 1000.0 btime 1000", "`1000.0`"),
        ("go btime 1000", "`wtime`"),
        ("go movetime 1e3", "`1e3`"),
        ("go nodes many", "`many`"),
    ] {
        assert_eq!(client.ask(go).len(), 4, "{go}");
        assert!(
            client.said.iter().any(|l| l.starts_with("info string go: ") && l.contains(named)),
            "{:?}",
            client.said
        );
    }
}

#[test]
fn more_hash_than_memory_is_refused_and_the_size_stays() {
    let mut client = Client::new();
    client.send("isready\nsetoption name Hash value 8\nsetoption name Hash value 1000000");
    client.expect("readyok");
    let said = client.settle();
    assert!(said.len() == 1 && said[0].contains("`1000000`") && said[0].contains("it stays at 8 MiB"), "{said:?}");
    if !uci::server::fits_in_memory(32_768 << 20, 0) {
        client.send("setoption name Hash value 32768");
        let said = client.settle();
        assert!(said[0].contains("32768 MiB") && said[0].contains("Hash stays at 8 MiB"), "{said:?}");
    }
    assert_eq!(client.ask("position startpos\ngo nodes 20").len(), 4);
}

/// Programs show the last line as the reason of the move.
#[test]
fn the_last_line_begins_with_the_move_that_is_played() {
    let mut client = Client::new();
    let mut rng = games::Rng::new(16);
    let mut searches = 0;
    while searches < 1000 {
        client.send(&format!("ucinewgame\nsetoption name MultiPV value {}", 1 + 2 * (searches % 2)));
        let mut line = games::Line::new(<games::Chess as games::Game>::start());
        for _ in 0..60 {
            let moves = games::Game::legal_moves(line.state());
            if moves.is_empty() {
                break;
            }
            client.send(&format!("position startpos moves {}", line.move_texts().join(" ")));
            client.send(&format!("go nodes {}", [1, 3, 9, 17, 33][rng.below(5)]));
            let answer = client.expect("bestmove");
            let words: Vec<&str> = answer.split(' ').collect();
            let best = client.said.iter().rev().find(|l| l.contains(" multipv 1 ")).expect("a line");
            let pv: Vec<&str> = best.split_once(" pv ").unwrap().1.split(' ').collect();
            assert_eq!((pv[0], pv.get(1)), (words[1], words.get(3)), "{best}: {answer}");
            searches += 1;
            line.play(moves[rng.below(moves.len())]);
        }
    }
}

#[test]
fn rubbish_is_survived() {
    let mut client = Client::new();
    let long = "x".repeat(100_000);
    client.send(&format!(
        "{long}\nposition fen {long}\nposition startpos moves {long}\nsetoption name {long} value {long}"
    ));
    client.send("setoption\nsetoption name\nsetoption name Hash value -1\nsetoption name value\ngo nodes one depth");
    client
        .input
        .as_mut()
        .unwrap()
        .write_all(b"\xff\xfe\x80\0\nposition startpos moves \xc3\x28\ngo \xff nodes 5\n")
        .unwrap();
    client.best();
    assert!(client.said.iter().all(|l| l.len() < 1000));
    client.best();
    client.send(&format!("position startpos moves {}", "g1f3 g8f6 f3g1 f6g8 ".repeat(5000)));
    assert_eq!(client.settle(), [""; 0]);
    client.ask("go nodes 5 searchmoves e2e9 zz e2e4");
    assert!(client.said.iter().any(|l| l.contains("`e2e9`")));
}

#[test]
fn several_lines_have_several_moves_in_order() {
    let mut client = Client::new();
    client.send("setoption name MultiPV value 4\nposition startpos moves d2d4");
    let best = client.ask("go nodes 300");
    let last: Vec<String> = client.said.iter().rev().take(4).rev().cloned().collect();
    let ranks: Vec<_> = last.iter().map(|l| number(l, "multipv").unwrap()).collect();
    assert_eq!(ranks, [1, 2, 3, 4]);
    let mut firsts: Vec<_> = last.iter().map(|l| moves_after_pv(l)[0].to_owned()).collect();
    assert_eq!(firsts[0], best);
    firsts.sort();
    firsts.dedup();
    assert_eq!(firsts.len(), 4);
    // A mate does not hide the other moves, and there are not more lines than moves.
    client.send("setoption name MultiPV value 200");
    for (fen, lines) in [(MATE_IN_1, 26), (ONE_MOVE, 1)] {
        let moves = Chess::from_fen(fen).unwrap().legal_moves().len();
        client.send(&format!("position fen {fen}"));
        client.ask("go nodes 400");
        let last: Vec<_> = client.said.iter().rev().take(moves).collect();
        assert!(moves <= lines && number(last[0], "multipv") == Some(moves as i64), "{last:?}");
        assert_eq!(number(last[moves - 1], "multipv"), Some(1));
    }
}

#[test]
fn a_mate_in_one_is_found() {
    let mut client = Client::new();
    for (position, best) in [(format!("fen {MATE_IN_1}"), "d1d8"), ("startpos moves f2f3 e7e5 g2g4".to_owned(), "d8h4")]
    {
        client.send(&format!("position {position}"));
        assert_eq!(client.ask("go nodes 100"), best);
        let last = client.said.last().unwrap();
        assert!(last.contains("score mate 1 ") && moves_after_pv(last) == [best], "{last}");
    }
}

#[test]
fn limits_are_kept() {
    let mut client = Client::new();
    client.send("position startpos");
    for nodes in [1, 7, 100, 801] {
        client.send("ucinewgame");
        client.ask(&format!("go nodes {nodes}"));
        assert_eq!(client.number("nodes"), nodes);
    }
    client.send("setoption name Simulations value 50\nucinewgame");
    for go in ["go", "go wtime 100000 btime 100000", "go movetime 100000", "go nodes 400"] {
        client.send("ucinewgame");
        client.ask(go);
        assert!(client.number("nodes") <= 50, "{go}");
    }
    client.send("setoption name Simulations value 0\nucinewgame");
    client.ask("go depth 3");
    assert!(client.number("depth") >= 3);
    client.send("setoption name Hash value 1\nucinewgame");
    client.ask("go nodes 1000000");
    assert!(client.number("nodes") < 2000 && client.number("hashfull") == 1000, "{:?}", client.said.last());
    client.ask("go mate 2 nodes 10");
    assert!(client.said[0].contains("`mate`"));
}

#[test]
fn the_tree_is_kept_when_the_game_goes_on() {
    let mut client = Client::new();
    client.send("position startpos");
    client.ask("go nodes 6000");
    let pv: Vec<String> = moves_after_pv(client.said.last().unwrap()).iter().map(|m| (*m).to_owned()).collect();
    let next = format!("position startpos moves {} {}", pv[0], pv[1]);
    client.send(&next);
    client.ask("go nodes 1");
    assert!(client.number("nodes") > 1, "visits of the search before");
    client.send("setoption name Clear Hash");
    client.send(&next);
    client.ask("go nodes 1");
    assert_eq!(client.number("nodes"), 1);
    client.ask("go nodes 100");
    client.send("position startpos");
    client.ask("go nodes 1");
    assert_eq!(client.number("nodes"), 1, "back in the game is another tree");
}

#[test]
fn searchmoves_are_the_only_moves() {
    let mut client = Client::new();
    client.send("position startpos");
    client.ask("go nodes 50");
    assert_eq!(client.ask("go nodes 200 searchmoves a2a3"), "a2a3");
    let two = client.ask("go searchmoves h2h4 a2a4 nodes 300");
    assert!(["h2h4", "a2a4"].contains(&two.as_str()));
    client.send(&format!("position fen {MATE_IN_1}"));
    assert_eq!(client.ask("go nodes 100 searchmoves g2g3"), "g2g3", "though there is a mate");
    assert_eq!(client.ask("go nodes 100"), "d1d8", "and the next search has all moves");
}

#[test]
fn times_are_kept() {
    let mut client = Client::new();
    client.settle();
    client.send("position startpos");
    let took = |client: &mut Client, go: &str| {
        let start = Instant::now();
        client.ask(go);
        start.elapsed().as_millis()
    };
    let movetime = took(&mut client, "go movetime 400");
    assert!((300..=700).contains(&movetime), "{movetime}");
    for go in ["go wtime 0 btime 0", "go wtime -300 btime 5", "go wtime 20 btime 20", "go movetime 0"] {
        client.send("ucinewgame");
        let at_once = took(&mut client, go);
        assert!(at_once < 300, "{go}: {at_once}");
    }
    client.send("ucinewgame");
    let clock = took(&mut client, "go wtime 3000 btime 1 winc 0 binc 0");
    assert!(clock < 1000, "{clock}");
    client.send(&format!("position fen {ONE_MOVE}"));
    let only = took(&mut client, "go wtime 600000 btime 600000");
    assert!(only < 300, "an only move is played at once: {only}");
}

#[test]
fn win_draw_and_loss_sum_to_a_thousand() {
    let mut client = Client::new();
    client.send("setoption name UCI_ShowWDL value true\nsetoption name MultiPV value 3\nposition startpos");
    client.ask("go nodes 200");
    let lines: Vec<_> = client.said.iter().filter(|l| l.starts_with("info depth")).collect();
    assert!(lines.len() >= 3);
    for line in lines {
        let mut words = line.split(' ').skip_while(|w| *w != "wdl").skip(1).take(3);
        let sum: u32 = words.by_ref().map(|w| w.parse::<u32>().unwrap()).sum();
        assert_eq!(sum, 1000, "{line}");
    }
}

#[test]
fn a_command_that_changes_something_ends_the_search() {
    let mut client = Client::new();
    client.send(&format!("go infinite\nposition fen {ONE_MOVE}\ngo infinite\nsetoption name Hash value 8\ngo nodes 3"));
    client.best();
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.settle(), [""; 0]);
}

#[test]
fn castling_is_read_in_two_spellings_and_written_in_one() {
    let mut client = Client::new();
    client.send(&format!("position fen {CASTLING}"));
    for text in ["e1g1", "e1h1"] {
        assert_eq!(client.ask(&format!("go nodes 5 searchmoves {text}")), "e1g1");
    }
    // Chess960 is not played, so it is no option.
    client.send("setoption name UCI_Chess960 value true");
    assert!(client.settle()[0].contains("`UCI_Chess960`"));
    client.send(&format!("position fen {CASTLING} moves e1a1 e8h8"));
    assert_eq!(client.settle(), [""; 0]);
}

#[test]
fn threads_change_the_speed_and_nothing_else() {
    let mut moves = Vec::new();
    for threads in [1, 3] {
        let mut client = Client::new();
        client.send(&format!("setoption name Threads value {threads}\nposition startpos moves e2e4"));
        client.ask("go nodes 500");
        moves.push(client.number("nodes"));
    }
    assert_eq!(moves, [500, 500]);
}

#[test]
fn networks_are_loaded_when_they_are_needed() {
    let (mut client, other) = (Client::new(), network());
    client.send("setoption name NetworkFile value /nowhere/at all");
    let said = client.settle();
    assert!(
        said[0].contains("error") && said[0].contains("/nowhere/at all") && said[1].contains("going on"),
        "{said:?}"
    );
    client.ask("go nodes 3");
    client.send(&format!("setoption name NetworkFile value {}", other.path().display()));
    client.ask("go nodes 3");
    assert!(client.said[0].contains(&other.path().display().to_string()), "{:?}", client.said);
    std::fs::write(other.path().join("model.safetensors"), "rubbish").unwrap();
    let mut broken = Client::with(Some(other));
    let error = std::mem::replace(&mut broken.engine, thread::spawn(|| Ok(()))).join().unwrap().unwrap_err();
    assert!(error.to_string().contains("cannot use the network"), "{error}");
}

#[test]
fn without_a_network_there_is_advice() {
    assert!(!Path::new(crate::DEFAULT_NETWORK).exists(), "not beside the crate's tests");
    let mut client = Client::with(None);
    client.send("uci");
    client.expect("uciok");
    client.send("isready");
    assert!(client.expect("info string error").contains("make corpus pretrain"));
    client.expect("readyok");
    client.send("go nodes 3");
    assert!(client.expect("info string error").contains("make corpus pretrain"));
    let (_, end) = client.close();
    assert!(matches!(end, Err(PlayError::Network(_))), "there is nothing to play with");
    // The option comes in time, even after a program has asked whether the engine is ready.
    let (mut client, network) = (Client::with(None), network());
    client.send("isready");
    client.expect("readyok");
    client.send(&format!("setoption name NetworkFile value {}\nisready", network.path().display()));
    client.expect("readyok");
    client.ask("go nodes 3");
}
