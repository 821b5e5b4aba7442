//! What a run has reached so far, on one page: corpus, losses, refinement and match, from the stages' stamps.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Print corpus, losses, refinement and match of a profile, with the time each stage took.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|_| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        pipeline::print(format_args!("{}", training::run_report(&profile, &layout)?))?;
        Ok(Exit::Done)
    })
}
