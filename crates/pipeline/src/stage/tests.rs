use super::*;

struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { root: tempfile::tempdir().unwrap() }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("data/corpus")
    }

    fn locks(&self) -> PathBuf {
        self.root.path().join("locks")
    }

    fn spec(&self) -> StageSpec {
        StageSpec {
            name: "corpus".to_string(),
            dir: self.dir(),
            settings: json!({"engine": {"nodes": 500}, "temperature": 0.1_f32}),
            growable: BTreeMap::from([("games".to_string(), 100)]),
            inputs: BTreeMap::from([("book".to_string(), "abc".to_string())]),
            resolved_config: json!({"workers": 2}),
        }
    }

    fn open(&self, spec: StageSpec) -> Stage {
        Stage::open(spec, &self.locks()).unwrap()
    }

    fn plan(&self, spec: StageSpec) -> Plan {
        self.open(spec).plan()
    }

    fn games(&self, games: u64) -> StageSpec {
        StageSpec { growable: BTreeMap::from([("games".to_string(), games)]), ..self.spec() }
    }

    /// The folders that were moved aside.
    fn aside(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.root.path().join("data")) else { return Vec::new() };
        let mut found: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|p| *p != self.dir()).collect();
        found.sort();
        found
    }

    fn stamp(&self) -> Stamp {
        read_stamp(&self.dir()).unwrap().unwrap()
    }
}

#[test]
fn dated_names_of_one_second_differ() {
    let root = tempfile::tempdir().unwrap();
    let names: Vec<PathBuf> = (0..3)
        .map(|_| {
            let name = dated_name(&root.path().join("gate"));
            fs::create_dir(&name).unwrap();
            name
        })
        .collect();
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
}

#[test]
fn fresh_resume_done_extend() {
    let f = Fixture::new();
    let stage = f.open(f.spec());
    assert_eq!(stage.plan(), Plan::Fresh);
    assert_eq!((f.stamp().status, f.stamp().fingerprint), (Status::Running, None));
    stage.store().put("shard-00000.parquet", b"x").unwrap();
    drop(stage);

    let stage = f.open(f.spec());
    assert_eq!(stage.plan(), Plan::Resume);
    assert_eq!(stage.store().get("shard-00000.parquet").unwrap(), b"x");
    stage.finish("f1", json!({"games": 100})).unwrap();
    drop(stage);
    let stamp = f.stamp();
    assert_eq!((stamp.status, stamp.fingerprint.as_deref()), (Status::Done, Some("f1")));
    assert_eq!(stamp.summary["games"], 100);

    assert_eq!(f.plan(f.spec()), Plan::Done);
    assert_eq!(f.stamp(), stamp, "a look at a finished stage changes nothing");

    let stage = f.open(f.games(200));
    assert_eq!(stage.plan(), Plan::Extend);
    assert_eq!(f.stamp().started, stamp.started);
    // Killed while extending: the next run goes on, also when it asks for more still.
    drop(stage);
    assert_eq!(f.plan(f.games(200)), Plan::Resume);
    let stage = f.open(f.games(300));
    assert_eq!(stage.plan(), Plan::Resume);
    stage.finish("f3", Value::Null).unwrap();
    drop(stage);
    assert_eq!(f.plan(f.games(300)), Plan::Done);
    // Fewer than there are: all stay, and nothing is left to do.
    let stamp = f.stamp();
    assert_eq!(f.plan(f.games(50)), Plan::Done);
    assert!(f.stamp() == stamp && stamp.growable["games"] == 300);
    assert!(f.aside().is_empty());
    assert!(f.dir().join("shard-00000.parquet").exists());
    let config: Value = serde_json::from_slice(&fs::read(f.dir().join("config.json")).unwrap()).unwrap();
    assert_eq!(config["workers"], 2);
}

#[test]
fn any_other_change_moves_the_output_aside() {
    let f = Fixture::new();
    let changes: [fn(&mut StageSpec); 4] = [
        |s| s.settings = json!({"engine": {"nodes": 1000}, "temperature": 0.1_f32}),
        |s| s.inputs = BTreeMap::from([("book".to_string(), "def".to_string())]),
        |s| s.growable = BTreeMap::from([("games".to_string(), 100), ("extra".to_string(), 1)]),
        |s| s.name = "selfplay".to_string(),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let base = f.open(f.spec());
        base.store().put("content", i.to_string().as_bytes()).unwrap();
        base.finish("f", Value::Null).unwrap();
        drop(base);
        let mut spec = f.spec();
        change(&mut spec);
        let stage = f.open(spec);
        assert_eq!(stage.plan(), Plan::Fresh, "change {i}");
        assert!(!f.dir().join("content").exists());
        drop(stage);
        fs::remove_dir_all(f.dir()).unwrap();
    }
    // All four within a second or two, none lost.
    let aside = f.aside();
    assert_eq!(aside.len(), 4);
    let mut contents: Vec<_> = aside.iter().map(|dir| fs::read_to_string(dir.join("content")).unwrap()).collect();
    contents.sort();
    assert_eq!(contents, ["0", "1", "2", "3"]);
    for dir in aside {
        assert!(dir.file_name().unwrap().to_str().unwrap().starts_with("corpus.20"));
        assert!(dir.join(STAMP_FILE).exists());
    }
}

