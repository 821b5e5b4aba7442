//! The search against the rules of the game and against a search without any cleverness.

use games::{Chess, Game, Line, Move};

use super::traps::Trap;
use super::{Aborted, Found, Memory, Monitor, Path, Progress, Report, Root, RootMove, Search, Setup};
use crate::board::Board;
use crate::evaluate::{PawnCache, evaluate};
use crate::features::Features;
use crate::moves::NONE;
use crate::score::{DRAW, FIFTY_MOVES, INFINITE, MATES, mate_in, mated_in};
use crate::table::{Bound, Entry, Table};
use crate::testing::{FENS, board};

/// Ends a search after so many nodes, and keeps what it was told.
struct Counter {
    limit: u64,
    told: Vec<(i32, Bound, RootMove)>,
}

impl Counter {
    fn new(limit: u64) -> Self {
        Counter { limit, told: Vec::new() }
    }
}

impl Monitor for Counter {
    fn look(&mut self, nodes: u64) -> Result<u64, Aborted> {
        if nodes >= self.limit { Err(Aborted) } else { Ok(self.limit) }
    }

    fn tell(&mut self, report: &Report<'_>) {
        self.told.push((report.depth, report.found.bound, report.found.clone()));
    }

    fn goes_on(&mut self, _: &Progress) -> bool {
        true
    }
}

const ENOUGH: u64 = u64::MAX;

/// A game from a FEN and moves.
fn line(fen: &str, moves: &str) -> Line<Chess> {
    let mut line = Line::new(Chess::from_fen(fen).unwrap());
    for text in moves.split_ascii_whitespace() {
        let m = line.state().parse_move(text).unwrap_or_else(|e| panic!("{e}"));
        line.play(m);
    }
    line
}

/// A search by itself: its own table and memory, and what happened in it.
struct Lab {
    table: Table,
    memory: Memory,
    features: Features,
    trap: Option<Trap>,
    equal_depths: bool,
    stored: Vec<(Board, usize, Entry)>,
    told: Vec<(i32, Bound, RootMove)>,
}

impl Lab {
    fn new(features: Features) -> Self {
        Lab {
            table: Table::new(4),
            memory: Memory::new(),
            features,
            trap: None,
            equal_depths: false,
            stored: Vec::new(),
            told: Vec::new(),
        }
    }

    fn trapped(features: Features, trap: Option<Trap>) -> Self {
        Lab { trap, ..Lab::new(features) }
    }

    fn with<T>(&mut self, limit: u64, body: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let mut counter = Counter::new(limit);
        let setup = Setup { features: self.features, table: &self.table, policy: None };
        let mut search = Search::new(setup, &mut self.memory, &mut counter);
        (search.rig.trap, search.rig.equal_depths) = (self.trap, self.equal_depths);
        let result = body(&mut search);
        self.stored = std::mem::take(&mut search.rig.stored);
        self.told = counter.told;
        result
    }

    fn run(&mut self, line: &Line<Chess>, depth: i32, nodes: u64) -> Found {
        let root = Root::new(line, &[]);
        self.with(nodes, |search| search.run(&root, depth, 1))
    }

    /// A search of a position from its own root, without the draw rules that look at the way to it.
    fn value(&mut self, fen: &str, window: (i32, i32), depth: i32) -> i32 {
        let (root, path) = (board(fen), Path { below_null: true, ..Path::default() });
        self.with(ENOUGH, |search| search.search(&root, window.0, window.1, depth, 0, path)).unwrap()
    }
}

fn full(fen: &str, depth: i32) -> Found {
    Lab::new(Features::default()).run(&line(fen, ""), depth, ENOUGH)
}

/// Every line to its end: no windows, no table, no order.
struct Minimax {
    features: Features,
    cache: PawnCache,
    path: Vec<u64>,
    before_root: usize,
}

impl Minimax {
    fn value(root: &Root, features: Features, depth: i32) -> i32 {
        let path = root.before.clone();
        let mut minimax = Minimax { features, cache: PawnCache::new(), before_root: path.len(), path };
        minimax.search(&root.board, depth)
    }

