//! One step of refinement: `train` of the next iteration in which it is not done.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Train the next iteration's candidate on recent self-play and the corpus.
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
        let only = Some(training::Step::Train);
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, only, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
