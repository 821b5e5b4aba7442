//! What goes on during a search: commands, the clock, reports. The main thread searches and looks here about every half
//! millisecond; the others look at a flag.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use games::{Chess, Game, Line, Move};
use uci::server::{Command, Event, Go, Inbox, Voice, score_text, wdl};

use crate::options::Options;
use crate::score::{INFINITE, MAX_PLY, as_uci, mate_in};
use crate::search::{Aborted, Found, Monitor, Progress, Report};
use crate::table::{Bound, Table};
use crate::time::{Budget, Clock, Confidence};

/// Nodes between two looks.
const INTERVAL: u64 = 1024;
/// Nodes that are searched even if the clock has no time left, which takes about a millisecond: enough for a move that
/// does not lose at once.
const AT_LEAST: u64 = 2048;
/// Centipawns that correspond to 400 Elo where chances are told.
const WDL_SCALE: f32 = 400.0;
/// Before this, only what is known exactly is reported.
const QUIET: Duration = Duration::from_secs(1);

/// What the threads of a search share besides the table.
pub(crate) struct Shared {
    stop: AtomicBool,
    /// Nodes of each thread but the main one.
    nodes: Vec<AtomicU64>,
    /// Nodes that no thread has been granted yet.
    left: AtomicU64,
}

impl Shared {
    /// For so many threads besides the main one, which search at most `nodes` nodes together.
    pub(crate) fn new(helpers: usize, nodes: u64) -> Self {
        Shared {
            stop: AtomicBool::new(false),
            nodes: (0..helpers).map(|_| AtomicU64::new(0)).collect(),
            left: AtomicU64::new(nodes),
        }
    }

    /// Nodes that a thread may search before it looks again: a part of what is left, so that no thread takes it all.
    ///
    /// # Errors
    /// Nothing is left.
    fn grant(&self) -> Result<u64, Aborted> {
        let threads = self.nodes.len() as u64 + 1;
        let part = |left: u64| (left / threads).clamp(1, INTERVAL);
        let take = |left: u64| left.checked_sub(part(left));
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map(part).map_err(|_| Aborted)
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Nodes of all threads but the main one.
    pub(crate) fn helped(&self) -> u64 {
        self.nodes.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }
}

/// A thread that helps: it fills the table until it is told to end.
pub(crate) struct Helper<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) index: usize,
}

impl Monitor for Helper<'_> {
    fn look(&mut self, nodes: u64) -> Result<u64, Aborted> {
        self.shared.nodes[self.index].store(nodes, Ordering::Relaxed);
        if self.shared.stop.load(Ordering::Relaxed) { Err(Aborted) } else { Ok(nodes + self.shared.grant()?) }
    }

    fn tell(&mut self, _: &Report<'_>) {}

    fn goes_on(&mut self, _: &Progress) -> bool {
        true
    }
}

/// What one `go` asks for.
pub(crate) struct Task {
    began: Instant,
    /// From when the clock runs: `go`, or `ponderhit`.
    clock_began: Instant,
    /// Whether it is the opponent's turn still.
    pondering: bool,
    infinite: bool,
    /// Whether it was told to end.
    stopped: bool,
    budget: Option<Budget>,
    /// The score of the mate that is looked for.
    mate: Option<i32>,
    confidence: Confidence,
    /// The last iteration that is complete.
    progress: Option<Progress>,
}

impl Task {
    pub(crate) fn new(go: &Go, at: Instant, white: bool, options: &Options) -> Self {
        let side = usize::from(!white);
        let clock = go.time[side].map(|remaining| {
            let clock = Clock { remaining, increment: go.increment[side], moves_to_go: go.moves_to_go };
            Budget::of_clock(clock, options.overhead)
        });
        let movetime = go.movetime.map(|t| Budget::of_move(t, options.overhead));
        let budget = match (clock, movetime) {
            (Some(clock), Some(movetime)) => Some(clock.and(movetime)),
            (clock, movetime) => clock.or(movetime),
        };
        Task {
            began: at,
            clock_began: at,
            pondering: go.ponder,
            infinite: go.infinite,
            stopped: false,
            budget: budget.filter(|_| !go.infinite),
            mate: go.mate.map(|moves| mate_in(2 * moves.clamp(1, MAX_PLY as u32 / 2) as usize - 1)),
            confidence: Confidence::default(),
            progress: None,
        }
    }

