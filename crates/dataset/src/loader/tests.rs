use games::{Chess, Connect4, PolicyChess, TicTacToe};

use super::*;
use crate::sample::{Samples, replay};
use crate::testing::{chess_game, connect4_game, fill, selfplay_game, tictactoe_game};
use crate::{GameRecord, Part};

fn batches<G: Game>(spec: LoaderSpec) -> Vec<Batch> {
    let mut loader = Loader::<G>::new(spec).unwrap();
    std::iter::from_fn(|| loader.next().unwrap()).collect()
}

fn expected<G: Game>(records: impl Iterator<Item = GameRecord>) -> Samples {
    let mut out = Samples::default();
    records.for_each(|r| replay::<G>(&r, &TargetSpec::default(), false, &mut out).unwrap());
    out
}

/// All samples in one batch.
fn whole(shape: games::Shape, samples: &Samples) -> [Batch; 1] {
    let samples: Vec<_> = (0..samples.len()).map(|i| samples.get(i).unwrap()).collect();
    [Batch::new(shape, &samples, || None)]
}

/// The batches of a spec as they are counted without making them.
fn counted<G: Game>(spec: &LoaderSpec) -> u64 {
    Loader::<G>::count_batches(&spec.open().unwrap(), spec, || Ok::<_, DatasetError>(())).unwrap()
}

/// The rows of batches as comparable text, sorted.
fn rows(batches: &[Batch], inputs: usize) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    for b in batches {
        for row in 0..b.rows {
            let legal = b.legal_offsets[row] as usize..b.legal_offsets[row + 1] as usize;
            let mut all: Vec<u32> = b.planes[row * inputs..][..inputs].iter().map(|x| x.to_bits()).collect();
            all.extend(b.legal[legal.clone()].iter().map(|i| u32::from(*i)));
            all.extend(b.target[legal].iter().chain([&b.value[row], &b.value_weight[row]]).map(|x| x.to_bits()));
            rows.push(all);
        }
    }
    rows.sort();
    rows
}

#[test]
fn an_epoch_holds_every_sample_once_in_a_seeded_order() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "corpus", 3, 20, |id| chess_game(id, 30));
    let spec = LoaderSpec { pool: 500, batch: 64, threads: 1, ..LoaderSpec::new(dirs) };
    let samples = expected::<Chess>((0..60).map(|id| chess_game(id, 30)));
    let first = batches::<Chess>(spec.clone());
    assert_eq!(first.iter().map(|b| b.rows).sum::<usize>(), samples.len());
    assert!(first[..first.len() - 1].iter().all(|b| b.rows == 64));
    let whole = whole(Chess::SHAPE, &samples);
    assert_eq!(rows(&first, Chess::SHAPE.inputs()), rows(&whole, Chess::SHAPE.inputs()));
    assert_eq!(first, batches::<Chess>(LoaderSpec { threads: 4, ..spec.clone() }), "whatever the threads");
    assert_ne!(first, batches::<Chess>(LoaderSpec { epoch: 1, ..spec.clone() }));
    assert_ne!(first, batches::<Chess>(LoaderSpec { seed: 1, ..spec.clone() }));
    let mut resumed = Loader::<Chess>::new(spec).unwrap();
    resumed.skip(7).unwrap();
    let rest: Vec<Batch> = std::iter::from_fn(|| resumed.next().unwrap()).collect();
    assert_eq!(rest, first[7..]);
    assert_eq!(resumed.counts().games, 60);
    assert_eq!(resumed.positions(), (0..60).map(|id| chess_game(id, 30).plies() as u64).sum::<u64>());
}

/// Names that mean something to a glob, a URL or a partitioned table, and a path that is relative.
#[test]
fn folders_may_have_any_name() {
    let dir = tempfile::Builder::new().prefix("a=b [x]* #%41 \u{fc} ").tempdir().unwrap();
    fill(dir.path(), "corpus", 2, 4, |id| chess_game(id, 20));
    let up: PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let relative = up.join(dir.path().strip_prefix("/").unwrap());
    for path in [dir.path(), &relative, &dir.path().join(".")] {
        let rows: usize = batches::<Chess>(LoaderSpec::new([path])).iter().map(|b| b.rows).sum();
        assert_eq!(rows, expected::<Chess>((0..8).map(|id| chess_game(id, 20))).len(), "{}", path.display());
    }
}

