//! Fits the values of the evaluation's terms to scored games.
//!
//! A position's evaluation is a sum of terms times values, so that the chance it stands for is a logistic regression
//! on the terms. What it has to predict is between the teacher's score and how the game ended. Together with weak
//! beliefs about the values (`beliefs.rs`) that is a convex problem: it has one solution, which Newton's method finds
//! in a few steps whatever it begins with.

use std::io::{BufRead, Write};

use crate::taper::{Taper, t};
use crate::weights::{GROUPS, MOBILITY, PLACE, TERMS, VALUES};

mod beliefs;
mod newton;
mod samples;

pub use samples::GamesError;
use samples::Samples;

/// The share of the teacher's score in what is predicted; the rest is the game's result.
const SCORE_SHARE: f64 = 0.8;
/// Logits a centipawn, which sets the scale of all values. The margins of the search are made for it.
const SCALE: f64 = 0.004;
/// One game in so many is only looked at.
const HELD_OUT: usize = 10;
/// Newton's steps end when none changes a value by more, in centipawns.
const STILL: f64 = 0.05;
/// They end anyway after so many.
const MOST_STEPS: usize = 20;

/// What is fitted: for each term its value in the middlegame, and then for each its value in the endgame.
type Values = Vec<f64>;

/// Reads games and writes the Rust source of the values that fit them to `source`. `log` gets a line a step.
///
/// A game is a line of six fields that semicolons separate, which `scripts/games.py` makes of a corpus: its result in
/// White's view (1, 0, -1), the FEN of its first position (empty for the usual), the number of plies that no player
/// chose, and then ply by ply, separated by spaces, its moves, the teacher's scores in the mover's view and the
/// teacher's moves (numbers as the data has them, `-` for none).
///
/// # Errors
/// [`GamesError`], if a line is not as it should be, or a stream fails.
pub fn fit(games: impl BufRead, source: &mut impl Write, log: &mut impl Write) -> Result<(), GamesError> {
    let samples = samples::read(games, SCORE_SHARE)?;
    write_source(&fit_values(&samples, log)?, source)
}

fn fit_values(samples: &Samples, log: &mut impl Write) -> Result<Values, GamesError> {
    let (held_out, train) = samples.split(HELD_OUT);
    let present: Values =
        VALUES.iter().map(|v| f64::from(v.middle)).chain(VALUES.iter().map(|v| f64::from(v.end))).collect();
    let scale = newton::slope(&train.iter().map(|s| (s.evaluate(&present), s.target)).collect::<Vec<_>>());
    writeln!(
        log,
        "{} positions and {} held out; logits a centipawn: the teacher's {:.5}, the present values' {scale:.5}",
        train.len(),
        held_out.len(),
        samples.teacher,
    )?;
    writeln!(log, "present values: held out {:.6}", newton::loss(&held_out, &present, scale))?;
    let beliefs = beliefs::beliefs();
    let mut values = vec![0.0; 2 * TERMS];
    for step in 1..=MOST_STEPS {
        let change = newton::step(&train, &beliefs, SCALE, &mut values);
        writeln!(
            log,
            "step {step}: changes up to {change:.2}, held out {:.6}",
            newton::loss(&held_out, &values, SCALE)
        )?;
        if change < STILL {
            break;
        }
    }
    center_mobility(&train, &mut values);
    Ok(values)
}

/// Makes the mean of a role's mobility 0 and gives its places the rest: the sum stays the same, and a piece has its
/// value without mobility too.
fn center_mobility(samples: &Samples, values: &mut Values) {
    let counts = samples.counts();
    for (role, (first, len)) in MOBILITY.into_iter().enumerate() {
        for half in [0, TERMS] {
            let all: f64 = counts[first..first + len].iter().sum();
            let mean = (first..first + len).map(|i| counts[i] * values[half + i]).sum::<f64>() / all.max(1.0);
            values[half + first..][..len].iter_mut().for_each(|v| *v -= mean);
            values[half + PLACE + 64 * (role + 1)..][..64].iter_mut().for_each(|v| *v += mean);
        }
    }
}

/// The file `weights/values.rs`.
fn write_source(values: &Values, out: &mut impl Write) -> Result<(), GamesError> {
    let rounded: Vec<Taper> =
        (0..TERMS).map(|i| t(values[i].round() as i32, values[TERMS + i].round() as i32)).collect();
    write!(
        out,
        "//! The values of the evaluation's terms. Written by `examples/fit.rs`, not by hand.\n\n\
         use super::TERMS;\nuse crate::taper::{{Taper, t}};\n\n\
         /// Centipawns in the middlegame and in the endgame, term by term.\n\
         #[rustfmt::skip]\npub(crate) static VALUES: [Taper; TERMS] = [\n"
    )?;
    let mut first = 0;
    for (name, len) in GROUPS {
        writeln!(out, "    // {name}")?;
        for (i, row) in rounded[first..first + len].chunks(8).enumerate() {
            if i > 0 && i % 8 == 0 {
                writeln!(out)?;
            }
            let row: Vec<String> = row.iter().map(|v| format!("t({}, {}),", v.middle, v.end)).collect();
            writeln!(out, "    {}", row.join(" "))?;
        }
        first += len;
    }
    writeln!(out, "];")?;
    Ok(())
}

#[cfg(test)]
mod tests;
