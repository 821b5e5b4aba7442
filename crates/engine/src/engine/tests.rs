//! The engine in a thread, spoken to through pipes as a chess program does it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{EngineError, serve};

/// How long an answer may take before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

const MATE_IN_1: &str = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1";
const MATED: &str = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3";
const STALEMATE: &str = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1";
const ONE_MOVE: &str = "7k/8/8/8/8/8/6q1/7K w - - 0 1";

struct Client {
    input: Option<PipeWriter>,
    lines: Receiver<String>,
    engine: JoinHandle<Result<(), EngineError>>,
    /// What was said until the latest answer.
    said: Vec<String>,
}

impl Client {
    fn new() -> Self {
        let (engine_input, input) = std::io::pipe().unwrap();
        let (output, engine_output) = std::io::pipe().unwrap();
        let engine = thread::spawn(move || serve(BufReader::new(engine_input), engine_output));
        Client { input: Some(input), lines: read(output), engine, said: Vec::new() }
    }

    fn send(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Reads on to the line that begins so, and gives it.
    fn expect(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        self.said.clear();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(line) => self.said.push(line),
                Err(_) => panic!("no `{start}` after {:?}", self.said),
            }
        }
    }

    /// The move of the answer to a command.
    fn ask(&mut self, text: &str) -> String {
        self.send(text);
        self.best()
    }

    /// The move of the next answer.
    fn best(&mut self) -> String {
        self.expect("bestmove").split(' ').nth(1).unwrap().to_owned()
    }

    /// The answer to `go`, and how long it took.
    fn timed(&mut self, go: &str) -> (String, u128) {
        let start = Instant::now();
        (self.ask(go), start.elapsed().as_millis())
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

    /// The last `info` line that was said.
    fn last(&self) -> &str {
        self.said.iter().rev().find(|l| l.starts_with("info depth")).unwrap()
    }

    /// Closes the input; what else is said, and how the engine ended.
    fn close(mut self) -> (Vec<String>, Result<(), EngineError>) {
        drop(self.input.take());
        let start = Instant::now();
        let rest = self.listen(5000);
        assert!(start.elapsed() < Duration::from_secs(1), "it goes on after the end of its input");
        (rest, self.engine.join().unwrap())
    }
}

fn read(output: PipeReader) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| sender.send(l)));
    lines
}

fn number(line: &str, key: &str) -> i64 {
    line.split(' ').skip_while(|w| *w != key).nth(1).unwrap_or_else(|| panic!("no {key}: {line}")).parse().unwrap()
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
    assert!(client.said[0].starts_with("id name Tabiya-AB ") && client.said[1].starts_with("id author "));
    for option in ["Hash type spin", "Threads type spin", "Policy type check default false", "Killers type check"] {
        assert!(client.said.iter().any(|l| l.starts_with(&format!("option name {option}"))), "{option}");
    }
    client.send("xyzzy\ndebug on\nregister later\nponderhit\nstop\nstop");
    assert_eq!(client.settle(), [""; 0], "nothing to say to an idle `stop`");
    let (rest, end) = client.close();
    assert!(rest.is_empty() && end.is_ok());
}

#[test]
fn infinite_ends_by_stop_alone_and_stop_twice_gives_one_move() {
    let mut client = Client::new();
    client.send("position startpos\ngo infinite");
    let lines = client.listen(700);
    assert!(lines.iter().any(|l| l.starts_with("info depth")) && !lines.iter().any(|l| is_best(l)), "{lines:?}");
    client.send("isready");
    client.expect("readyok");
    client.send("stop\nstop");
    client.best();
    assert_eq!(client.settle().iter().filter(|l| is_best(l)).count(), 0);
    // What is searched to the greatest depth waits for `stop` too.
    client.send(&format!("position fen {ONE_MOVE}\ngo infinite"));
    assert!(!client.listen(400).iter().any(|l| is_best(l)));
    assert_eq!(client.ask("stop"), "h1g2");
}

