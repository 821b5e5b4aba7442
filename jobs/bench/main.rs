//! Rates of the hot paths, one line each, in the form that the peers' scripts under `benches/peers` print. The command
//! that runs all of them beside the peers and writes the page is `scripts/bench.py`.

mod corpus;
mod exact;
mod loader;
mod net;
mod play;
mod usage;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, Subcommand};
use games::{Chess, Game, Outcome, Rng};
use nn::{NetConfig, Network};
use pipeline::Exit;
use tabiya::BoxError;

/// Measure a hot path of the program and print its rate.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Forward steps of a residual network for chess, and training steps at some of the batch sizes, positions/s
    Net {
        blocks: usize,
        channels: usize,
        /// Batch sizes of the forward steps, for example 1,8,64
        #[arg(num_args = 1, value_delimiter = ',')]
        batches: Vec<usize>,
        #[arg(default_value_t = 4.0)]
        seconds: f64,
        /// Batch sizes of the training steps
        #[arg(long, value_delimiter = ',')]
        train: Vec<usize>,
    },
    /// Whether evaluations and training give the same bits in any batch and on any number of threads
    Exact,
    /// Self-play with an untrained network over all cores: simulations/s, and its evaluations/s as a share of what the
    /// same executors give alone at the same batch
    Selfplay {
        blocks: usize,
        channels: usize,
        simulations: u32,
        #[arg(default_value_t = 10.0)]
        seconds: f64,
        /// Games that each core has in flight; as self-play's default if absent
        #[arg(long)]
        games: Option<usize>,
    },
    /// Search with a uniform evaluator on one thread, simulations/s
    Search {
        #[arg(default_value_t = 4.0)]
        seconds: f64,
    },
    /// Games of the engine against itself, positions/s of one process
    Corpus {
        nodes: u64,
        games: u64,
        /// Write the openings to this file, one line of moves each, so that a peer can play the same games
        #[arg(long)]
        openings: Option<PathBuf>,
    },
    /// The corpus stage over all cores, then the engine alone on the same positions
    Teacher { folder: PathBuf, nodes: u64, games: u64 },
    /// Write a corpus of random games; continues where it was stopped
    Synthetic { folder: PathBuf, positions: u64 },
    /// An epoch of training batches from a corpus, or its first positions, positions/s over all cores
    Loader {
        folder: PathBuf,
        #[arg(default_value_t = u64::MAX)]
        positions: u64,
    },
    /// Training steps on a corpus: rate, and peak memory after 100 steps and at the end
    Memory {
        folder: PathBuf,
        batch: usize,
        steps: u64,
        #[arg(default_value_t = 6)]
        blocks: usize,
        #[arg(default_value_t = 64)]
        channels: usize,
    },
    /// The SVG of a plot that comes as JSON on standard input; nothing if no line has two points
    Plot,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let line = match args.what {
            What::Net { blocks, channels, batches, seconds, train } => {
                net::net(blocks, channels, &batches, &train, seconds)?
            }
            What::Exact => exact::exact()?,
            What::Selfplay { blocks, channels, simulations, seconds, games } => {
                play::selfplay(blocks, channels, simulations, seconds, games)?
            }
            What::Search { seconds } => play::search(seconds)?,
            What::Corpus { nodes, games, openings } => corpus::corpus(nodes, games, openings.as_deref())?,
            What::Teacher { folder, nodes, games } => corpus::teacher(&folder, nodes, games, stop)?,
            What::Synthetic { folder, positions } => loader::synthetic(&folder, positions, stop)?,
            What::Loader { folder, positions } => loader::loader(&folder, positions)?,
            What::Memory { folder, batch, steps, blocks, channels } => {
                loader::memory(&folder, batch, steps, blocks, channels)?
            }
            What::Plot => plot()?,
        };
        pipeline::print(format_args!("{line}\n"))?;
        Ok(Exit::Done)
    })
}

fn plot() -> Result<String, BoxError> {
    let plot: pipeline::Plot = serde_json::from_reader(std::io::stdin().lock())?;
    Ok(plot.svg().unwrap_or_default().trim_end().to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// An untrained network for chess, always the same one.
fn network(blocks: usize, channels: usize) -> Result<Network, BoxError> {
    let config = NetConfig { blocks, channels, ..NetConfig::default() };
    Ok(Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu")?, 1)?)
}

/// Positions of random games, so that planes and legal moves are real.
fn positions(count: usize) -> Vec<Chess> {
    let (mut rng, mut game, mut moves) = (Rng::new(1), Chess::start(), Vec::new());
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        if game.generate(&mut moves) != Outcome::Ongoing {
            game = Chess::start();
            continue;
        }
        out.push(game.clone());
        game.play(moves[rng.below(moves.len())]);
    }
    out
}

/// Calls `step` for some seconds after a warm-up; calls a second.
fn rate<E>(seconds: f64, mut step: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    step()?;
    step()?;
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        step()?;
        steps += 1;
    }
    Ok(f64::from(steps) / start.elapsed().as_secs_f64())
}
