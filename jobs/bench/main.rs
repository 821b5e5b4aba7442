//! Rates of the hot paths, one line each, in the form that the peers' scripts under `benches/peers` print.

use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use games::{Chess, Game, Line, Outcome, Packed, Rng};
use nn::{BatchView, Model, NetConfig, Network, Trainer, TrainerConfig};
use pipeline::Exit;
use search::{Driver, NetworkEvaluator, Search, SearchConfig, Service, ServiceConfig};
use uci::{Engine, EngineSpec, Limit};

/// Measure a hot path of the program for a few seconds and print its rate.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Forward and training steps of a residual network for chess, positions/s over all cores
    Net {
        blocks: usize,
        channels: usize,
        batch: usize,
        #[arg(default_value_t = 4.0)]
        seconds: f64,
    },
    /// Self-play with an untrained network, simulations/s over all cores
    Selfplay {
        blocks: usize,
        channels: usize,
        simulations: u32,
        #[arg(default_value_t = 10.0)]
        seconds: f64,
    },
    /// Games of the engine against itself, positions/s of one process
    Corpus { nodes: u64, games: u64 },
}

fn main() {
    let args = Args::parse();
    pipeline::run(|_| {
        let line = match args.what {
            What::Net { blocks, channels, batch, seconds } => net(blocks, channels, batch, seconds)?,
            What::Selfplay { blocks, channels, simulations, seconds } => {
                selfplay(blocks, channels, simulations, seconds)?
            }
            What::Corpus { nodes, games } => corpus(nodes, games)?,
        };
        pipeline::print(format_args!("{line}\n"))?;
        Ok(Exit::Done)
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

fn network(blocks: usize, channels: usize) -> Result<Network, nn::NnError> {
    let config = NetConfig { blocks, channels, ..NetConfig::default() };
    Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu")?, 1)
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

fn net(blocks: usize, channels: usize, batch: usize, seconds: f64) -> Result<String, tabiya::BoxError> {
    let network = network(blocks, channels)?;
    let model = Model::from_network(&network)?;
    let games = positions(batch);
    let inputs: Vec<Packed> = games.iter().map(Game::pack).collect();
    let share = batch.div_ceil(cores());
    let mut executors: Vec<_> = inputs.chunks(share).map(|_| model.executor(share)).collect();
    let forward = rate(seconds, || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = executors
                .iter_mut()
                .zip(inputs.chunks(share))
                .map(|(executor, part)| scope.spawn(move || executor.evaluate(part).map(|_| ())))
                .collect();
            threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
        })
    })?;
    let (mut planes, mut legal, mut offsets) = (vec![0.0; batch * Chess::SHAPE.inputs()], Vec::new(), vec![0]);
    for (game, row) in games.iter().zip(planes.chunks_exact_mut(Chess::SHAPE.inputs())) {
        game.pack().write_channels_last(Chess::SHAPE, row);
        legal.extend(game.legal_moves().iter().map(|m| game.index(*m)));
        offsets.push(legal.len() as u32);
    }
    let mut target = vec![0.0; legal.len()];
    offsets[..batch].iter().for_each(|o| target[*o as usize] = 1.0);
    let (value, value_weight) = (vec![0.0; batch], vec![1.0; batch]);
    let view = BatchView {
        rows: batch,
        planes: &planes,
        legal_offsets: &offsets,
        legal: &legal,
        target: &target,
        value: &value,
        value_weight: &value_weight,
    };
    let mut trainer = Trainer::new(network, TrainerConfig::default())?;
    let train = rate(seconds, || trainer.step(&view, 1e-4).map(|_| ()))?;
    let (forward, train) = (forward * batch as f64, train * batch as f64);
    Ok(format!("tabiya {blocks}x{channels} batch {batch}: forward {forward:.0}/s train {train:.0}/s"))
}

fn selfplay(blocks: usize, channels: usize, simulations: u32, seconds: f64) -> Result<String, tabiya::BoxError> {
    let model = Model::from_network(&network(blocks, channels)?)?;
    let executors = cores();
    let service = Service::start(ServiceConfig { executors, ..ServiceConfig::default() }, |_| {
        Ok(NetworkEvaluator::new(&model, 64, 1 << 16))
    })?;
    let config = SearchConfig { simulations, noise_weight: 0.25, ..SearchConfig::default() };
    let start = Instant::now();
    let counts = service.run_workers(2 * executors, |worker, client| {
        let (mut driver, mut rng) = (Driver::new(), Rng::new(worker as u64));
        let mut searches: Vec<Search<Chess>> =
            (0..16).map(|_| Search::new(config, Chess::start(), Rng::new(rng.next_u64()))).collect();
        let (mut done, mut moves) = (0, 0);
        while start.elapsed() < Duration::from_secs_f64(seconds) {
            driver.round(&mut searches, client)?;
            for search in searches.iter_mut().filter(|s| s.finished()) {
                done += u64::from(search.root_report()?.simulations);
                moves += 1;
                let m = search.choose(1.0)?;
                search.advance(m)?;
                if search.root().outcome() != Outcome::Ongoing {
                    search.reset(Chess::start(), Rng::new(rng.next_u64()));
                }
            }
        }
        Ok::<_, search::SearchError>((done, moves))
    })?;
    service.stop()?;
    let took = start.elapsed().as_secs_f64();
    let (done, moves) = counts.iter().fold((0, 0), |(d, m), (a, b)| (d + a, m + b));
    Ok(format!(
        "tabiya-selfplay {blocks}x{channels} sims {simulations}: {:.0} sims/s {:.2} moves/s",
        done as f64 / took,
        f64::from(moves) / took
    ))
}

fn corpus(nodes: u64, games: u64) -> Result<String, tabiya::BoxError> {
    let spec = EngineSpec::new(uci::find_engine("stockfish")?).option("Threads", "1").option("Hash", "16");
    let mut engine = Engine::start(&spec)?;
    let (mut positions, mut moves, mut rng) = (0u64, Vec::new(), Rng::new(1));
    let start = Instant::now();
    for _ in 0..games {
        let mut line = Line::new(Chess::start());
        engine.new_game()?;
        while line.state().generate(&mut moves) == Outcome::Ongoing && line.moves().len() < 400 {
            if line.moves().len() < 4 {
                line.play(moves[rng.below(moves.len())]);
            } else {
                line.play(engine.play(&line, Limit::Nodes(nodes))?.m);
                positions += 1;
            }
        }
    }
    let rate = positions as f64 / start.elapsed().as_secs_f64();
    Ok(format!("tabiya-corpus nodes {nodes}: {positions} positions {rate:.1}/s"))
}
