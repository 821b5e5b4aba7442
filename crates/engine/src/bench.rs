//! A fixed amount of work: its nodes are the checksum of the engine's behaviour, its time the speed.

use std::time::{Duration, Instant};

use games::{Chess, Game, GameError, Line};

use crate::board::Board;
use crate::features::Features;
use crate::policy::Policy;
use crate::search::{Aborted, Memory, Monitor, Progress, Report, Root, Search, Setup};
use crate::table::Table;

/// Depth of a bench that was not given one.
pub const BENCH_DEPTH: u32 = 13;
/// Size of its table in MiB.
const HASH: usize = 16;

/// Openings, middlegames and endings from games of Stockfish against itself after random openings, and positions with
/// much to take.
const POSITIONS: [&str; 36] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "rnb1k2r/pppp1ppp/8/2b1p3/2N1P1nq/3P4/PPP1QPPP/R1B1KBNR w KQkq - 3 6",
    "r2qkbnr/1pp2p2/pn2p3/3p1b1p/1PPP2p1/P3P3/1B1N1PPP/R2QKBNR w KQkq - 2 10",
    "rn1qk2r/3bbpp1/1p2p2n/2ppP3/p2P1P1p/2PB3N/PP4PP/RNBQK2R w KQkq - 0 12",
    "r1bq1rk1/1pp3b1/2n2n1p/pN1Pppp1/P1P5/3P2P1/1P1N1PBP/R1BQK2R w KQ - 3 14",
    "r1b4q/pp3p2/3b1kNp/2p1p3/1nPpP3/NP5P/P2P1PP1/R1B1KB1R w KQ - 0 16",
    "3rk1r1/1pqnpp2/p3bn1b/2p5/2pP3p/PP1BPN1P/1BQ1NP2/R3K2R w - - 0 18",
    "2kr2nr/ppp2p2/3q2p1/2np4/PN3PPp/1PPP1N1B/4Q2P/2BKR3 w - - 4 20",
    "r2q1rk1/pb2bppp/1pn1p3/4P3/Pn1p4/N4NP1/1P3PBP/R1BQ1RK1 w - - 0 22",
    "2kr3r/1p5p/p1q2bp1/n2p4/8/2NN1P2/P1Q3PP/1RB2R1K w - - 4 24",
    "6r1/1kp1n3/1p1p1p2/4pp1p/2P2bPP/PPN5/2Q1K3/R6R w - - 1 26",
    "5rk1/p4bb1/4r3/6Qp/1PB1p2P/2P5/P4PP1/2KR2NR w - - 1 30",
    "8/1pQ1nk2/p5p1/5p2/4qP2/2P3P1/PP2p2P/2K1R3 w - - 2 33",
    "3q4/1r2nkp1/8/Rb3p2/1P1Bp2p/P3P2P/1R1P1PP1/6K1 w - - 7 36",
    "1r4k1/p2Q2p1/3p1p2/3P4/3R1P2/2P4P/7q/2KN4 w - - 4 39",
    "1k5r/3n1p2/2p2P2/pp6/2pP4/5R2/P2K4/8 w - - 2 43",
    "4r3/6p1/1p1k4/2pP3p/1r4bP/6K1/6P1/1R6 w - - 4 47",
    "4k3/6p1/p5P1/7p/7P/2P1n3/7R/2BK4 w - - 1 51",
    "r5k1/5pp1/1K6/3b2R1/1B1P4/1PQ5/P7/7q w - - 0 56",
    "1R6/2P2p2/6k1/4P3/4P1K1/7p/2P4B/8 w - - 3 61",
    "8/5k2/2K5/8/4p1P1/4N3/8/B7 w - - 6 66",
    "rnb1kbnr/p1qpppp1/7p/2p1N3/1p2P3/8/PPPP1PPP/RNBQKB1R w KQkq - 1 6",
    "r1bq1b1r/pppk1p1p/2npp1p1/3nP3/3P4/2N2N1P/PPP1BPP1/R1BQK2R w KQ - 1 8",
    "r3kb1r/pbpp2pp/1q3p1n/nNpQp3/2B4P/4P3/PP1PNPP1/R1B1K2R w KQkq - 5 12",
    "r4rk1/pp1n4/2p1q1p1/b2pppPp/3P3P/PPN1P2B/1BP5/R2QK1NR w KQ f6 0 16",
    "r4rk1/pp3p2/1q1p3p/4n1b1/1P2P1bP/P1pB2Q1/2P3P1/R3K2R w KQ - 3 20",
    "3q1krb/1B2pp2/Qn1p3P/1Pp5/8/P1NnB1P1/1PbR1P2/4K1NR w - - 3 24",
    "r5k1/p2n2p1/1p4q1/2pP2Np/2P2pbP/1P5R/PB2QKP1/2R5 w - - 1 28",
    "1k1rr3/7p/1p1bB3/p1p1p3/PBPp4/1N1P1PqP/1P2QN2/R2K1R2 w - - 0 33",
    "8/3rk3/2n2p2/p1R2P2/1p1pK3/2q3P1/P7/8 w - - 4 43",
    "8/5ppk/1P5p/4p3/1K4P1/3qP1PP/3p4/3R4 w - - 3 47",
    "8/6r1/2k5/p7/P1N1PK2/1PP2P2/3P4/8 w - - 1 51",
    "6k1/p6p/7P/8/8/p5PK/2r2p2/3r4 w - - 0 61",
    "8/8/8/p7/P2rk3/8/4K3/8 w - - 2 66",
    "R7/8/1K2kp2/1p3N2/1P2P1p1/6P1/8/8 w - - 30 71",
];

