use games::{GameResult, Move, Termination};

use super::*;
use crate::testing::{chess_game, connect4_game, fill};
use crate::{GameRecord, OnBad, opening_name};

/// Fool's mate: White loses on the fourth ply.
fn mate(id: u64) -> GameRecord {
    let mut record = GameRecord::new("chess", id);
    let square = |s: &str| u16::from(s.as_bytes()[0] - b'a') + 8 * u16::from(s.as_bytes()[1] - b'1');
    let m = |text: &str| Move(square(&text[..2]) | square(&text[2..]) << 6);
    record.moves = ["f2f3", "e7e5", "g2g4", "d8h4"].map(m).to_vec();
    (record.best, record.score) = (vec![None; 4], vec![Some(0), Some(50), Some(-31_999), Some(31_999)]);
    (record.result, record.termination) = (Some(GameResult::BlackWins), Termination::Checkmate);
    (record.white, record.black) = ("Ann".into(), "Bob".into());
    (record.opening_plies, record.opening) = (1, Some("Barnes".into()));
    record
}

#[test]
fn every_table_counts_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let game = |id: u64| match id {
        0..6 => mate(id),
        6 => GameRecord { white: "Bob".into(), black: "Ann".into(), ..mate(6) },
        _ => GameRecord { white: "Ann".into(), black: "Cid".into(), opening: None, ..chess_game(id, 50) },
    };
    let dirs = fill(dir.path(), "corpus", 2, 5, game);
    let report = stats(&Dataset::open(&dirs, OnBad::Stop).unwrap()).unwrap();
    assert_eq!((report.games, report.distinct_games), (10, Count { count: 4, exact: true }));
    let row = |rows: &[Results], name: &str| rows.iter().find(|r| r.name == name).cloned().unwrap_or_default();
    let ann = row(&report.players, "Ann");
    let decided = (7..10).filter(|id| chess_game(*id, 50).result.is_some()).count() as u64;
    assert_eq!((ann.games, ann.losses >= 6, ann.wins >= 1, ann.none), (10, true, true, 3 - decided));
    let bob = row(&report.players, "Bob");
    assert_eq!((bob.games, bob.wins, bob.losses, bob.score()), (7, 6, 1, Some(6.0 / 7.0)));
    assert_eq!(row(&report.openings, "Barnes").losses, 7, "White lost them all");
    // The others are named by their first moves, where these are known.
    let unnamed = (7..10).filter(|id| opening_name(&game(*id).moves).is_none()).count() as u64;
    assert_eq!(row(&report.openings, "unknown").games, unnamed);
    assert!(row(&report.terminations, "checkmate").games >= 7);
    assert_eq!(report.lengths[0], Length { from: 0, to: 19, games: 7 });
    assert_eq!(report.results.games, 10);
    let bucket = |from: i32| report.calibration.iter().find(|c| c.from == from).unwrap();
    let mated = report.calibration.first().unwrap();
    assert_eq!((mated.from, mated.positions, mated.mean_result), (-32_000, 7, -1.0));
    assert_eq!((bucket(30_001).positions, bucket(30_001).mean_result), (7, 1.0));
    let chosen = |r: GameRecord| r.plies() as u64 - u64::from(r.opening_plies);
    assert_eq!(report.played_positions, (0..10).map(|id| chosen(game(id))).sum::<u64>());
    assert_eq!(report.counted_positions, report.played_positions);
    assert!(report.distinct_positions.count <= report.counted_positions - 6 * 3);
    let text = report.to_string();
    for part in ["bytes", "Barnes", "checkmate", "mate in n", "0-19", "Bob"] {
        assert!(text.contains(part), "{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["distinct_games"]["count"], 4);
    assert!(json["bytes_per_position"].as_f64().unwrap() > 0.0);
}

#[test]
fn other_games_are_counted_too() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = fill(dir.path(), "c4", 1, 8, connect4_game);
    let report = stats(&Dataset::open(&dirs, OnBad::Stop).unwrap()).unwrap();
    assert!(report.distinct_positions.count > 20 && report.bad_games == 0);
    assert_eq!(report.counted_positions, report.played_positions);
}