    /// The opponent has made the expected move, and the clock runs from now on. What was thought before counts: where it
    /// would have been enough for a move of this clock, the answer is given.
    fn ponder_hit(&mut self, at: Instant) {
        (self.pondering, self.clock_began) = (false, at);
        let saves = self.budget.is_some_and(|budget| budget.saves);
        self.stopped |= saves && self.has_enough(self.began.elapsed());
    }

    /// Whether the last complete iteration is good enough for a move that took so long.
    fn has_enough(&self, elapsed: Duration) -> bool {
        match (&self.budget, &self.progress) {
            (Some(budget), Some(progress)) => self.confidence.has_enough(budget, elapsed, progress),
            _ => false,
        }
    }

    /// Whether the answer has to wait for a command, however much is known.
    fn is_held(&self) -> bool {
        !self.stopped && (self.pondering || self.infinite)
    }
}

/// The main thread's view of a search.
pub(crate) struct Watch<'a, W> {
    pub(crate) voice: &'a mut Voice<W>,
    pub(crate) inbox: &'a mut Inbox,
    pub(crate) options: &'a Options,
    pub(crate) table: &'a Table,
    pub(crate) shared: &'a Shared,
    pub(crate) line: &'a Line<Chess>,
    pub(crate) task: Task,
    /// The first two moves of the best line that was reported last.
    reported: Vec<Move>,
    /// Why nothing more can be said.
    failure: io::Result<()>,
}

impl<'a, W: Write> Watch<'a, W> {
    pub(crate) fn new(
        (voice, inbox): (&'a mut Voice<W>, &'a mut Inbox),
        options: &'a Options,
        (table, shared): (&'a Table, &'a Shared),
        line: &'a Line<Chess>,
        task: Task,
    ) -> Self {
        Watch { voice, inbox, options, table, shared, line, task, reported: Vec::new(), failure: Ok(()) }
    }

    /// Says something beside the search.
    pub(crate) fn note(&mut self, text: &str) {
        if self.failure.is_ok() {
            self.failure = self.voice.remark(text);
        }
    }

    /// Answers a command that comes during a search. What changes something ends the search and is done after it.
    fn heed(&mut self, event: Event) -> io::Result<()> {
        match event.command {
            Command::Uci => introduce(self.voice, self.options)?,
            Command::IsReady => self.voice.say(format_args!("readyok"))?,
            Command::Stop => self.task.stopped = true,
            Command::PonderHit if self.task.pondering => self.task.ponder_hit(event.at),
            Command::Wrong(why) => self.voice.remark(&why)?,
            Command::PonderHit | Command::Unknown => {}
            Command::Quit
            | Command::Go(_)
            | Command::Position { .. }
            | Command::WrongPosition(_)
            | Command::SetOption { .. }
            | Command::NewGame => {
                self.task.stopped = true;
                self.inbox.put_back(event);
            }
        }
        Ok(())
    }

    /// Reports the answer, if the last report was not of it: programs show the last line as the reason of the move.
    pub(crate) fn conclude(&mut self, found: &Found) -> io::Result<()> {
        std::mem::replace(&mut self.failure, Ok(()))?;
        if begin(&found.moves[0].line) == self.reported {
            return Ok(());
        }
        let told = found.moves.iter().take(self.options.multi_pv).enumerate();
        for (rank, found_move) in told.filter(|(rank, m)| *rank == 0 || m.score > -INFINITE) {
            let (depth, nodes) = (found.depth, found.nodes);
            self.report(&Report { depth, rank, found: found_move, nodes, is_answer: true })?;
        }
        Ok(())
    }