#[test]
fn pondering_waits_for_the_opponent() {
    let mut client = Client::new();
    client.send("position startpos moves e2e4 e7e5\ngo ponder wtime 3000 btime 3000");
    assert!(!client.listen(600).iter().any(|l| is_best(l)));
    let (_, time) = client.timed("ponderhit");
    assert!(time < 1500, "{time}");
    client.send("go ponder wtime 1 btime 1 nodes 5");
    assert!(!client.listen(300).iter().any(|l| is_best(l)));
    client.ask("stop");
    client.send(&format!("position fen {ONE_MOVE}\ngo ponder wtime 60000 btime 60000"));
    assert!(!client.listen(200).iter().any(|l| is_best(l)), "not even an only move is played on the opponent's time");
    assert_eq!(client.ask("ponderhit"), "h1g2");
    client.send("ponderhit");
    assert_eq!(client.settle(), [""; 0]);
    // What was thought on the opponent's time is not thought again: for this clock it is enough, and an only move never
    // needs any.
    client.send("position startpos\ngo ponder wtime 5000 btime 5000");
    client.listen(1500);
    let (_, time) = client.timed("ponderhit");
    assert!(time < 150, "{time}");
    let evasion = "rn1k1b1r/p4pp1/1ppp4/7p/PQ2n1bq/R1NBP3/1PPBK1PR/1N6 w - - 5 21";
    client.send(&format!("position fen {evasion}\ngo ponder wtime 600000 btime 600000"));
    client.listen(400);
    let (only, time) = client.timed("ponderhit");
    assert!(only == "e2f1" && time < 150, "{only}, {time}");
}

#[test]
fn threads_share_the_nodes_that_are_allowed() {
    let mut client = Client::new();
    client.send("setoption name Threads value 4");
    for nodes in [1, 3, 5000, 20_000, 100_000] {
        assert_ne!(client.ask(&format!("ucinewgame\ngo nodes {nodes}")), "(none)");
        if nodes < 5000 {
            continue; // not enough for a line
        }
        let counted = number(client.last(), "nodes");
        assert!(counted <= nodes, "{nodes}: {counted}");
    }
}

#[test]
fn numbers_at_the_ends_of_their_ranges() {
    let mut client = Client::new();
    for go in ["go mate 0 nodes 3000", "go mate 1073741825 nodes 3000", "go mate 4294967295 nodes 3000"] {
        assert_ne!(client.ask(go), "(none)", "{go}");
        assert!(number(client.last(), "depth") > 1, "{go}: a mate that is not there does not end the search");
    }
    let clock = "position fen 4k3/8/8/8/8/8/4P3/4K2R w K - 4294967295 1\ngo nodes 2000";
    assert_ne!(client.ask(clock), "(none)");
}

#[test]
fn an_option_that_changes_the_evaluation_forgets_what_was_found_with_the_other() {
    let fen = "position fen r1bq1rk1/pp2bppp/2n2n2/3p4/3P4/2N2N2/PP2BPPP/R1BQ1RK1 w - - 0 9";
    let mut fresh = Client::new();
    fresh.send(fen);
    fresh.ask("setoption name KingSafety value false\ngo depth 7");
    let expected = fresh.last().to_owned();
    let mut changed = Client::new();
    changed.send(fen);
    changed.ask("go depth 9");
    changed.ask("setoption name KingSafety value false\ngo depth 7");
    for key in ["cp", "nodes"] {
        assert_eq!(number(changed.last(), key), number(&expected, key), "{key}");
    }
}

#[test]
fn s1_the_end_of_the_input_ends_everything() {
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
    for commands in
        ["uci\n", "go infinite\n", "go nodes 100\n", "position nowhere\n", "position startpos\ngo depth 20\n"]
    {
        let (engine_input, mut input) = std::io::pipe().unwrap();
        let (output, engine_output) = std::io::pipe().unwrap();
        drop(output);
        input.write_all(commands.as_bytes()).unwrap();
        let end = serve(BufReader::new(engine_input), engine_output);
        assert!(matches!(end, Err(EngineError::Output(_))), "{commands}");
    }
}

