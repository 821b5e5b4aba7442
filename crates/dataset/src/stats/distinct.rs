//! Counting distinct keys in bounded memory.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use serde::Serialize;

/// Keys that are held before only a sample is.
const CAPACITY: usize = 1 << 22;

/// A number of distinct things.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Count {
    /// How many.
    pub count: u64,
    /// Whether that is exact; an estimate is within 0.2 % (three standard errors).
    pub exact: bool,
}

/// Wegman's adaptive sampling (Flajolet, 1990): keeps the keys whose lowest `level` bits are 0, and raises the level
/// when they become too many. The result depends on the set of keys alone, not on their order.
pub(super) struct Distinct {
    keys: HashSet<u64, BuildHasherDefault<Identity>>,
    level: u32,
    capacity: usize,
}

impl Distinct {
    pub(super) fn new() -> Self {
        Distinct::with_capacity(CAPACITY)
    }

    fn with_capacity(capacity: usize) -> Self {
        Distinct { keys: HashSet::default(), level: 0, capacity }
    }

    /// Counts a key, which is a hash.
    pub(super) fn insert(&mut self, key: u64) {
        if !self.sampled(key) {
            return;
        }
        self.keys.insert(key);
        while self.keys.len() > self.capacity {
            self.level += 1;
            let level = self.level;
            self.keys.retain(|k| k & mask(level) == 0);
        }
    }

    fn sampled(&self, key: u64) -> bool {
        key & mask(self.level) == 0
    }

    pub(super) fn count(&self) -> Count {
        Count { count: (self.keys.len() as u64) << self.level, exact: self.level == 0 }
    }
}

fn mask(level: u32) -> u64 {
    (1 << level) - 1
}

/// The keys are hashes already. The set's buckets must not hang on the low bits, which sampling makes equal.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = (self.0 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_while_it_fits_and_close_beyond() {
        let mut rng = games::Rng::new(5);
        let keys: Vec<u64> = (0..50_000).map(|_| rng.next_u64()).collect();
        let count = |capacity, keys: &mut dyn Iterator<Item = &u64>| {
            let mut distinct = Distinct::with_capacity(capacity);
            keys.for_each(|k| distinct.insert(*k));
            distinct.count()
        };
        assert_eq!(count(50_000, &mut keys.iter().chain(&keys)), Count { count: 50_000, exact: true });
        let estimate = count(4_096, &mut keys.iter());
        assert!(!estimate.exact && estimate.count.abs_diff(50_000) < 2_500, "{estimate:?}");
        assert_eq!(estimate, count(4_096, &mut keys.iter().rev()), "whatever the order");
    }
}
