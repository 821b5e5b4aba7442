//! The page of results: tables and plots of a run, from its stamps, metrics, matches and experiments, and from nothing
//! else.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arena::{Elo, MatchReport};
use pipeline::{Axis, Line, Plot, Stamp, Store, span};
use serde_json::Value;
use uci::Limit;

use super::curves::Curves;
use super::{Experiments, match_report, put_if_new};
use crate::epochs::{EpochReport, TrainingReport};
use crate::history::History;
use crate::origin;
use crate::profile::{Layout, Profile};
use crate::report::{made, number};
use crate::stages::summary;
use crate::{Error, Result};

/// A run on the page.
pub struct Section<'a> {
    /// The profile's name.
    pub name: &'a str,
    /// Its settings.
    pub profile: &'a Profile,
    /// Where it is kept.
    pub layout: &'a Layout,
}

/// Where the page is written if nothing else is said.
pub const RESULTS_PAGE: &str = "docs/results.md";

const INTRODUCTION: &str = "\
An Elo here is a difference to the opponent that stands beside it, at the limits that stand beside both, and no rating of
any list. Its interval covers 95 % and comes from pairs of games over one opening with colours swapped; a pair with a game
that the ply cap ended is left out. Where all pairs were lost or won there is a bound instead. Wall time is summed up over
all sittings of a stage.
";

/// Writes the page and, in a folder of its name beside it, the plots. The first section is the run that was asked for;
/// whether anything changed.
///
/// # Errors
/// A run of which nothing is done, files that cannot be read or written.
pub fn write_page(sections: &[Section<'_>], page: &Path) -> Result<bool> {
    let (Some(stem), Some(file)) =
        (page.file_stem().and_then(|s| s.to_str()), page.file_name().and_then(|s| s.to_str()))
    else {
        let source = std::io::Error::other("expected the name of a file, such as docs/results.md");
        return Err(Error::File { path: page.to_owned(), source });
    };
    let folder = page.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names: Vec<&str> = sections.iter().map(|section| section.name).collect();
    let also = match names.split_first() {
        Some((_, [])) | None => String::new(),
        Some((_, rest)) => format!(" ALSO=\"{}\"", rest.join(" ")),
    };
    let out = if page == Path::new(RESULTS_PAGE) { String::new() } else { format!(" OUT={}", page.display()) };
    let mut text = format!(
        "# Results\n\nWritten by `make results PROFILE={}{also}{out}` and not by hand: every number is read from the files of the \
         run.\n\n{INTRODUCTION}",
        names.first().unwrap_or(&"")
    );
    let store = Store::open(folder)?;
    let mut changed = false;
    for section in sections {
        let mut chapter = Chapter::open(section, stem)?;
        chapter.write()?;
        text.push_str(&chapter.text);
        for (name, svg) in chapter.plots {
            changed |= put_if_new(&store.child(stem), &name, svg.as_bytes())?;
        }
    }
    Ok(put_if_new(&store, file, text.as_bytes())? || changed)
}

struct Chapter<'a> {
    section: &'a Section<'a>,
    history: History,
    experiments: Experiments,
    /// The folder of the plots, beside the page.
    folder: &'a str,
    text: String,
    /// File names and contents.
    plots: Vec<(String, String)>,
}

impl<'a> Chapter<'a> {
    fn open(section: &'a Section<'a>, folder: &'a str) -> Result<Self> {
        let history = History::read(section.profile, section.layout)?;
        if history.stages().is_empty() {
            let path = section.layout.root().to_owned();
            let stage = if section.profile.refine.init == "pretrained" { "corpus" } else { "refine" };
            return Err(Error::Missing { what: "a finished stage", path, stage });
        }
        let experiments = Experiments::read(section.layout)?;
        Ok(Chapter { section, history, experiments, folder, text: String::new(), plots: Vec::new() })
    }

    fn say(&mut self, text: impl std::fmt::Display) {
        let _ = write!(self.text, "\n{text}\n");
    }

    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let _ = write!(self.text, "\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
        for row in rows {
            let _ = writeln!(self.text, "| {} |", row.join(" | "));
        }
    }

    /// Puts a plot on the page, if there is something to see.
    fn plot(&mut self, name: &str, plot: &Plot) {
        if let Some(svg) = plot.svg() {
            let file = format!("{}-{name}.svg", self.section.name);
            let (title, path) = (&plot.title, format!("{}/{file}", self.folder));
            self.say(format_args!("![{title}]({path})"));
            self.plots.push((file, svg));
        }
    }

