//! The corpus: one engine process as a peer drives it, and the stage itself beside the engine alone.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use dataset::{Dataset, OnBad};
use games::{Chess, Game, Line, Outcome, Rng};
use pipeline::Stop;
use tabiya::BoxError;
use training::{CorpusConfig, Layout, Profile};
use uci::{Engine, EngineSpec, Limit};

use crate::cores;
use crate::usage::cpu_seconds;

const OPENING_PLIES: usize = 4;
const MAX_PLIES: usize = 400;

/// One process through our engine driver, without the stage around it.
pub(crate) fn corpus(nodes: u64, games: u64, openings: Option<&Path>) -> Result<String, BoxError> {
    let spec = EngineSpec::new(uci::find_engine("stockfish")?).option("Threads", "1").option("Hash", "16");
    let mut engine = Engine::start(&spec)?;
    let (mut positions, mut moves, mut rng, mut text) = (0u64, Vec::new(), Rng::new(1), String::new());
    let start = Instant::now();
    for _ in 0..games {
        let mut line = Line::new(Chess::start());
        engine.new_game()?;
        while line.state().generate(&mut moves) == Outcome::Ongoing && line.moves().len() < MAX_PLIES {
            if line.moves().len() < OPENING_PLIES {
                line.play(moves[rng.below(moves.len())]);
            } else {
                line.play(engine.play(&line, Limit::Nodes(nodes))?.m);
                positions += 1;
            }
        }
        writeln!(text, "{}", line.move_texts()[..OPENING_PLIES].join(" "))?;
    }
    let rate = positions as f64 / start.elapsed().as_secs_f64();
    if let Some(path) = openings {
        std::fs::write(path, text)?;
    }
    Ok(format!("tabiya-corpus nodes {nodes}: {positions} positions {rate:.1}/s"))
}

/// The stage into `folder`, which is emptied before, then the engine alone on exactly the positions that the stage
/// asked it about.
pub(crate) fn teacher(folder: &Path, nodes: u64, games: u64, stop: &Stop) -> Result<String, BoxError> {
    let layout = Layout::new(folder);
    match std::fs::remove_dir_all(layout.corpus()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    let profile: Profile = serde_json::from_value(serde_json::json!({
        "game": Chess::NAME,
        "net": {},
        "corpus": CorpusConfig { games, limit: Limit::Nodes(nodes), ..CorpusConfig::default() },
    }))?;
    let cpu = cpu_seconds()?;
    let report = training::corpus(&profile, &layout, None, stop)?;
    let ours_cpu = cpu_seconds()? - cpu;
    let scripts = scripts(&layout, nodes)?;
    let positions: usize = scripts.iter().map(|game| game.len() - 1).sum();
    // The stage's own clock: from its first game to its last shard.
    let ours = positions as f64 * report.games_per_second / games as f64;
    let spec = training::teacher_spec(&profile.engine, stop)?;
    let cpu = cpu_seconds()?;
    let alone = positions as f64 / engines_alone(&spec, &scripts)?;
    let alone_cpu = cpu_seconds()? - cpu;
    let microseconds = 1e6 / positions as f64;
    Ok(format!(
        "tabiya-teacher nodes {nodes}: {positions} positions {ours:.1}/s, engine alone {alone:.1}/s, share {:.4}; CPU \
         {:.0} and {:.0} us a position",
        ours / alone,
        ours_cpu * microseconds,
        alone_cpu * microseconds
    ))
}

/// For each game what the stage sends: that a game begins, then each question.
fn scripts(layout: &Layout, nodes: u64) -> Result<Vec<Vec<String>>, BoxError> {
    let data = Dataset::open(&[layout.corpus()], OnBad::Stop)?;
    let mut scripts = Vec::new();
    for shard in 0..data.shards().len() {
        for record in data.read_shard(shard)? {
            let mut game = vec!["ucinewgame\nisready\n".to_owned()];
            let texts = record.check::<Chess>()?.move_texts();
            for ply in usize::from(record.opening_plies)..texts.len() {
                game.push(format!("position startpos moves {}\ngo nodes {nodes}\n", texts[..ply].join(" ")));
            }
            scripts.push(game);
        }
    }
    Ok(scripts)
}

/// Seconds that one engine process a core takes for all games, started and driven as barely as can be.
///
/// As in the stage, the first process runs before the clock does, and the others are started by their threads.
fn engines_alone(spec: &EngineSpec, scripts: &[Vec<String>]) -> Result<f64, BoxError> {
    let next = AtomicUsize::new(0);
    let mut first = Some(Bare::start(spec)?);
    let start = Instant::now();
    let outcome: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores())
            .map(|_| {
                let (engine, next) = (first.take(), &next);
                scope.spawn(move || {
                    let mut engine = engine.map_or_else(|| Bare::start(spec), Ok)?;
                    while let Some(game) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        engine.ask(&game[0], b"readyok")?;
                        game[1..].iter().try_for_each(|question| engine.ask(question, b"bestmove"))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    outcome.into_iter().collect::<io::Result<()>>()?;
    Ok(start.elapsed().as_secs_f64())
}

/// An engine that is written to and whose answers are only waited for.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    said: Vec<u8>,
}

impl Bare {
    fn start(spec: &EngineSpec) -> io::Result<Bare> {
        let path: &PathBuf = &spec.path;
        let mut child = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the engine has no pipes"));
        };
        let mut engine = Bare { child, stdin, stdout, said: Vec::new() };
        let options: String =
            spec.options.iter().map(|(name, value)| format!("setoption name {name} value {value}\n")).collect();
        engine.ask("uci\n", b"uciok")?;
        engine.ask(&format!("{options}isready\n"), b"readyok")?;
        Ok(engine)
    }

    /// Sends lines and reads until a line begins with `word`.
    fn ask(&mut self, text: &str, word: &[u8]) -> io::Result<()> {
        self.stdin.write_all(text.as_bytes())?;
        self.said.clear();
        let mut line = 0;
        loop {
            let mut buffer = [0; 8192];
            let read = self.stdout.read(&mut buffer)?;
            if read == 0 {
                return Err(io::Error::other("the engine has ended"));
            }
            self.said.extend_from_slice(&buffer[..read]);
            while let Some(length) = self.said[line..].iter().position(|b| *b == b'\n') {
                if self.said[line..].starts_with(word) {
                    return Ok(());
                }
                line += length + 1;
            }
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // A process that has ended already is what is wanted.
        let _ = self.stdin.write_all(b"quit\n");
        let _ = self.child.wait();
    }
}
