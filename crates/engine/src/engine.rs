//! The engine between two searches: options, the position, and the loop over commands.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use games::{Chess, Color, Game, Line, Move};
use uci::server::{Command, Event, Go, Inbox, Position, Voice, quoted, score_text};

use crate::error::EngineError;
use crate::options::{Effect, Options};
use crate::policy::Policy;
use crate::score::{MAX_PLY, as_uci};
use crate::search::{Found, Memory, Root, Search, Setup};
use crate::table::Table;
use crate::watch::{Helper, Shared, Task, Watch, introduce, line_texts};

/// Plays until `quit` or the end of the input.
///
/// # Errors
/// [`EngineError`]: streams that are gone. Wrong commands are answered with an `info string`.
pub fn serve(input: impl BufRead + Send + 'static, output: impl Write) -> Result<(), EngineError> {
    let inbox = Inbox::new(input, Arc::default()).map_err(EngineError::Input)?;
    let options = Options::new();
    let table = Table::new(options.hash);
    let memories = vec![Memory::new()];
    Engine { voice: Voice::new(output), inbox, options, table, memories, policy: None, position: Position::default() }
        .run()
}

/// The state between two commands.
struct Engine<W> {
    voice: Voice<W>,
    inbox: Inbox,
    options: Options,
    table: Table,
    /// One for each thread, the main one first.
    memories: Vec<Memory>,
    /// The policy file that was read last, and the network if it is one.
    policy: Option<(PathBuf, Option<Policy>)>,
    position: Position,
}

impl<W: Write> Engine<W> {
    fn run(&mut self) -> Result<(), EngineError> {
        loop {
            let Event { command, at } = self.inbox.wait();
            match command {
                Command::Uci => introduce(&mut self.voice, &self.options).map_err(EngineError::Output)?,
                Command::IsReady => {
                    self.load_policy()?;
                    self.voice.say(format_args!("readyok")).map_err(EngineError::Output)?;
                }
                Command::NewGame => {
                    self.forget();
                    self.position = Position::default();
                }
                Command::SetOption { name, value } => self.set(&name, &value)?,
                Command::Position { fen, moves } => {
                    if let Err(why) = self.position.set(fen.as_deref(), &moves) {
                        self.remark(&why)?;
                    }
                }
                Command::WrongPosition(why) => {
                    let said = self.position.refuse(&why);
                    self.remark(&said)?;
                }
                Command::Go(_) if self.position.is_missing() => {
                    self.remark(Position::MISSING)?;
                    self.voice.say(format_args!("bestmove 0000")).map_err(EngineError::Output)?;
                }
                Command::Go(go) => self.think(&go, at)?,
                Command::Wrong(why) => self.remark(&why)?,
                Command::Quit => return Ok(()),
                Command::Stop | Command::PonderHit | Command::Unknown => {}
            }
        }
    }

    fn remark(&mut self, text: &str) -> Result<(), EngineError> {
        self.voice.remark(text).map_err(EngineError::Output)
    }

    /// A new game: nothing of the last one matters.
    fn forget(&mut self) {
        self.table.clear();
        self.memories.iter_mut().for_each(Memory::clear);
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), EngineError> {
        let kept = self.options.hash;
        match self.options.set(name, value) {
            Ok(Effect::Nothing) => Ok(()),
            Ok(Effect::Resize) if self.table.resize(self.options.hash) => Ok(()),
            Ok(Effect::Resize) => {
                let asked = std::mem::replace(&mut self.options.hash, kept);
                self.remark(&format!("setoption: there is no memory for {asked} MiB, Hash stays at {kept} MiB"))
            }
            Ok(Effect::Clear) => {
                self.forget();
                Ok(())
            }
            Err(why) if name.eq_ignore_ascii_case("Hash") => {
                self.remark(&format!("setoption: {why}; it stays at {kept} MiB"))
            }
            Err(why) => self.remark(&format!("setoption: {why}")),
        }
    }