#[test]
fn strays_and_broken_stamps_are_moved_aside_and_blank_folders_are_not() {
    let f = Fixture::new();
    fs::create_dir_all(f.dir()).unwrap();
    fs::write(f.dir().join(".DS_Store"), b"").unwrap();
    fs::write(f.dir().join("stage.json#77000001"), b"{\"sta").unwrap();
    assert_eq!(f.plan(f.spec()), Plan::Fresh);
    assert!(f.aside().is_empty());
    assert!(!f.dir().join("stage.json#77000001").exists());

    fs::write(f.dir().join(STAMP_FILE), b"{\"sta").unwrap();
    fs::write(f.dir().join("kept"), b"").unwrap();
    assert_eq!(f.plan(f.spec()), Plan::Fresh);
    assert!(f.aside()[0].join("kept").exists());

    fs::remove_file(f.dir().join(STAMP_FILE)).unwrap();
    assert_eq!(f.plan(f.spec()), Plan::Fresh);
    assert_eq!(f.aside().len(), 2);

    // Somebody has removed `*`, and with it the stamp; the journal of unfinished shards is of nobody knows which settings.
    fs::remove_dir_all(f.dir()).unwrap();
    fs::create_dir_all(f.dir().join(".journal")).unwrap();
    fs::write(f.dir().join(".journal/shard-00000.journal"), b"").unwrap();
    assert_eq!(f.plan(f.spec()), Plan::Fresh);
    assert!(f.aside().len() == 3 && !f.dir().join(".journal").exists());
}

#[test]
fn a_kill_at_any_moment_of_opening_leaves_fresh_or_resume() {
    // Every prefix of what opening writes, in its order: nothing, folder, torn temporary, stamp, configuration.
    let f = Fixture::new();
    for state in 0..5 {
        let _ = fs::remove_dir_all(f.root.path().join("data"));
        let template = Fixture::new();
        let mut spec = f.spec();
        spec.dir = template.dir();
        drop(Stage::open(spec, &template.locks()).unwrap());
        if state >= 1 {
            fs::create_dir_all(f.dir()).unwrap();
        }
        if state >= 2 {
            fs::write(f.dir().join("stage.json#1000000"), b"{").unwrap();
        }
        if state >= 3 {
            fs::copy(template.dir().join(STAMP_FILE), f.dir().join(STAMP_FILE)).unwrap();
        }
        if state >= 4 {
            fs::write(f.dir().join("config.json#1000001"), b"{").unwrap();
        }
        assert_eq!(f.plan(f.spec()), if state < 3 { Plan::Fresh } else { Plan::Resume }, "state {state}");
        assert!(f.aside().is_empty());
        assert!(f.dir().join(CONFIG_FILE).exists());
    }
}

const KILLED_ROOT: &str = "PIPELINE_TEST_KILLED_ROOT";

/// Not a test by itself: the test below starts this binary again to run it as the process that is killed.
#[test]
fn writes_shards_until_killed() {
    let Some(root) = std::env::var_os(KILLED_ROOT) else { return };
    let root = Path::new(&root);
    let spec = StageSpec { dir: root.join("data/corpus"), ..Fixture::new().spec() };
    let stage = Stage::open(spec, &root.join("locks")).unwrap();
    for shard in stage.store().list("shards").unwrap().len().. {
        stage.store().put(&format!("shards/{shard:06}"), &[7; 5000]).unwrap();
    }
}

