//! The other side of the protocol, for engines of our own: commands as a chess program sends them, the thread that
//! reads them, the options, and answers.
//!
//! What does not change from engine to engine is here; what a `go` means is not.

mod command;
mod inbox;
mod memory;
mod position;
mod settings;
mod voice;

pub use command::{Command, Go, parse_command, quoted, shortened};
pub use inbox::{Event, Inbox};
pub use memory::fits_in_memory;
pub use position::Position;
pub use settings::{Declared, Kind, Setting, Settings};
pub use voice::{Voice, greet, score_text, wdl};
