//! A cache of evaluations in a fixed amount of memory.
//!
//! The key is [`games::Packed::key`], a hash of exactly what the planes contain: two positions with one key have one
//! evaluation, and the same legal moves. Priors have as many numbers as a position has moves, so they lie in one ring
//! of floats that is written round and round; a table of small buckets says where. An entry that is asked for when the
//! ring is half way round to it is written again at the front, which makes the order of eviction close to least
//! recently used without a list.

use std::collections::TryReserveError;

use games::MoverValue;

/// Room in the ring for each entry; a middle-game position has about 35 moves.
const PRIORS_PER_ENTRY: usize = 40;
/// Entries that share a bucket.
const WAYS: usize = 4;

#[derive(Clone, Copy, Default)]
struct Entry {
    key: u64,
    /// Position of the priors, counted from the ring's first write; never wraps.
    at: u64,
    value: f32,
    len: u32,
}

/// Evaluations by key.
pub(crate) struct Cache {
    table: Vec<Entry>,
    ring: Vec<f32>,
    /// Floats written so far.
    head: u64,
}

impl Cache {
    /// A cache for about `entries` evaluations (200 bytes each); 0 turns it off.
    ///
    /// # Errors
    /// There is not so much memory.
    pub(crate) fn new(entries: usize) -> Result<Self, TryReserveError> {
        if entries == 0 {
            return Ok(Cache { table: Vec::new(), ring: Vec::new(), head: 0 });
        }
        let buckets = entries.div_ceil(WAYS).checked_next_power_of_two().unwrap_or(usize::MAX / WAYS);
        Ok(Cache {
            table: defaults(buckets * WAYS)?,
            ring: defaults(entries.max(8).saturating_mul(PRIORS_PER_ENTRY))?,
            head: 0,
        })
    }

    fn bucket(&self, key: u64) -> usize {
        // The table's length is a power of two.
        (key as usize & (self.table.len() / WAYS - 1)) * WAYS
    }

    fn alive(&self, entry: &Entry) -> bool {
        entry.len > 0 && entry.at + self.ring.len() as u64 >= self.head
    }

    /// Fills `priors` and gives the value, if the evaluation of a position with `moves` legal moves is known.
    pub(crate) fn get(&mut self, key: u64, moves: usize, priors: &mut Vec<f32>) -> Option<MoverValue> {
        if self.table.is_empty() {
            return None;
        }
        let bucket = self.bucket(key);
        let way = (bucket..bucket + WAYS).find(|&i| {
            let e = &self.table[i];
            e.key == key && e.len as usize == moves && self.alive(e)
        })?;
        let entry = self.table[way];
        let start = (entry.at % self.ring.len() as u64) as usize;
        priors.clear();
        priors.extend_from_slice(&self.ring[start..start + moves]);
        if entry.at + self.ring.len() as u64 / 2 < self.head {
            self.table[way].at = self.write(priors);
        }
        Some(MoverValue(entry.value))
    }

    /// Remembers an evaluation, in place of the oldest of its bucket.
    pub(crate) fn put(&mut self, key: u64, priors: &[f32], value: MoverValue) {
        if self.table.is_empty() || priors.is_empty() || priors.len() > self.ring.len() {
            return;
        }
        let at = self.write(priors);
        let bucket = self.bucket(key);
        // The same key first, then a free or overwritten place, then the oldest.
        let age = |e: &Entry| if e.key == key || !self.alive(e) { 0 } else { e.at + 1 };
        let way = (bucket..bucket + WAYS).min_by_key(|&i| age(&self.table[i])).unwrap_or(bucket);
        self.table[way] = Entry { key, at, value: value.0, len: priors.len() as u32 };
    }

    /// Appends to the ring, in one piece.
    fn write(&mut self, priors: &[f32]) -> u64 {
        let size = self.ring.len() as u64;
        if self.head % size + priors.len() as u64 > size {
            self.head = self.head.next_multiple_of(size);
        }
        let at = self.head;
        let start = (at % size) as usize;
        self.ring[start..start + priors.len()].copy_from_slice(priors);
        self.head += priors.len() as u64;
        at
    }
}

/// A vector of so many defaults. `vec!` takes zeros from the system without writing them, which `resize` would, but ends
/// the program where there is no memory: hence the question before it.
fn defaults<T: Default + Clone>(count: usize) -> Result<Vec<T>, TryReserveError> {
    Vec::<T>::new().try_reserve_exact(count)?;
    Ok(vec![T::default(); count])
}

#[cfg(test)]
mod tests {
    use games::{MoverValue, Rng};

    use super::Cache;

    fn priors(key: u64) -> Vec<f32> {
        let n = 1 + (key % 60) as usize;
        (0..n).map(|i| (key % 1000) as f32 + i as f32).collect()
    }

    #[test]
    fn what_is_given_back_is_what_was_put() {
        let mut cache = Cache::new(100).unwrap();
        let mut rng = Rng::new(5);
        let keys: Vec<u64> = (0..500).map(|_| rng.next_u64()).collect();
        let mut out = Vec::new();
        let mut hits = 0;
        for _ in 0..20_000 {
            let key = keys[(rng.unit() * rng.unit() * 500.0) as usize];
            let expected = priors(key);
            match cache.get(key, expected.len(), &mut out) {
                Some(value) => {
                    hits += 1;
                    assert_eq!((value, &out), (MoverValue((key % 7) as f32), &expected));
                }
                None => cache.put(key, &expected, MoverValue((key % 7) as f32)),
            }
        }
        assert!(hits > 4000, "{hits} hits of 20000");
    }

    #[test]
    fn an_entry_in_use_outlives_many_others() {
        let mut cache = Cache::new(1024).unwrap();
        let mut rng = Rng::new(6);
        let mut out = Vec::new();
        cache.put(42, &priors(42), MoverValue(0.5));
        for i in 0..20_000 {
            let key = rng.next_u64() | 1 << 40;
            cache.put(key, &[0.5; 30], MoverValue(0.0));
            if i % 100 == 0 {
                cache.get(42, priors(42).len(), &mut out);
            }
        }
        assert!(cache.table.len() * 24 + cache.ring.len() * 4 < 1024 * 220, "memory is bounded");
        cache.put(7, &[1.0], MoverValue(0.25));
        assert_eq!(cache.get(7, 1, &mut out), Some(MoverValue(0.25)));
        assert_eq!(cache.get(7, 2, &mut out), None, "another number of moves is another position");
    }

    #[test]
    fn more_than_the_memory_is_an_error() {
        for entries in [usize::MAX, usize::MAX / 2, 1 << 50] {
            assert!(Cache::new(entries).is_err(), "{entries}");
        }
    }

    #[test]
    fn size_zero_is_off() {
        let mut cache = Cache::new(0).unwrap();
        cache.put(1, &[1.0], MoverValue(1.0));
        assert_eq!(cache.get(1, 1, &mut Vec::new()), None);
    }
}
