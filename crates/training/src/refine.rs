//! The refinement loop: self-play, the teacher's answers to it if wanted, training, gate, and which network is the best.
//!
//! Nothing but the stamps on disk says how far the loop is and which network is best: both follow from reading the
//! iterations in order, so a kill cannot leave them wrong.

use std::collections::BTreeMap;
use std::path::Path;

use games::Game;
use pipeline::{Stage, StageSpec, Stop};

use crate::candidate::{Candidate, CandidateReport};
use crate::course;
use crate::engines::Teacher;
use crate::gate::GateReport;
use crate::profile::{Layout, OnReject, Profile, SettingError, content};
use crate::selfplay::SelfplayReport;
use crate::stages::{NetworkRef, Stages, fingerprint, finished, is_done, locked_stage, required, summary};
use crate::window::{Amount, Window};
use crate::{Result, evaluate, gate, relabel, selfplay};

/// One of the executables of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Games of the best network.
    Selfplay,
    /// The teacher's answers to them, if `relabel.enabled`.
    Relabel,
    /// A candidate.
    Train,
    /// The match between them.
    Gate,
}

/// How far the loop is.
#[derive(Clone, Debug, Default)]
pub struct RefineReport {
    /// A line per iteration.
    pub lines: Vec<String>,
    /// The folder of the best network.
    pub best: std::path::PathBuf,
    /// Whether a step was not done yet.
    ran: bool,
}

impl std::fmt::Display for RefineReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        write!(f, "refine: the best network is {}", self.best.display())
    }
}

/// Runs the loop to `refine.num_iterations`, or one step `only` of the next iteration in which it is not done.
///
/// # Errors
/// A missing earlier stage, whatever a step fails with, or a stop request.
pub fn refine<G: Game>(profile: &Profile, layout: &Layout, only: Option<Step>, stop: &Stop) -> Result<RefineReport> {
    let stages = Stages { profile, layout, stop };
    if only == Some(Step::Relabel) && !profile.relabel.enabled {
        let reason = "set it to true to train on the teacher's answers to self-play";
        return Err(SettingError::new("relabel.enabled", "false", reason).into());
    }
    let mut place = Place { best: initial::<G>(stages)?, start: None };
    // Only asked who it is: the stamps name it. Workers start their own.
    let teacher = if profile.relabel.enabled { Some(Teacher::start(&profile.engine, stop)?.0) } else { None };
    let mut report = RefineReport { best: place.best.dir.clone(), ..RefineReport::default() };
    for iteration in 1..=profile.refine.num_iterations {
        let done = Iteration { stages, number: iteration, only, teacher: teacher.as_ref() }
            .run::<G>(&mut place, &mut report)?;
        report.best.clone_from(&place.best.dir);
        if !done {
            return Ok(report);
        }
    }
    if !report.ran {
        let what = only.map_or_else(|| "refine".to_owned(), |step| format!("{step:?}").to_lowercase());
        let all = profile.refine.num_iterations;
        let line = format!(
            "{what}: nothing to do, all {all} iterations are done; a larger refine.num_iterations asks for more"
        );
        report.lines.push(line);
    }
    Ok(report)
}

/// Where the loop stands between two iterations.
struct Place {
    best: NetworkRef,
    /// What training goes on from, where that is not the best network.
    start: Option<NetworkRef>,
}

impl Place {
    /// Reads a gate's verdict.
    fn advance(&mut self, gate: &GateReport, candidate: &NetworkRef, on_reject: OnReject) {
        if gate.accepted {
            self.best = candidate.clone();
            self.start = None;
        } else if gate.skipped.is_none() {
            self.start = (on_reject == OnReject::Candidate).then(|| candidate.clone());
        }
    }
}

struct Iteration<'a> {
    stages: Stages<'a>,
    number: u32,
    only: Option<Step>,
    /// Who relabels self-play, if anybody.
    teacher: Option<&'a Teacher>,
}

