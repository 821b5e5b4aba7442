//! A match between any two players.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};
use training::MatchConfig;

/// Play a match between any two players (engines, networks), which a TOML file describes, into data/match/NAME.
/// Continues where it was stopped; a larger `match.games` extends.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let config: MatchConfig = args.config.load()?;
        let name = tabiya::profile_name(&args.config);
        let report = training::contest(&config, "data/match".as_ref(), &name, stop)
            .map_err(|e| tabiya::in_file(&args.config, e))?;
        pipeline::print(format_args!("{report}"))?;
        Ok(Exit::Done)
    })
}
