//! The page of results, and the experiments for it.

use std::path::PathBuf;

use clap::Parser;
use pipeline::{ConfigArgs, Exit};
use training::Section;

/// Measure the final network of a run by simulations, by training positions and against its beginnings, as [results]
/// says, into data/PROFILE/results; then write everything that the run has measured on a page with plots.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Show what this other profile has reached too; may be repeated. Its file stands beside the first one's
    #[arg(long, value_name = "PROFILE")]
    also: Vec<String>,
    /// The page; the plots go to a folder of its name beside it
    #[arg(long, value_name = "FILE", default_value = training::RESULTS_PAGE)]
    out: PathBuf,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        tabiya::local("--out", &args.out)?;
        let mut runs = Vec::new();
        let others = args.also.iter().map(|name| ConfigArgs {
            config: args.config.config.with_file_name(format!("{name}.toml")),
            set: Vec::new(),
        });
        for config in std::iter::once(args.config.clone()).chain(others) {
            let (profile, layout) = tabiya::resolve(&config)?;
            runs.push((tabiya::profile_name(&config), profile, layout));
        }
        let (_, profile, layout) = &runs[0];
        tabiya::with_game!(profile, G => training::results::<G>(profile, layout, stop))?;
        let sections: Vec<Section<'_>> =
            runs.iter().map(|(name, profile, layout)| Section { name, profile, layout }).collect();
        let how = if training::write_page(&sections, &args.out)? { "wrote" } else { "done already," };
        pipeline::say!("results: {how} {}", args.out.display());
        Ok(Exit::Done)
    })
}
