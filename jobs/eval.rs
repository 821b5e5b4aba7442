//! The match that measures the best network.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Play the best network against the engine, a reference player or another network, into data/PROFILE/eval.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Exit with 1 if the score is below this, in 0..1
    #[arg(long, value_name = "SCORE")]
    require_score: Option<f64>,
    /// Measure this checkpoint folder instead of the run's best network
    #[arg(long, value_name = "FOLDER")]
    network: Option<std::path::PathBuf>,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        let network = args.network.as_deref();
        let report = tabiya::with_game!(profile, G => training::evaluate::<G>(&profile, &layout, network, stop))?;
        pipeline::print(format_args!("{}\n", report.text))?;
        match args.require_score {
            Some(required) if report.score < required => {
                pipeline::say!("eval: the score {:.3} is below the required {required:.3}", report.score);
                Ok(Exit::ScoreMissed)
            }
            _ => Ok(Exit::Done),
        }
    })
}