    fn search(&mut self, board: &Board, depth: i32) -> i32 {
        let mut moves = Vec::new();
        board.legal_moves(|m| moves.push(m));
        let ply = self.path.len() - self.before_root;
        if ply > 0 && !moves.is_empty() && self.is_drawn(board, ply) {
            return DRAW;
        }
        if depth == 0 {
            return evaluate(board, &self.features, &mut self.cache);
        }
        self.path.push(board.key());
        let best = moves.into_iter().map(|m| -self.search(&board.after(m), depth - 1)).max();
        self.path.pop();
        best.unwrap_or(if board.is_check() { mated_in(ply) } else { DRAW })
    }

    fn is_drawn(&self, board: &Board, ply: usize) -> bool {
        let reversible = self.path.iter().rev().take(board.halfmoves() as usize);
        let seen: Vec<usize> = reversible.enumerate().filter(|(_, k)| **k == board.key()).map(|(i, _)| i).collect();
        board.is_insufficient_material()
            || board.halfmoves() >= FIFTY_MOVES
            || seen.len() >= 2
            || seen.first().is_some_and(|back| *back < ply)
    }
}

/// Positions in which repetitions, the clock, stalemate and mate are near.
const SHARP: [(&str, &str); 9] = [
    (FENS[0], ""),
    (FENS[2], ""),
    ("7k/8/5K2/6Q1/8/8/8/8 w - - 97 120", ""),
    ("k7/8/1K6/8/8/8/8/1R6 w - - 0 1", "b1b2 a8b8 b2b1 b8a8"),
    ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1b1 g8f8 b1a1 f8g8 a1b1 g8f8"),
    ("8/8/8/8/8/5k2/5p2/5K2 b - - 4 80", ""),
    ("7k/3p4/8/K3P3/8/8/8/8 b - - 0 1", ""),
    ("4k3/P7/8/8/8/8/p7/4K3 w - - 98 99", ""),
    ("7k/8/5K2/6Q1/8/8/8/8 w - - 40 80", ""),
];

/// Alpha-beta on its own finds the value that the whole tree has, draws by repetition and clock and mates among it.
#[test]
fn plain_alpha_beta_equals_the_whole_tree() {
    for (i, (fen, moves)) in SHARP.into_iter().enumerate() {
        let (root, features) = (Root::new(&line(fen, moves), &[]), Features::none());
        // The first two have more moves than the others.
        for depth in 1..=if i < 2 { 4 } else { 5 } {
            let found = Lab::new(features).with(ENOUGH, |search| search.run(&root, depth, 1));
            let value = Minimax::value(&root, features, depth);
            assert_eq!(found.moves[0].score, value, "{fen} {moves} at depth {depth}");
        }
    }
}

/// Two orders of the same four moves lead to one position: in one line after the other that is no repetition.
#[test]
fn the_ancestor_path_is_truncated_by_ply_at_node_entry() {
    let drawn = |trap: Option<Trap>| {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 10 20";
        Lab::trapped(Features::default(), trap).with(ENOUGH, |search| {
            let (root, mut found) = (board(start), Vec::new());
            search.enter(&root, 0, Path::default()).unwrap();
            for moves in ["g1f3 g8f6 b1c3 b8c6", "b1c3 b8c6 g1f3 g8f6", "g1f3 g8f6 f3g1 f6g8"] {
                let (mut board, mut drawn) = (root.clone(), None);
                for (i, m) in line(start, moves).moves().iter().enumerate() {
                    board = board.after(*m);
                    drawn = search.enter(&board, i + 1, Path::default()).unwrap();
                }
                found.push(drawn);
            }
            found
        })
    };
    assert_eq!(drawn(None), [None, None, Some(DRAW)]);
    assert_eq!(drawn(Some(Trap::PathNotTruncated))[1], Some(DRAW), "the mistake goes unnoticed");
}