    fn write(&mut self) -> Result<()> {
        self.say(format_args!("## {}", self.section.name));
        self.stages();
        self.learning()?;
        self.refinement()?;
        self.matches()?;
        self.by_simulations();
        self.by_positions();
        Ok(())
    }

    fn stages(&mut self) {
        let machines = self.machines();
        self.say(format_args!("    {}", self.command()));
        self.say(machines);
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut total = self.experiments.seconds;
        if let Some((folder, seconds, what)) = origin::told(&self.history.init) {
            total += seconds;
            rows.push(vec![folder, span(seconds), String::new(), what]);
        }
        for (name, kind, stamp) in self.history.stages() {
            total += stamp.seconds;
            let sittings = if stamp.sittings > 0 { stamp.sittings.to_string() } else { "not counted".to_owned() };
            rows.push(vec![name, span(stamp.seconds), sittings, made(kind, &stamp.summary)]);
        }
        if self.experiments.seconds > 0.0 {
            let what = "the experiments below".to_owned();
            rows.push(vec!["results".to_owned(), span(self.experiments.seconds), String::new(), what]);
        }
        rows.push(vec!["in all".to_owned(), span(total), String::new(), String::new()]);
        self.table(&["stage", "wall time", "sittings", "made"], &rows);
        for stamp in std::mem::take(&mut self.history.begun) {
            self.say(format_args!("`{}` is not done; {} so far.", stamp.stage, span(stamp.seconds)));
        }
        if let Some(text) = self.history.corpus.as_ref().map(teacher) {
            self.say(text);
        }
        if let Some(pretrain) = &self.history.pretrain {
            let (net, parameters) = (&pretrain.settings["net"], grouped(&pretrain.summary["parameters"]));
            let size = format!("{} blocks of {} channels", net["blocks"], net["channels"]);
            self.say(format_args!("The network has {size}, {parameters} parameters."));
        }
    }

    /// The command that makes what is there.
    fn command(&self) -> String {
        let mut targets = Vec::new();
        let kinds: Vec<&str> = self.history.stages().into_iter().map(|(_, kind, _)| kind).collect();
        targets.extend(["corpus", "pretrain"].into_iter().filter(|kind| kinds.contains(kind)));
        targets.extend(kinds.contains(&"gate").then_some("refine"));
        targets.extend(self.history.eval.is_some().then_some("eval"));
        targets.extend((self.experiments.seconds > 0.0).then_some("results"));
        format!("make {} PROFILE={}", targets.join(" "), self.section.name)
    }

    /// What the stages ran on.
    fn machines(&self) -> String {
        let mut machines: Vec<&str> = self.history.stages().into_iter().map(|(_, _, s)| s.machine.as_str()).collect();
        machines.sort_unstable();
        machines.dedup();
        let unknown = machines.first().is_some_and(|m| m.is_empty());
        machines.retain(|m| !m.is_empty());
        match (machines.join("; "), unknown) {
            (known, false) => format!("Machine: {known}."),
            (known, true) if known.is_empty() => {
                format!("Machine: not recorded by the stages; this page was made on {}.", pipeline::machine())
            }
            (known, true) => format!("Machine: {known}; some stages did not record theirs."),
        }
    }

    fn learning(&mut self) -> Result<()> {
        let Some(pretrain) = self.history.pretrain.clone() else { return Ok(()) };
        self.say("### Learning from the corpus");
        self.say(format_args!(
            "{} % of the games are held out. Losses are in nats; top-1 is the share of positions whose likeliest move is the \
             teacher's.",
            100.0 * number(&pretrain.settings["pretrain"]["holdout"])
        ));
        let report: TrainingReport = summary(&self.section.layout.pretrain(), &pretrain)?;
        let row = |e: &EpochReport| {
            let kept = if e.epoch == report.best_epoch { " (kept)" } else { "" };
            vec![
                format!("{}{kept}", e.epoch),
                format!("{:.3}", e.policy_loss),
                format!("{:.3}", e.value_loss),
                format!("{:.1} %", 100.0 * e.top1),
                format!("{:.1} %", 100.0 * e.top5),
                format!("{:.3}", e.value_error),
            ]
        };
        self.table(
            &["passes", "policy loss, held out", "value loss", "top-1", "top-5", "value error"],
            &report.epochs.iter().map(row).collect::<Vec<_>>(),
        );
        let curves = Curves::read(&self.section.layout.pretrain())?;
        let name = self.section.name;
        self.plot("policy-loss", &curves.policy_loss(format!("{name}: policy loss of pre-training, nats")));
        self.plot("value-loss", &curves.value_loss(format!("{name}: value loss of pre-training")));
        self.plot("top1", &curves.top1(format!("{name}: top-1 of pre-training, %")));
        Ok(())
    }

