//! One step of refinement: `relabel` of the next iteration in which it is not done.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Ask the teacher about every position of the next iteration's self-play games; needs `relabel.enabled`.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        let only = Some(training::Step::Relabel);
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, only, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
