//! One step of refinement: `gate` of the next iteration in which it is not done.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Play the next iteration's candidate against the best network.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        let only = Some(training::Step::Gate);
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, only, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