/// The side that is a rook down can repeat the position for the third time: a draw, whatever the evaluation says.
#[test]
fn draw_tests_run_before_quiescence() {
    let fen = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
    let cycle = "a1b1 g8f8 b1a1 f8g8";
    let line = line(fen, &format!("{cycle} {cycle} a1b1"));
    for depth in 1..=4 {
        let found = Lab::new(Features::default()).run(&line, depth, ENOUGH);
        assert_eq!((found.moves[0].score, &*line.state().move_text(found.moves[0].m)), (DRAW, "g8f8"), "{depth}");
    }
    let missed = Lab::trapped(Features::default(), Some(Trap::QuiescenceBeforeDraws)).run(&line, 1, ENOUGH);
    assert!(missed.moves[0].score < -300, "the mistake goes unnoticed");
}

#[test]
fn repetition_and_fifty_moves_are_off_below_a_null_move() {
    let drawn = |fen: &str, moves: &str, below_null: bool, trap: Option<Trap>| {
        let root = Root::new(&line(fen, moves), &[]);
        let path = Path { below_null, ..Path::default() };
        Lab::trapped(Features::default(), trap).with(ENOUGH, |search| {
            (search.keys, search.before_root) = (root.before.clone(), root.before.len());
            search.enter(&root.board, 0, path).unwrap()
        })
    };
    let cycle = "g1f3 g8f6 f3g1 f6g8";
    let threefold = format!("{cycle} {cycle}");
    let fifty = "7k/8/5K2/6Q1/8/8/8/8 w - - 100 120";
    for (fen, moves) in [(FENS[0], threefold.as_str()), (fifty, "")] {
        assert_eq!(drawn(fen, moves, false, None), Some(DRAW), "{fen}");
        assert_eq!(drawn(fen, moves, true, None), None, "{fen}");
        assert_eq!(drawn(fen, moves, true, Some(Trap::DrawsBelowNull)), Some(DRAW), "the mistake goes unnoticed");
    }
    let bare = "7k/8/5K2/8/8/8/8/8 w - - 0 1";
    assert_eq!(drawn(bare, "", true, None), Some(DRAW), "nobody can mate after a null move either");
}

/// A null move is the only way that two positions of one board can meet in the table: the test looks at every entry.
#[test]
fn a_null_move_changes_the_key_of_what_is_stored_below_it() {
    let wrong_keys = |trap: Option<Trap>| {
        let mut wrong = 0;
        for fen in &FENS[..5] {
            let mut lab = Lab::trapped(Features::default(), trap);
            lab.run(&line(fen, ""), 7, ENOUGH);
            assert!(lab.stored.len() > 50);
            wrong += lab.stored.iter().filter(|(board, ..)| board.key() != board.key_anew()).count();
        }
        wrong
    };
    assert_eq!(wrong_keys(None), 0);
    assert!(wrong_keys(Some(Trap::NullKeepsKey)) > 0, "the mistake goes unnoticed");
}

/// A search that is ended stores what the undisturbed one has stored by then, and nothing else.
#[test]
fn an_aborted_search_never_stores_a_score() {
    let (fen, depth) = (FENS[1], 10);
    let mut whole = Lab::new(Features::default());
    whole.run(&line(fen, ""), depth, ENOUGH);
    let stores_more = |limit: u64, trap: Option<Trap>| {
        let mut lab = Lab::trapped(Features::default(), trap);
        lab.run(&line(fen, ""), depth, limit);
        assert!(lab.stored.len() < whole.stored.len() || trap.is_some());
        !whole.stored.starts_with(&lab.stored)
    };
    let limits = || (0..50).map(|i| 1 + i * i * 2);
    assert!(whole.stored.len() > 5000, "{}", whole.stored.len());
    assert!(!limits().any(|limit| stores_more(limit, None)));
    assert!(limits().any(|limit| stores_more(limit, Some(Trap::AbortedIsScored))), "the mistake goes unnoticed");
}

