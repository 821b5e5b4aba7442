//! The alpha-beta engine.

use std::io::{BufReader, ErrorKind, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use engine::policy::Policy;
use engine::{BENCH_DEPTH, EngineError, bench, bench_policy, perft, serve};

const USAGE: &str = "\
tabiya-ab: a chess engine that speaks UCI on standard input and output

    tabiya-ab                    add this program to a chess program as an engine
    tabiya-ab bench [DEPTH] [POLICY_FILE]
                                 nodes of a fixed search (the checksum of its behaviour) and nodes a second; with a
                                 policy, the nodes with it and the time that it takes
    tabiya-ab perft DEPTH [FEN]  leaves of the tree of legal moves
";

/// The position before the first move.
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

type BoxError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let error = match run(&args) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    // A reader that went away had what it wanted.
    let closed = |e: &std::io::Error| e.kind() == ErrorKind::BrokenPipe;
    if let Some(EngineError::Output(cause)) = error.downcast_ref()
        && closed(cause)
    {
        return ExitCode::SUCCESS;
    }
    if error.downcast_ref().is_some_and(closed) {
        return ExitCode::SUCCESS;
    }
    let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
    let _ = writeln!(std::io::stderr(), "error: {error}{cause}");
    ExitCode::from(2)
}

fn run(args: &[String]) -> Result<(), BoxError> {
    let mut out = stdout();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            uci::server::greet("tabiya-ab");
            serve(BufReader::new(stdin()), out)?;
        }
        ["bench", ref rest @ ..] if rest.len() < 3 => {
            let (depth, file) = match *rest {
                [] => (BENCH_DEPTH, None),
                [only] => number(only).map_or((BENCH_DEPTH, Some(only)), |depth| (depth, None)),
                [depth, file, ..] => (number(depth)?, Some(file)),
            };
            let policy = file.map(|file| Policy::load(Path::new(file))).transpose()?;
            let report = bench(depth, policy.as_ref())?;
            if let Some(policy) = &policy {
                writeln!(out, "policy: {:.1} us a position", 1e6 * bench_policy(policy)?.as_secs_f64())?;
            }
            // The last line, in the form that testing frameworks read.
            let speed = report.nodes as f64 / report.time.as_secs_f64();
            writeln!(out, "{} nodes {speed:.0} nps", report.nodes)?;
        }
        ["perft", depth, ref fen @ ..] => {
            let fen = if fen.is_empty() { START.to_owned() } else { fen.join(" ") };
            let began = Instant::now();
            let counts = perft(&fen, number(depth)?)?;
            let (sum, seconds) = (counts.iter().map(|(_, n)| n).sum::<u64>(), began.elapsed().as_secs_f64());
            for (text, count) in counts {
                writeln!(out, "{text}: {count}")?;
            }
            writeln!(out, "{sum} leaves, {:.0} leaves/s", sum as f64 / seconds)?;
        }
        ["help" | "--help" | "-h"] => out.write_all(USAGE.as_bytes())?,
        ["--version" | "-V"] => writeln!(out, "tabiya-ab {}", env!("CARGO_PKG_VERSION"))?,
        _ => return Err(format!("cannot follow `{}`\n\n{USAGE}", args.join(" ")).into()),
    }
    Ok(())
}

/// A depth from 1 on.
fn number(text: &str) -> Result<u32, BoxError> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("expected a depth from 1 on, got `{text}`").into()),
    }
}
