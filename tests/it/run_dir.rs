//! A run in a folder of its own: write a profile, run jobs, look at what they left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Seconds after which a job in a test counts as hanging.
const PATIENCE: Duration = Duration::from_secs(300);

/// A folder with a profile `run.toml`, whose data goes to `data/run`.
pub(crate) struct RunDir {
    dir: TempDir,
    /// `TABIYA_ENGINES` of the jobs; as it is if absent.
    engines: Option<PathBuf>,
}

/// What a finished job printed.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A profile small enough for tests: the fake engine teaches a 1x8 network.
pub(crate) fn small_profile() -> String {
    format!(
        r#"
game = "chess"
seed = 7
threads = 1
engine = {{ path = "{}" }}

[corpus]
games = 12
games_per_shard = 3
limit = {{ nodes = 50 }}
workers = 2
random_plies = [2, 5]
mistakes = [{{ share = 0.5, rate = 0.1 }}]
max_plies = 60

[net]
blocks = 1
channels = 8

[pretrain]
epochs = 2
batch = 16
pool = 256
holdout = 0.2
checkpoint_steps = 5

[refine]
num_iterations = 1
eval_interval = 1

[selfplay]
games = 6
games_per_shard = 2
simulations = 8
random_plies = 2
max_plies = 24
games_in_flight = 3

[train]
steps = 6
batch = 16
replay_minimum = 10
pool = 256
checkpoint_steps = 2

[gate]
games = 4
simulations = 4
max_plies = 30

[eval]
games = 4
simulations = 4
elo = 1500
limit = {{ nodes = 50 }}
max_plies = 40
"#,
        fake_engine().display()
    )
}

/// The fake engine's executable, beside ours.
pub(crate) fn fake_engine() -> PathBuf {
    let path = job_path("corpus").with_file_name("tabiya-fake-engine");
    assert!(path.exists(), "{} is missing: run `cargo test --workspace`", path.display());
    path
}

pub(crate) fn job_path(job: &str) -> PathBuf {
    PathBuf::from(match job {
        "corpus" => env!("CARGO_BIN_EXE_corpus"),
        "pretrain" => env!("CARGO_BIN_EXE_pretrain"),
        "selfplay" => env!("CARGO_BIN_EXE_selfplay"),
        "relabel" => env!("CARGO_BIN_EXE_relabel"),
        "train" => env!("CARGO_BIN_EXE_train"),
        "gate" => env!("CARGO_BIN_EXE_gate"),
        "refine" => env!("CARGO_BIN_EXE_refine"),
        "eval" => env!("CARGO_BIN_EXE_eval"),
        "policy" => env!("CARGO_BIN_EXE_policy"),
        "stats" => env!("CARGO_BIN_EXE_stats"),
        "report" => env!("CARGO_BIN_EXE_report"),
        "results" => env!("CARGO_BIN_EXE_results"),
        "publish" => env!("CARGO_BIN_EXE_publish"),
        "match" => env!("CARGO_BIN_EXE_match"),
        "features" => env!("CARGO_BIN_EXE_features"),
        other => panic!("no job {other}"),
    })
}

impl RunDir {
    pub(crate) fn new(profile: &str) -> Self {
        let run = RunDir { dir: TempDir::new().unwrap(), engines: None };
        run.write_profile(profile);
        run
    }

    /// A run whose jobs find engines in this folder and beside themselves, and nowhere else.
    pub(crate) fn with_engines(profile: &str, folder: &Path) -> Self {
        RunDir { engines: Some(folder.to_owned()), ..RunDir::new(profile) }
    }

    pub(crate) fn write_profile(&self, profile: &str) {
        std::fs::write(self.dir.path().join("run.toml"), profile).unwrap();
    }

    pub(crate) fn path(&self, under_data: &str) -> PathBuf {
        self.dir.path().join("data/run").join(under_data)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, job: &str, args: &[&str]) -> Command {
        let mut command = Command::new(job_path(job));
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        if let Some(folder) = &self.engines {
            command.env("TABIYA_ENGINES", folder);
        }
        if job != "stats" {
            command.args(["--config", "run.toml"]);
        }
        command.args(args);
        command
    }

    /// Runs a job to its end.
    pub(crate) fn run(&self, job: &str, args: &[&str]) -> Ran {
        finish(self.command(job, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Runs a job that has to succeed; its stdout.
    pub(crate) fn ok(&self, job: &str, args: &[&str]) -> String {
        let ran = self.run(job, args);
        assert_eq!(ran.code, 0, "{job} {args:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran.stdout + &ran.stderr
    }

    /// Runs a job that has to fail with exit code 2 and without a panic; its one message.
    pub(crate) fn fails(&self, job: &str, args: &[&str]) -> String {
        let ran = self.run(job, args);
        assert_eq!(ran.code, 2, "{job} {args:?}\n{}\n{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran.stderr
    }

    /// Starts a job and leaves it running.
    pub(crate) fn start(&self, job: &str, args: &[&str]) -> Child {
        self.command(job, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The content of every file under a folder whose name ends so.
    pub(crate) fn files(&self, under_data: &str, ending: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.path(under_data)];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.to_string_lossy().ends_with(ending) {
                    let name = path.strip_prefix(self.path(under_data)).unwrap().to_string_lossy().into_owned();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    /// Bytes of all shards under a folder, by name.
    pub(crate) fn shards(&self, under_data: &str) -> BTreeMap<String, Vec<u8>> {
        self.files(under_data, ".parquet")
    }

    /// A JSON file under the data folder.
    pub(crate) fn json(&self, under_data: &str) -> serde_json::Value {
        let path = self.path(under_data);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_str(&text).unwrap()
    }
}

/// Waits for a job; kills it and fails the test if it hangs.
pub(crate) fn finish(child: Child) -> Ran {
    let id = child.id();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let output: Output = match receive.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(id, "KILL");
            panic!("a job hangs");
        }
    };
    use std::os::unix::process::ExitStatusExt;
    Ran {
        code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal to a process that the test started.
pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Waits until something holds; fails the test after ten seconds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