    /// Waits until the answer may be given.
    pub(crate) fn release(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failure, Ok(()))?;
        while self.task.is_held() {
            let event = self.inbox.wait();
            self.heed(event)?;
        }
        Ok(())
    }

    /// Hears what was said meanwhile. Whether the search shall end.
    fn look_around(&mut self, nodes: u64) -> io::Result<bool> {
        while !self.task.stopped
            && let Some(event) = self.inbox.poll()
        {
            self.heed(event)?;
        }
        let task = &self.task;
        let timed = task.budget.filter(|_| !task.pondering && nodes >= AT_LEAST);
        let late = timed.is_some_and(|budget| task.clock_began.elapsed() >= budget.maximum);
        Ok(task.stopped || late)
    }

    fn report(&mut self, report: &Report<'_>) -> io::Result<()> {
        let elapsed = self.task.began.elapsed();
        let found = report.found;
        let bound = match found.bound {
            Bound::Exact => "",
            _ if elapsed < QUIET && !report.is_answer => return Ok(()),
            Bound::Lower => " lowerbound",
            Bound::Upper => " upperbound",
        };
        let nodes = report.nodes + self.shared.helped();
        let speed = u128::from(nodes) * 1_000_000 / elapsed.as_micros().max(1);
        let mut out = format!(
            "info depth {} seldepth {} multipv {}",
            report.depth,
            found.deepest.max(found.line.len()),
            report.rank + 1
        );
        // A search of a few nodes ends before any move has a score.
        if found.score > -INFINITE {
            let score = as_uci(found.score);
            let _ = write!(out, " score {}{bound}", score_text(score));
            if self.options.show_wdl {
                let [win, draw, loss] = wdl(score.expectation(WDL_SCALE), None);
                let _ = write!(out, " wdl {win} {draw} {loss}");
            }
        }
        let (full, time) = (self.table.fullness(), elapsed.as_millis());
        let _ = write!(out, " nodes {nodes} nps {speed} hashfull {full} time {time} pv");
        if report.rank == 0 {
            self.reported = begin(&found.line).to_vec();
        }
        for text in line_texts(self.line.state(), &found.line) {
            let _ = write!(out, " {text}");
        }
        self.voice.say(format_args!("{out}"))
    }
}

impl<W: Write> Monitor for Watch<'_, W> {
    fn look(&mut self, nodes: u64) -> Result<u64, Aborted> {
        match self.look_around(nodes) {
            Ok(false) => Ok(nodes + self.shared.grant()?),
            Ok(true) => Err(Aborted),
            Err(error) => {
                (self.failure, self.task.stopped) = (Err(error), true);
                Err(Aborted)
            }
        }
    }

    fn tell(&mut self, report: &Report<'_>) {
        if self.failure.is_ok() {
            self.failure = self.report(report);
            self.task.stopped |= self.failure.is_err();
        }
    }

    fn goes_on(&mut self, progress: &Progress) -> bool {
        let task = &mut self.task;
        task.confidence.update(progress);
        task.progress = Some(*progress);
        if task.mate.is_some_and(|score| progress.score >= score) {
            return false;
        }
        task.pondering || task.infinite || !task.has_enough(task.clock_began.elapsed())
    }
}

/// What a `bestmove` tells of a line: the move and the expected reply.
fn begin(line: &[Move]) -> &[Move] {
    &line[..line.len().min(2)]
}

/// The answer to `uci`.
pub(crate) fn introduce<W: Write>(voice: &mut Voice<W>, options: &Options) -> io::Result<()> {
    let (version, options) = (env!("CARGO_PKG_VERSION"), options.describe());
    voice.say(format_args!("id name Tabiya-AB {version}\nid author the Tabiya authors\n{options}uciok"))
}

/// Moves from a position on as text.
pub(crate) fn line_texts(position: &Chess, moves: &[Move]) -> Vec<String> {
    let mut position = position.clone();
    moves
        .iter()
        .map(|m| {
            let text = position.move_text(*m);
            position.play(*m);
            text
        })
        .collect()
}