/// Whether a search that is ended answers otherwise than the last complete iteration, and not with a move that it has
/// told to be better.
fn answers_from_an_unfinished_iteration(fen: &str, limit: u64, best: &[Move], trap: Option<Trap>) -> bool {
    let mut lab = Lab::trapped(Features::default(), trap);
    let found = lab.run(&line(fen, ""), best.len() as i32, limit);
    if found.depth == 0 || found.moves[0].m == best[found.depth as usize - 1] {
        return false;
    }
    let (depth, bound, told) = lab.told.last().unwrap();
    let promoted = *depth == found.depth + 1 && *bound != Bound::Upper && *told == found.moves[0];
    !promoted
}

#[test]
fn the_root_drops_an_unfinished_iteration() {
    let mut promoted = 0;
    let mut noticed = false;
    // Which of them show it depends on the evaluation: three at least, and others until one does.
    for (i, fen) in [1, 3, 4, 0, 2, 5, 9, 6, 10].map(|i| FENS[i]).into_iter().enumerate() {
        if i >= 3 && noticed && promoted > 0 {
            break;
        }
        let mut whole = Lab::new(Features::default());
        let found = whole.run(&line(fen, ""), 7, ENOUGH);
        let best: Vec<Move> = (1..=7)
            .map(|depth| whole.told.iter().rfind(|(d, bound, _)| *d == depth && *bound == Bound::Exact).unwrap().2.m)
            .collect();
        for limit in (0..200).map(|i| 50 + found.nodes * i / 200) {
            assert!(!answers_from_an_unfinished_iteration(fen, limit, &best, None), "{fen} at {limit}");
            noticed |= answers_from_an_unfinished_iteration(fen, limit, &best, Some(Trap::UnfinishedIterationCounts));
            let mut lab = Lab::new(Features::default());
            let cut = lab.run(&line(fen, ""), 7, limit);
            promoted += usize::from(cut.depth > 0 && cut.moves[0].m != best[cut.depth as usize - 1]);
        }
    }
    assert!(noticed, "the mistake goes unnoticed");
    assert!(promoted > 0, "no unfinished iteration has found a better move");
}

/// What the root stores after a search with a window.
fn stored_at_root(fen: &str, window: (i32, i32), trap: Option<Trap>) -> Entry {
    let root = Root::new(&line(fen, ""), &[]);
    let mut lab = Lab::trapped(Features::default(), trap);
    lab.with(ENOUGH, |search| {
        let mut moves = search.first_order(&root);
        search.search_root(&root, &mut moves, window, 4, 0, &mut None).unwrap();
    });
    let (board, ply, entry) = lab.stored.pop().unwrap();
    assert_eq!((&board, ply), (&root.board, 0));
    assert_eq!(lab.table.probe(board.key(), 0), Some(entry));
    entry
}

#[test]
fn an_aspiration_window_that_fails_is_never_stored_as_exact() {
    for fen in &FENS[..5] {
        let exact = stored_at_root(fen, (-INFINITE, INFINITE), None);
        assert_eq!(exact.bound, Bound::Exact);
        let (above, below) = ((exact.score + 200, exact.score + 232), (exact.score - 232, exact.score - 200));
        assert_eq!(stored_at_root(fen, above, None).bound, Bound::Upper, "{fen}");
        assert_eq!(stored_at_root(fen, below, None).bound, Bound::Lower, "{fen}");
        assert_eq!(stored_at_root(fen, above, Some(Trap::FailLowIsExact)).bound, Bound::Exact, "unnoticed");
        assert_eq!(stored_at_root(fen, below, Some(Trap::FailHighIsExact)).bound, Bound::Exact, "unnoticed");
    }
}

/// Every score that is told without a bound lies in its window, and every entry's bound is one that its score allows.
#[test]
fn a_search_of_some_moves_is_not_stored_for_the_position() {
    let line = line(FENS[1], "");
    let only = line.state().parse_move("e1f1").unwrap();
    let root = Root::new(&line, &[only]);
    let mut lab = Lab::new(Features::default());
    let found = lab.with(ENOUGH, |search| search.run(&root, 5, 1));
    assert_eq!(found.moves.iter().map(|m| m.m).collect::<Vec<_>>(), [only]);
    assert!(lab.stored.iter().all(|(_, ply, _)| *ply > 0));
}