    fn refinement(&mut self) -> Result<()> {
        if !self.history.has_refined() {
            return Ok(());
        }
        self.say("### Refinement");
        let mut rows = Vec::new();
        for (i, steps) in (1..).zip(&self.history.iterations) {
            let of = |name: &str| steps.iter().find(|(step, _)| *step == name).map(|(_, stamp)| &stamp.summary);
            let Some(gate) = of("gate") else { continue };
            let played = of("selfplay").unwrap_or(&Value::Null);
            let trained = of("train").map_or_else(String::new, |s| made("train", s));
            let elo = match gate["skipped"].is_null() {
                true => match_report(&self.section.layout.iteration(i, "gate"))?.elo.to_string(),
                false => String::new(),
            };
            rows.push(vec![
                i.to_string(),
                grouped(&played["games"]),
                grouped(&played["positions"]),
                trained,
                made("gate", gate),
                elo,
            ]);
        }
        self.table(&["iteration", "games", "positions", "training", "gate", "Elo of the candidate"], &rows);
        match self.experiments.refinement.clone() {
            Some(report) => {
                self.say("The final network against the one that refinement began with:");
                self.match_table(&[("results".to_owned(), report)]);
            }
            None if !self.history.iterations.iter().flatten().any(|(_, s)| s.summary["accepted"] == true) => {
                self.say("No candidate has passed the gate: the final network is the one that refinement began with.");
            }
            None => {}
        }
        Ok(())
    }

    fn matches(&mut self) -> Result<()> {
        let layout = self.section.layout;
        let mut played: Vec<(String, PathBuf)> = Vec::new();
        for (i, steps) in (1..).zip(&self.history.iterations) {
            let evals = steps.iter().filter(|(step, _)| *step == "eval");
            played.extend(evals.map(|_| (format!("iteration {i}"), layout.iteration(i, "eval"))));
        }
        played.extend(self.history.eval.iter().map(|_| ("eval".to_owned(), layout.eval())));
        self.say("### Matches");
        if played.is_empty() {
            self.say(format_args!("None was played: `make eval PROFILE={}` does.", self.section.name));
            return Ok(());
        }
        let reports = played.into_iter().map(|(stage, dir)| Ok((stage, match_report(&dir)?)));
        let reports = reports.collect::<Result<Vec<_>>>()?;
        self.match_table(&reports);
        Ok(())
    }

    fn match_table(&mut self, reports: &[(String, MatchReport)]) {
        let row = |(stage, report): &(String, MatchReport)| {
            let mut row = vec![stage.clone(), report.player_a.clone(), report.player_b.clone()];
            row.extend(outcome(report));
            row
        };
        let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
        self.table(&["stage", "network", "opponent", "games", "won, drawn, lost", "score", "Elo"], &rows);
    }

    fn by_simulations(&mut self) {
        let found = std::mem::take(&mut self.experiments.simulations);
        let Some(first) = found.first() else { return };
        self.say("### Strength by simulations");
        self.say(format_args!(
            "The final network against {}. 0 simulations are the raw policy.",
            first.report.player_b
        ));
        let row = |at: &super::AtSimulations| {
            let mut row = vec![at.simulations.to_string()];
            row.extend(outcome(&at.report));
            row
        };
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        self.table(&["simulations a move", "games", "won, drawn, lost", "score", "Elo"], &rows);
        let points = found.iter().map(|at| (f64::from(at.simulations), &at.report));
        let lines = vec![elo_line("final network", points)];
        let title = format!("{}: Elo against {}", self.section.name, first.report.player_b);
        self.plot(
            "simulations",
            &Plot { title, x_label: "simulations a move".to_owned(), axis: Axis::Log, from_zero: true, lines },
        );
    }

