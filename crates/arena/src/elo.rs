//! Elo differences with their uncertainty, from games or from pairs of games.
//!
//! Two games of one opening with colours swapped are not independent, so a match is measured by its pairs. Everything
//! here is finite: a one-sided result gives a bound, and a match without games gives "unknown".

use std::fmt;

use serde::{Deserialize, Serialize};

/// Two-sided 95 % quantile of the normal distribution.
const Z95: f64 = 1.959_963_984_540_054;
/// Normalised Elo of one standard deviation of a game's score (Van den Bergh, "Normalized Elo").
pub(crate) const NELO_SCALE: f64 = 800.0 / std::f64::consts::LN_10;

/// Games won, drawn and lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Wdl {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl Wdl {
    /// Games in all.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Points a game in 0..1; `None` without games.
    pub fn score(&self) -> Option<f64> {
        let games = self.games();
        (games > 0).then(|| (self.wins as f64 + self.draws as f64 / 2.0) / games as f64)
    }

    /// Counts a game that gave `points` (1, 0.5 or 0).
    pub fn add(&mut self, points: f64) {
        if points > 0.75 {
            self.wins += 1;
        } else if points < 0.25 {
            self.losses += 1;
        } else {
            self.draws += 1;
        }
    }
}

impl fmt::Display for Wdl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{} ={} -{}", self.wins, self.draws, self.losses)
    }
}

/// Pairs of games by their points 0, 0.5, 1, 1.5, 2: LL, LD, WL or DD, WD, WW.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pentanomial(pub [u64; 5]);

impl Pentanomial {
    /// Pairs in all.
    pub fn pairs(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Counts a pair that gave `points` (0 to 2 in halves).
    pub fn add(&mut self, points: f64) {
        self.0[((points * 2.0).round() as usize).min(4)] += 1;
    }
}

impl fmt::Display for Pentanomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ll, ld, even, wd, ww] = self.0;
        write!(f, "LL {ll}, LD {ld}, WL+DD {even}, WD {wd}, WW {ww}")
    }
}

/// An Elo difference.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Elo {
    /// Nothing was measured.
    Unknown,
    /// An estimate with its 95 % interval.
    Estimate {
        /// The most likely difference.
        elo: f64,
        /// Lower end; `None` if the interval of the score reaches 0.
        low: Option<f64>,
        /// Upper end; `None` if the interval of the score reaches 1.
        high: Option<f64>,
    },
    /// Every game was lost: the difference is below the Elo of half a point in one game more.
    Below {
        /// The bound.
        bound: f64,
    },
    /// Every game was won: the difference is above the Elo of half a point less than all in one game more.
    Above {
        /// The bound.
        bound: f64,
    },
}

impl Elo {
    /// The estimate or the bound, to sort or plot by.
    pub fn value(&self) -> Option<f64> {
        match *self {
            Elo::Unknown => None,
            Elo::Estimate { elo, .. } => Some(elo),
            Elo::Below { bound } | Elo::Above { bound } => Some(bound),
        }
    }
}

impl fmt::Display for Elo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Elo::Unknown => f.write_str("unknown (no complete pair of games)"),
            Elo::Below { bound } => write!(f, "below {bound:+.0} (0.5 smoothing)"),
            Elo::Above { bound } => write!(f, "above {bound:+.0} (0.5 smoothing)"),
            Elo::Estimate { elo, low: Some(low), high: Some(high) } => {
                write!(f, "{elo:+.1} ± {:.1} (95 %: {low:+.1} to {high:+.1})", (high - low) / 2.0)
            }
            Elo::Estimate { elo, low, high } => {
                let end = |x: Option<f64>| x.map_or_else(|| "unbounded".to_owned(), |x| format!("{x:+.1}"));
                write!(f, "{elo:+.1} (95 %: {} to {})", end(low), end(high))
            }
        }
    }
}

/// A difference in units of a game's standard deviation, which depends less than Elo on how drawish the games are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct NormalizedElo {
    /// `800 / ln 10` times (mean score - 0.5) / (standard deviation of a game's score).
    pub nelo: f64,
    /// Half the width of its 95 % interval.
    pub error: f64,
}

/// Counts of equally spaced scores 0..1: of single games (three classes) or of pairs (five).
#[derive(Clone, PartialEq, Debug)]
pub struct Scores {
    counts: Vec<f64>,
    games_each: f64,
    /// The games one by one, where they are known: a pair of one point does not tell whether its games were drawn.
    games: Option<Wdl>,
}