    /// Reads the policy that the options name, if it is not there yet. Without one moves are ordered by history alone.
    fn load_policy(&mut self) -> Result<(), EngineError> {
        let Some(path) = self.options.policy() else { return Ok(()) };
        if self.policy.as_ref().is_some_and(|(known, _)| known == path) {
            return Ok(());
        }
        let path = path.clone();
        let loaded = if path.as_os_str().is_empty() {
            Err("the option Policy is on, and PolicyFile names no file".to_owned())
        } else {
            Policy::load(&path).map_err(|e| e.source().map_or(e.to_string(), |cause| format!("{e}: {cause}")))
        };
        let said = match &loaded {
            Ok(_) => format!("policy {}", path.display()),
            Err(why) => format!("error: {why}; going on without a policy"),
        };
        self.policy = Some((path, loaded.ok()));
        self.remark(&said)
    }

    /// The legal ones of the moves after `searchmoves`; none stand for all.
    fn search_moves(&mut self, go: &Go) -> Result<Vec<Move>, EngineError> {
        let mut only = Vec::new();
        for text in &go.search_moves {
            match self.position.line().state().parse_move(text) {
                Ok(m) => only.push(m),
                Err(_) => self.remark(&format!("go: {} is not legal here, it is left out", quoted(text)))?,
            }
        }
        Ok(only)
    }

    /// Answers `go`, which came at `at`.
    fn think(&mut self, go: &Go, at: Instant) -> Result<(), EngineError> {
        let white = self.position.line().state().turn() == Color::White;
        let go = &go.settled(white);
        for remark in &go.remarks {
            self.remark(remark)?;
        }
        self.load_policy()?;
        let only = self.search_moves(go)?;
        let line = self.position.line();
        let root = Root::new(line, &only);
        self.memories.resize_with(self.options.threads, Memory::new);
        self.table.grow_older();

        let depth = go.depth.map_or(MAX_PLY as i32, |d| d.min(MAX_PLY as u32) as i32);
        let shared = Shared::new(self.options.threads - 1, go.nodes.unwrap_or(u64::MAX));
        let task = Task::new(go, at, white, &self.options);
        let streams = (&mut self.voice, &mut self.inbox);
        let mut watch = Watch::new(streams, &self.options, (&self.table, &shared), line, task);
        let policy = self.policy.as_ref().filter(|(path, _)| self.options.policy() == Some(path));
        let policy = policy.and_then(|(_, policy)| policy.as_ref());
        let setup = Setup { features: self.options.features, table: &self.table, policy };
        if root.moves().is_empty() {
            let score = score_text(as_uci(root.final_score()));
            return (|| {
                watch.voice.say(format_args!("info depth 0 score {score}"))?;
                watch.release()?;
                watch.voice.say(format_args!("bestmove (none)"))
            })()
            .map_err(EngineError::Output);
        }
        let Some((main, helpers)) = self.memories.split_first_mut() else { return Ok(()) };
        let found = thread::scope(|scope| {
            let _end = EndOnDrop(&shared);
            for (index, memory) in helpers.iter_mut().enumerate() {
                let (root, shared) = (&root, &shared);
                let help = move || {
                    let mut helper = Helper { shared, index };
                    Search::new(setup, memory, &mut helper).run(root, MAX_PLY as i32, 1)
                };
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, help) {
                    watch.note(&format!("going on with {} threads: {error}", index + 1));
                    break;
                }
            }
            Search::new(setup, main, &mut watch).run(&root, depth, self.options.multi_pv)
        });
        let answer = |watch: &mut Watch<'_, W>| {
            watch.conclude(&found)?;
            watch.release()?;
            watch.voice.say(format_args!("{}", best_move(line, &found)))
        };
        answer(&mut watch).map_err(EngineError::Output)
    }
}

/// Ends the helping threads when the main one has found its move, and also if it panics: the scope waits for them.
struct EndOnDrop<'a>(&'a Shared);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The `bestmove` line.
fn best_move(line: &Line<Chess>, found: &Found) -> String {
    let texts = line_texts(line.state(), &found.moves[0].line);
    match texts.get(1) {
        Some(reply) => format!("bestmove {} ponder {reply}", texts[0]),
        None => format!("bestmove {}", texts[0]),
    }
}

#[cfg(test)]
mod tests;