#[test]
fn the_pool_mixes_games() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "corpus", 2, 30, |id| chess_game(id, 30));
    let spec = LoaderSpec { pool: 1_000, batch: 32, ..LoaderSpec::new(dirs) };
    // The full-move number tells the ply: neighbours of one game would rise by one or nothing.
    let clock = |b: &Batch, row: usize| b.planes[row * Chess::SHAPE.inputs() + 19];
    let first = &batches::<Chess>(spec)[0];
    let near = (1..first.rows).filter(|r| (0.0..=0.0101).contains(&(clock(first, *r) - clock(first, r - 1)))).count();
    assert!(near < 12, "{near} of 31 neighbours look like one game");
}

#[test]
fn training_and_validation_share_no_game() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "corpus", 2, 40, |id| chess_game(id, 20));
    let part = |part| LoaderSpec { split: Split { holdout: 0.25, part }, ..LoaderSpec::new(dirs.clone()) };
    let inputs = Chess::SHAPE.inputs();
    let split = Split { holdout: 0.25, part: Part::Validation };
    let held = (0..80).filter(|id| split.contains("corpus", *id)).map(|id| chess_game(id, 20));
    let validation = batches::<Chess>(part(Part::Validation));
    let whole = whole(Chess::SHAPE, &expected::<Chess>(held));
    assert_eq!(rows(&validation, inputs), rows(&whole, inputs));
    let train = batches::<Chess>(part(Part::Train));
    let all = batches::<Chess>(part(Part::All));
    let mut both = rows(&train, inputs);
    both.extend(rows(&validation, inputs));
    both.sort();
    assert_eq!(both, rows(&all, inputs));
}

#[test]
fn conditions_choose_games_and_other_games_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let game = |id: u64| if id.is_multiple_of(2) { connect4_game(id) } else { tictactoe_game(id) };
    let dirs = fill(dir.path(), "mixed", 2, 10, game);
    let spec = LoaderSpec::new(dirs);
    let error = Loader::<TicTacToe>::new(spec.clone()).unwrap().next().unwrap_err().to_string();
    assert!(error.contains("connect4") && error.contains("tictactoe"), "{error}");
    let only = LoaderSpec { where_sql: Some("game = 'tictactoe' AND game_id < 10".into()), ..spec.clone() };
    let expected = expected::<TicTacToe>((0..10).filter(|id| id % 2 == 1).map(tictactoe_game));
    let inputs = TicTacToe::SHAPE.inputs();
    assert_eq!(rows(&batches::<TicTacToe>(only), inputs), rows(&whole(TicTacToe::SHAPE, &expected), inputs));
    let error = Loader::<Connect4>::new(LoaderSpec { where_sql: Some("nonsense".into()), ..spec }).unwrap_err();
    assert!(error.to_string().contains("nonsense"));
}

#[test]
fn sources_mix_by_share_and_the_first_ends_the_epoch() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let new = fill(a.path(), "selfplay", 2, 20, |id| selfplay_game(id, 30));
    let old = fill(b.path(), "corpus", 1, 4, |id| chess_game(id, 12));
    let sources = vec![Source { share: 3.0, ..Source::new(new) }, Source { share: 1.0, ..Source::new(old) }];
    let mut spec = LoaderSpec { pool: 64, batch: 32, ..LoaderSpec::new([""]) };
    spec.sources = sources;
    spec.targets.policy = PolicyTarget::Visits;
    let mut loader = Loader::<Chess>::new(spec.clone()).unwrap();
    let all: Vec<Batch> = std::iter::from_fn(|| loader.next().unwrap()).collect();
    let primary: usize =
        (0..40).map(|id| selfplay_game(id, 30)).map(|r| r.plies() - usize::from(r.opening_plies)).sum();
    let rows: usize = all.iter().map(|b| b.rows).sum();
    assert!(rows.abs_diff(primary * 4 / 3) <= 2, "{rows} of {primary} and a third more");
    let legal = |b: &Batch, row: usize| b.legal_offsets[row] as usize..b.legal_offsets[row + 1] as usize;
    let sums = |b: &Batch| (0..b.rows).map(|r| b.target[legal(b, r)].iter().sum::<f32>()).collect::<Vec<_>>();
    let sums: Vec<f32> = all.iter().flat_map(sums).collect();
    assert!(sums.iter().all(|s| *s == 0.0 || (s - 1.0).abs() < 1e-4));
    assert!(sums.contains(&0.0), "some plies have no policy target");
    spec.sources[0].newest_positions = Some(1);
    let newest: usize = batches::<Chess>(spec).iter().map(|b| b.rows).sum();
    assert!(newest < rows * 2 / 3, "only the newest shard");
}

