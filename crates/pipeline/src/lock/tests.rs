use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

const CHILD_FILE: &str = "PIPELINE_TEST_LOCK_FILE";
const CHILD_RANGE: &str = "PIPELINE_TEST_LOCK_RANGE";

/// Not a test by itself: the other tests start this binary again to run it as the process that holds a lock.
#[test]
fn child_holds_a_lock() {
    let Some(file) = std::env::var_os(CHILD_FILE) else { return };
    let range: Vec<u64> = std::env::var(CHILD_RANGE).unwrap().split('-').map(|n| n.parse().unwrap()).collect();
    let lock = Lock::acquire(Path::new(&file), range[0]..range[1], "the child's stage").unwrap();
    println!("HELD");
    std::io::stdout().flush().unwrap();
    // Ends when the parent closes the pipe, or kills.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(lock);
}

fn holder(file: &Path, range: Range<u64>) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::tests::child_holds_a_lock", "--nocapture"])
        .env(CHILD_FILE, file)
        .env(CHILD_RANGE, format!("{}-{}", range.start, range.end))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("HELD")), "the child did not get its lock");
    child
}

fn held(result: Result<Lock, LockError>) -> String {
    match result {
        Err(e @ LockError::Held { .. }) => e.to_string(),
        other => panic!("expected a held lock, got {other:?}"),
    }
}

#[test]
fn another_process_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("locks/corpus.lock");
    let mut child = holder(&file, WHOLE);
    let text = held(Lock::acquire(&file, 3..4, "corpus"));
    assert!(text.contains(&format!("process {}", child.id())), "{text}");
    assert!(
        text.contains("corpus is in use") && text.contains("child_holds_a_lock") && text.contains("since 20"),
        "{text}"
    );

    // Without its note the kernel still knows the process.
    fs::remove_file(dir.path().join("locks/corpus.lock.holder")).unwrap();
    let text = held(Lock::acquire(&file, WHOLE, "corpus"));
    assert!(text.contains(&format!("process {}", child.id())), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    Lock::acquire(&file, WHOLE, "corpus").unwrap();
}

#[test]
fn a_killed_holder_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stage.lock");
    let mut child = holder(&file, 0..10);
    // Another range of the same file is free.
    let mine = Lock::acquire(&file, 10..20, "shards 10..20").unwrap();
    held(Lock::acquire(&file, 9..10, "shard 9"));
    child.kill().unwrap();
    child.wait().unwrap();
    // Its note is still there and is not believed.
    assert_eq!(notes(&file).len(), 2);
    let theirs = Lock::acquire(&file, 5..10, "shards 5..10").unwrap();
    assert_eq!(notes(&file).len(), 2);
    drop((mine, theirs));
    assert!(notes(&file).is_empty());
}

#[test]
fn one_descriptor_keeps_all_ranges_of_a_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stage.lock");
    let first = Lock::acquire(&file, 0..5, "a").unwrap();
    // Refused and released locks of the same file must not drop the first one.
    assert!(held(Lock::acquire(&file, 4..6, "b")).contains("this process"));
    drop(Lock::acquire(&file, 5..6, "c").unwrap());
    let link = dir.path().join("link.lock");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    held(Lock::acquire(&link, 0..1, "through a link"));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::tests::child_holds_a_lock", "--nocapture"])
        .env(CHILD_FILE, &file)
        .env(CHILD_RANGE, "0-1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!child.status.success(), "the other process got a range that is held here");
    drop(first);
    Lock::acquire(&file, WHOLE, "d").unwrap();
}

#[test]
fn a_deleted_lock_file_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stage.lock");
    let old = Lock::acquire(&file, WHOLE, "old").unwrap();
    fs::remove_file(&file).unwrap();
    let new = Lock::acquire(&file, 0..1, "new").unwrap();
    drop(old);
    held(Lock::acquire(&file, WHOLE, "again"));
    drop(new);
    Lock::acquire(&file, WHOLE, "again").unwrap();
}

#[test]
fn bad_ranges_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stage.lock");
    for range in [3..3, 0..u64::MAX] {
        assert!(matches!(Lock::acquire(&file, range, "x"), Err(LockError::Range { .. })));
    }
    let text = Lock::acquire(dir.path(), WHOLE, "x").unwrap_err().to_string();
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
}