#[test]
fn u8_s3_roots_that_are_over() {
    let mut client = Client::new();
    for (fen, score) in [(MATED, "mate 0"), (STALEMATE, "cp 0")] {
        client.send(&format!("position fen {fen}"));
        for go in ["go depth 3", "go movetime 5000", "go nodes 3", "go wtime 1000 btime 1000", "go mate 2"] {
            assert_eq!(client.ask(go), "(none)");
            assert_eq!(client.said, [format!("info depth 0 score {score}")]);
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
        assert_ne!(client.ask("go nodes 200"), "(none)", "{position}");
    }
}

#[test]
fn after_a_position_that_is_wrong_there_is_none() {
    let mut client = Client::new();
    client.send(&format!("position fen {ONE_MOVE}"));
    for (position, named) in [
        ("fen rnbqkbnr/pppppppp/8/8 w KQkq - 0 1", "rnbqkbnr/pppppppp/8/8"),
        ("fen 8/8/8/8/8/8/8/8 w - - 0 1", "8/8/8/8"),
        ("fen 4k3/8/8/8/8/8/8/8 w - - 0 1", "4k3/8"),
        ("fen", "``"),
        ("startpos moves e2e4 e7e6 e4e6", "e4e6"),
        ("startpos moves e2e4 0000", "0000"),
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
        assert!(said[0].ends_with("there is no position now"), "{said:?}");
        for go in ["go nodes 200", "go infinite", "go wtime 1000 btime 1000"] {
            assert_eq!(client.ask(go), "0000", "{position}");
            assert!(
                client.said.len() == 1 && client.said[0].starts_with("info string error: go:"),
                "{:?}",
                client.said
            );
        }
    }
    client.send(&format!("position fen {ONE_MOVE}"));
    assert_eq!(client.ask("go nodes 200"), "h1g2");
    // It ends a search like any other command that changes something.
    client.send("go infinite\nposition nowhere");
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.ask("go infinite"), "0000");
    // A new game begins at the start.
    assert_eq!(client.ask("ucinewgame\ngo depth 3 searchmoves e2e4"), "e2e4");
    client.send(&format!("position fen {ONE_MOVE}\nucinewgame"));
    assert_eq!(client.ask("go depth 3 searchmoves e2e4"), "e2e4");
}

#[test]
fn rubbish_is_survived() {
    let mut client = Client::new();
    let long = "x".repeat(100_000);
    client.send(&format!(
        "{long}\nposition fen {long}\nposition startpos moves {long}\nsetoption name {long} value {long}"
    ));
    client.send("setoption\nsetoption name\nsetoption name Hash value -1\nsetoption name value\ngo nodes one depth");
    let bytes = b"\xff\xfe\x80\0\nposition startpos moves \xc3\x28\nstop\ngo \xff nodes 5\n";
    client.input.as_mut().unwrap().write_all(bytes).unwrap();
    client.best();
    assert!(client.said.iter().all(|l| l.len() < 1000));
    client.best();
    client.send(&format!("position startpos moves {}", "g1f3 g8f6 f3g1 f6g8 ".repeat(2500)));
    assert_eq!(client.settle(), [""; 0]);
    client.ask("go nodes 5 searchmoves e2e9 zz e2e4");
    assert!(client.said.iter().any(|l| l.contains("`e2e9`")));
}

#[test]
fn limits_are_kept() {
    let mut client = Client::new();
    client.send("position startpos");
    for nodes in [100, 801, 5000, 100_000] {
        client.ask(&format!("go nodes {nodes}"));
        let counted = number(client.last(), "nodes");
        assert!(counted <= nodes, "{nodes}: {counted}");
    }
    for nodes in [1, 2, 20] {
        assert_ne!(client.ask(&format!("ucinewgame\ngo nodes {nodes}")), "(none)");
    }
    client.send("ucinewgame");
    client.ask("go depth 5");
    assert_eq!(number(client.last(), "depth"), 5);
    client.send(&format!("position fen {MATE_IN_1}"));
    for go in ["go mate 1", "go mate 3"] {
        assert_eq!(client.ask(go), "d1d8");
        assert!(client.last().contains("score mate 1 ") && moves_after_pv(client.last()) == ["d1d8"]);
    }
    client.send("position fen 8/8/8/8/5k2/8/8/K6R w - - 0 1");
    client.ask("go mate 2 nodes 20000");
    client.ask("go mate 2 depth 6");
}

