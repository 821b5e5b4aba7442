//! Fits the evaluation to games from standard input, and writes `src/weights/values.rs` to standard output.
//!
//!     python scripts/games.py data/cpu/corpus > games.txt
//!     cargo run --release -p engine --example fit < games.txt > values.rs

use std::io::{BufWriter, Write, stderr, stdin, stdout};
use std::process::ExitCode;

use engine::tune::fit;

fn main() -> ExitCode {
    let mut out = BufWriter::new(stdout().lock());
    let fitted = fit(stdin().lock(), &mut out, &mut stderr()).and_then(|()| Ok(out.flush()?));
    if let Err(error) = fitted {
        eprintln!("error: {error}");
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}
