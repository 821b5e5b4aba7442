//! The sequential probability ratio test of two Elo differences.
//!
//! The log-likelihood ratio is the generalised one of Van den Bergh (as in fishtest and fastchess): the observed
//! distribution of scores is bent as little as possible until it has the expected score (logistic) or the t-value
//! (normalised) of either hypothesis. It is taken over pairs of games. Bounds in BayesElo, which older programs mean, are
//! turned into expected scores by the share of draws that the games show.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::elo::{NELO_SCALE, Scores, moments, score_of, score_of_bayes};

/// What the two bounds of a test are measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EloModel {
    /// Elo of the usual logistic curve.
    #[default]
    Logistic,
    /// Normalised Elo.
    Normalized,
    /// BayesElo, in which a difference means less the more games are drawn.
    Bayes,
}

impl EloModel {
    /// The model's name in a report.
    fn name(self) -> &'static str {
        match self {
            EloModel::Logistic => "logistic Elo",
            EloModel::Normalized => "normalised Elo",
            EloModel::Bayes => "BayesElo",
        }
    }
}

/// A test of `elo0` (not better) against `elo1` (better).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SprtSpec {
    /// Elo of the null hypothesis.
    pub elo0: f64,
    /// Elo of the alternative; above `elo0`.
    pub elo1: f64,
    /// Probability of accepting the alternative when the null hypothesis holds.
    #[serde(default = "five_percent")]
    pub alpha: f64,
    /// Probability of accepting the null hypothesis when the alternative holds.
    #[serde(default = "five_percent")]
    pub beta: f64,
    /// What `elo0` and `elo1` are measured in.
    #[serde(default)]
    pub model: EloModel,
}

fn five_percent() -> f64 {
    0.05
}

/// What a test says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not decided yet.
    Undecided,
    /// The difference is `elo0` rather than `elo1`.
    AcceptH0,
    /// The difference is `elo1` rather than `elo0`.
    AcceptH1,
}

/// A test and where it stands.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SprtReport {
    /// The test.
    pub test: SprtSpec,
    /// Log-likelihood ratio with the bounds read as logistic Elo.
    pub llr_logistic: f64,
    /// Log-likelihood ratio with the bounds read as normalised Elo.
    pub llr_normalized: f64,
    /// Log-likelihood ratio with the bounds read as BayesElo; 0 where only the pairs' points are known.
    #[serde(default)]
    pub llr_bayes: f64,
    /// At or below this ratio the null hypothesis is accepted: `ln(beta / (1 - alpha))`.
    pub lower: f64,
    /// At or above this ratio the alternative is accepted: `ln((1 - beta) / alpha)`.
    pub upper: f64,
    /// What the test's own model says.
    pub verdict: Verdict,
}

impl SprtReport {
    /// The ratio of the test's own model.
    pub fn llr(&self) -> f64 {
        self.llr_in(self.test.model)
    }

    fn llr_in(&self, model: EloModel) -> f64 {
        match model {
            EloModel::Logistic => self.llr_logistic,
            EloModel::Normalized => self.llr_normalized,
            EloModel::Bayes => self.llr_bayes,
        }
    }
}

impl fmt::Display for SprtReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SprtSpec { elo0, elo1, alpha, beta, model } = self.test;
        let other = |other: EloModel| format!("{} {:.2}", other.name(), self.llr_in(other));
        let others: Vec<String> = [EloModel::Logistic, EloModel::Normalized, EloModel::Bayes]
            .into_iter()
            .filter(|m| *m != model)
            .map(other)
            .collect();
        let verdict = match self.verdict {
            Verdict::Undecided => "undecided".to_owned(),
            Verdict::AcceptH0 => format!("accepts {elo0}"),
            Verdict::AcceptH1 => format!("accepts {elo1}"),
        };
        let (llr, lower, upper) = (self.llr(), self.lower, self.upper);
        write!(
            f,
            "{} {elo0} against {elo1} (alpha {alpha}, beta {beta}): LLR {llr:.2} in {lower:.2} to {upper:.2}, \
             {verdict} (LLR by other models: {})",
            model.name(),
            others.join(", ")
        )
    }
}