/// The same commands give the same words but for the time.
#[test]
fn one_thread_at_a_fixed_limit_is_deterministic() {
    let timeless = |line: &String| {
        let mut words: Vec<&str> = line.split(' ').collect();
        for key in ["nps", "time"] {
            if let Some(at) = words.iter().position(|w| *w == key) {
                words.drain(at..at + 2);
            }
        }
        words.join(" ")
    };
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut client = Client::new();
        let mut said = Vec::new();
        for position in ["startpos", "startpos moves e2e4", "fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"] {
            for go in ["go depth 8", "go nodes 60000"] {
                client.send(&format!("position {position}"));
                said.push(client.ask(go));
                said.extend(client.said.iter().map(timeless));
            }
        }
        client.send("ucinewgame\nposition startpos");
        said.push(client.ask("go depth 8"));
        said.extend(client.said.iter().map(timeless));
        runs.push(said);
    }
    assert_eq!(runs[0], runs[1]);
    let first = runs[0].iter().position(|l| l.starts_with("info depth 8")).unwrap();
    let again = runs[0].iter().rposition(|l| l.starts_with("info depth 8")).unwrap();
    assert_eq!(runs[0][first], runs[0][again], "a new game begins with nothing");
}

#[test]
fn a_movetime_is_used_whole_and_clocks_are_kept() {
    let mut client = Client::new();
    client.send("position startpos");
    for movetime in [200, 500] {
        let (_, time) = client.timed(&format!("go movetime {movetime}"));
        assert!((movetime - 30..movetime + 200).contains(&time), "{movetime}: {time}");
    }
    let (_, clock) = client.timed("go wtime 3000 btime 1 winc 0 binc 0");
    assert!(clock < 1200, "{clock}");
    client.send(&format!("position fen {ONE_MOVE}"));
    let (_, only) = client.timed("go wtime 600000 btime 600000");
    assert!(only < 300, "an only move is played at once: {only}");
}

#[test]
fn u19_an_empty_clock_and_one_below_zero_get_a_legal_move_at_once() {
    let mut client = Client::new();
    client.send("position startpos");
    for go in ["go wtime 0 btime 0", "go wtime -300 btime 5", "go wtime 20 btime 20", "go movetime 0", "go movetime -5"]
    {
        let (best, time) = client.timed(go);
        assert!(best != "(none)" && time < 300, "{go}: {time}");
    }
}

#[test]
fn a_clock_that_cannot_be_read_or_is_missing_is_no_endless_search() {
    let mut client = Client::new();
    client.send("position startpos");
    for (go, named) in [
        ("go wtime 1000.0 btime 1000", "`1000.0`"),
        ("go wtime soon btime later", "`soon`"),
        ("go btime 1000", "`wtime`"),
        ("go winc 100 binc 100", "`wtime`"),
        ("go movetime 1e3", "`1e3`"),
        ("go depth", "`depth`"),
        ("go nodes many", "`many`"),
    ] {
        let (best, time) = client.timed(go);
        assert!(best.len() == 4 && time < 1000, "{go}: {best}, {time}");
        assert!(
            client.said.iter().any(|l| l.starts_with("info string go: ") && l.contains(named)),
            "{:?}",
            client.said
        );
    }
    client.ask("go wtime 1000 btime 1000");
    assert!(!client.said.iter().any(|l| l.starts_with("info string")), "{:?}", client.said);
}

#[test]
fn more_hash_than_memory_is_refused_and_the_table_stays() {
    let mut client = Client::new();
    client.send("setoption name Hash value 3\nposition startpos");
    client.ask("go depth 9");
    let full = number(client.last(), "hashfull");
    // Beyond the range; what is in the range fits or not, as the machine is.
    client.send("setoption name Hash value 1000000\nsetoption name Hash value x");
    let said = client.settle();
    assert!(said.len() == 2 && said.iter().all(|l| l.contains("it stays at 3 MiB")), "{said:?}");
    assert!(said[0].contains("`1000000`"), "{said:?}");
    if !uci::server::fits_in_memory(65_536 << 20, 0) {
        client.send("setoption name Hash value 65536");
        let said = client.settle();
        assert!(said[0].contains("65536 MiB") && said[0].contains("Hash stays at 3 MiB"), "{said:?}");
    }
    client.ask("go depth 9");
    assert!(full > 0 && number(client.last(), "nodes") < 5000, "what was found is there still: {}", client.last());
}

