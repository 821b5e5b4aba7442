//! An engine process: spawned, spoken to, and always reaped.
//!
//! The caller itself reads stdout while it waits, by `poll`, so that every wait has a deadline and can be interrupted: a
//! thread between the engine and the caller would cost a second wake-up a move, which matters when a move takes two
//! milliseconds. Nothing is asked of an engine without a wait that follows, so that it cannot block on a full stdout for
//! long. A thread drains stderr and keeps its end.
//!
//! The process leads a process group of its own. Ctrl-C therefore does not reach it, and helpers that it starts can
//! be killed with it. It outlives nobody: when this process dies, its stdin closes, and engines quit on that.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::{EngineError, EngineSpec, Exit, Phase, UciLine, parse_line};

/// How often a wait looks at the interrupt flag.
const TICK: Duration = Duration::from_millis(50);
/// A longer line is cut into pieces: an engine that never ends a line must not fill the memory.
const MAX_LINE: usize = 64 << 10;
/// What one read takes at most.
const READ: usize = 16 << 10;
/// Reads of what has arrived already; bounded, as an engine may write faster than it is read.
const READS: usize = 64;
/// What is kept of stderr.
const TAIL: usize = 2 << 10;
/// What is kept of the lines on stdout that are for a reader: so many, each up to so many bytes.
const SAID: (usize, usize) = (4, 500);
/// How long a process may take to exit after it has closed its output.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long `quit` may take once the program is being stopped.
const HURRIED_QUIT: Duration = Duration::from_millis(250);

/// One process is made at a time: where pipes cannot be created close-on-exec in one step (macOS), a process started
/// at that moment would inherit the other's stdin, and would keep it open when this program dies.
static SPAWN: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of what an engine wrote to stderr.
#[derive(Default)]
struct Tail {
    state: Mutex<TailState>,
    closed: Condvar,
}

#[derive(Default)]
struct TailState {
    bytes: VecDeque<u8>,
    closed: bool,
}