impl Iteration<'_> {
    /// Runs what is left of the iteration; false if the caller should go no further.
    fn run<G: Game>(&self, place: &mut Place, report: &mut RefineReport) -> Result<bool> {
        let (stages, i) = (self.stages, self.number);
        let layout = stages.layout;

        let spec = selfplay::spec::<G>(stages, i, &place.best);
        let ran = self.step(Step::Selfplay, spec, report, |stage| {
            let (played, fingerprint) = selfplay::selfplay::<G>(stages, stage, i, &place.best)?;
            warn_of_collapse(i, &played);
            stage.finish(&fingerprint, &played)?;
            Ok(())
        })?;
        if let Some(go_on) = ran {
            return Ok(go_on);
        }

        if let Some(teacher) = self.teacher {
            let played = required(layout.iteration(i, "selfplay"), "self-play", "selfplay")?;
            let spec = relabel::spec(stages, i, teacher, &played);
            let run = |stage: &Stage| relabel::relabel(stages, stage, i, teacher, &played);
            if let Some(go_on) = self.step(Step::Relabel, spec, report, run)? {
                return Ok(go_on);
            }
        }

        let window = Window::ending_at(layout, i, stages.profile.train.replay_window, self.teacher.is_some())?;
        let start = place.start.clone().unwrap_or_else(|| place.best.clone());
        let plan = Candidate::new(stages, i, window, start)?;
        let ran = self.step(Step::Train, plan.spec::<G>(), report, |stage| plan.run::<G>(stage))?;
        if let Some(go_on) = ran {
            return Ok(go_on);
        }
        let trained = required(layout.iteration(i, "train"), "the candidate", "train")?;
        let candidate = NetworkRef { dir: layout.iteration(i, "train"), fingerprint: fingerprint(&trained) };

        let spec = gate::spec::<G>(stages, i, &candidate, &place.best);
        let ran = self.step(Step::Gate, spec, report, |stage| {
            if let CandidateReport::Skipped { skipped } = summary(&candidate.dir, &trained)? {
                let report = GateReport { accepted: false, score: None, skipped: Some(skipped) };
                return Ok(stage.finish(&pipeline::content_hash(&content(&report, &[])), report)?);
            }
            let verdict = gate::gate::<G>(stages, stage.dir(), i, &candidate, &place.best)?;
            pipeline::say!("iteration {i}: {verdict}");
            // The text tells how long the match took.
            Ok(stage.finish(&pipeline::content_hash(&content(&verdict, &["text"])), verdict)?)
        })?;
        let gate = judged(layout, i)?;
        place.advance(&gate, &candidate, stages.profile.gate.on_reject);
        report.lines.push(line(i, layout, &gate)?);
        if let Some(go_on) = ran {
            return Ok(go_on);
        }

        let interval = stages.profile.refine.eval_interval;
        if self.only.is_none() && interval > 0 && i.is_multiple_of(interval) {
            let name = format!("refine/iter_{i:04}/eval");
            let played = evaluate::run::<G>(stages, &place.best, &name, layout.iteration(i, "eval"), i)?;
            report.lines.push(format!("iteration {i}: {}", played.text));
        }
        Ok(true)
    }

    /// Runs a step if it is not done. `Some(false)` ends the loop: the step asked for has run, or it waits for this one.
    fn step(
        &self,
        step: Step,
        spec: StageSpec,
        report: &mut RefineReport,
        run: impl FnOnce(&Stage) -> Result<()>,
    ) -> Result<Option<bool>> {
        if is_done(&spec)? {
            return Ok(None);
        }
        if let Some(only) = self.only.filter(|only| *only != step) {
            let (wanted, missing) = (format!("{only:?}").to_lowercase(), format!("{step:?}").to_lowercase());
            report.lines.push(format!("{wanted}: iteration {} waits for `make {missing}`", self.number));
            return Ok(Some(false));
        }
        if let Some(stage) = locked_stage(spec, self.stages.layout, None)? {
            report.ran = true;
            run(&stage)?;
        }
        Ok(self.only.map(|_| false))
    }
}

/// What the gate of an iteration has decided.
fn judged(layout: &Layout, iteration: u32) -> Result<GateReport> {
    let dir = layout.iteration(iteration, "gate");
    summary(&dir, &required(dir.clone(), "the gate", "gate")?)
}

