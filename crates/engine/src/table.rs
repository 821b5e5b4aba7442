//! The transposition table, shared by all threads without a lock.
//!
//! An entry is two words, the data and the key xor the data. If two threads write one at the same time the words do not
//! fit each other, and the entry reads as one of no position (Hyatt and Mann, "A lock-less transposition table
//! implementation for parallel search chess engines", 2002).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use games::Move;
use uci::server::fits_in_memory;

use crate::score::{from_table, to_table};

/// Entries that a position may be found in: one cache line of them.
const WAYS: usize = 4;
/// Searches after which an age comes again.
const AGES: u8 = 64;
/// Entries that are looked at to say how full the table is.
const SAMPLE: usize = 1000;

/// How a score relates to the value of its position at its depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// At most the score.
    Upper = 1,
    /// At least the score.
    Lower = 2,
    /// The score itself.
    Exact = 3,
}

impl Bound {
    /// What a search with a window learns: a score outside the window is a bound and never exact.
    pub(crate) fn of(score: i32, alpha: i32, beta: i32) -> Self {
        if score >= beta {
            Bound::Lower
        } else if score > alpha {
            Bound::Exact
        } else {
            Bound::Upper
        }
    }

    /// Whether a score of this kind decides a search with a window.
    pub(crate) fn decides(self, score: i32, alpha: i32, beta: i32) -> bool {
        match self {
            Bound::Exact => true,
            Bound::Lower => score >= beta,
            Bound::Upper => score <= alpha,
        }
    }
}

/// What is known of a position. Scores are in the view of its side to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The best move, or the one that refuted; none if every move failed low.
    pub(crate) m: Move,
    /// Centipawns, or a mate counted from the root.
    pub(crate) score: i32,
    pub(crate) bound: Bound,
    /// Plies that were searched; 0 for quiescence.
    pub(crate) depth: i32,
    /// The static evaluation; none in check.
    pub(crate) evaluation: Option<i32>,
}

/// The data word: move 16 bits, score 16, evaluation 16, depth 8, bound 2, age 6.
fn pack(entry: &Entry, ply: usize, age: u8) -> u64 {
    let evaluation = entry.evaluation.map_or(i16::MIN, |e| e as i16);
    u64::from(entry.m.0)
        | u64::from(to_table(entry.score, ply) as i16 as u16) << 16
        | u64::from(evaluation as u16) << 32
        | (entry.depth.clamp(0, 255) as u64) << 48
        | (entry.bound as u64) << 56
        | u64::from(age) << 58
}

fn unpack(data: u64, ply: usize) -> Option<Entry> {
    let bound = match data >> 56 & 3 {
        1 => Bound::Upper,
        2 => Bound::Lower,
        3 => Bound::Exact,
        _ => return None,
    };
    let evaluation = (data >> 32) as u16 as i16;
    Some(Entry {
        m: Move(data as u16),
        score: from_table(i32::from((data >> 16) as u16 as i16), ply),
        bound,
        depth: depth_of(data),
        evaluation: (evaluation != i16::MIN).then(|| i32::from(evaluation)),
    })
}

fn depth_of(data: u64) -> i32 {
    (data >> 48 & 255) as i32
}

fn age_of(data: u64) -> u8 {
    (data >> 58) as u8
}

#[derive(Default)]
struct Slot {
    check: AtomicU64,
    data: AtomicU64,
}

impl Slot {
    #[inline]
    fn load(&self) -> (u64, u64) {
        let data = self.data.load(Ordering::Relaxed);
        (self.check.load(Ordering::Relaxed) ^ data, data)
    }
}

#[derive(Default)]
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

/// A table of fixed size.
pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    age: AtomicU8,
}

impl Table {
    /// A table of so many MiB, or the smallest one where there is not so much memory.
    pub(crate) fn new(mebibytes: usize) -> Self {
        let mut table = Table { buckets: Box::new([Bucket::default()]), age: AtomicU8::new(0) };
        table.resize(mebibytes);
        table
    }

