//! Supervised training of a network on the corpus.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Train a network on data/PROFILE/corpus into data/PROFILE/pretrain. Continues in the middle of an epoch.
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
        let report = tabiya::with_game!(profile, G => training::pretrain::<G>(&profile, &layout, stop))?;
        pipeline::print(format_args!("pretrain: {report}\n"))?;
        Ok(Exit::Done)
    })
}
