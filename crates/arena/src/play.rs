//! Playing a match: threads, journal, resume, and the end.
//!
//! Workers take game numbers in order and send finished games to the calling thread, which alone writes the journal
//! and decides when the match is over. A sequential test looks at the pairs in the order of their numbers, not in the
//! order in which they finish, so that it ends a match at the same pair whatever the number of threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use dataset::{GameRecord, Journal};
use games::{Color, Game, Rng};
use pipeline::{Progress, Stop, Store};
use search::{Player, PlayerError};

use crate::output::{JOURNAL, MatchStamp, PGN, REPORT, TIMES, write_report, write_shards};
use crate::report::{color_of_a, points_of_a, points_of_pair};
use crate::round::{Failure, Played, Side, play_game};
use crate::timing::TimeLog;
use crate::{
    ArenaError, MatchReport, MatchSpec, Opening, OpeningSource, Pentanomial, Scores, SprtSpec, Verdict, Wdl, openings,
};

/// Makes the player of a slot, a number below the match's concurrency. Slots play at the same time, so a player may
/// share what is behind a reference count or a service, and nothing else.
pub type Factory<'f, G> = &'f (dyn Fn(usize) -> Result<Box<dyn Player<G>>, PlayerError> + Sync);

/// How often the time spent is saved, and report and PGN of what was played so far, so that a kill loses little.
const SAVE_TIME: Duration = Duration::from_secs(20);

/// Plays the games of a match that `folder` does not hold yet, and writes the report and the games there.
///
/// A player's fault loses it the game and the match goes on. A match that is complete plays nothing and gives its
/// report again. The caller keeps other processes away from the folder.
///
/// # Errors
/// [`ArenaError::Interrupted`] on a stop request, which players see within one move; [`ArenaError::Player`] if a
/// player cannot go on at all; [`ArenaError::OtherMatch`] if the folder holds games of other settings or players; and
/// for faulty settings, openings, files. Finished games stay in the journal.
pub fn play_match<G: Game>(
    spec: &MatchSpec,
    a: Factory<'_, G>,
    b: Factory<'_, G>,
    folder: &Path,
    stop: &Stop,
) -> Result<MatchReport, ArenaError> {
    spec.check()?;
    let pairs = spec.games / 2;
    let openings = openings::<G>(&spec.openings, spec.seed, pairs as usize, spec.on_bad)?;
    if matches!(spec.openings, OpeningSource::Builtin {} | OpeningSource::Book { .. }) && pairs > openings.len() as u64
    {
        let (label, count) = (&spec.label, openings.len());
        pipeline::say!("warning: {label}: {pairs} pairs begin with {count} openings, so that games may repeat");
    }
    let settings = spec.settings(G::NAME);
    let store = Store::open(folder)?;
    let (journal, recovered) = Journal::open(&folder.join(JOURNAL))?;
    let mut times = TimeLog::open(&folder.join(TIMES))?;
    let old_stamp = MatchStamp::read(&store)?.filter(|_| !recovered.is_empty());
    match &old_stamp {
        Some(stamp) => stamp.check(folder, &settings, None)?,
        None if recovered.is_empty() => {}
        None => {
            let what = "whose settings are lost (no match.json)".to_owned();
            return Err(ArenaError::OtherMatch { folder: folder.to_owned(), what });
        }
    }
    let mut table = Table::new(spec, recovered);
    check_openings(folder, &openings, table.records.values())?;
    let pending: Vec<u64> = (0..spec.games).filter(|id| !table.records.contains_key(id)).collect();
    let stamp = match old_stamp {
        Some(stamp) if table.is_over() => stamp,
        old => {
            let players = make_players(spec.concurrency.min(pending.len()), a, b, stop)?;
            let names = players.first().map(|p| [p[0].name(), p[1].name()]).unwrap_or_default();
            // Older versions let both have one name.
            let names = if old.as_ref().is_some_and(|old| old.players == names) { names } else { distinct(names) };
            if let Some(old) = &old {
                old.check(folder, &settings, Some(&names))?;
            }
            let seconds = old.map_or(0.0, |old| old.seconds);
            let stamp = MatchStamp { settings, players: names, seconds };
            stamp.write(&store)?;
            Run { spec, store: &store, openings: &openings, stop, stamp, journal, times: &mut times }
                .play(players, &pending, &mut table)?
        }
    };
    let records = table.counted();
    let report = report_of::<G>(spec, &stamp, &records, &times);
    write_shards(&store, spec, &stamp, &records)?;
    write_report::<G>(&store, spec, &records, &times, &report)?;
    Ok(report)
}

