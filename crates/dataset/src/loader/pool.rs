//! Sources mixed by share into a pool from which samples are drawn at random.

use games::Rng;

use super::LoaderCounts;
use super::reader::Stream;
use super::slots::Slots;
use crate::DatasetError;
use crate::sample::Sample;

/// The shuffle pool: filled to its capacity before each draw, then a random slot leaves.
#[derive(Debug)]
pub(super) struct Pool {
    streams: Vec<Stream>,
    mix: Mix,
    slots: Slots,
    /// Numbers of the samples in `slots`.
    samples: Vec<u32>,
    /// The samples that were drawn last, whose slots are free at the next draw.
    drawn: Vec<u32>,
    capacity: usize,
    rng: Rng,
    /// The first source has no more samples; what is in the pool is drawn, and then the epoch is over.
    ended: bool,
}

/// Chooses the source of each sample so that shares hold to within one sample.
#[derive(Debug)]
pub(super) struct Mix {
    shares: Vec<f64>,
    /// Samples that each source is behind its share.
    credits: Vec<f64>,
}

impl Mix {
    pub(super) fn new(shares: impl Iterator<Item = f64>) -> Self {
        let shares: Vec<f64> = shares.collect();
        let sum: f64 = shares.iter().sum();
        Mix { credits: vec![0.0; shares.len()], shares: shares.into_iter().map(|s| s / sum).collect() }
    }

    /// The source that is furthest behind its share.
    fn next(&mut self) -> usize {
        let mut next = 0;
        for i in 0..self.shares.len() {
            self.credits[i] += self.shares[i];
            if self.credits[i] > self.credits[next] {
                next = i;
            }
        }
        self.credits[next] -= 1.0;
        next
    }

    /// How many samples come of all sources until the first, which has `samples`, is asked for one more.
    pub(super) fn until_first_ends(mut self, samples: u64) -> u64 {
        let (mut first, mut all) = (0, 0);
        while first < samples || self.shares.len() > 1 {
            if self.next() == 0 {
                if first == samples {
                    break;
                }
                first += 1;
            }
            all += 1;
        }
        all
    }
}

impl Pool {
    pub(super) fn new(streams: Vec<(Stream, f64)>, capacity: usize, rng: Rng) -> Self {
        let mix = Mix::new(streams.iter().map(|(_, share)| *share));
        let streams = streams.into_iter().map(|(stream, _)| stream).collect();
        Pool {
            streams,
            mix,
            slots: Slots::default(),
            samples: Vec::new(),
            drawn: Vec::new(),
            capacity,
            rng,
            ended: false,
        }
    }

    /// The next `rows` samples; fewer at the end of the epoch.
    ///
    /// A sample of a large pool is hardly ever in the cache. Here many are fetched in a row, so that the memory works on
    /// them at the same time.
    pub(super) fn draw(&mut self, rows: usize) -> Result<Vec<Sample<'_>>, DatasetError> {
        self.skip(rows)?;
        Ok(self.drawn.iter().map(|number| self.slots.get(*number)).collect())
    }

    /// Draws without looking at the samples; how many there were.
    pub(super) fn skip(&mut self, rows: usize) -> Result<usize, DatasetError> {
        self.drawn.drain(..).for_each(|number| self.slots.remove(number));
        while self.drawn.len() < rows {
            while !self.ended && self.samples.len() < self.capacity {
                let source = self.mix.next();
                match self.streams[source].next()? {
                    Some(sample) => self.samples.push(self.slots.insert(sample)),
                    None => self.ended = true,
                }
            }
            if self.samples.is_empty() {
                break;
            }
            let slot = self.rng.below(self.samples.len());
            self.drawn.push(self.samples.swap_remove(slot));
        }
        Ok(self.drawn.len())
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        self.streams.iter().flat_map(|s| &s.warnings)
    }

    pub(super) fn counts(&self) -> LoaderCounts {
        self.streams.iter().fold(LoaderCounts::default(), |sum, s| sum.plus(s.counts))
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
