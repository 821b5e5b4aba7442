//! Supervised training of a network on the corpus.

use clap::Parser;
use pipeline::Exit;

/// Train a network on data/PROFILE/corpus into data/PROFILE/pretrain. Continues in the middle of an epoch.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    data: tabiya::DataArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = args.data.resolve()?;
        let report = tabiya::with_game!(profile, G => training::pretrain::<G>(&profile, &layout, stop))?;
        pipeline::print(format_args!("pretrain: {report}\n"))?;
        Ok(Exit::Done)
    })
}