/// Programs show the last line as the reason of the move.
#[test]
fn the_last_line_begins_with_the_move_that_is_played() {
    let mut rng = games::Rng::new(16);
    let mut searches = 0;
    for game in 0..25 {
        let mut client = Client::new();
        client.send(&format!("setoption name MultiPV value {}", [1, 1, 1, 1, 3][game % 5]));
        let mut line = games::Line::new(<games::Chess as games::Game>::start());
        for ply in 0..60 {
            let moves = games::Game::legal_moves(line.state());
            if moves.is_empty() {
                break;
            }
            if ply >= 6 {
                client.send(&format!("position startpos moves {}", line.move_texts().join(" ")));
                let nodes = [1, 7, 77, 333, 1025, 2049, 4321, 9999][rng.below(8)] + rng.below(50);
                client.send(&format!("go nodes {nodes}"));
                let answer = client.expect("bestmove");
                let words: Vec<&str> = answer.split(' ').collect();
                let best = client.said.iter().rev().find(|l| l.contains(" multipv 1 ")).expect("a line");
                let pv = moves_after_pv(best);
                assert_eq!(pv[0], words[1], "{nodes}: {best}: {answer}");
                assert_eq!(pv.get(1), words.get(3), "{nodes}: {best}: {answer}");
                searches += 1;
            }
            line.play(moves[rng.below(moves.len())]);
        }
    }
    assert!(searches >= 1000, "{searches}");
}

#[test]
fn chances_are_told_where_they_are_asked_for() {
    let mut client = Client::new();
    client.send("position startpos");
    client.ask("go depth 6");
    assert!(!client.said.iter().any(|l| l.contains(" wdl ")));
    client.send("setoption name UCI_ShowWDL value true");
    assert_eq!(client.settle(), [""; 0]);
    for position in ["startpos", &format!("fen {MATE_IN_1}"), "fen 4k3/8/8/8/8/8/8/QQ2K3 w - - 0 1"] {
        client.send(&format!("position {position}"));
        client.ask("go depth 6");
        for line in client.said.iter().filter(|l| l.contains(" score ")) {
            let after: Vec<&str> = line.split_once(" wdl ").expect("chances").1.split(' ').take(3).collect();
            let chances: Vec<u32> = after.iter().map(|n| n.parse().unwrap()).collect();
            assert_eq!(chances.iter().sum::<u32>(), 1000, "{line}");
            assert!(!line.contains(" mate ") || chances == [1000, 0, 0], "{line}");
        }
    }
}

#[test]
fn searchmoves_are_the_only_moves() {
    let mut client = Client::new();
    client.send("position startpos");
    assert_eq!(client.ask("go nodes 2000 searchmoves a2a3"), "a2a3");
    let two = client.ask("go searchmoves h2h4 a2a4 depth 6");
    assert!(["h2h4", "a2a4"].contains(&two.as_str()));
    client.send(&format!("position fen {MATE_IN_1}"));
    assert_eq!(client.ask("go depth 4 searchmoves g2g3"), "g2g3", "though there is a mate");
    assert_eq!(client.ask("go depth 4"), "d1d8", "and the next search has all moves");
}

#[test]
fn several_lines_have_several_moves_in_order() {
    let mut client = Client::new();
    client.send("setoption name MultiPV value 4\nposition startpos moves d2d4");
    let best = client.ask("go depth 7");
    let last: Vec<String> = client.said.iter().rev().take(4).rev().cloned().collect();
    assert_eq!(last.iter().map(|l| number(l, "multipv")).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let mut firsts: Vec<_> = last.iter().map(|l| moves_after_pv(l)[0].to_owned()).collect();
    assert_eq!(firsts[0], best);
    firsts.sort();
    firsts.dedup();
    assert_eq!(firsts.len(), 4);
    client.send(&format!("setoption name MultiPV value 200\nposition fen {ONE_MOVE}"));
    client.ask("go depth 3");
    assert_eq!(number(client.last(), "multipv"), 1);
}

#[test]
fn a_command_that_changes_something_ends_the_search() {
    let mut client = Client::new();
    client
        .send(&format!("go infinite\nposition fen {ONE_MOVE}\ngo infinite\nsetoption name Hash value 8\ngo nodes 200"));
    client.best();
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.best(), "h1g2");
    assert_eq!(client.settle(), [""; 0]);
}

