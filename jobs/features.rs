//! What each feature of an engine is worth, by matches of the engine against itself without it.

use std::path::Path;

use clap::Parser;
use pipeline::{ConfigArgs, Exit};
use training::FeaturesConfig;

/// Play an engine against itself without a feature, for each row of a TOML file, into data/PROFILE/ROW, and
/// write the table. Rows that are done are not played again.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let config: FeaturesConfig = args.config.load()?;
        let root = Path::new("data").join(tabiya::profile_name(&args.config));
        let table = training::features(&config, &root, stop).map_err(|e| tabiya::in_file(&args.config, e))?;
        pipeline::print(format_args!("{table}"))?;
        Ok(Exit::Done)
    })
}
