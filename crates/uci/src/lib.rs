//! UCI from both sides: the client that drives a chess engine process, and in [`server`] what engines of our own need.
//!
//! [`Engine`] is one process: started in its own process group, asked for moves, and gone without a trace when it is
//! dropped. Every wait has a deadline and can be interrupted; what an engine writes to stderr is always drained, and
//! its last words are in the error when it fails. [`Supervised`] starts a failed engine again. The crate comes with
//! `tabiya-fake-engine`, an engine that really plays and can be told to fail in every way that tests need.
//!
//! ```no_run
//! use games::{Chess, Game, Line};
//! use uci::{Engine, EngineSpec, Limit, find_engine};
//!
//! let spec = EngineSpec::new(find_engine("stockfish")?).option("Threads", "1").option("Hash", "16");
//! let mut engine = Engine::start(&spec)?;
//! engine.new_game()?;
//! let answer = engine.play(&Line::new(Chess::start()), Limit::Nodes(1500))?;
//! println!("{} plays {:?}", engine.name(), answer.m);
//! # Ok::<(), uci::EngineError>(())
//! ```
#![forbid(unsafe_code)]

mod engine;
mod error;
mod find;
mod limit;
mod options;
mod process;
mod protocol;
pub mod server;
mod spec;
mod supervised;

pub use engine::{Analysis, Engine, EngineMove};
pub use error::{EngineError, Exit, Phase};
pub use find::{AUTO, FoundEngine, choose_engine, find_engine};
pub use limit::{Budget, Clocks, Limit};
pub use options::{EngineOption, OptionFault, OptionKind, OptionTable};
pub use protocol::{Bound, Info, UciLine, parse_line};
pub use spec::{Deadlines, EngineSpec};
pub use supervised::{MAX_FAILURES, Supervised};