/// What a bench has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BenchReport {
    /// The same on every machine, in every run.
    pub nodes: u64,
    /// How long it took.
    pub time: Duration,
}

struct Undisturbed;

impl Monitor for Undisturbed {
    fn look(&mut self, _: u64) -> Result<u64, Aborted> {
        Ok(u64::MAX)
    }

    fn tell(&mut self, _: &Report<'_>) {}

    fn goes_on(&mut self, _: &Progress) -> bool {
        true
    }
}

/// Searches every position to a depth on one thread, each as the first of a game; with a policy, which makes the nodes
/// others, and floating-point numbers a part of the behaviour.
///
/// # Errors
/// None: the positions are legal.
pub fn bench(depth: u32, policy: Option<&Policy>) -> Result<BenchReport, GameError> {
    let (table, mut memory, began) = (Table::new(HASH), Memory::new(), Instant::now());
    let setup = Setup { features: Features::default(), table: &table, policy };
    let mut nodes = 0;
    for fen in POSITIONS {
        table.clear();
        memory.clear();
        let root = Root::new(&Line::new(Chess::from_fen(fen)?), &[]);
        let depth = i32::try_from(depth).unwrap_or(i32::MAX);
        nodes += Search::new(setup, &mut memory, &mut Undisturbed).run(&root, depth, 1).nodes;
    }
    Ok(BenchReport { nodes, time: began.elapsed() })
}

/// The time that a policy takes for one of these positions, all its legal moves included.
///
/// # Errors
/// None: the positions are legal.
pub fn bench_policy(policy: &Policy) -> Result<Duration, GameError> {
    const ROUNDS: u32 = 300;
    let boards = POSITIONS.iter().map(|fen| Ok(Board::from(Chess::from_fen(fen)?.position())));
    let boards = boards.collect::<Result<Vec<Board>, GameError>>()?;
    let (began, mut sum) = (Instant::now(), 0.0);
    for board in boards.iter().cycle().take(boards.len() * ROUNDS as usize) {
        let thought = policy.consider_board(board);
        board.legal_moves(|m| sum += policy.logit_of(&thought, m));
    }
    std::hint::black_box(sum);
    Ok(began.elapsed() / (ROUNDS * POSITIONS.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::{BENCH_DEPTH, bench};

    /// Every change of search or evaluation changes this number: then it goes here and into the commit's message.
    const NODES: u64 = 2_463_805;

    #[test]
    fn the_node_count_is_the_checksum_of_behaviour() {
        let first = bench(BENCH_DEPTH, None).unwrap();
        assert_eq!(first.nodes, NODES);
        assert_eq!(bench(BENCH_DEPTH, None).unwrap().nodes, NODES, "and again in one process");
    }
}