fn report_of<G: Game>(spec: &MatchSpec, stamp: &MatchStamp, records: &[GameRecord], times: &TimeLog) -> MatchReport {
    let thinking = times.over(records.iter().map(|record| record.game_id));
    MatchReport::new(spec, G::NAME, &stamp.players, records, thinking, stamp.seconds)
}

/// Two names that can be told apart: statistics by name would show one player that scores 50 % against itself.
fn distinct([a, b]: [String; 2]) -> [String; 2] {
    let b = if a == b { format!("{b} (2)") } else { b };
    [a, b]
}

fn opening_of(openings: &[Opening], game: u64) -> &Opening {
    &openings[(game / 2) as usize % openings.len()]
}

/// Refuses to go on with games that began otherwise than they would now: from another book, or another list.
fn check_openings<'r>(
    folder: &Path,
    openings: &[Opening],
    mut records: impl Iterator<Item = &'r GameRecord>,
) -> Result<(), ArenaError> {
    let begins_otherwise = |record: &&GameRecord| {
        let opening = opening_of(openings, record.game_id);
        let moves = record.moves.get(..usize::from(record.opening_plies));
        moves != Some(&opening.moves[..]) || record.start_fen != opening.start_fen
    };
    match records.find(begins_otherwise) {
        Some(record) => {
            let what = format!("whose game {} began with another opening", record.game_id);
            Err(ArenaError::OtherMatch { folder: folder.to_owned(), what })
        }
        None => Ok(()),
    }
}

type Players<G> = [Box<dyn Player<G>>; 2];

fn make_players<G: Game>(
    slots: usize,
    a: Factory<'_, G>,
    b: Factory<'_, G>,
    stop: &Stop,
) -> Result<Vec<Players<G>>, ArenaError> {
    let make = |factory: Factory<'_, G>, side: &str, slot| {
        stop.check()?;
        factory(slot).map_err(|source| match stop.check() {
            Err(interrupted) => interrupted.into(),
            Ok(()) => ArenaError::Player { player: side.to_owned(), game: None, source: Box::new(source) },
        })
    };
    (0..slots).map(|slot| Ok([make(a, "A", slot)?, make(b, "B", slot)?])).collect()
}

/// The finished games, and how far the sequential test has read them.
struct Table {
    games: u64,
    sprt: Option<SprtSpec>,
    records: BTreeMap<u64, GameRecord>,
    total: Wdl,
    pairs: Pentanomial,
    /// The games of `pairs`.
    paired: Wdl,
    /// Pairs `0..read_pairs` are complete and counted.
    read_pairs: u64,
    decided: bool,
}

impl Table {
    fn new(spec: &MatchSpec, records: Vec<GameRecord>) -> Self {
        let mut table = Table {
            games: spec.games,
            sprt: spec.sprt,
            records: BTreeMap::new(),
            total: Wdl::default(),
            pairs: Pentanomial::default(),
            paired: Wdl::default(),
            read_pairs: 0,
            decided: false,
        };
        // Games past the end were played for a longer match and stay in its journal.
        records.into_iter().filter(|r| r.game_id < spec.games).for_each(|r| table.insert(r));
        table
    }

