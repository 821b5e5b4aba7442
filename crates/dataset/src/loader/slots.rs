//! Where the samples of the shuffle pool lie: in place, and their room is used again.

use crate::sample::{Head, Sample};

/// Words of samples are held in pieces whose size is a multiple of this.
const GRAIN: usize = 8;

/// Samples by number. Memory grows to the most that was held at once and then stays.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    words: Vec<u16>,
    free: Vec<u32>,
    /// Free pieces of `words`, by their size in grains.
    pieces: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Slot {
    head: Head,
    at: u32,
    words: u32,
}

impl Slots {
    /// Copies a sample in; its number.
    pub(super) fn insert(&mut self, sample: Sample<'_>) -> u32 {
        let grains = sample.words.len().div_ceil(GRAIN);
        if self.pieces.len() <= grains {
            self.pieces.resize(grains + 1, Vec::new());
        }
        let at = self.pieces[grains].pop().unwrap_or_else(|| {
            let end = self.words.len() / GRAIN;
            self.words.resize((end + grains) * GRAIN, 0);
            end as u32
        });
        self.words[at as usize * GRAIN..][..sample.words.len()].copy_from_slice(sample.words);
        let slot = Slot { head: sample.head, at, words: sample.words.len() as u32 };
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// The sample with a number that [`Slots::insert`] gave.
    pub(super) fn get(&self, number: u32) -> Sample<'_> {
        let slot = &self.slots[number as usize];
        Sample { head: slot.head, words: &self.words[slot.at as usize * GRAIN..][..slot.words as usize] }
    }

    /// Frees the room of a sample.
    pub(super) fn remove(&mut self, number: u32) {
        let slot = &self.slots[number as usize];
        self.pieces[(slot.words as usize).div_ceil(GRAIN)].push(slot.at);
        self.free.push(number);
    }
}
