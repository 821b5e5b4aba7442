//! The program's only source of randomness: seeded, portable and stable between versions.

/// xoshiro256++ (Blackman and Vigna, 2018), seeded by SplitMix64 over any number of integers.
///
/// # Stability
/// Corpora are reproducible from their seed, so the streams are a file format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// A generator whose stream is a function of `seed`.
    pub fn new(seed: u64) -> Self {
        Rng::from_parts(&[seed])
    }

    /// A generator whose stream is a function of all `parts`, in order: run seed, dataset, iteration, game id.
    pub fn from_parts(parts: &[u64]) -> Self {
        let mut hash = 0x7461_6269_7961_0001;
        for &part in parts {
            let mut mixed = hash ^ part;
            hash = splitmix(&mut mixed).wrapping_add(hash.rotate_left(17));
        }
        Rng { state: std::array::from_fn(|_| splitmix(&mut hash)) }
    }

    /// The number of a text, to be a part of a seed (FNV-1a).
    pub fn part(text: &str) -> u64 {
        text.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3))
    }

    /// The generator's whole state, to be saved and given to [`Rng::restore`].
    pub fn state(&self) -> [u64; 4] {
        self.state
    }

    /// A generator that goes on from a saved state.
    pub fn restore(state: [u64; 4]) -> Self {
        Rng { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` (Lemire's multiply-shift; the bias is below 2^-32 for the bounds used here).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "an empty range has no element to draw");
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.unit();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Gamma with shape `alpha` and scale 1 (Marsaglia and Tsang, 2000).
    pub fn gamma(&mut self, alpha: f64) -> f64 {
        if alpha < 1.0 {
            let boost = (1.0 - self.unit()).powf(1.0 / alpha);
            return self.gamma(alpha + 1.0) * boost;
        }
        let d = alpha - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// A sample of the symmetric Dirichlet distribution: `n` numbers that sum to 1.
    pub fn dirichlet(&mut self, alpha: f64, n: usize) -> Vec<f64> {
        let mut sample: Vec<f64> = (0..n).map(|_| self.gamma(alpha)).collect();
        let sum: f64 = sample.iter().sum();
        if sum > 0.0 {
            sample.iter_mut().for_each(|x| *x /= sum);
        } else {
            sample.fill(1.0 / n as f64);
        }
        sample
    }

    /// An index drawn with probability proportional to `weights`; `None` if no weight is positive.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let sum: f64 = weights.iter().sum();
        let mut left = self.unit() * sum;
        let mut last = None;
        for (i, &w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(i);
            left -= w;
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// Permutes `items` in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn streams_are_stable() {
        let mut rng = Rng::from_parts(&[1, 2, 3]);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        let mut again = Rng::from_parts(&[1, 2, 3]);
        assert_eq!(first, (0..3).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_ne!(first[0], Rng::from_parts(&[1, 3, 2]).next_u64());
        assert_ne!(first[0], Rng::from_parts(&[1, 2]).next_u64());
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::new(7);
        let n = 20_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.02);
        assert!(mean(&mut || rng.normal()).abs() < 0.03);
        assert!((mean(&mut || rng.gamma(0.3)) - 0.3).abs() < 0.02);
        let d = rng.dirichlet(0.3, 20);
        assert!((d.iter().sum::<f64>() - 1.0).abs() < 1e-9 && d.iter().all(|x| *x >= 0.0));
        let ones = (0..n).filter(|_| rng.weighted(&[1.0, 0.0, 3.0]) == Some(2)).count();
        assert!((ones as f64 / f64::from(n) - 0.75).abs() < 0.02);
        assert_eq!(rng.weighted(&[0.0, 0.0]), None);
    }
}