impl Tail {
    fn drain(&self, mut stderr: ChildStderr) {
        let mut buffer = [0; 4096];
        loop {
            match stderr.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    let mut state = lock(&self.state);
                    state.bytes.extend(&buffer[..n]);
                    let excess = state.bytes.len().saturating_sub(TAIL);
                    state.bytes.drain(..excess);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lock(&self.state).closed = true;
        self.closed.notify_all();
    }

    /// The text, once stderr is closed or `wait` is over.
    fn text(&self, wait: Duration) -> String {
        let state = lock(&self.state);
        let waited = self.closed.wait_timeout_while(state, wait, |s| !s.closed);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = state.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// Keeps what is said to a reader and not part of the protocol: it may be among an engine's last words.
fn remember(said: &mut VecDeque<String>, line: &UciLine<'_>) {
    let (UciLine::Other(text) | UciLine::InfoString(text)) = line else { return };
    if text.is_empty() {
        return;
    }
    let (lines, bytes) = SAID;
    // Engines repeat some lines before every search: the oldest line's memory takes the new one.
    let mut kept = if said.len() == lines { said.pop_front().unwrap_or_default() } else { String::new() };
    kept.clear();
    kept.push_str(&text[..text.floor_char_boundary(bytes)]);
    said.push_back(kept);
}

pub(crate) struct Process {
    path: PathBuf,
    child: Child,
    stdin: Option<ChildStdin>,
    /// `None` once it is at its end.
    stdout: Option<ChildStdout>,
    /// What was read and not yet looked at begins at `at`.
    buffer: Vec<u8>,
    at: usize,
    /// The line at `at` began before it was decided to forget what the engine had said.
    stale: bool,
    tail: Arc<Tail>,
    /// The last lines on stdout that are for a reader.
    said: VecDeque<String>,
    interrupt: Option<Arc<AtomicBool>>,
    quit: Duration,
    exit: Option<Exit>,
}

impl Process {
    pub(crate) fn spawn(spec: &EngineSpec) -> Result<Process, EngineError> {
        let failed = |reason| EngineError::Spawn { path: spec.path.clone(), reason };
        let mut command = Command::new(&spec.path);
        command.args(&spec.args).process_group(0);
        if let Some(folder) = &spec.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = {
            let _one_at_a_time = lock(&SPAWN);
            command.spawn().map_err(failed)?
        };
        let tail = Arc::new(Tail::default());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on the process is reaped by `drop`, whatever happens.
        let process = Process {
            path: spec.path.clone(),
            child,
            stdin,
            stdout,
            buffer: Vec::new(),
            at: 0,
            stale: false,
            tail: Arc::clone(&tail),
            said: VecDeque::new(),
            interrupt: spec.interrupt.clone(),
            quit: spec.deadlines.quit,
            exit: None,
        };
        if let Some(stderr) = stderr {
            let reader = thread::Builder::new().name("engine-stderr".to_owned()).stack_size(128 << 10);
            reader.spawn(move || tail.drain(stderr)).map_err(failed)?;
        }
        Ok(process)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Sends whole lines with one write.
    pub(crate) fn send(&mut self, text: &str, phase: Phase) -> Result<(), EngineError> {
        if self.interrupted() {
            return Err(EngineError::Interrupted(phase));
        }
        let written = match &mut self.stdin {
            Some(stdin) => stdin.write_all(text.as_bytes()).is_ok(),
            None => false,
        };
        if written { Ok(()) } else { Err(self.disconnected(phase)) }
    }

    /// Waits for more from stdout, up to `wait`, and reads it; false if nothing has come.
    fn read(&mut self, wait: Duration) -> bool {
        let Some(stdout) = &mut self.stdout else { return false };
        // Rounded up, so that the last millisecond before a deadline is not spent in calls that return at once.
        let wait = wait.as_micros().div_ceil(1000);
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(Errno::EINTR) => return false,
            // An error will show in the read.
            Ok(_) | Err(_) => {}
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + READ, 0);
        let read = stdout.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + read.as_ref().map_or(0, |n| *n));
        match read {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => false,
            Ok(0) | Err(_) => {
                self.stdout = None;
                false
            }
            Ok(_) => true,
        }
    }

    /// Takes the next whole line off the buffer: where it lies.
    fn line(&mut self) -> Option<std::ops::Range<usize>> {
        loop {
            let rest = &self.buffer[self.at..];
            let within = &rest[..rest.len().min(MAX_LINE)];
            let (length, taken) = match within.iter().position(|b| *b == b'\n') {
                Some(length) => (length, length + 1),
                None if rest.len() >= MAX_LINE => (MAX_LINE, MAX_LINE),
                // The end of the output ends a line too.
                None if self.stdout.is_none() && !rest.is_empty() => (rest.len(), rest.len()),
                None => return None,
            };
            let line = self.at..self.at + length;
            self.at += taken;
            if !std::mem::take(&mut self.stale) {
                return Some(line);
            }
        }
    }

    /// Forgets what the engine has said so far.
    pub(crate) fn discard(&mut self) {
        for _ in 0..READS {
            while self.line().is_some() {}
            if !self.read(Duration::ZERO) {
                break;
            }
        }
        while self.line().is_some() {}
        self.stale = self.at < self.buffer.len();
    }

    /// Reads lines until `accept` takes one.
    pub(crate) fn wait<T>(
        &mut self,
        phase: Phase,
        allowed: Duration,
        mut accept: impl FnMut(UciLine<'_>) -> Option<T>,
    ) -> Result<T, EngineError> {
        let until = Instant::now() + allowed;
        // What has arrived by the deadline still counts, if this thread (or the whole program) was held up.
        let mut overtime = READS;
        loop {
            while let Some(line) = self.line() {
                let text = String::from_utf8_lossy(&self.buffer[line]);
                let line = parse_line(&text);
                remember(&mut self.said, &line);
                if let Some(taken) = accept(line) {
                    return Ok(taken);
                }
            }
            if self.interrupted() {
                return Err(EngineError::Interrupted(phase));
            }
            let left = until.saturating_duration_since(Instant::now());
            overtime -= usize::from(left.is_zero());
            let more = self.read(left.min(TICK));
            // The end of the output may have ended a line.
            if !more && self.stdout.is_none() && self.at == self.buffer.len() {
                return Err(self.disconnected(phase));
            }
            if left.is_zero() && (!more || overtime == 0) {
                return Err(self.stalled(phase, allowed));
            }
        }
    }

    /// Takes lines that nobody waits for.
    fn skim(&mut self) {
        while let Some(line) = self.line() {
            remember(&mut self.said, &parse_line(&String::from_utf8_lossy(&self.buffer[line])));
        }
    }

    fn last_words(&self, wait: Duration) -> String {
        let stderr = self.tail.text(wait);
        let said = self.said.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        match (stderr.is_empty(), said.is_empty()) {
            (_, true) => stderr,
            (true, false) => said,
            (false, false) => format!("{stderr} (and on stdout: {said})"),
        }
    }

    fn stalled(&mut self, phase: Phase, after: Duration) -> EngineError {
        let last_words = self.last_words(Duration::ZERO);
        self.kill(Exit::Killed);
        EngineError::Stall { path: self.path.clone(), phase, after, last_words }
    }

    fn disconnected(&mut self, phase: Phase) -> EngineError {
        self.stdin = None;
        if !self.wait_for_exit(EXIT_WAIT) {
            self.kill(Exit::Closed);
        }
        // It may have died before anything of it was read.
        for _ in 0..READS {
            let more = self.read(Duration::ZERO);
            self.skim();
            if !more {
                break;
            }
        }
        let (path, exit) = (self.path.clone(), self.exit.unwrap_or(Exit::Closed));
        EngineError::Disconnect { path, phase, exit, last_words: self.last_words(TICK * 4) }
    }

    /// Waits for the process to exit and reaps it; false if it is still running.
    fn wait_for_exit(&mut self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            if self.exit.is_some() {
                return true;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                self.exit = Some(status.into());
                self.kill_group(); // what it may have started
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // Output that still comes matters as last words only; its end announces the exit.
            self.read(left.min(Duration::from_millis(5)));
            self.skim();
            if self.stdout.is_none() {
                thread::sleep(left.min(Duration::from_millis(1)));
            }
        }
    }

    fn kill(&mut self, exit: Exit) {
        self.stdin = None;
        if self.exit.is_none() {
            self.kill_group();
            // The group may be beyond our rights (a set-user-id engine); the process itself is tried as well.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.exit = Some(exit);
        }
    }

    fn kill_group(&self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // An empty group is the usual case, and no error.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

impl Drop for Process {
    /// `quit`, a wait, SIGKILL, and the process is reaped.
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        if let Some(mut stdin) = self.stdin.take() {
            let _ = stdin.write_all(b"quit\n"); // a dead engine needs no `quit`
        }
        let wait = if self.interrupted() { self.quit.min(HURRIED_QUIT) } else { self.quit };
        if !self.wait_for_exit(wait) {
            self.kill(Exit::Killed);
        }
    }
}
