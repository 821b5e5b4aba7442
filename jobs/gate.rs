//! One step of refinement: `gate` of the next iteration in which it is not done; or the same match for any two networks.

use std::path::PathBuf;

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Play the next iteration's candidate against the best network; or any two checkpoint folders, under the same rules.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Judge this checkpoint folder instead of the next iteration's candidate, and record nothing; exits 1 if it is
    /// refused
    #[arg(long, value_name = "FOLDER", requires = "best")]
    candidate: Option<PathBuf>,
    /// The checkpoint folder that it has to beat
    #[arg(long, value_name = "FOLDER", requires = "candidate")]
    best: Option<PathBuf>,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        if let (Some(candidate), Some(best)) = (&args.candidate, &args.best) {
            let verdict =
                tabiya::with_game!(profile, G => training::judge::<G>(&profile, &layout, candidate, best, stop))?;
            pipeline::print(format_args!("{verdict}\n"))?;
            return Ok(if verdict.accepted { Exit::Done } else { Exit::ScoreMissed });
        }
        let only = Some(training::Step::Gate);
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, only, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