#[test]
fn duplicates_are_dropped_within_an_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "corpus", 2, 10, |id| GameRecord { game_id: id, ..chess_game(id % 10, 30) });
    let mut loader = Loader::<Chess>::new(LoaderSpec { drop_duplicates: true, ..LoaderSpec::new(dirs) }).unwrap();
    let rows: usize = std::iter::from_fn(|| loader.next().unwrap()).map(|b| b.rows).sum();
    let samples = expected::<Chess>((0..10).map(|id| chess_game(id, 30)));
    let mut keys: Vec<u64> = (0..samples.len()).map(|i| samples.get(i).unwrap().position_key()).collect();
    let all = keys.len() * 2;
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(rows, keys.len());
    assert_eq!(loader.counts().duplicates as usize, all - rows);
}

#[test]
fn augmentation_shows_legal_positions_and_is_seeded() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "ttt", 1, 30, tictactoe_game);
    let spec = LoaderSpec { augment: Augment::Random, ..LoaderSpec::new(dirs) };
    let shown = batches::<TicTacToe>(spec.clone());
    assert_eq!(shown, batches::<TicTacToe>(spec.clone()));
    assert_ne!(shown, batches::<TicTacToe>(LoaderSpec { augment: Augment::Off, ..spec }));
    let planes = TicTacToe::SHAPE.planes();
    for b in &shown {
        for row in 0..b.rows {
            let legal = &b.legal[b.legal_offsets[row] as usize..b.legal_offsets[row + 1] as usize];
            assert!(legal.is_sorted());
            let board = &b.planes[row * TicTacToe::SHAPE.inputs()..][..TicTacToe::SHAPE.inputs()];
            let empty = |square: usize| board[square * planes] + board[square * planes + 1] == 0.0;
            assert!(legal.iter().all(|s| empty(usize::from(*s))), "legal moves go with the board");
            assert_eq!(legal.len(), (0..9).filter(|s| empty(*s)).count());
        }
    }
}

/// Each sample and all its images, each once, and as many as are counted.
#[test]
fn images_are_samples_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "policy", 2, 10, |id| chess_game(id, 60));
    let spec = LoaderSpec { augment: Augment::All, first_plies: Some(40), pool: 100, ..LoaderSpec::new(dirs) };
    let (mut expected, mut own) = (Samples::default(), 0);
    for record in (0..20).map(|id| chess_game(id, 60)) {
        let mut state = PolicyChess::start();
        for (ply, played) in record.moves.iter().enumerate().take(40) {
            if ply >= usize::from(record.opening_plies) {
                let (mut legal, wanted) = (Vec::new(), [state.index(record.best[ply].unwrap_or(*played))]);
                state.legal_indices(&mut legal);
                expected.push_plain(state.pack(), &legal, wanted[0]);
                own += 1;
                for image in state.images(&wanted) {
                    expected.push_plain(image.packed, &image.legal, image.wanted[0]);
                }
            }
            state.play(*played);
        }
    }
    let found = batches::<PolicyChess>(spec.clone());
    let without_value = |mut batch: Batch| {
        batch.value.fill(0.0);
        batch.value_weight.fill(0.0);
        batch
    };
    let (inputs, found) = (PolicyChess::SHAPE.inputs(), found.into_iter().map(without_value).collect::<Vec<_>>());
    assert!(expected.len() > own * 2, "{} of {own}", expected.len());
    assert_eq!(rows(&found, inputs), rows(&whole(PolicyChess::SHAPE, &expected), inputs));
    for drop_duplicates in [false, true] {
        let spec = LoaderSpec { drop_duplicates, batch: 1, ..spec.clone() };
        assert_eq!(counted::<PolicyChess>(&spec), batches::<PolicyChess>(spec).len() as u64);
    }
    let plain = LoaderSpec { augment: Augment::Off, first_plies: None, ..spec };
    let plies = |id| chess_game(id, 60).plies() - usize::from(chess_game(id, 60).opening_plies);
    let all: usize = batches::<PolicyChess>(plain).iter().map(|b| b.rows).sum();
    assert_eq!(all, (0..20).map(plies).sum::<usize>());
}

