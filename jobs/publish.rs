//! The best network of a run as a checkpoint by itself, for others to play with.

use std::path::PathBuf;

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Copy the best network of a run, without the optimizer's state, to a folder that says how it was made.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Where to; what was there before is kept in its folder `previous`
    #[arg(long, value_name = "FOLDER", default_value = "data/reference")]
    to: PathBuf,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        tabiya::local("--to", &args.to)?;
        let (profile, layout) = tabiya::resolve(&args.config)?;
        let (name, set) = (tabiya::profile_name(&args.config), &args.config.set);
        let published = tabiya::with_game!(profile, G => {
            training::publish::<G>(&profile, &layout, &name, set, &args.to, stop)
        })?;
        pipeline::print(format_args!("{published}"))?;
        Ok(Exit::Done)
    })
}