#[test]
fn sigkill_at_random_moments_loses_nothing() {
    let f = Fixture::new();
    let mut before = 0;
    for round in 0..20_u64 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stage::tests::writes_shards_until_killed"])
            .env(KILLED_ROOT, f.root.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Half of the rounds end at any moment, the others surely among the shards, however busy the machine is.
        let written = || fs::read_dir(f.dir().join("shards")).map_or(0, |entries| entries.count());
        let deadline = Instant::now() + Duration::from_secs(10);
        while round % 2 == 1 && written() <= before && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(round * 7919 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let stage = f.open(f.spec());
        assert!(matches!(stage.plan(), Plan::Fresh | Plan::Resume));
        let shards = stage.store().list("shards").unwrap();
        assert!(shards.iter().all(|shard| shard.bytes == 5000) && shards.len() >= before);
        before = shards.len();
        assert!(f.aside().is_empty());
    }
    assert!(before >= 5, "only {before} shards in all rounds");
}

#[test]
fn seconds_add_up_over_sittings() {
    let f = Fixture::new();
    for sitting in 1..=3 {
        let stage = f.open(f.spec());
        thread::sleep(Duration::from_millis(20));
        drop(stage);
        assert_eq!(f.stamp().sittings, sitting);
        assert!(f.stamp().seconds >= 0.02 * sitting as f64);
    }
    let stage = f.open(f.spec());
    stage.finish("f", Value::Null).unwrap();
    drop(stage);
    let done = f.stamp();
    assert!(done.seconds >= 0.06 && done.sittings == 4 && done.machine == machine());
    f.open(f.spec());
    assert_eq!(f.stamp(), done, "a look at a finished stage takes no time");
    // More of the same goes on counting.
    f.open(f.games(200)).finish("f", Value::Null).unwrap();
    assert!(f.stamp().seconds > done.seconds && f.stamp().sittings == 5);
}

/// Not a test by itself, as above.
#[test]
fn works_until_killed() {
    let Some(root) = std::env::var_os(WORKING_ROOT) else { return };
    let root = Path::new(&root);
    let spec = StageSpec { dir: root.join("data/corpus"), ..Fixture::new().spec() };
    let _stage = Stage::open(spec, &root.join("locks")).unwrap();
    thread::sleep(Duration::from_secs(60));
}

const WORKING_ROOT: &str = "PIPELINE_TEST_WORKING_ROOT";

#[test]
fn a_kill_keeps_the_time_up_to_the_last_save() {
    let f = Fixture::new();
    for sitting in 1..=2 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stage::tests::works_until_killed"])
            .env(WORKING_ROOT, f.root.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let seconds = || read_stamp(&f.dir()).ok().flatten().map_or(0.0, |stamp| stamp.seconds);
        let deadline = Instant::now() + Duration::from_secs(20);
        while seconds() < f64::from(sitting) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(f.stamp().seconds >= f64::from(sitting), "{:?}", f.stamp());
    }
    f.open(f.spec()).finish("f", Value::Null).unwrap();
    assert!(f.stamp().seconds >= 2.0 && f.stamp().sittings == 3);
}

#[test]
fn a_stamp_of_an_earlier_version_is_gone_on_with() {
    let f = Fixture::new();
    drop(f.open(f.spec()));
    let mut old = serde_json::to_value(f.stamp()).unwrap();
    let fields = old.as_object_mut().unwrap();
    fields.remove("sittings").and(fields.remove("machine")).unwrap();
    fields.insert("seconds".to_string(), json!(100.0));
    fs::write(f.dir().join(STAMP_FILE), old.to_string()).unwrap();
    let stage = f.open(f.spec());
    assert_eq!(stage.plan(), Plan::Resume);
    stage.finish("f", Value::Null).unwrap();
    assert!(f.stamp().seconds >= 100.0 && f.stamp().sittings == 1);
}

#[test]
fn a_second_run_is_refused() {
    let f = Fixture::new();
    let first = f.open(f.spec());
    let text = Stage::open(f.spec(), &f.locks()).unwrap_err().to_string();
    assert!(text.contains("corpus is in use by this process"), "{text}");
    drop(first);
    f.open(f.spec());
}

#[test]
fn ranges_share_a_stage() {
    let f = Fixture::new();
    let open = |range| Stage::open_range(f.spec(), &f.locks(), range);
    let a = open(0..4).unwrap();
    let b = open(4..8).unwrap();
    assert_eq!((a.plan(), b.plan()), (Plan::Fresh, Plan::Resume));
    assert!(matches!(open(3..5), Err(StageError::Lock(LockError::Held { .. }))));
    assert!(matches!(Stage::open(f.spec(), &f.locks()), Err(StageError::Lock(LockError::Held { .. }))));
    let mut other = f.spec();
    other.settings = json!({});
    let text = Stage::open_range(other, &f.locks(), 8..9).unwrap_err().to_string();
    assert!(text.contains("settings.engine.nodes: 500 -> absent"), "{text}");
    thread::sleep(Duration::from_millis(20));
    b.finish("f", Value::Null).unwrap();
    let finished = f.stamp().seconds;
    drop(a);
    drop(b);
    assert_eq!(f.plan(f.spec()), Plan::Done);
    let stamp = f.stamp();
    assert!(finished >= 0.02 && stamp.seconds >= finished + 0.02, "each process counts: {stamp:?}");
    assert_eq!((stamp.sittings, stamp.fingerprint.as_deref()), (2, Some("f")));
}

#[test]
fn a_linked_folder_stays_on_its_disk() {
    let f = Fixture::new();
    let far = f.root.path().join("far/corpus");
    fs::create_dir_all(&far).unwrap();
    fs::create_dir_all(f.root.path().join("data")).unwrap();
    std::os::unix::fs::symlink(&far, f.dir()).unwrap();
    f.open(f.spec()).store().put("x", b"x").unwrap();
    let mut spec = f.spec();
    spec.settings = json!(1);
    assert_eq!(f.plan(spec), Plan::Fresh);
    assert!(far.join(STAMP_FILE).exists() && !far.join("x").exists());
    assert!(f.dir().symlink_metadata().unwrap().is_symlink());
}