impl SprtSpec {
    /// What is wrong with the test, if anything.
    pub fn fault(&self) -> Option<String> {
        let probability = |p: f64| p > 0.0 && p < 0.5;
        if !(self.elo0.is_finite() && self.elo1.is_finite() && self.elo0 < self.elo1) {
            return Some(format!("elo0 must be below elo1, got {} and {}", self.elo0, self.elo1));
        }
        if !probability(self.alpha) || !probability(self.beta) {
            return Some(format!("alpha and beta must be in 0..0.5, got {} and {}", self.alpha, self.beta));
        }
        None
    }

    /// Where the test stands after `scores`. Equal scores say nothing of their spread and are never a verdict.
    pub fn test(&self, scores: &Scores) -> SprtReport {
        let (lower, upper) = ((self.beta / (1.0 - self.alpha)).ln(), ((1.0 - self.beta) / self.alpha).ln());
        let mut report = SprtReport {
            test: *self,
            llr_logistic: llr(scores, |values, weights| {
                [self.elo0, self.elo1].map(|elo| with_mean(values, weights, score_of(elo)))
            }),
            llr_normalized: llr(scores, |values, weights| {
                [self.elo0, self.elo1]
                    .map(|elo| with_t_value(values, weights, elo / NELO_SCALE * scores.games_each().sqrt()))
            }),
            llr_bayes: scores.draw_elo().map_or(0.0, |draw_elo| {
                llr(scores, |values, weights| {
                    [self.elo0, self.elo1].map(|elo| with_mean(values, weights, score_of_bayes(elo, draw_elo)))
                })
            }),
            lower,
            upper,
            verdict: Verdict::Undecided,
        };
        if !scores.is_flat() && report.llr() >= upper {
            report.verdict = Verdict::AcceptH1;
        } else if !scores.is_flat() && report.llr() <= lower {
            report.verdict = Verdict::AcceptH0;
        }
        report
    }
}

/// `N sum p ln(p1 / p0)` for the distributions of the two hypotheses; classes never seen weigh a thousandth of one.
fn llr(scores: &Scores, fit: impl FnOnce(&[f64], &[f64]) -> [Vec<f64>; 2]) -> f64 {
    if scores.total() == 0.0 {
        return 0.0;
    }
    let counts: Vec<f64> = scores.counts().iter().map(|n| n.max(1e-3)).collect();
    let total: f64 = counts.iter().sum();
    let weights: Vec<f64> = counts.iter().map(|n| n / total).collect();
    let [p0, p1] = fit(&scores.values(), &weights);
    let ratio = total * weights.iter().zip(p0.iter().zip(&p1)).map(|(w, (a, b))| w * (b / a).ln()).sum::<f64>();
    if ratio.is_finite() { ratio } else { 0.0 }
}

/// The distribution of greatest likelihood under `weights` whose mean is `mean`: `p / (1 + x (value - mean))`, with x
/// the root of a falling function, found by bisection.
fn with_mean(values: &[f64], weights: &[f64], mean: f64) -> Vec<f64> {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut below, mut above) = (-1.0 / (highest - mean), 1.0 / (mean - lowest));
    for _ in 0..100 {
        let x = (below + above) / 2.0;
        let slope: f64 = values.iter().zip(weights).map(|(v, w)| w * (v - mean) / (1.0 + x * (v - mean))).sum();
        if slope > 0.0 { below = x } else { above = x }
    }
    let x = (below + above) / 2.0;
    values.iter().zip(weights).map(|(v, w)| w / (1.0 + x * (v - mean))).collect()
}

