//! The whole refinement loop: self-play, training and gating to the last iteration.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Run self-play, train and gate to `refine.num_iterations`, with a match every `refine.eval_interval`. Continues at the first step not done.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// What to do about a damaged or stray file in a dataset
    #[arg(long, value_enum)]
    on_bad_shard: Option<tabiya::BadShard>,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (mut profile, layout) = tabiya::resolve(&args.config)?;
        if let Some(choice) = args.on_bad_shard {
            profile.on_bad_shard = choice.into();
        }
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, None, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