#[test]
fn a_mate_beyond_the_fifty_move_boundary_is_a_draw() {
    let score = |clock: u32, depth: i32| full(&format!("k7/8/2K5/8/8/8/8/7R w - - {clock} 120"), depth).moves[0].score;
    for depth in [6, 10] {
        assert_eq!(score(0, depth), mate_in(3));
        assert_eq!(score(97, depth), mate_in(3), "mate on the hundredth half-move is a win");
        assert_eq!(score(98, depth), DRAW);
    }
    // What an earlier search has left does not count either.
    let mut lab = Lab::new(Features::default());
    for (clock, expected) in [(0, mate_in(3)), (98, DRAW), (97, mate_in(3)), (99, DRAW)] {
        let line = line(&format!("k7/8/2K5/8/8/8/8/7R w - - {clock} 120"), "");
        assert_eq!(lab.run(&line, 8, ENOUGH).moves[0].score, expected, "{clock}");
    }
}

#[test]
fn a_mate_of_the_table_counts_only_within_the_fifty_moves() {
    let score = |mate: i32, trap: Option<Trap>| {
        let mut lab = Lab::trapped(Features::default(), trap);
        let root = board("8/8/8/8/5k2/8/8/K6R w - - 59 90");
        let entry = Entry { m: NONE, score: mate, bound: Bound::Exact, depth: 50, evaluation: Some(0) };
        lab.table.store(root.key(), 0, entry);
        lab.with(ENOUGH, |search| search.search(&root, 0, 1, 3, 0, Path::default())).unwrap()
    };
    assert_eq!(score(mate_in(41), None), mate_in(41), "on the hundredth half-move");
    assert!(score(mate_in(43), None) < MATES);
    assert_eq!(score(mate_in(43), Some(Trap::MateBeyondFiftyMoves)), mate_in(43), "the mistake goes unnoticed");
    assert!(score(mated_in(42), None) > -MATES);
}

/// At a fixed depth, and without anything that trusts an estimate, the table only saves work. (It is told to use
/// entries of the same depth alone: a deeper one is no mistake, but another answer.)
#[test]
fn the_result_is_the_same_with_the_table_on_and_off() {
    let mut plain = Features::none();
    for name in ["Quiescence", "PrincipalVariation", "PawnStructure", "Mobility", "KingSafety", "CheckExtension"] {
        assert!(plain.set(name, true));
    }
    let (mut saved, mut spent) = (0, 0);
    for fen in FENS.iter().take(9).chain(SHARP.iter().skip(4).map(|(fen, _)| fen)) {
        for depth in [3, 5] {
            let window = (-INFINITE, INFINITE);
            let mut without = Lab::new(plain);
            let expected = without.value(fen, window, depth);
            let mut with = Lab::new(Features { table: true, ..plain });
            with.equal_depths = true;
            for round in 0..2 {
                assert_eq!(with.value(fen, window, depth), expected, "{fen} at depth {depth}, round {round}");
            }
            (saved, spent) = (saved + with.stored.len(), spent + without.stored.len());
        }
    }
    assert!(saved < spent / 2, "{saved} nodes with the table, {spent} without");
}

#[test]
fn equal_searches_have_equal_results_and_every_part_can_be_taken_away() {
    let run = |features: Features| {
        let searches = [FENS[1], FENS[2], FENS[4], "4k2r/8/8/8/8/8/8/R3K2B w - - 6 66"].map(|fen| {
            let mut lab = Lab::new(features);
            let found = lab.run(&line(fen, ""), 8, 300_000);
            assert!(!found.moves.is_empty() && lab.told.len() >= 2, "{fen}");
            (found.nodes, found.moves, lab.told)
        });
        searches.to_vec()
    };
    let all = run(Features::default());
    assert!(all == run(Features::default()));
    for (name, on) in Features::OPTIONS {
        let mut features = Features::default();
        features.set(name, !on);
        assert!(run(features) != all, "{name} makes no difference");
    }
}

