//! What a run has reached so far, from the stages' stamps.

use std::fmt::Write;

use pipeline::{Stage, Stamp, span};
use serde_json::Value;

use crate::history::History;
use crate::origin;
use crate::policy::PolicyStep;
use crate::profile::{Layout, Profile};
use crate::{Error, Result};

/// Corpus, losses, refinement and match on one page, with the time that each stage took over all its sittings.
///
/// # Errors
/// A stamp that cannot be read, or [`Error::NothingRun`] if there is none.
pub fn run_report(profile: &Profile, layout: &Layout) -> Result<String> {
    let history = History::read(profile, layout)?;
    if history.is_empty() {
        return Err(Error::NothingRun(layout.root().to_owned()));
    }
    let mut text = format!("Run {} ({})\n", layout.root().display(), profile.game);
    let mut seconds = 0.0;
    if let Some((folder, before, what)) = origin::told(&history.init) {
        seconds += before;
        let _ = writeln!(text, "  {folder} ({before:.0} s): {what}");
    }
    for (name, kind, stamp) in history.stages() {
        seconds += stamp.seconds;
        let line = match kind {
            "eval" => stamp.summary["text"].as_str().unwrap_or_default().trim_end().replace('\n', "\n    "),
            _ => made(kind, &stamp.summary),
        };
        let _ = writeln!(text, "  {name} ({:.0} s{}): {line}", stamp.seconds, sittings(stamp.sittings));
        if kind == "pretrain" {
            text.push_str(&epochs(&stamp.summary));
        }
    }
    for (step, stamp) in &history.policy {
        seconds += stamp.seconds;
        let line = taught(*step, &stamp.summary);
        let _ =
            writeln!(text, "  policy: {} ({:.0} s{}): {line}", step.name(), stamp.seconds, sittings(stamp.sittings));
    }
    for stamp in history.begun {
        seconds += stamp.seconds;
        let place = place(&stamp, Stage::is_running(&stamp.stage, &layout.locks()));
        let _ =
            writeln!(text, "  {} ({:.0} s{} so far): {place}", stamp.stage, stamp.seconds, sittings(stamp.sittings));
    }
    let _ = writeln!(text, "{seconds:.0} s in all ({})", span(seconds));
    Ok(text)
}

/// Where a stage stands that is not done, and how long it will take at the rate so far.
fn place(stamp: &Stamp, running: bool) -> String {
    let (state, then) = if running { ("running", "") } else { ("stopped", ", the same command goes on") };
    let Some((done, total)) = stamp.progress.filter(|(_, total)| *total > 0) else {
        return format!("{state}, not done{then}");
    };
    let percent = done.saturating_mul(100) / total;
    let left = stamp.seconds / done.max(1) as f64 * total.saturating_sub(done) as f64;
    let left = if done > 0 { format!(", {} left", span(left)) } else { String::new() };
    format!("{state}, {done} of {total} ({percent} %){left}{then}")
}

/// How often it was gone on with, where it was.
fn sittings(n: u64) -> String {
    if n > 1 { format!(" over {n} sittings") } else { String::new() }
}

/// What a stage of this kind made, in a line, from its summary.
pub(crate) fn made(kind: &str, s: &Value) -> String {
    if let Some(why) = s["skipped"].as_str() {
        return format!("skipped: {why}");
    }
    match kind {
        "corpus" => format!(
            "{} games{}, {} positions ({} distinct), {:.2} bytes a position, White/draw/Black/none {}",
            s["games"],
            s["teacher"].as_str().map(|teacher| format!(" of {teacher}")).unwrap_or_default(),
            s["positions"],
            s["distinct_positions"],
            number(&s["bytes_per_position"]),
            s["results"]
        ),
        "pretrain" => format!("{} steps at {:.0} positions/s", s["steps"], number(&s["positions_per_second"])),
        "selfplay" => format!(
            "{} games, {} positions, {:.0} simulations/s",
            s["games"],
            s["positions"],
            number(&s["simulations_per_second"])
        ),
        "relabel" => format!(
            "{} positions, {:.1} % teacher's moves{}",
            s["positions"],
            100.0 * number(&s["agreement"]),
            s["teacher"].as_str().map(|teacher| format!(" ({teacher})")).unwrap_or_default()
        ),
        "train" => format!(
            "{} steps, policy loss {:.3}, value loss {:.3}",
            s["steps"],
            number(&s["policy_loss"]),
            number(&s["value_loss"])
        ),
        "gate" => {
            let verdict = if s["accepted"] == true { "accepted" } else { "refused" };
            format!("{verdict} at {:.3} (needs {:.3})", number(&s["score"]), number(&s["threshold"]))
        }
        _ => format!("score {:.3}", number(&s["score"])),
    }
}

/// What a step of the policy network made, in a line, from its summary.
fn taught(step: PolicyStep, s: &Value) -> String {
    match step {
        PolicyStep::Games => made("corpus", s),
        PolicyStep::Labels => made("relabel", s),
        PolicyStep::Train => {
            let kept = s["epochs"].as_array().into_iter().flatten().find(|epoch| epoch["epoch"] == s["best_epoch"]);
            let (top1, top5) = kept.map_or((f64::NAN, f64::NAN), |e| (number(&e["top1"]), number(&e["top5"])));
            format!("{} steps, top-1 {:.1} %, top-5 {:.1} % on held-out games", s["steps"], 100.0 * top1, 100.0 * top5)
        }
        PolicyStep::Export => format!("policy.bin, {} bytes", s["bin_bytes"]),
    }
}

fn epochs(summary: &Value) -> String {
    let mut text = String::new();
    for epoch in summary["epochs"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "    after epoch {}: validation policy loss {:.3}, value loss {:.3}, top-1 {:.1} %, top-5 {:.1} %, value error {:.3}",
            epoch["epoch"],
            number(&epoch["policy_loss"]),
            number(&epoch["value_loss"]),
            100.0 * number(&epoch["top1"]),
            100.0 * number(&epoch["top5"]),
            number(&epoch["value_error"]),
        );
    }
    text
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_is_not_done_says_where_it_stands() {
        let mut stamp: Stamp = serde_json::from_value(serde_json::json!({
            "stage": "corpus", "status": "running", "settings": {}, "growable": {}, "inputs": {}, "fingerprint": null,
            "summary": null, "seconds": 120.0, "started": "", "finished": null,
        }))
        .unwrap();
        assert_eq!(place(&stamp, true), "running, not done");
        stamp.progress = Some((0, 400));
        assert_eq!(place(&stamp, true), "running, 0 of 400 (0 %)");
        stamp.progress = Some((100, 400));
        assert_eq!(place(&stamp, true), "running, 100 of 400 (25 %), 6m00s left");
        assert_eq!(place(&stamp, false), "stopped, 100 of 400 (25 %), 6m00s left, the same command goes on");
    }
}
