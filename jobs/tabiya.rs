//! The UCI engine on a trained network.

use std::io::{BufReader, stdin, stdout};
use std::path::PathBuf;

use clap::Parser;
use pipeline::Exit;
use player::PlayError;

/// Speak UCI on standard input and output: add this program to a chess program as an engine.
#[derive(Parser)]
struct Args {
    /// The checkpoint folder to play with [default: data/reference, or the option NetworkFile]
    #[arg(long, value_name = "FOLDER")]
    network: Option<PathBuf>,
}

fn main() {
    let args = Args::parse();
    uci::server::greet("tabiya");
    pipeline::run(|stop| {
        let network = args.network.as_deref();
        match player::serve(BufReader::new(stdin()), stdout(), network, stop) {
            Ok(()) => stop.check()?,
            // A reader that went away had what it wanted.
            Err(PlayError::Output(error)) => return Err(error.into()),
            Err(error) => return Err(error.into()),
        }
        Ok(Exit::Done)
    })
}
