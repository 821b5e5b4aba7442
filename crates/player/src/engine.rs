//! The engine between two searches: options, the position, and the loop over commands.

use std::fmt;
use std::io::{BufRead, Write};
use std::path::Path;

use pipeline::{Stop, error_chain};
use uci::server::{Command, Event, Inbox, Position, Voice, fits_in_memory};

use crate::error::{LoadError, PlayError};
use crate::network::Network;
use crate::options::{Effect, Options};
use crate::think::Tree;

/// Where a network is looked for if none is named.
pub const DEFAULT_NETWORK: &str = "data/reference";

/// Plays until `quit`, the end of the input, or a signal to `stop`.
///
/// `network` is a checkpoint folder and is loaded at once; without one [`DEFAULT_NETWORK`] is loaded when it is needed,
/// unless the option `NetworkFile` has named another by then.
///
/// # Errors
/// [`PlayError`]: no network, a network that fails, streams that are gone. Wrong commands are answered with an `info
/// string`.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    network: Option<&Path>,
    stop: &Stop,
) -> Result<(), PlayError> {
    let default = network.unwrap_or(Path::new(DEFAULT_NETWORK));
    let options = Options::new(default);
    let loaded = network.map(|_| Network::load(&options)).transpose()?;
    let inbox = Inbox::new(input, stop.flag()).map_err(PlayError::Input)?;
    let position = Position::default();
    Engine { voice: Voice::new(output), inbox, options, network: loaded, position, tree: None }.run()
}

/// The state between two commands.
pub(crate) struct Engine<W> {
    voice: Voice<W>,
    pub(crate) inbox: Inbox,
    pub(crate) options: Options,
    pub(crate) network: Option<Network>,
    pub(crate) position: Position,
    /// What the last search left.
    pub(crate) tree: Option<Tree>,
}

impl<W: Write> Engine<W> {
    fn run(&mut self) -> Result<(), PlayError> {
        self.announce_network()?;
        loop {
            let Event { command, at } = self.inbox.wait();
            match command {
                Command::Uci => self.introduce()?,
                Command::IsReady => {
                    match self.load() {
                        // It has been said; a program that asks may yet set NetworkFile.
                        Ok(()) | Err(PlayError::Network(_)) => self.say(format_args!("readyok"))?,
                        Err(error) => return Err(error),
                    }
                }
                Command::NewGame => (self.tree, self.position) = (None, Position::default()),
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
                    self.say(format_args!("bestmove 0000"))?;
                }
                Command::Go(go) => self.think(&go, at)?,
                Command::Wrong(why) => self.remark(&why)?,
                Command::Quit => return Ok(()),
                Command::Stop | Command::PonderHit | Command::Unknown => {}
            }
        }
    }

    /// Says a line, or several.
    pub(crate) fn say(&mut self, text: fmt::Arguments<'_>) -> Result<(), PlayError> {
        self.voice.say(text).map_err(PlayError::Output)
    }

    /// Says something for people.
    pub(crate) fn remark(&mut self, text: &str) -> Result<(), PlayError> {
        self.voice.remark(text).map_err(PlayError::Output)
    }

    /// The answer to `uci`.
    pub(crate) fn introduce(&mut self) -> Result<(), PlayError> {
        let options = self.options.describe();
        let version = env!("CARGO_PKG_VERSION");
        self.say(format_args!("id name Tabiya {version}\nid author the Tabiya authors\n{options}uciok"))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), PlayError> {
        let before = self.options.clone();
        match self.options.set(name, value) {
            Ok(Effect::Nothing) => {}
            Ok(Effect::Resize | Effect::Clear) => self.resize(before)?,
            Err(why) if name.eq_ignore_ascii_case("Hash") => {
                self.remark(&format!("setoption: {why}; it stays at {} MiB", before.hash >> 20))?;
            }
            Err(why) => self.remark(&format!("setoption: {why}"))?,
        }
        Ok(())
    }

    /// Forgets the tree and the evaluations and makes room as the options say, or as they said `before` where there is
    /// not so much memory.
    fn resize(&mut self, before: Options) -> Result<(), PlayError> {
        self.tree = None;
        let (asked, kept) = (self.options.hash, before.hash);
        let fits = asked <= kept || fits_in_memory(asked, 0);
        let resized = match &mut self.network {
            Some(network) => fits && network.resize(&self.options).is_ok(),
            None => fits,
        };
        if !resized {
            self.options = before;
            let (asked, kept) = (asked >> 20, kept >> 20);
            self.remark(&format!("setoption: there is no memory for {asked} MiB, Hash stays at {kept} MiB"))?;
        }
        Ok(())
    }

    /// Loads the network that the options name, if it is not there yet. One that cannot be loaded leaves the one
    /// before in place.
    pub(crate) fn load(&mut self) -> Result<(), PlayError> {
        if self.network.as_ref().is_some_and(|n| n.folder == self.options.network) {
            return Ok(());
        }
        match Network::load(&self.options) {
            Ok(network) => {
                self.network = Some(network);
                self.tree = None;
                self.announce_network()
            }
            Err(error) => self.keep_network(error),
        }
    }

    /// Says which network plays, if there is one.
    fn announce_network(&mut self) -> Result<(), PlayError> {
        let Some(network) = &self.network else { return Ok(()) };
        let (what, warning) = (network.describe(), network.warning.clone());
        if let Some(warning) = warning {
            self.remark(&format!("warning: {warning}"))?;
        }
        self.remark(&what)
    }

    fn keep_network(&mut self, error: LoadError) -> Result<(), PlayError> {
        self.remark(&format!("error: {}", error_chain(&error)))?;
        let Some(network) = &self.network else { return Err(error.into()) };
        let kept = network.describe();
        self.options.network.clone_from(&network.folder);
        self.remark(&format!("going on with {kept}"))
    }
}
