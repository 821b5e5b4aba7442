use super::*;

fn names(store: &Store, prefix: &str) -> Vec<String> {
    store.list(prefix).unwrap().into_iter().map(|entry| entry.path).collect()
}

fn behaves(store: &Store) {
    assert!(matches!(store.get("a.json"), Err(StoreError::NotFound { .. })));
    assert!(!store.exists("a.json").unwrap());
    assert!(store.list("").unwrap().is_empty() && store.list("nothing/here").unwrap().is_empty());
    store.put("a.json", b"one").unwrap();
    store.put("a.json", b"three").unwrap();
    store.put("deep/er/b c.bin", b"").unwrap();
    store.put("deeper.bin", b"x").unwrap();
    assert_eq!(store.get("a.json").unwrap(), b"three");
    assert!(store.exists("deep/er/b c.bin").unwrap());
    assert_eq!(names(store, ""), ["a.json", "deep/er/b c.bin", "deeper.bin"]);
    assert_eq!(store.list("").unwrap()[0].bytes, 5);
    // A prefix is a folder, not a beginning of names.
    assert_eq!(names(store, "deep"), ["deep/er/b c.bin"]);
    assert_eq!(names(store, "deep/"), ["deep/er/b c.bin"]);

    let child = store.child("deep").child("er/");
    assert_eq!(names(&child, ""), ["b c.bin"]);
    child.put("new/c", b"c").unwrap();
    assert_eq!(store.get("deep/er/new/c").unwrap(), b"c");
    assert_eq!(names(&child, "new"), ["new/c"]);

    store.delete("a.json").unwrap();
    store.delete("a.json").unwrap();
    assert!(!store.exists("a.json").unwrap());
    for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", "a#12"] {
        assert!(matches!(store.put(bad, b""), Err(StoreError::Name { .. })), "{bad:?}");
    }
}

#[test]
fn memory_and_folder_behave_alike() {
    behaves(&Store::memory());
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("new/root with space")).unwrap();
    behaves(&store);
    assert_eq!(std::fs::read(store.local("deep/er/new/c").unwrap()).unwrap(), b"c");
    assert_eq!(Store::memory().local("x"), None);
    assert!(Store::memory().child("p").describe("x").contains("p/x"));
}

#[test]
fn unfinished_files_are_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("shard-00001.parquet#421000003"), b"half").unwrap();
    assert!(store.list("").unwrap().is_empty());
}

#[test]
fn roots_that_cannot_be_used_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let text = Store::open(&file).unwrap_err().to_string();
    assert!(text.contains("it is a file") && text.contains(&file.display().to_string()), "{text}");
    assert!(Store::open(file.join("below")).is_err());
    assert!(Store::open_existing(dir.path().join("none")).unwrap_err().to_string().contains("no such folder"));
    assert!(Store::open_existing(dir.path()).is_ok());
}

#[test]
fn read_only_folder_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let result = Store::open(dir.path());
    // The superuser may write anywhere; everyone else is told.
    if std::fs::write(dir.path().join("probe"), b"").is_err() {
        assert!(result.unwrap_err().to_string().contains("not writable"));
    }
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn d2_failed_put_keeps_the_old_object() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.put("model/weights", b"good").unwrap();
    // "model" is a folder: an object of that name cannot be written, and nothing under it is harmed.
    let text = store.put("model", b"x").unwrap_err().to_string();
    assert!(text.starts_with("cannot write") && text.contains("model"), "{text}");
    assert_eq!(store.get("model/weights").unwrap(), b"good");
}

#[test]
fn usable_from_many_threads() {
    let store = Store::memory();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let store = store.clone();
            scope.spawn(move || (0..25).for_each(|i| store.put(&format!("{t}/{i}"), b"x").unwrap()));
        }
    });
    assert_eq!(store.list("").unwrap().len(), 100);
}