#[test]
fn several_threads_find_the_same_and_end_together() {
    let mut client = Client::new();
    client.send("setoption name Threads value 3\nsetoption name Hash value 8");
    client.send(&format!("position fen {MATE_IN_1}"));
    assert_eq!(client.ask("go depth 5"), "d1d8");
    client.send("position startpos");
    for go in ["go movetime 200", "go nodes 50000", "go depth 8", "go wtime 1000 btime 1000"] {
        assert_ne!(client.ask(go), "(none)");
    }
    client.send("go infinite");
    client.listen(200);
    client.send("setoption name Threads value 1");
    client.best();
    client.ask("go nodes 5000");
    let (_, end) = client.close();
    assert!(end.is_ok());
}

#[test]
fn parts_are_taken_away_by_their_options() {
    let mut client = Client::new();
    client.send("position startpos");
    let mut counts = Vec::new();
    for setting in ["", "setoption name NullMove value false", "setoption name Table value false"] {
        client.send(&format!("{setting}\nucinewgame"));
        client.ask("go depth 7");
        counts.push(number(client.last(), "nodes"));
    }
    assert!(counts[0] != counts[1] && counts[1] != counts[2], "{counts:?}");
    client.send("setoption name NullMove value perhaps\nsetoption name Nonsense value 1");
    let said = client.settle();
    assert!(said.len() == 2 && said[0].contains("`perhaps`") && said[1].contains("`Nonsense`"), "{said:?}");
}

/// A policy file's content.
fn some_policy(seed: u64) -> Vec<u8> {
    let mut rng = games::Rng::new(seed);
    (0..crate::policy::FILE_SIZE / 4).flat_map(|_| ((rng.normal() * 0.1) as f32).to_le_bytes()).collect()
}

/// Not in the table, not in what was learnt about moves, not in the thoughts that are kept.
#[test]
fn nothing_of_one_policy_is_left_when_another_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let files = [1, 2].map(|seed| {
        let path = dir.path().join(format!("{seed}.bin"));
        std::fs::write(&path, some_policy(seed)).unwrap();
        path.display().to_string()
    });
    let search = |client: &mut Client, file: &str| {
        client.ask(&format!("setoption name PolicyFile value {file}\nsetoption name Policy value true\ngo depth 9"));
        number(client.last(), "nodes")
    };
    let mut client = Client::new();
    let after = [0, 1].map(|i| search(&mut client, &files[i]));
    let fresh = [0, 1].map(|i| search(&mut Client::new(), &files[i]));
    assert_eq!(after, fresh);
    assert_ne!(fresh[0], fresh[1]);
}

#[test]
fn a_policy_that_cannot_be_used_is_said_once_and_a_good_one_orders_moves() {
    let dir = tempfile::tempdir().unwrap();
    let (bad, good) = (dir.path().join("bad.bin"), dir.path().join("good.bin"));
    std::fs::write(&bad, "short").unwrap();
    std::fs::write(&good, some_policy(1)).unwrap();
    let mut client = Client::new();
    client.send("position startpos");
    client.ask("go depth 8");
    let without = number(client.last(), "nodes");
    client.send("setoption name Policy value true");
    let said = client.settle();
    assert!(said.len() == 1 && said[0].contains("PolicyFile names no file"), "{said:?}");
    for file in [bad.clone(), dir.path().join("none.bin")] {
        client.send(&format!("setoption name PolicyFile value {}", file.display()));
        let said = client.settle();
        assert!(
            said.len() == 1 && said[0].contains("error: ") && said[0].contains(&*file.to_string_lossy()),
            "{said:?}"
        );
        assert_eq!(client.settle(), [""; 0], "once");
        client.ask("ucinewgame\ngo depth 8");
        assert_eq!(number(client.last(), "nodes"), without);
    }
    client.send(&format!("setoption name PolicyFile value {}", good.display()));
    assert_eq!(client.settle(), [format!("info string policy {}", good.display())]);
    client.ask("ucinewgame\ngo depth 8");
    assert_ne!(number(client.last(), "nodes"), without, "moves come in another order");
    client.ask("setoption name Policy value false\nucinewgame\ngo depth 8");
    assert_eq!(number(client.last(), "nodes"), without);
}
