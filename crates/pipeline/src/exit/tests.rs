use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;
use crate::store::Store;

const MODE: &str = "PIPELINE_TEST_EXIT_MODE";
const DIR: &str = "PIPELINE_TEST_EXIT_DIR";

/// Not a test by itself: the other tests start this binary again to run it as an executable of its own.
#[test]
fn executable() {
    let Ok(mode) = std::env::var(MODE) else { return };
    run(|stop| match mode.as_str() {
        "done" => Ok(Exit::Done),
        "missed" => Ok(Exit::ScoreMissed),
        "fail" => Err(Outer(io::Error::other("no such engine").into()).into()),
        "panic" => panic!("a bug"),
        "print" => loop {
            println!("READY {}", "x".repeat(1000));
        },
        "put" => loop {
            crate::put!("READY {}", "x".repeat(1000))?;
        },
        "obey" => {
            println!("READY");
            while !stop.requested() {
                sleep(Duration::from_millis(5));
            }
            // Time for a second copy of the same request to do harm.
            sleep(Duration::from_millis(100));
            stop.check()?;
            Ok(Exit::Done)
        }
        "ignore" => {
            println!("READY");
            loop {
                sleep(Duration::from_millis(5));
            }
        }
        "file size limit" => {
            let store = Store::open(std::env::var_os(DIR).unwrap_or_default())?;
            store.put("model", b"good")?;
            setrlimit(Resource::RLIMIT_FSIZE, 65_536, 65_536)?;
            store.put("model", &[0; 100_000])?;
            Ok(Exit::Done)
        }
        other => Err(other.into()),
    })
}

fn command(mode: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "exit::tests::executable", "--nocapture"]).env(MODE, mode);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(mode: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command(mode).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn exit_codes_of_an_executable() {
    assert_eq!(output("done"), (Some(0), String::new()));
    assert_eq!(output("missed").0, Some(1));
    assert_eq!(output("fail"), (Some(2), "error: self-play failed: no such engine\n".to_string()));
    let (code, text) = output("panic");
    assert_eq!(code, Some(2));
    assert!(text.contains("a bug") && text.contains("error: internal fault"), "{text}");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    for mode in ["print", "put"] {
        // Reads one line and closes the pipe, as `head -1` does.
        let child = ready(mode);
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        assert_eq!((status.code(), String::from_utf8_lossy(&stderr).as_ref()), (Some(0), ""), "{mode}");
    }
}

#[test]
fn a_closed_stderr_changes_nothing() {
    for (mode, code) in [("fail", 2), ("panic", 2)] {
        let mut child = command(mode).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{mode}");
    }
}

/// Starts a child and waits for its first line.
fn ready(mode: &str) -> Child {
    use std::io::{BufRead, BufReader};
    let mut child = command(mode).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("READY")));
    child
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the child did not stop");
            }
            None => sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn signals_stop_an_executable() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut child = ready("obey");
        send(&child, signal);
        // The same request again, as `timeout` sends it.
        sleep(Duration::from_millis(20));
        send(&child, signal);
        assert_eq!(wait(&mut child).code(), Some(code));
        let mut text = String::new();
        io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
        assert!(text.starts_with("stopped: interrupted by SIG"), "{text}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut child = ready("ignore");
        send(&child, Signal::SIGINT);
        // Again and again, because a busy machine may deliver the first one late.
        let mut status = None;
        for _ in 0..20 {
            sleep(Duration::from_millis(400));
            status = child.try_wait().unwrap();
            if status.is_some() {
                break;
            }
            send(&child, signal);
        }
        assert_eq!(status.and_then(|s| s.code()), Some(code));
    }
}

#[test]
fn d2_file_size_limit_is_an_error_and_keeps_the_old_object() {
    let dir = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = command("file size limit").env(DIR, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(2), "{text}");
    assert!(text.contains("error: cannot write") && text.contains("model"), "{text}");
    assert_eq!(files_in(dir.path()), ["model"]);
    assert_eq!(std::fs::read(dir.path().join("model")).unwrap(), b"good");
}

fn files_in(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[derive(Debug, thiserror::Error)]
#[error("self-play failed")]
struct Outer(#[source] Box<dyn Error + Send + Sync>);

#[test]
fn codes() {
    let stop = Stop::manual();
    let interrupted = {
        let s = Stop::manual();
        s.request();
        s.check().unwrap_err()
    };
    assert_eq!(failure_code(&Outer(interrupted.into()), &stop), 130);
    assert_eq!(failure_code(&Outer(PrintError::Closed.into()), &stop), 0);
    let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
    assert_eq!(failure_code(&pipe(), &stop), 0);
    // An engine's broken pipe is a failure.
    assert_eq!(failure_code(&Outer(pipe().into()), &stop), 2);
    stop.request();
    assert_eq!(failure_code(&Outer(pipe().into()), &stop), 130);
}

#[test]
fn chain_says_each_cause_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read x: {0}")]
    struct Quoting(#[source] io::Error);
    let error = Outer(Quoting(io::Error::other("bad disk")).into());
    assert_eq!(error_chain(&error), "self-play failed: cannot read x: bad disk");
}
