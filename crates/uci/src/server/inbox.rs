//! The commands as they arrive: a thread reads them, with the moment of their arrival, because a clock runs from there.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use super::command::{Command, parse_command};

/// Longest line that is read as a command, in bytes; a game of a thousand moves has ten thousand.
const LONGEST_LINE: u64 = 1 << 20;
/// How often an engine that waits looks whether a signal came.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(200);

/// A command and when it came.
#[derive(Debug)]
pub struct Event {
    /// The command.
    pub command: Command,
    /// When its line was read.
    pub at: Instant,
}

impl Event {
    fn now(command: Command) -> Self {
        Event { command, at: Instant::now() }
    }
}

/// What was read and not looked at yet. Its end is a `quit`.
pub struct Inbox {
    events: Receiver<Event>,
    kept: Option<Event>,
    quit: Arc<AtomicBool>,
}

impl Inbox {
    /// Starts to read. The thread ends with its input; when `quit` becomes true, that counts as `quit`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(mut input: impl BufRead + Send + 'static, quit: Arc<AtomicBool>) -> io::Result<Self> {
        let (sender, events) = mpsc::channel();
        let read = move || {
            let mut line = Vec::new();
            while read_line(&mut input, &mut line) {
                let command = parse_command(&String::from_utf8_lossy(&line));
                if sender.send(Event::now(command)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("commands".to_owned()).spawn(read)?;
        Ok(Inbox { events, kept: None, quit })
    }

    /// The next command; sleeps until there is one.
    pub fn wait(&mut self) -> Event {
        loop {
            if let Some(event) = self.kept.take() {
                return event;
            }
            if self.quit.load(Ordering::Relaxed) {
                return Event::now(Command::Quit);
            }
            match self.events.recv_timeout(SIGNAL_INTERVAL) {
                Ok(event) => return event,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Event::now(Command::Quit),
            }
        }
    }

    /// The next command, if there is one.
    pub fn poll(&mut self) -> Option<Event> {
        if self.kept.is_some() {
            return self.kept.take();
        }
        if self.quit.load(Ordering::Relaxed) {
            return Some(Event::now(Command::Quit));
        }
        match self.events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Event::now(Command::Quit)),
        }
    }

    /// Keeps a command for the next call.
    pub fn put_back(&mut self, event: Event) {
        self.kept = Some(event);
    }
}

/// Reads one line; `false` at the end of the input. A line that is too long is read over and left empty.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> bool {
    line.clear();
    match input.by_ref().take(LONGEST_LINE).read_until(b'\n', line) {
        Ok(0) | Err(_) => return false,
        Ok(_) => {}
    }
    if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
        line.clear();
        return input.skip_until(b'\n').is_ok();
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{Inbox, LONGEST_LINE, read_line};
    use crate::server::Command;

    #[test]
    fn rubbish_is_read_over_and_the_end_is_a_quit() {
        let mut bytes = b"\xff\xfe\x00isready\n".to_vec();
        bytes.extend(vec![b'x'; LONGEST_LINE as usize * 2 + 7]);
        bytes.extend(b"\nstop\r\n\n   \nisready");
        let mut inbox = Inbox::new(Cursor::new(bytes), Arc::default()).unwrap();
        let mut seen = Vec::new();
        loop {
            match inbox.wait().command {
                Command::Quit => break,
                Command::Unknown => {}
                command => seen.push(format!("{command:?}")),
            }
        }
        assert_eq!(seen, ["Stop", "IsReady"]);
        assert!(matches!(inbox.wait().command, Command::Quit), "and again");
    }

    #[test]
    fn a_signal_is_a_quit() {
        let quit = Arc::new(AtomicBool::new(false));
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut inbox = Inbox::new(std::io::BufReader::new(reader), Arc::clone(&quit)).unwrap();
        assert!(inbox.poll().is_none());
        quit.store(true, Ordering::Relaxed);
        assert!(matches!(inbox.wait().command, Command::Quit));
    }

    #[test]
    fn lines_end_anywhere() {
        let mut input = Cursor::new(b"a\nb".to_vec());
        let mut line = Vec::new();
        assert!(read_line(&mut input, &mut line) && line == b"a\n");
        assert!(read_line(&mut input, &mut line) && line == b"b");
        assert!(!read_line(&mut input, &mut line));
    }
}