#[test]
fn several_lines_have_several_moves_in_order() {
    let root = Root::new(&line(FENS[1], ""), &[]);
    let mut lab = Lab::new(Features::default());
    let found = lab.with(ENOUGH, |search| search.run(&root, 6, 4));
    let best = &found.moves[..4];
    assert!(best.windows(2).all(|w| w[0].score >= w[1].score && w[0].m != w[1].m), "{best:?}");
    assert!(best.iter().all(|m| m.bound == Bound::Exact && m.line[0] == m.m && m.line.len() > 1));
    let ranks: Vec<_> = lab.told.iter().rev().take(4).map(|(_, _, m)| m.m).collect();
    assert_eq!(ranks, [best[3].m, best[2].m, best[1].m, best[0].m]);
    // More lines than moves.
    let few = Root::new(&line("7k/8/8/8/8/8/6q1/7K w - - 0 1", ""), &[]);
    assert_eq!(lab.with(ENOUGH, |search| search.run(&few, 3, 200)).moves.len(), 1);
}

#[test]
fn u21_a_position_that_no_budget_survives_is_left_in_time() {
    let monster = "8/PPPPPPPP/nr4RN/qb4BQ/kb4BK/nr4RN/pppppppp/8 w - - 0 1";
    let found = Lab::new(Features::default()).run(&line(monster, ""), 100, 100_000);
    assert!(found.nodes <= 100_000 && !found.moves.is_empty());
}

/// A game in which every line is forced ends at the greatest depth, and not in an endless loop.
#[test]
fn the_greatest_depth_is_the_end() {
    let found = full("7k/8/8/8/8/8/6q1/7K w - - 0 1", 200);
    assert_eq!((found.depth, found.moves[0].score), (127, DRAW));
}

/// `tests/fixtures/mates.txt`: moves to mate and position.
fn mates() -> Vec<(usize, &'static str)> {
    let text = include_str!("../../tests/fixtures/mates.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').map(|(moves, fen)| (moves.parse().unwrap(), fen)).unwrap()).collect()
}

/// Whether the mover mates in so many moves against any defence: the whole tree.
fn mates_in(board: &Board, moves: usize) -> bool {
    let mut own = Vec::new();
    board.legal_moves(|m| own.push(m));
    moves > 0
        && own.into_iter().any(|m| {
            let next = board.after(m);
            let mut replies = Vec::new();
            next.legal_moves(|m| replies.push(m));
            let lost = next.is_check() || !replies.is_empty();
            lost && replies.into_iter().all(|m| mates_in(&next.after(m), moves - 1))
        })
}

#[test]
fn mates_in_one_to_four_are_found_at_their_distance() {
    let (mates, exact) = (mates(), |moves: usize| mate_in(2 * moves - 1));
    for moves in 1..=4 {
        assert!(mates.iter().filter(|(n, _)| *n == moves).count() >= 8, "{moves}");
    }
    assert!(mates.len() >= 40);
    for (moves, fen) in mates {
        if moves <= 2 {
            assert!(mates_in(&board(fen), moves) && !mates_in(&board(fen), moves - 1), "{fen} is no mate in {moves}");
        }
        let mut lab = Lab::new(Features::default());
        let found =
            (1..).map(|depth| lab.run(&line(fen, ""), depth, ENOUGH)).find(|f| f.moves[0].score >= exact(moves));
        let best = &found.unwrap().moves[0];
        assert_eq!((best.score, best.bound), (exact(moves), Bound::Exact), "{fen}: {best:?}");
        assert!(
            lab.told.last().unwrap().0 <= 2 * moves as i32 + 12,
            "{fen} takes {} plies",
            lab.told.last().unwrap().0
        );
        let end = best.line.iter().fold(board(fen), |board, m| {
            assert!(board.is_legal(*m), "{m:?} in {fen}");
            board.after(*m)
        });
        assert!(best.line.len() == 2 * moves - 1 && end.is_check() && !end.has_legal_move(), "{fen}: {best:?}");
    }
}
