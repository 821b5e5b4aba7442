//! One step of refinement: `train` of the next iteration in which it is not done.

use clap::Parser;
use pipeline::Exit;

/// Train the next iteration's candidate on recent self-play and the corpus.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    data: tabiya::DataArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = args.data.resolve()?;
        let only = Some(training::Step::Train);
        let report = tabiya::with_game!(profile, G => training::refine::<G>(&profile, &layout, only, stop))?;
        pipeline::print(format_args!("{report}\n"))?;
        Ok(Exit::Done)
    })
}
