//! Tables about any dataset.

use std::path::PathBuf;

use clap::Parser;
use dataset::Dataset;
use pipeline::Exit;
use tabiya::BadShard;

/// Results by player and opening, lengths, terminations, score calibration and duplicates of one or more datasets.
#[derive(Parser)]
struct Args {
    /// Dataset folders: a corpus, self-play, a match
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// JSON instead of tables
    #[arg(long)]
    json: bool,
    /// What to do with a damaged or stray file
    #[arg(long, value_enum, default_value_t = BadShard::Skip)]
    on_bad_shard: BadShard,
}

fn main() {
    let args = Args::parse();
    pipeline::run(|_| {
        let dataset = Dataset::open(&args.folders, training::OnBadShard::from(args.on_bad_shard).into())?;
        for warning in dataset.warnings() {
            pipeline::say!("warning: {warning}");
        }
        let report = dataset::stats(&dataset)?;
        if args.json {
            pipeline::print(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
        } else {
            pipeline::print(format_args!("{report}\n"))?;
        }
        Ok(Exit::Done)
    })
}