    fn by_positions(&mut self) {
        let mut found = std::mem::take(&mut self.experiments.shares);
        found.sort_by_key(|share| std::cmp::Reverse(share.one_in));
        let Some(first) = found.first() else { return };
        self.say("### Strength by training positions");
        self.say(format_args!(
            "Networks of one recipe, each trained in one pass over the first games of the corpus and validated on the same \
             held-out games, against {}.",
            first.report.player_b
        ));
        let row = |share: &super::OfShare| {
            let mut row = vec![
                if share.one_in == 1 { "all".to_owned() } else { format!("1/{}", share.one_in) },
                grouped(&share.positions.into()),
                format!("{:.3}", share.validation.policy_loss),
                format!("{:.3}", share.validation.value_loss),
                format!("{:.1} %", 100.0 * share.validation.top1),
                share.report.player_a.clone(),
            ];
            row.extend(outcome(&share.report));
            row
        };
        let learned = ["part of the corpus", "positions", "policy loss", "value loss", "top-1", "network"];
        let head = [&learned[..], &["games", "won, drawn, lost", "score", "Elo"]].concat();
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        self.table(&head, &rows);
        let name = self.section.name;
        let label = || "training positions".to_owned();
        let lines = vec![elo_line("one pass", found.iter().map(|share| (share.positions as f64, &share.report)))];
        let title = format!("{name}: Elo against {}", first.report.player_b);
        self.plot("positions", &Plot { title, x_label: label(), axis: Axis::Log, from_zero: true, lines });
        let points = found.iter().map(|share| [share.positions as f64, 100.0 * share.validation.top1]).collect();
        let lines = vec![Line { name: "held-out games".to_owned(), points, ..Line::default() }];
        let title = format!("{name}: top-1, %");
        self.plot("positions-top1", &Plot { title, x_label: label(), axis: Axis::Log, from_zero: true, lines });
    }
}

/// Who taught, with which limit, and which games these are.
fn teacher(corpus: &Stamp) -> String {
    let settings = &corpus.settings;
    let limit: Option<Limit> = serde_json::from_value(settings["corpus"]["limit"].clone()).ok();
    format!(
        "Teacher: {}, {} a move. Corpus: {} games, {} positions, fingerprint `{}`.",
        settings["engine"].as_str().unwrap_or("not recorded"),
        limit.map_or_else(|| "limit not recorded".to_owned(), |limit| limit.to_string()),
        grouped(&corpus.summary["games"]),
        grouped(&corpus.summary["positions"]),
        corpus.fingerprint.as_deref().unwrap_or("none")
    )
}

/// Games, results, score and Elo of player A.
fn outcome(report: &MatchReport) -> Vec<String> {
    let score = report.score.map_or_else(|| "no decided game".to_owned(), |score| format!("{:.1} %", 100.0 * score));
    let capped = if report.capped > 0 { format!(", {} without result", report.capped) } else { String::new() };
    vec![report.games.to_string(), format!("{}{capped}", report.total), score, report.elo.to_string()]
}

/// Elo of player A over something. Where an end of the interval is open, or there is a bound alone because every game was
/// lost or won, the interval is drawn so, and no point: it would look like a measurement.
fn elo_line<'r>(name: &str, points: impl Iterator<Item = (f64, &'r MatchReport)>) -> Line {
    let mut line = Line { name: name.to_owned(), ..Line::default() };
    for (x, report) in points {
        let (low, high) = match report.elo {
            Elo::Unknown => continue,
            Elo::Estimate { elo, low, high } => {
                line.points.extend((low.is_some() && high.is_some()).then_some([x, elo]));
                (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))
            }
            Elo::Below { bound } => (f64::NEG_INFINITY, bound),
            Elo::Above { bound } => (bound, f64::INFINITY),
        };
        line.intervals.push([x, low, high]);
    }
    line.points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    line
}

/// A count with separators, such as `4,312,345`.
fn grouped(count: &Value) -> String {
    let Some(n) = count.as_u64() else { return "not recorded".to_owned() };
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let text = [0, 999, 1000, 4_312_345].map(|n: u64| grouped(&n.into()));
        assert_eq!(text, ["0", "999", "1,000", "4,312,345"]);
        assert_eq!(grouped(&Value::Null), "not recorded");
    }
}