impl From<Wdl> for Scores {
    fn from(wdl: Wdl) -> Self {
        let counts = [wdl.losses, wdl.draws, wdl.wins].map(|n| n as f64).to_vec();
        Scores { counts, games_each: 1.0, games: Some(wdl) }
    }
}

impl From<Pentanomial> for Scores {
    fn from(pairs: Pentanomial) -> Self {
        Scores { counts: pairs.0.map(|n| n as f64).to_vec(), games_each: 2.0, games: None }
    }
}

impl Scores {
    /// Pairs whose games are `games`.
    pub fn of_pairs(pairs: Pentanomial, games: Wdl) -> Self {
        Scores { games: Some(games), ..Scores::from(pairs) }
    }

    /// BayesElo's parameter of draws as the games show it: `200 log10((1 - l) / l (1 - w) / w)` of the shares won and
    /// lost (Coulom, BayesElo). A class without a game counts as half a game; `None` if the games are not known.
    pub(crate) fn draw_elo(&self) -> Option<f64> {
        let games = self.games.filter(|games| games.games() > 0)?;
        let total = games.games() as f64;
        let share = |n: u64| (n as f64).clamp(0.5, total - 0.5) / total;
        let (won, lost) = (share(games.wins), share(games.losses));
        Some(200.0 * ((1.0 - lost) / lost * (1.0 - won) / won).log10()).filter(|elo| elo.is_finite())
    }

    /// Games or pairs counted.
    pub(crate) fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Games in one counted thing: 1 or 2.
    pub(crate) fn games_each(&self) -> f64 {
        self.games_each
    }

    pub(crate) fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// The score of each class.
    pub(crate) fn values(&self) -> Vec<f64> {
        (0..self.counts.len()).map(|i| i as f64 / (self.counts.len() - 1) as f64).collect()
    }

    /// Whether all scores are equal, so that nothing is known of their spread.
    pub fn is_flat(&self) -> bool {
        self.counts.iter().filter(|n| **n > 0.0).count() < 2
    }

    fn mean_and_variance(&self) -> (f64, f64) {
        moments(&self.values(), &self.counts)
    }

    /// The standard error of the mean. Equal scores say nothing of their spread, so half a unit is then added at
    /// either end.
    fn standard_error(&self) -> f64 {
        let mut counts = self.counts.clone();
        if self.is_flat() {
            let last = counts.len() - 1;
            counts[0] += 0.5;
            counts[last] += 0.5;
        }
        (moments(&self.values(), &counts).1 / self.total()).sqrt()
    }

    /// The Elo difference: `400 log10(score / (1 - score))`, its interval from the spread of the scores.
    pub fn elo(&self) -> Elo {
        let total = self.total();
        if total == 0.0 {
            return Elo::Unknown;
        }
        let (mean, _) = self.mean_and_variance();
        let games = total * self.games_each;
        if mean <= 0.0 {
            return Elo::Below { bound: elo_of(0.5 / (games + 1.0)) };
        }
        if mean >= 1.0 {
            return Elo::Above { bound: elo_of((games + 0.5) / (games + 1.0)) };
        }
        let margin = Z95 * self.standard_error();
        let inside = |score: f64| (score > 0.0 && score < 1.0).then(|| elo_of(score));
        Elo::Estimate { elo: elo_of(mean), low: inside(mean - margin), high: inside(mean + margin) }
    }

    /// The likelihood of superiority: the probability that the true score is above one half.
    pub fn los(&self) -> Option<f64> {
        (self.total() > 0.0).then(|| {
            let (mean, _) = self.mean_and_variance();
            normal_cdf((mean - 0.5) / self.standard_error())
        })
    }

    /// The normalised Elo difference; `None` if all scores are equal.
    pub fn normalized_elo(&self) -> Option<NormalizedElo> {
        if self.is_flat() {
            return None;
        }
        let (mean, variance) = self.mean_and_variance();
        let deviation = (variance * self.games_each).sqrt();
        Some(NormalizedElo {
            nelo: NELO_SCALE * (mean - 0.5) / deviation,
            error: NELO_SCALE * Z95 / (self.total() * self.games_each).sqrt(),
        })
    }
}

/// Mean and variance of `values` with `weights`, which need not sum to 1.
pub(crate) fn moments(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    let mean = values.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() / total;
    let variance = values.iter().zip(weights).map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>() / total;
    (mean, variance)
}