#[test]
fn a_game_that_cannot_be_replayed_is_skipped_or_fatal() {
    let dir = tempfile::tempdir().unwrap();
    let broken = |id: u64| {
        let mut game = chess_game(id, 20);
        if id == 3 {
            game.moves[10] = games::Move(0);
        }
        game
    };
    let spec = LoaderSpec::new(fill(dir.path(), "corpus", 1, 6, broken));
    let mut loader = Loader::<Chess>::new(spec.clone()).unwrap();
    while loader.next().unwrap().is_some() {}
    assert_eq!((loader.counts().games, loader.counts().bad_games), (5, 1));
    assert!(loader.warnings()[0].contains("game 3, ply 10"), "{:?}", loader.warnings());
    let mut strict = Loader::<Chess>::new(LoaderSpec { on_bad: OnBad::Stop, ..spec }).unwrap();
    assert!(strict.next().is_err());
    assert!(strict.next().unwrap().is_none(), "an error ends the epoch");
}

#[test]
fn batches_are_counted_as_they_come_and_sources_are_opened_once() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = |id: u64| GameRecord { opening_plies: (id % 5) as u16, ..chess_game(id, 40) };
    let dirs = fill(a.path(), "corpus", 2, 40, whole);
    let other = fill(b.path(), "selfplay", 1, 5, |id| selfplay_game(id, 30));
    let plain = LoaderSpec { batch: 1, pool: 50, ..LoaderSpec::new(dirs.clone()) };
    let mut mixed = plain.clone();
    mixed.sources = vec![Source { share: 3.0, ..Source::new(other) }, Source::new(dirs)];
    mixed.targets.policy = PolicyTarget::Visits;
    for spec in [
        LoaderSpec { drop_duplicates: true, ..plain.clone() },
        LoaderSpec { where_sql: Some("plies > 39".into()), batch: 16, ..plain.clone() },
        LoaderSpec { split: Split { holdout: 0.3, part: Part::Validation }, ..plain.clone() },
        LoaderSpec { targets: TargetSpec { policy: PolicyTarget::Played, ..plain.targets }, ..plain.clone() },
        mixed.clone(),
        plain.clone(),
    ] {
        let sources = spec.open().unwrap();
        for epoch in 0..2 {
            let spec = LoaderSpec { epoch, ..spec.clone() };
            let mut loader = Loader::<Chess>::over(&sources, spec.clone()).unwrap();
            let batches = std::iter::from_fn(|| loader.next().unwrap()).count() as u64;
            assert_eq!(counted::<Chess>(&spec), batches, "{spec:?}");
        }
    }
    let other = Loader::<Chess>::over(&plain.open().unwrap(), mixed).unwrap_err().to_string();
    assert!(other.contains("sources"), "{other}");
    // Games that cannot be replayed are known only where games are walked through.
    let broken = |id: u64| {
        let mut game = chess_game(id % 30, 40);
        match id % 11 {
            3 => game.moves[10] = games::Move(0),
            5 => game.best[12] = Some(games::Move(0)),
            _ => {}
        }
        GameRecord { game_id: id, ..game }
    };
    let c = tempfile::tempdir().unwrap();
    let spec = LoaderSpec { batch: 1, ..LoaderSpec::new(fill(c.path(), "corpus", 2, 40, broken)) };
    let distinct = LoaderSpec { drop_duplicates: true, ..spec.clone() };
    assert_eq!(counted::<Chess>(&distinct), batches::<Chess>(distinct.clone()).len() as u64);
    assert!(counted::<Chess>(&spec) > batches::<Chess>(spec).len() as u64);
    let strict = LoaderSpec { on_bad: OnBad::Stop, ..distinct };
    let sources = strict.open().unwrap();
    assert!(Loader::<Chess>::count_batches(&sources, &strict, || Ok::<_, DatasetError>(())).is_err());
}

#[test]
fn a_dropped_loader_ends_its_threads_and_settings_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "corpus", 2, 40, |id| chess_game(id, 40));
    let spec = LoaderSpec { pool: 8, batch: 4, ..LoaderSpec::new(dirs) };
    let mut loader = Loader::<Chess>::new(spec.clone()).unwrap();
    loader.next().unwrap().unwrap();
    drop(loader); // joins: a thread that did not end would hang here
    for (change, mention) in [
        (LoaderSpec { batch: 0, ..spec.clone() }, "batch"),
        (LoaderSpec { sources: Vec::new(), ..spec.clone() }, "sources"),
        (LoaderSpec { split: Split { holdout: 1.5, part: Part::Train }, ..spec.clone() }, "holdout"),
        (LoaderSpec { targets: TargetSpec { value_lambda: 2.0, ..TargetSpec::default() }, ..spec }, "value_lambda"),
    ] {
        assert!(Loader::<Chess>::new(change).unwrap_err().to_string().contains(mention));
    }
}
