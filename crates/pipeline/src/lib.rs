//! What every stage of a batch pipeline needs and none should write again: storage that is whole or not there,
//! locks that die with their process, stop signals, stage stamps, configuration, progress, metrics, plots, exit codes.
//!
//! This crate knows nothing of what the stages compute. A stage opens itself with [`Stage::open`], asks
//! [`Stage::plan`] what is left to do, writes through its [`Store`] and ends with [`Stage::finish`]; a kill at any
//! moment leaves a folder from which the next run resumes.
#![forbid(unsafe_code)]

mod args;
mod clock;
mod config;
mod console;
mod events;
mod exit;
mod files;
mod hash;
mod lock;
mod machine;
mod metrics;
mod plot;
mod progress;
mod stage;
mod stamp;
mod stop;
mod store;

pub use args::ConfigArgs;
pub use clock::{host_name, span, utc_now};
pub use config::{ConfigError, load_config, parse_config};
pub use console::{PrintError, log, print};
pub use exit::{Exit, error_chain, run};
pub use hash::content_hash;
pub use lock::{Lock, LockError, WHOLE};
pub use machine::{instruction_set, machine};
pub use metrics::{Metrics, MetricsError};
pub use plot::{Axis, Line, Plot};
pub use progress::Progress;
pub use stage::{Plan, Stage, StageError, StageSpec, dated_name, read_stamp};
pub use stamp::{STAMP_FILE, Stamp, StampError, Status};
pub use stop::{Interrupted, Stop};
pub use store::{Entry, Store, StoreError};
