//! What the executables in `jobs/` share: resolving a profile, and choosing the game's type by its name.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use pipeline::ConfigArgs;
use training::{Layout, OnBadShard, Profile};

// candle allocates a tensor per operation, and several megabytes at a time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A boxed error with its sources.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads and checks a profile, and finds the folder of its run: `data/<profile>` beside the working directory, unless
/// the profile names another.
///
/// # Errors
/// A profile that cannot be read or followed, by file and key.
pub fn resolve(args: &ConfigArgs) -> Result<(Profile, Layout), BoxError> {
    let profile: Profile = args.load()?;
    profile.check().map_err(|e| format!("{}: {e}", args.config.display()))?;
    if profile.threads > 0 {
        // Refused only if the pool runs already, which nothing before this line starts.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(profile.threads).build_global();
    }
    let root = match profile.data.as_str() {
        "" => PathBuf::from("data").join(profile_name(args)),
        data => PathBuf::from(data),
    };
    Ok((profile, Layout::new(root)))
}

/// Refuses an address where a path is written to: it would become folders with its name.
///
/// # Errors
/// The argument, by name.
pub fn local(argument: &str, path: &Path) -> Result<(), BoxError> {
    if path.to_string_lossy().contains("://") {
        return Err(format!("{argument} is {}: expected a path of a file system", path.display()).into());
    }
    Ok(())
}

/// What a profile is called: its file's name without the ending.
pub fn profile_name(args: &ConfigArgs) -> String {
    args.config.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// An error of the lab; the file is named where a key of it is at fault.
pub fn in_file(args: &ConfigArgs, error: training::Error) -> BoxError {
    match error {
        training::Error::Lab { .. } => format!("{}: {error}", args.config.display()).into(),
        other => other.into(),
    }
}

/// What to do about a damaged or stray file in a dataset.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum BadShard {
    /// Name it, leave it out and go on
    Skip,
    /// Name it and fail
    Stop,
}

impl From<BadShard> for OnBadShard {
    fn from(choice: BadShard) -> Self {
        match choice {
            BadShard::Skip => OnBadShard::Skip,
            BadShard::Stop => OnBadShard::Stop,
        }
    }
}

/// The arguments of jobs that read datasets under a profile.
#[derive(clap::Args, Clone)]
pub struct DataArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// What to do about a damaged or stray file in a dataset
    #[arg(long, value_enum)]
    on_bad_shard: Option<BadShard>,
}

impl DataArgs {
    /// As [`resolve`], with the choice about bad shards in place of the profile's.
    ///
    /// # Errors
    /// As [`resolve`].
    pub fn resolve(&self) -> Result<(Profile, Layout), BoxError> {
        let (mut profile, layout) = resolve(&self.config)?;
        if let Some(choice) = self.on_bad_shard {
            profile.on_bad_shard = choice.into();
        }
        Ok((profile, layout))
    }
}

/// Calls a function that is generic over the game with the type that a profile names.
#[macro_export]
macro_rules! with_game {
    ($profile:expr, $game:ident => $body:expr) => {
        match $profile.game.as_str() {
            "connect4" => {
                type $game = games::Connect4;
                $body
            }
            "tictactoe" => {
                type $game = games::TicTacToe;
                $body
            }
            _ => {
                type $game = games::Chess;
                $body
            }
        }
    };
}