/// The Elo difference at which `score` (in 0..1, exclusive) is expected.
fn elo_of(score: f64) -> f64 {
    400.0 * (score / (1.0 - score)).log10()
}

/// The expected score at an Elo difference.
pub(crate) fn score_of(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// The expected score at a BayesElo difference.
pub(crate) fn score_of_bayes(elo: f64, draw_elo: f64) -> f64 {
    let win = 1.0 / (1.0 + 10f64.powf((draw_elo - elo) / 400.0));
    let loss = 1.0 / (1.0 + 10f64.powf((draw_elo + elo) / 400.0));
    (1.0 + win - loss) / 2.0
}

/// The normal distribution function, from the Chebyshev fit of erfc in Numerical Recipes (relative error 1.2e-7).
fn normal_cdf(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + z / 2.0);
    let tail = t * (-z * z + FIT.iter().rev().fold(0.0, |sum, c| sum * t + c)).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wdl(wins: u64, draws: u64, losses: u64) -> Scores {
        Scores::from(Wdl { wins, draws, losses })
    }

    #[test]
    fn e1_one_sided_results_give_bounds() {
        assert_eq!(wdl(0, 0, 20).elo().to_string(), "below -645 (0.5 smoothing)");
        assert_eq!(wdl(20, 0, 0).elo().to_string(), "above +645 (0.5 smoothing)");
        assert_eq!(Scores::from(Pentanomial([10, 0, 0, 0, 0])).elo().to_string(), "below -645 (0.5 smoothing)");
        assert!(matches!(wdl(0, 0, 2).elo(), Elo::Below { bound } if bound.is_finite()));
        assert!(matches!(wdl(10, 0, 0).elo(), Elo::Above { bound } if bound > 400.0));
        let Elo::Estimate { elo, low: Some(low), high: Some(high) } = wdl(0, 10, 0).elo() else {
            panic!("ten draws are Elo 0 with an interval");
        };
        assert!(elo == 0.0 && low < -20.0 && high > 20.0);
        assert!(wdl(0, 10, 0).elo().to_string().starts_with("+0.0 ±"), "zero has no minus");
        assert_eq!(wdl(0, 0, 0).elo(), Elo::Unknown);
    }

    #[test]
    fn e1_json_is_finite() {
        for scores in [wdl(0, 0, 0), wdl(0, 0, 2), wdl(10, 0, 0), wdl(0, 10, 0), wdl(1, 0, 1), wdl(19, 0, 1)] {
            let json = serde_json::to_string(&(scores.elo(), scores.los(), scores.normalized_elo())).unwrap();
            assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
            let back: (Elo, Option<f64>, Option<NormalizedElo>) = serde_json::from_str(&json).unwrap();
            assert_eq!(back.0, scores.elo());
            assert!(scores.los().is_none_or(|p| (0.0..=1.0).contains(&p)));
        }
    }

    #[test]
    fn e2_elo_is_logistic() {
        let scores = wdl(880, 1863, 759);
        assert_eq!(scores.elo().to_string(), "+12.0 ± 7.9 (95 %: +4.1 to +19.9)");
        assert!((scores.los().unwrap() - 0.999).abs() < 5e-4);
    }

    #[test]
    fn e3_normalised_elo_of_pairs() {
        let nelo = Scores::from(Pentanomial([379, 10170, 21828, 10640, 343])).normalized_elo().unwrap();
        assert!((nelo.nelo - 3.05).abs() < 5e-3, "{nelo:?}");
        assert!((nelo.error - 2.31).abs() < 5e-3, "{nelo:?}");
    }

    #[test]
    fn pairs_are_not_independent_games() {
        // Every opening is won by White: the score is exactly even, though each game swings fully.
        let pairs = Scores::from(Pentanomial([0, 1, 98, 1, 0]));
        let games = wdl(99, 2, 99);
        let width = |s: &Scores| match s.elo() {
            Elo::Estimate { low: Some(low), high: Some(high), .. } => high - low,
            _ => panic!("an estimate"),
        };
        assert!(width(&pairs) < width(&games) / 5.0);
    }

    #[test]
    fn normal_distribution_function() {
        for (x, p) in [(0.0, 0.5), (1.0, 0.841_344_75), (-1.959_964, 0.025), (3.0, 0.998_650_1), (-8.0, 6.22e-16)] {
            assert!((normal_cdf(x) - p).abs() < 1e-6, "{x}");
        }
        assert!((score_of(elo_of(0.7)) - 0.7).abs() < 1e-12);
    }
}
