//! Sources mixed by share into a pool from which samples are drawn at random.

use games::Rng;

use super::LoaderCounts;
use super::reader::Stream;
use crate::{DatasetError, Sample};

/// The shuffle pool: filled to its capacity before each draw, then a random slot leaves.
#[derive(Debug)]
pub(super) struct Pool {
    sources: Vec<Mixed>,
    samples: Vec<Sample>,
    capacity: usize,
    rng: Rng,
    /// The first source has no more samples; what is in the pool is drawn, and then the epoch is over.
    ended: bool,
}

#[derive(Debug)]
struct Mixed {
    stream: Stream,
    share: f64,
    /// Samples that this source is behind its share.
    credit: f64,
}

impl Pool {
    pub(super) fn new(streams: Vec<(Stream, f64)>, capacity: usize, rng: Rng) -> Self {
        let sum: f64 = streams.iter().map(|(_, share)| share).sum();
        let mixed = |(stream, share)| Mixed { stream, share: share / sum, credit: 0.0 };
        let sources = streams.into_iter().map(mixed).collect();
        Pool { sources, samples: Vec::new(), capacity, rng, ended: false }
    }

    /// A random sample of the pool; `None` at the end of the epoch.
    pub(super) fn draw(&mut self) -> Result<Option<Sample>, DatasetError> {
        while !self.ended && self.samples.len() < self.capacity {
            match self.incoming()? {
                Some(sample) => self.samples.push(sample),
                None => self.ended = true,
            }
        }
        if self.samples.is_empty() {
            return Ok(None);
        }
        let slot = self.rng.below(self.samples.len());
        Ok(Some(self.samples.swap_remove(slot)))
    }

    /// The next sample of the source that is furthest behind its share: shares hold to within one sample.
    fn incoming(&mut self) -> Result<Option<Sample>, DatasetError> {
        let mut next = 0;
        for i in 0..self.sources.len() {
            self.sources[i].credit += self.sources[i].share;
            if self.sources[i].credit > self.sources[next].credit {
                next = i;
            }
        }
        self.sources[next].credit -= 1.0;
        self.sources[next].stream.next()
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        self.sources.iter().flat_map(|s| &s.stream.warnings)
    }

    pub(super) fn counts(&self) -> LoaderCounts {
        self.sources.iter().fold(LoaderCounts::default(), |sum, s| sum.plus(s.stream.counts))
    }
}

impl LoaderCounts {
    pub(super) fn plus(self, more: Self) -> Self {
        LoaderCounts {
            games: self.games + more.games,
            samples: self.samples + more.samples,
            duplicates: self.duplicates + more.duplicates,
            bad_games: self.bad_games + more.bad_games,
        }
    }
}
