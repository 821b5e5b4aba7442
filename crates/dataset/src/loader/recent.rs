//! A memory of positions in bounded space, to drop duplicates.

/// Entries that share a line of the cache.
const WAYS: usize = 8;
const SETS: usize = 1 << 19;

/// The last four million or so distinct keys: 32 MiB, whatever the size of the data.
///
/// Set-associative: within its set a new key replaces the oldest, so that a key that was seen long ago may be
/// forgotten, and no key is ever taken for another.
pub(super) struct Recent {
    keys: Vec<u64>,
    next: Vec<u8>,
}

impl Recent {
    pub(super) fn new() -> Self {
        Recent { keys: vec![0; SETS * WAYS], next: vec![0; SETS] }
    }

    /// Remembers `key`; false if it was remembered already.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        let key = key.max(1); // 0 is an empty entry
        let set = (key >> 45) as usize & (SETS - 1);
        let ways = &mut self.keys[set * WAYS..][..WAYS];
        if ways.contains(&key) {
            return false;
        }
        ways[usize::from(self.next[set]) % WAYS] = key;
        self.next[set] = (self.next[set] + 1) % WAYS as u8;
        true
    }

    pub(super) fn clear(&mut self) {
        self.keys.fill(0);
        self.next.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_keys_are_remembered_and_none_is_mistaken() {
        let mut rng = games::Rng::new(1);
        let keys: Vec<u64> = (0..1_000_000).map(|_| rng.next_u64()).collect();
        let mut recent = Recent::new();
        assert!(keys.iter().all(|k| recent.insert(*k)), "no two keys are equal");
        let forgotten = keys.iter().rev().filter(|k| recent.insert(**k)).count();
        assert!(forgotten < keys.len() / 1_000, "{forgotten} forgotten");
        recent.clear();
        assert!(recent.insert(keys[0]));
    }
}
