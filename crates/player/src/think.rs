//! One search, from `go` to `bestmove`.

use std::io::Write;
use std::mem;
use std::time::{Duration, Instant};

use games::{Chess, Color, Game, Line, Move, Rng, Score};
use search::{Evaluator, RankedMove, Request, Search, SearchConfig};
use uci::server::{Command, Event, Go, quoted, score_text};

use crate::engine::Engine;
use crate::error::PlayError;
use crate::info::{self, View};
use crate::network::Network;
use crate::options::Options;
use crate::task::Task;

/// Reports are at least this far apart...
const REPORT_LEAST: Duration = Duration::from_millis(100);
/// ...and at most this.
const REPORT_MOST: Duration = Duration::from_secs(1);
/// How much the latest step says about the cost of the next.
const COST_WEIGHT: f64 = 0.3;
/// A tree is kept at a move if it has fewer positions than the time for the move has microseconds, and this many more:
/// copying one takes about a third of a microsecond.
const KEPT_ANYWAY: u128 = 2000;

/// A search and the line that its root stands at.
pub(crate) struct Tree {
    search: Search<Chess>,
    start: String,
    moves: Vec<Move>,
    /// Whether the root lacks some of its moves.
    restricted: bool,
    requests: Vec<Request>,
}

impl Tree {
    fn new(line: &Line<Chess>, options: &Options, search: SearchConfig) -> Self {
        // Nothing here is random: there is no noise, and the move is the best one.
        let config = SearchConfig { leaves: options.leaves(), ..search };
        Tree {
            search: Search::new(config, line.state().clone(), Rng::new(0)),
            start: line.start().fen(),
            moves: line.moves().to_vec(),
            restricted: false,
            requests: Vec::new(),
        }
    }

    /// Goes on to where `line` stands; `None` if the tree knows nothing of it.
    fn follow(mut self, line: &Line<Chess>) -> Option<Self> {
        if self.restricted || self.start != line.start().fen() || !line.moves().starts_with(&self.moves) {
            return None;
        }
        for m in &line.moves()[self.moves.len()..] {
            self.search.advance(*m).ok()?;
        }
        self.moves = line.moves().to_vec();
        Some(self)
    }

    /// Searches until the root's moves have `target` visits, or a batch is answered. Returns the positions that the
    /// network was asked about.
    fn step(&mut self, target: u32, network: &mut Network) -> Result<usize, PlayError> {
        self.search.set_simulations(target);
        self.requests.clear();
        self.search.gather(&mut self.requests);
        let asked = self.requests.len();
        if asked > 0 {
            network.evaluator.evaluate(&mut self.requests)?;
            self.search.apply(&mut self.requests)?;
        }
        Ok(asked)
    }
}

/// What was reported last.
struct Reporter {
    /// Probability of a draw at the root, once the network was asked.
    draw: Option<Option<f32>>,
    at: Option<Instant>,
    best: Option<Move>,
    visits: u32,
}

impl Reporter {
    /// Whether a report is due: a new best move soon, anything else every second.
    fn is_due(&self, best: Option<Move>, now: Instant, began: Instant) -> bool {
        let since = now.duration_since(self.at.unwrap_or(began));
        since >= REPORT_MOST || (since >= REPORT_LEAST && best != self.best)
    }
}

impl<W: Write> Engine<W> {
    /// Answers `go`, which came at `at`.
    pub(crate) fn think(&mut self, go: &Go, at: Instant) -> Result<(), PlayError> {
        let turn = self.position.line().state().turn();
        let go = &go.settled(turn == Color::White);
        for remark in &go.remarks {
            self.remark(remark)?;
        }
        if go.mate.is_some() {
            self.remark("go: `mate` is not a limit of this engine, it is ignored")?;
        }
        let mut task = Task::new(go, at, turn, &self.options);
        let moves = self.position.line().state().legal_moves();
        if moves.is_empty() {
            return self.no_move(&mut task);
        }
        self.load()?;
        let only = self.search_moves(go, &moves)?;
        let Some(mut network) = self.network.take() else { return Ok(()) };
        let mut tree = self.take_tree(&task, !only.is_empty(), network.search);
        let result = self.search(&mut task, &mut tree, &mut network, &only);
        self.network = Some(network);
        let ranking = result?;
        self.tree = Some(tree);
        self.release(&mut task)?;
        self.best_move(&ranking)
    }

    /// The tree of the last search if it leads here, else a new one.
    fn take_tree(&mut self, task: &Task, restricted: bool, search: SearchConfig) -> Tree {
        let affordable = task.longest().map_or(u128::MAX, |t| t.as_micros() + KEPT_ANYWAY);
        let kept = self.tree.take().filter(|tree| !restricted && tree.search.nodes() as u128 <= affordable);
        kept.and_then(|tree| tree.follow(self.position.line()))
            .unwrap_or_else(|| Tree::new(self.position.line(), &self.options, search))
    }

    /// The legal ones of the moves after `searchmoves`; none stand for all.
    fn search_moves(&mut self, go: &Go, legal: &[Move]) -> Result<Vec<Move>, PlayError> {
        let mut only = Vec::new();
        for text in &go.search_moves {
            match self.position.line().state().parse_move(text) {
                Ok(m) => only.push(m),
                Err(_) => self.remark(&format!("go: {} is not legal here, it is left out", quoted(text)))?,
            }
        }
        if legal.iter().all(|m| only.contains(m)) {
            only.clear();
        }
        Ok(only)
    }