    fn insert(&mut self, record: GameRecord) {
        if let Some(points) = points_of_a(&record) {
            self.total.add(points);
        }
        self.records.insert(record.game_id, record);
        let pair = |n: u64| Some((self.records.get(&(2 * n))?, self.records.get(&(2 * n + 1))?));
        while !self.decided {
            let Some((first, second)) = pair(self.read_pairs) else { break };
            self.read_pairs += 1;
            if let Some(points) = points_of_pair(first, second) {
                self.pairs.add(points);
                [first, second].into_iter().filter_map(points_of_a).for_each(|points| self.paired.add(points));
                let scores = Scores::of_pairs(self.pairs, self.paired);
                let test = self.sprt.map(|sprt| sprt.test(&scores).verdict);
                self.decided = test.is_some_and(|verdict| verdict != Verdict::Undecided);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.decided || self.records.len() as u64 == self.games
    }

    /// How the match stands, in a line.
    fn standing(&self) -> String {
        let mut text = self.total.to_string();
        if let Some(score) = self.total.score() {
            text.push_str(&format!(" ({:.1} %)", 100.0 * score));
        }
        let scores = Scores::of_pairs(self.pairs, self.paired);
        if self.pairs.pairs() > 0 {
            text.push_str(&format!(", Elo {}", scores.elo()));
        }
        if let Some(test) = self.sprt.map(|sprt| sprt.test(&scores)) {
            text.push_str(&format!(", LLR {:.2} in {:.2} to {:.2}", test.llr(), test.lower, test.upper));
        }
        text
    }

    /// The games that count, in order: all, or those up to the pair that decided the test.
    fn counted(self) -> Vec<GameRecord> {
        let end = if self.decided { 2 * self.read_pairs } else { self.games };
        self.records.into_values().take_while(|r| r.game_id < end).collect()
    }
}

enum Message {
    Finished(Box<Played>),
    Failed { game: u64, failure: Failure },
    OpeningFailed(games::GameError),
}

/// What the threads of a run share.
struct Shared<'s> {
    spec: &'s MatchSpec,
    openings: &'s [Opening],
    names: &'s [String; 2],
    pending: &'s [u64],
    next: AtomicUsize,
    halt: AtomicBool,
    stop: &'s Stop,
}

/// Halts the other workers if its own dies.
struct HaltOnPanic<'s>(&'s AtomicBool);

impl Drop for HaltOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared<'_> {
    fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed) || self.stop.requested()
    }

    /// Plays games until none is left; the players end with the thread.
    fn work<G: Game>(&self, mut players: Players<G>, sender: &Sender<Message>) {
        let _guard = HaltOnPanic(&self.halt);
        while !self.halted() {
            let Some(game) = self.pending.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            let message = match self.play(*game, &mut players) {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => Message::OpeningFailed(error),
            };
            let last = !matches!(message, Message::Finished(_));
            if sender.send(message).is_err() || last {
                return;
            }
        }
    }

    fn play<G: Game>(&self, game: u64, players: &mut Players<G>) -> Result<Option<Message>, games::GameError> {
        let opening = opening_of(self.openings, game);
        let line = opening.line::<G>()?;
        let [a, b] = players;
        // A player's seed depends on the game and on the player, not on its colour.
        let seed = |player: u64| Rng::from_parts(&[self.spec.seed, Rng::part("match"), game, player]).next_u64();
        let [clock_a, clock_b] = self.spec.clocks;
        let a = Side { player: &mut **a, name: &self.names[0], clock: clock_a, seed: seed(0) };
        let b = Side { player: &mut **b, name: &self.names[1], clock: clock_b, seed: seed(1) };
        let sides = if color_of_a(game) == Color::White { [a, b] } else { [b, a] };
        Ok(match play_game(self.spec, game, opening, line, sides, &|| self.halted()) {
            Ok(played) => played.map(|played| Message::Finished(Box::new(played))),
            Err(failure) => Some(Message::Failed { game, failure }),
        })
    }
}

/// The part of a match that one process plays.
struct Run<'r> {
    spec: &'r MatchSpec,
    store: &'r Store,
    openings: &'r [Opening],
    stop: &'r Stop,
    stamp: MatchStamp,
    journal: Journal,
    times: &'r mut TimeLog,
}