fn line(iteration: u32, layout: &Layout, gate: &GateReport) -> Result<String> {
    let dir = layout.iteration(iteration, "selfplay");
    let Amount { games, positions } = summary(&dir, &required(dir.clone(), "self-play", "selfplay")?)?;
    let score = gate.score.map_or_else(|| "without a decided game".to_owned(), |score| format!("at {score:.3}"));
    let verdict = match &gate.skipped {
        Some(reason) => format!("train and gate skipped: {reason}"),
        None if gate.accepted => format!("accepted {score}"),
        None => format!("refused {score}"),
    };
    Ok(format!("iteration {iteration}: {games} games, {positions} positions; {verdict}"))
}

/// The alarms: signs that self-play teaches nothing any more.
fn warn_of_collapse(iteration: u32, report: &SelfplayReport) {
    let [white, draws, black, _] = report.results;
    let decided = (white + draws + black).max(1);
    if draws as f64 / decided as f64 > 0.9 && report.games >= 20 {
        pipeline::say!(
            "warning: selfplay {iteration}: {draws} of {decided} games are drawn; the network may be learning to draw"
        );
    }
    if report.visit_entropy > 0.0 && report.visit_entropy < 0.2 {
        pipeline::say!(
            "warning: selfplay {iteration}: the visits' entropy is {:.2} nats; raise noise or temperature",
            report.visit_entropy
        );
    }
    if report.distinct_games * 10 < report.games * 9 {
        pipeline::say!(
            "warning: selfplay {iteration}: only {} of {} games are distinct",
            report.distinct_games,
            report.games
        );
    }
    if report.wrong_resignations > 0.05 {
        pipeline::say!(
            "warning: selfplay {iteration}: {:.0} % of the resignations would have been wrong; raise selfplay.resign_value",
            100.0 * report.wrong_resignations
        );
    }
}

/// The network that the loop begins with.
pub(crate) fn initial<G: Game>(stages: Stages<'_>) -> Result<NetworkRef> {
    match stages.profile.refine.init.as_str() {
        "pretrained" => {
            let dir = stages.layout.pretrain();
            let stamp = required(dir.clone(), "the pre-trained network", "pretrain")?;
            Ok(NetworkRef { dir, fingerprint: fingerprint(&stamp) })
        }
        "random" => untrained::<G>(stages),
        path if Path::new(path).is_dir() => NetworkRef::named("refine.init", path.as_ref()),
        other => {
            Err(SettingError::new("refine.init", other, "expected pretrained, random or a checkpoint folder").into())
        }
    }
}

/// Random weights from the run's seed, as a checkpoint.
pub(crate) fn untrained<G: Game>(stages: Stages<'_>) -> Result<NetworkRef> {
    let profile = stages.profile;
    let dir = stages.layout.root().join("refine").join("untrained");
    let settings = serde_json::json!({ "game": G::NAME, "seed": profile.seed, "net": profile.net });
    let spec = stages.spec("untrained", dir.clone(), settings, BTreeMap::new());
    if !is_done(&spec)?
        && let Some(stage) = locked_stage(spec, stages.layout, None)?
    {
        let fingerprint = course::save_untrained::<G>(profile, stage.store())?;
        stage.finish(&fingerprint, serde_json::json!({}))?;
    }
    let stamp = required(dir.clone(), "the untrained network", "refine")?;
    Ok(NetworkRef { dir, fingerprint: fingerprint(&stamp) })
}

/// The best network of a run: the initial one, or the last that a gate let through. Before any refinement, the
/// pre-trained one.
pub(crate) fn best_network<G: Game>(stages: Stages<'_>) -> Result<NetworkRef> {
    let mut place = Place { best: initial::<G>(stages)?, start: None };
    for i in 1.. {
        let (train, gate) = (stages.layout.iteration(i, "train"), stages.layout.iteration(i, "gate"));
        let (Some(trained), Some(verdict)) = (finished(&train)?, finished(&gate)?) else { break };
        let candidate = NetworkRef { dir: train, fingerprint: fingerprint(&trained) };
        // A gate over other networks belongs to an earlier run of the loop.
        let judged = [("best", &place.best), ("candidate", &candidate)];
        if judged.iter().any(|(role, network)| verdict.inputs.get(*role) != Some(&network.fingerprint)) {
            break;
        }
        place.advance(&summary(&gate, &verdict)?, &candidate, stages.profile.gate.on_reject);
    }
    Ok(place.best)
}
