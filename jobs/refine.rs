//! The whole refinement loop: self-play, training and gating to the last iteration.

use clap::Parser;
use pipeline::Exit;

/// Run self-play, train and gate to `refine.num_iterations`, with a match every `refine.eval_interval`. Continues at the first step not done.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    data: tabiya::DataArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = args.data.resolve()?;
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, None, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