impl Run<'_> {
    /// Plays the pending games into the table; the stamp comes back with the time spent.
    fn play<G: Game>(
        mut self,
        players: Vec<Players<G>>,
        pending: &[u64],
        table: &mut Table,
    ) -> Result<MatchStamp, ArenaError> {
        let names = self.stamp.players.clone();
        let shared = Shared {
            spec: self.spec,
            openings: self.openings,
            names: &names,
            pending,
            next: AtomicUsize::new(0),
            halt: AtomicBool::new(false),
            stop: self.stop,
        };
        let clock = Clock { before: self.stamp.seconds, started: Instant::now() };
        let played = thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let workers: Vec<_> = players
                .into_iter()
                .map(|players| {
                    let (sender, shared) = (sender.clone(), &shared);
                    scope.spawn(move || shared.work(players, &sender))
                })
                .collect();
            drop(sender);
            let collected = self.collect::<G>(&receiver, &shared, table, &clock);
            shared.halt.store(true, Ordering::Relaxed);
            let deaths: Vec<_> = workers.into_iter().filter_map(|worker| worker.join().err()).collect();
            match deaths.first() {
                Some(death) => Err(ArenaError::Worker { message: panic_message(&**death) }),
                None => collected,
            }
        });
        self.stamp.seconds = clock.seconds();
        let saved = self.stamp.write(self.store);
        let ended = played.and_then(|()| match table.is_over() {
            true => Ok(()),
            false => {
                self.stop.check()?;
                Err(ArenaError::Worker { message: "it left games unplayed".to_owned() })
            }
        });
        if ended.is_err() && !table.records.is_empty() && self.report_so_far::<G>(table).is_ok() {
            let (label, played, asked) = (&self.spec.label, table.records.len(), table.games);
            let place = |name| self.store.describe(name);
            pipeline::say!(
                "{label}: stopped after {played} of {asked} games, see {} and {}",
                place(REPORT),
                place(PGN)
            );
        }
        ended?;
        saved?;
        Ok(self.stamp)
    }

    /// Writes report and PGN of the games that are there, marked as unfinished.
    fn report_so_far<G: Game>(&self, table: &Table) -> Result<(), ArenaError> {
        let records: Vec<GameRecord> = table.records.values().cloned().collect();
        let mut report = report_of::<G>(self.spec, &self.stamp, &records, self.times);
        report.unfinished_of = Some(table.games);
        write_report::<G>(self.store, self.spec, &records, self.times, &report)
    }

    /// Takes finished games until every worker has ended.
    fn collect<G: Game>(
        &mut self,
        receiver: &Receiver<Message>,
        shared: &Shared<'_>,
        table: &mut Table,
        clock: &Clock,
    ) -> Result<(), ArenaError> {
        let progress = Progress::new(&self.spec.label, Some(self.spec.games));
        let (mut saved, mut failed) = (Instant::now(), Ok(()));
        let (mut reported, mut report_after) = (Instant::now(), SAVE_TIME);
        for message in receiver {
            match message {
                Message::Finished(played) => {
                    let Played { record, log } = *played;
                    let a_is_white = color_of_a(record.game_id) == Color::White;
                    self.times.append(record.game_id, if a_is_white { log } else { log.swapped() })?;
                    self.journal.append(&record)?;
                    table.insert(record);
                    progress.set(table.records.len() as u64, &table.standing());
                }
                // What a worker was still at when the match was over or had failed does not count.
                _ if table.is_over() || failed.is_err() => {}
                Message::Failed { game, failure } => {
                    let side = usize::from(failure.color != color_of_a(game));
                    let player = format!("{} ({})", ["A", "B"][side], self.stamp.players[side]);
                    failed = Err(ArenaError::Player { player, game: Some(game), source: failure.error });
                }
                Message::OpeningFailed(error) => failed = Err(error.into()),
            }
            if table.is_over() || failed.is_err() {
                shared.halt.store(true, Ordering::Relaxed);
            }
            if saved.elapsed() > SAVE_TIME {
                saved = Instant::now();
                self.stamp.seconds = clock.seconds();
                self.stamp.write(self.store)?;
            }
            if reported.elapsed() > report_after && !table.is_over() {
                let began = Instant::now();
                self.report_so_far::<G>(table)?;
                // Of a long match it takes seconds: never more than a twentieth of the time.
                (reported, report_after) = (Instant::now(), SAVE_TIME.max(20 * began.elapsed()));
            }
        }
        progress.finish(&table.standing());
        failed
    }
}

/// Wall time of play over all runs.
struct Clock {
    before: f64,
    started: Instant,
}

impl Clock {
    /// In whole milliseconds, which JSON gives back exactly.
    fn seconds(&self) -> f64 {
        ((self.before + self.started.elapsed().as_secs_f64()) * 1000.0).round() / 1000.0
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests;
