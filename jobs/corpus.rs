//! Games of the engine against itself, into Parquet shards.

use clap::Parser;
use pipeline::{ConfigArgs, Exit};

/// Write games of the engine into data/PROFILE/corpus. Continues where it was stopped; a larger `corpus.games` extends.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Write only these shards, first..last (last included), so that several machines can share a corpus
    #[arg(long, value_name = "FIRST..LAST", value_parser = shard_range)]
    shards: Option<std::ops::Range<u32>>,
}

fn shard_range(text: &str) -> Result<std::ops::Range<u32>, String> {
    let parse = |t: &str| t.trim_matches('=').parse::<u32>().ok();
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (parse(first), parse(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..last + 1),
        _ => Err("expected FIRST..LAST with FIRST not above LAST, for example 40..60".to_owned()),
    }
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = tabiya::resolve(&args.config)?;
        let report = training::corpus(&profile, &layout, args.shards, stop)?;
        pipeline::print(format_args!("corpus: {report}\n"))?;
        Ok(Exit::Done)
    })
}
