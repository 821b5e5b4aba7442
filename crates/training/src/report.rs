//! What a run has reached so far, from the stages' stamps.

use std::fmt::Write;
use std::path::Path;

use pipeline::Stamp;
use serde_json::Value;

use crate::Result;
use crate::profile::{Layout, Profile};
use crate::stages::finished;

/// Corpus, losses, refinement and match on one page, with the time each stage took.
///
/// # Errors
/// A stamp that cannot be read.
pub fn run_report(profile: &Profile, layout: &Layout) -> Result<String> {
    let mut page = Page { text: format!("Run {} ({})\n", layout.root().display(), profile.game), seconds: 0.0 };
    page.stage("corpus", &layout.corpus(), |s| {
        format!(
            "{} games, {} positions ({} distinct), {:.2} bytes a position, White/draw/Black/none {}",
            s["games"],
            s["positions"],
            s["distinct_positions"],
            number(&s["bytes_per_position"]),
            s["results"]
        )
    })?;
    page.stage("pretrain", &layout.pretrain(), |s| {
        let mut text = format!("{} steps at {:.0} positions/s", s["steps"], number(&s["positions_per_second"]));
        for epoch in s["epochs"].as_array().into_iter().flatten() {
            let _ = write!(
                text,
                "\n    after epoch {}: validation policy loss {:.3}, value loss {:.3}, top-1 {:.1} %, top-5 {:.1} %, value error {:.3}",
                epoch["epoch"],
                number(&epoch["policy_loss"]),
                number(&epoch["value_loss"]),
                100.0 * number(&epoch["top1"]),
                100.0 * number(&epoch["top5"]),
                number(&epoch["value_error"]),
            );
        }
        text
    })?;
    for i in 1..=profile.refine.num_iterations {
        page.stage(&format!("iteration {i}: selfplay"), &layout.iteration(i, "selfplay"), |s| {
            format!(
                "{} games, {} positions, {:.0} simulations/s",
                s["games"],
                s["positions"],
                number(&s["simulations_per_second"])
            )
        })?;
        page.stage(&format!("iteration {i}: relabel"), &layout.iteration(i, "relabel"), |s| {
            format!("{} positions, {:.1} % teacher's moves", s["positions"], 100.0 * number(&s["agreement"]))
        })?;
        page.stage(&format!("iteration {i}: train"), &layout.iteration(i, "train"), |s| match s["skipped"].as_str() {
            Some(why) => format!("skipped: {why}"),
            None => format!(
                "{} steps, policy loss {:.3}, value loss {:.3}",
                s["steps"],
                number(&s["policy_loss"]),
                number(&s["value_loss"])
            ),
        })?;
        page.stage(&format!("iteration {i}: gate"), &layout.iteration(i, "gate"), |s| match s["skipped"].as_str() {
            Some(why) => format!("skipped: {why}"),
            None => {
                let verdict = if s["accepted"] == true { "accepted" } else { "refused" };
                format!("{verdict} at {:.3} (needs {:.3})", number(&s["score"]), number(&s["threshold"]))
            }
        })?;
        page.stage(&format!("iteration {i}: eval"), &layout.iteration(i, "eval"), indented)?;
    }
    page.stage("eval", &layout.eval(), indented)?;
    let _ = writeln!(page.text, "{:.0} s in all", page.seconds);
    Ok(page.text)
}

struct Page {
    text: String,
    seconds: f64,
}

impl Page {
    fn stage(&mut self, name: &str, dir: &Path, line: impl FnOnce(&Value) -> String) -> Result<()> {
        if let Some(Stamp { summary, seconds, .. }) = finished(dir)? {
            self.seconds += seconds;
            let _ = writeln!(self.text, "  {name} ({seconds:.0} s): {}", line(&summary));
        }
        Ok(())
    }
}

fn indented(summary: &Value) -> String {
    summary["text"].as_str().unwrap_or_default().trim_end().replace('\n', "\n    ")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