    /// The loop: commands, a step, a report. Returns the root's moves, the best first.
    fn search(
        &mut self,
        task: &mut Task,
        tree: &mut Tree,
        network: &mut Network,
        only: &[Move],
    ) -> Result<Vec<RankedMove>, PlayError> {
        if !tree.search.is_evaluated() {
            tree.step(1, network)?;
        }
        if !only.is_empty() {
            tree.search.restrict(only);
            tree.restricted = true;
        }
        tree.search.set_breadth(self.options.multi_pv);
        task.reused = tree.search.visits();
        let mut reporter = Reporter { draw: None, at: None, best: None, visits: 0 };
        let mut cost: Option<f64> = None;
        loop {
            while let Some(event) = self.inbox.poll() {
                self.heed(event, task)?;
                if task.stopped {
                    break;
                }
            }
            let (now, ranking) = (Instant::now(), tree.search.ranking());
            let leaves = self.options.leaves();
            let target = task.next_target(tree.search.visits(), leaves, now, cost.map(Duration::from_secs_f64));
            let Some(target) = target.filter(|_| !task.is_done(&tree.search, &ranking, now)) else {
                // The last report is of the answer, also where a proof has changed it without another visit.
                let told = reporter.best == ranking.first().map(|r| r.m);
                if reporter.at.is_none() || reporter.visits != tree.search.visits() || !told {
                    self.report(task, &mut reporter, tree, &ranking, network)?;
                }
                return Ok(ranking);
            };
            if reporter.is_due(ranking.first().map(|r| r.m), now, task.began) {
                self.report(task, &mut reporter, tree, &ranking, network)?;
            }
            let before = Instant::now();
            let asked = tree.step(target, network)?;
            if asked > 0 {
                let latest = before.elapsed().as_secs_f64() / asked as f64;
                cost = Some(cost.map_or(latest, |c| c + COST_WEIGHT * (latest - c)));
            }
        }
    }

    fn report(
        &mut self,
        task: &Task,
        reporter: &mut Reporter,
        tree: &Tree,
        ranking: &[RankedMove],
        network: &mut Network,
    ) -> Result<(), PlayError> {
        let now = Instant::now();
        let wdl = self.options.show_wdl;
        let draw = match reporter.draw {
            Some(draw) => draw,
            None if wdl => *reporter.draw.insert(network.draw(tree.search.root())),
            None => None,
        };
        let view = View {
            lines: self.options.multi_pv,
            score_scale: network.score_scale,
            wdl,
            draw,
            elapsed: now.duration_since(task.began),
            speed: task.speed(tree.search.visits(), now).unwrap_or(0.0),
            room: task.room,
        };
        (reporter.at, reporter.best) = (Some(now), ranking.first().map(|r| r.m));
        reporter.visits = tree.search.visits();
        let lines = info::lines(&tree.search, ranking, &view);
        self.say(format_args!("{}", lines.trim_end()))
    }

    /// Answers a command that comes during a search. What changes something ends the search and is done after it.
    fn heed(&mut self, event: Event, task: &mut Task) -> Result<(), PlayError> {
        match event.command {
            Command::Uci => self.introduce(),
            Command::IsReady => self.say(format_args!("readyok")),
            Command::Stop => {
                task.stopped = true;
                Ok(())
            }
            Command::PonderHit => {
                task.ponder_hit(event.at);
                Ok(())
            }
            Command::Wrong(why) => self.remark(&why),
            Command::Unknown => Ok(()),
            Command::Quit
            | Command::Go(_)
            | Command::Position { .. }
            | Command::WrongPosition(_)
            | Command::SetOption { .. }
            | Command::NewGame => {
                task.stopped = true;
                self.inbox.put_back(event);
                Ok(())
            }
        }
    }

    /// Waits until the answer may be given.
    fn release(&mut self, task: &mut Task) -> Result<(), PlayError> {
        while task.is_held() {
            let event = self.inbox.wait();
            self.heed(event, task)?;
        }
        Ok(())
    }

    /// The answer at a root without a move.
    fn no_move(&mut self, task: &mut Task) -> Result<(), PlayError> {
        let score = if self.position.line().state().is_check() { Score::Mate(0) } else { Score::Cp(0) };
        self.say(format_args!("info depth 0 score {}", score_text(score)))?;
        self.release(task)?;
        self.say(format_args!("bestmove (none)"))
    }

    fn best_move(&mut self, ranking: &[RankedMove]) -> Result<(), PlayError> {
        let (Some(best), Some(tree)) = (ranking.first(), &self.tree) else {
            return self.say(format_args!("bestmove (none)"));
        };
        let mut texts = info::line_texts(tree.search.root(), &tree.search.line(best.m));
        let best = mem::take(&mut texts[0]);
        match texts.get(1) {
            Some(reply) => self.say(format_args!("bestmove {best} ponder {reply}")),
            None => self.say(format_args!("bestmove {best}")),
        }
    }
}