    /// Becomes an empty table of so many MiB, at least 1. Where there is not so much memory it stays as it is, and the
    /// answer is `false`.
    pub(crate) fn resize(&mut self, mebibytes: usize) -> bool {
        let count = (mebibytes.max(1) << 20) / size_of::<Bucket>();
        let bytes = |buckets: usize| buckets * size_of::<Bucket>();
        let mut buckets = Vec::new();
        if !fits_in_memory(bytes(count), bytes(self.buckets.len())) || buckets.try_reserve_exact(count).is_err() {
            return false;
        }
        // Only addresses were reserved: the old table goes before the new one is written, as both may not fit.
        self.buckets = Box::default();
        buckets.resize_with(count, Bucket::default);
        *self = Table { buckets: buckets.into(), age: AtomicU8::new(0) };
        true
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        for slot in self.buckets.iter().flat_map(|b| &b.0) {
            slot.check.store(0, Ordering::Relaxed);
            slot.data.store(0, Ordering::Relaxed);
        }
        self.age.store(0, Ordering::Relaxed);
    }

    /// Begins a new search: entries of the ones before may be replaced whatever their depth.
    pub(crate) fn grow_older(&self) {
        self.age.store((self.age.load(Ordering::Relaxed) + 1) % AGES, Ordering::Relaxed);
    }

    #[inline]
    fn bucket(&self, key: u64) -> &[Slot; WAYS] {
        // The high bits choose the bucket, evenly for any number of buckets.
        let index = (u128::from(key) * self.buckets.len() as u128) >> 64;
        &self.buckets[index as usize].0
    }

    /// What is known of the position with this key, as seen from `ply` plies below the root.
    #[inline]
    pub(crate) fn probe(&self, key: u64, ply: usize) -> Option<Entry> {
        self.bucket(key)
            .iter()
            .map(Slot::load)
            .find(|(k, data)| *k == key && *data != 0)
            .and_then(|(_, d)| unpack(d, ply))
    }

    /// Keeps an entry if its bucket has a place for it: an empty one, the same position's, one of an older search, or
    /// one that was not searched deeper.
    pub(crate) fn store(&self, key: u64, ply: usize, mut entry: Entry) {
        let age = self.age.load(Ordering::Relaxed);
        let mut chosen: Option<(i32, &Slot)> = None;
        for slot in self.bucket(key) {
            let (held, data) = slot.load();
            if data == 0 || held == key {
                // A search that failed low knows no move, and the one before may have.
                if data != 0 && entry.m.0 == 0 {
                    entry.m = Move(data as u16);
                }
                chosen = Some((i32::MIN, slot));
                break;
            }
            let worth = depth_of(data) - if age_of(data) == age { 0 } else { 256 };
            if worth <= entry.depth && chosen.is_none_or(|(least, _)| worth < least) {
                chosen = Some((worth, slot));
            }
        }
        if let Some((_, slot)) = chosen {
            let data = pack(&entry, ply, age);
            slot.data.store(data, Ordering::Relaxed);
            slot.check.store(key ^ data, Ordering::Relaxed);
        }
    }

    /// Permille of the entries that this search has written.
    pub(crate) fn fullness(&self) -> usize {
        let age = self.age.load(Ordering::Relaxed);
        let sample = self.buckets.iter().flat_map(|b| &b.0).take(SAMPLE).map(|slot| slot.load().1);
        let (mut used, mut seen) = (0, 0);
        for data in sample {
            seen += 1;
            used += usize::from(data != 0 && age_of(data) == age);
        }
        used * 1000 / seen.max(1)
    }
}

#[cfg(test)]
mod tests {
    use games::{Move, Rng};

    use super::{Bound, Entry, Table, WAYS};
    use crate::score::{MATE, mate_in, mated_in};

    fn entry(depth: i32, score: i32) -> Entry {
        Entry { m: Move(77), score, bound: Bound::Exact, depth, evaluation: Some(-5) }
    }

