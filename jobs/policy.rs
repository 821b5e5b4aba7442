//! The policy network of the alpha-beta engine: games, labels, training and export.

use clap::{Parser, ValueEnum};
use pipeline::Exit;
use training::PolicyStep;

/// Teach the alpha-beta engine's policy network, into data/PROFILE/policy: games of an engine against itself, a deeper engine's moves at their positions, training, and the files for the engine. Continues where it was stopped.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    data: tabiya::DataArgs,
    /// Only this step
    step: Option<Step>,
}

/// The steps
#[derive(Clone, Copy, ValueEnum)]
enum Step {
    /// Games of `policy.engine` against itself
    Games,
    /// The moves of `policy.labels.engine` at their positions
    Labels,
    /// The network
    Train,
    /// policy.bin for the engine, policy.onnx for other programs
    Export,
}

impl From<Step> for PolicyStep {
    fn from(step: Step) -> Self {
        match step {
            Step::Games => PolicyStep::Games,
            Step::Labels => PolicyStep::Labels,
            Step::Train => PolicyStep::Train,
            Step::Export => PolicyStep::Export,
        }
    }
}

fn main() {
    let args = Args::parse();
    pipeline::run(|stop| {
        let (profile, layout) = args.data.resolve()?;
        let only = args.step.map(PolicyStep::from);
        for step in PolicyStep::ALL.into_iter().filter(|step| only.is_none_or(|only| only == *step)) {
            let report = training::policy(&profile, &layout, step, stop)?;
            pipeline::print(format_args!("policy/{}: {}", step.name(), report.trim_end()))?;
        }
        Ok(Exit::Done)
    })
}