/// The distribution of greatest likelihood under `weights` with `(mean - 0.5) / deviation = t`, by fixed point: the
/// condition is linearised around the last distribution and becomes one on a mean.
fn with_t_value(values: &[f64], weights: &[f64], t: f64) -> Vec<f64> {
    let mut current = vec![1.0 / values.len() as f64; values.len()];
    for _ in 0..50 {
        let (mean, variance) = moments(values, &current);
        let deviation = variance.sqrt();
        let linear: Vec<f64> =
            values.iter().map(|v| v - 0.5 - t * deviation * (1.0 + ((mean - v) / deviation).powi(2)) / 2.0).collect();
        let next = with_mean(&linear, weights, 0.0);
        let change = next.iter().zip(&current).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        current = next;
        if change < 1e-10 {
            break;
        }
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elo::{Pentanomial, Wdl};

    fn spec(elo0: f64, elo1: f64, model: EloModel) -> SprtSpec {
        SprtSpec { elo0, elo1, alpha: 0.05, beta: 0.05, model }
    }

    #[test]
    fn e2_logistic_ratio_and_bounds() {
        let scores = Scores::from(Wdl { wins: 880, draws: 1863, losses: 759 });
        let report = spec(0.0, 5.0, EloModel::Logistic).test(&scores);
        assert!((report.llr() - 2.95).abs() < 5e-3, "{report}");
        assert!((report.upper - 2.944).abs() < 1e-3 && (report.lower + 2.944).abs() < 1e-3);
        assert_eq!(report.verdict, Verdict::AcceptH1);
        let bayes = spec(0.0, 5.0, EloModel::Bayes).test(&scores);
        assert!((bayes.llr() - 2.27).abs() < 5e-3, "{bayes}");
        assert_eq!(bayes.verdict, Verdict::Undecided);
        let text = bayes.to_string();
        assert!(text.starts_with("BayesElo 0 against 5") && text.contains("logistic Elo 2.95"), "{text}");
    }

    #[test]
    fn bayes_elo_needs_the_games_of_the_pairs() {
        let (pairs, games) = (Pentanomial([20, 60, 110, 80, 30]), Wdl { wins: 190, draws: 260, losses: 150 });
        let test = spec(0.0, 20.0, EloModel::Bayes);
        let known = test.test(&Scores::of_pairs(pairs, games));
        assert!(known.llr() > 0.0 && known.llr() < known.llr_logistic, "{known}");
        assert_eq!(test.test(&Scores::from(pairs)).llr(), 0.0);
        let one_sided = Wdl { wins: 4, draws: 0, losses: 0 };
        assert!(test.test(&Scores::of_pairs(Pentanomial([0, 0, 0, 0, 2]), one_sided)).llr().is_finite());
    }

    #[test]
    fn e3_normalised_ratio_of_pairs() {
        for (pairs, llr) in [([379, 10170, 21828, 10640, 343], 2.946), ([365, 16618, 36229, 16974, 390], 2.25)] {
            let report = spec(0.0, 2.0, EloModel::Normalized).test(&Scores::from(Pentanomial(pairs)));
            assert!((report.llr() - llr).abs() < 5e-3, "{report}");
        }
    }

    #[test]
    fn e1_equal_scores_are_no_verdict() {
        for pairs in [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0, 0, 5, 0, 0], [0, 0, 0, 0, 400], [0; 5], [400, 0, 0, 0, 0]] {
            for model in [EloModel::Logistic, EloModel::Normalized, EloModel::Bayes] {
                for (elo0, elo1) in [(0.0, 5.0), (-300.0, 300.0), (0.0, 400.0)] {
                    let report = spec(elo0, elo1, model).test(&Scores::from(Pentanomial(pairs)));
                    assert!(report.llr_logistic.is_finite() && report.llr_normalized.is_finite());
                    assert!(report.llr_bayes.is_finite());
                    assert_eq!(report.verdict, Verdict::Undecided, "{pairs:?} {report}");
                }
            }
        }
        let nearly = spec(0.0, 50.0, EloModel::Logistic).test(&Scores::from(Pentanomial([0, 0, 0, 1, 80])));
        assert_eq!(nearly.verdict, Verdict::AcceptH1, "one uneven pair is enough");
    }

    #[test]
    fn the_ratio_is_odd_under_a_change_of_sides() {
        let pairs = [12, 40, 70, 61, 30];
        let mut mirrored = pairs;
        mirrored.reverse();
        for model in [EloModel::Logistic, EloModel::Normalized] {
            let a = spec(-3.0, 8.0, model).test(&Scores::from(Pentanomial(pairs))).llr();
            let b = spec(-8.0, 3.0, model).test(&Scores::from(Pentanomial(mirrored))).llr();
            assert!((a + b).abs() < 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn faulty_tests_are_named() {
        assert!(spec(5.0, 0.0, EloModel::Logistic).fault().is_some());
        assert!(SprtSpec { alpha: 0.0, ..spec(0.0, 5.0, EloModel::Logistic) }.fault().is_some());
        assert_eq!(spec(0.0, 5.0, EloModel::Logistic).fault(), None);
        let read: SprtSpec = serde_json::from_str(r#"{"elo0":0,"elo1":10}"#).unwrap();
        assert_eq!((read.alpha, read.model), (0.05, EloModel::Logistic));
    }
}