    #[test]
    fn what_was_stored_is_found() {
        let table = Table::new(1);
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let key = rng.next_u64();
            let stored = Entry {
                m: Move(rng.next_u64() as u16),
                score: rng.below(60_000) as i32 - 30_000,
                bound: [Bound::Upper, Bound::Lower, Bound::Exact][rng.below(3)],
                depth: rng.below(128) as i32,
                evaluation: [None, Some(rng.below(40_000) as i32 - 20_000)][rng.below(2)],
            };
            table.store(key, 3, stored);
            assert_eq!(table.probe(key, 3), Some(stored));
            assert_eq!(table.probe(key ^ 1, 3), None);
        }
        table.clear();
        assert_eq!((table.probe(0, 0), table.fullness()), (None, 0));
    }

    /// A mate is so many moves from its position, wherever that is met.
    #[test]
    fn mates_are_counted_from_where_they_are_met() {
        let table = Table::new(1);
        for (stored, met) in [(mate_in(9), mate_in(7)), (mated_in(8), mated_in(6)), (250, 250), (0, 0)] {
            table.store(42, 4, entry(5, stored));
            assert_eq!(table.probe(42, 2).unwrap().score, met);
        }
        assert!(mate_in(9) < MATE);
    }

    /// The keys of one bucket.
    fn neighbours(table: &Table) -> impl Iterator<Item = u64> + use<> {
        let width = u64::MAX / table.buckets.len() as u64;
        (0..100).map(move |i| 5 * width + width / 2 + i)
    }

    #[test]
    fn entries_are_replaced_when_empty_equal_old_or_not_deeper() {
        let table = Table::new(1);
        let keys: Vec<u64> = neighbours(&table).collect();
        for (i, key) in keys[..WAYS].iter().enumerate() {
            table.store(*key, 0, entry(5 + i as i32, 10));
        }
        assert!(keys[..WAYS].iter().all(|k| table.probe(*k, 0).is_some()), "empty places are taken first");
        table.store(keys[4], 0, entry(4, 20));
        assert_eq!(table.probe(keys[4], 0), None, "all are deeper");
        table.store(keys[4], 0, entry(6, 20));
        let kept = |key: u64| table.probe(key, 0).is_some();
        assert!(kept(keys[4]) && !kept(keys[0]) && kept(keys[1]), "the shallowest that is not deeper goes");
        table.store(keys[3], 0, entry(1, -7));
        assert_eq!(table.probe(keys[3], 0).unwrap().score, -7, "the position's own entry always");
        table.grow_older();
        table.store(keys[5], 0, entry(0, 1));
        assert!(kept(keys[5]) && !kept(keys[3]), "the shallowest of the old ones");
        for (key, count) in keys[6..9].iter().zip(1..) {
            table.store(*key, 0, entry(0, 1));
            assert_eq!(keys.iter().filter(|k| kept(**k)).count(), WAYS, "{count}");
        }
        assert!(!kept(keys[1]) && !kept(keys[2]) && !kept(keys[4]), "old ones go however deep");
    }

    #[test]
    fn a_known_move_outlives_a_search_without_one() {
        let table = Table::new(1);
        table.store(9, 0, entry(3, 10));
        table.store(9, 0, Entry { m: Move(0), bound: Bound::Upper, ..entry(4, -10) });
        let found = table.probe(9, 0).unwrap();
        assert_eq!((found.m, found.score, found.depth), (Move(77), -10, 4));
    }

    #[test]
    fn words_that_do_not_fit_are_no_entry() {
        let table = Table::new(1);
        table.store(9, 0, entry(3, 10));
        let slot = table.bucket(9).iter().find(|s| s.load().0 == 9).unwrap();
        let torn = super::pack(&entry(4, 11), 0, 0);
        slot.data.store(torn, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(table.probe(9, 0), None);
    }

    #[test]
    fn bounds_follow_the_window() {
        for (score, bound) in
            [(-10, Bound::Upper), (0, Bound::Upper), (1, Bound::Exact), (50, Bound::Lower), (80, Bound::Lower)]
        {
            assert_eq!(Bound::of(score, 0, 50), bound, "{score}");
        }
        assert!(Bound::Lower.decides(50, 0, 50) && !Bound::Lower.decides(49, 0, 50));
        assert!(Bound::Upper.decides(0, 0, 50) && !Bound::Upper.decides(1, 0, 50));
        assert!(Bound::Exact.decides(20, 0, 50));
    }

    #[test]
    fn fullness_counts_this_search() {
        let table = Table::new(1);
        let mut rng = Rng::new(2);
        for _ in 0..400_000 {
            table.store(rng.next_u64(), 0, entry(1, 0));
        }
        assert!(table.fullness() > 950, "{}", table.fullness());
        table.grow_older();
        assert_eq!(table.fullness(), 0);
    }
}
