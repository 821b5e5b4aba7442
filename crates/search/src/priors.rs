//! From a policy row to probabilities over legal moves, without NaN.
//!
//! A masked policy can lose all its mass, and one NaN in a prior would travel through a whole tree. So mass that
//! underflows becomes a uniform distribution, and a number that is none is an error.

use crate::SearchError;

/// Softmax of a policy row over the legal moves only: `out[i]` belongs to `legal[i]`.
///
/// # Errors
/// [`SearchError::NotFinite`] if a legal move's logit is NaN or positive infinity, or all are negative infinity;
/// [`SearchError::Actions`] if an index lies outside the row.
pub fn legal_softmax(logits: &[f32], legal: &[u16], out: &mut Vec<f32>) -> Result<(), SearchError> {
    out.clear();
    let mut max = f32::NEG_INFINITY;
    for &index in legal {
        let Some(&logit) = logits.get(usize::from(index)) else {
            return Err(SearchError::Actions { index, actions: logits.len() });
        };
        if logit.is_nan() || logit == f32::INFINITY {
            return Err(SearchError::NotFinite { what: "a policy logit that is not a number" });
        }
        max = max.max(logit);
        out.push(logit);
    }
    if max == f32::NEG_INFINITY && !legal.is_empty() {
        return Err(SearchError::NotFinite { what: "no finite policy logit among the legal moves" });
    }
    out.iter_mut().for_each(|x| *x = (*x - max).exp());
    normalise(out).map(|_| ())
}

/// Scales probabilities to sum to one; if nothing is left of them, every one becomes equal.
///
/// Returns whether that happened: the caller counts it.
///
/// # Errors
/// [`SearchError::NotFinite`] if one is negative, infinite or not a number.
pub fn normalise(priors: &mut [f32]) -> Result<bool, SearchError> {
    // In one pass: the additions wait for each other, and the comparisons fit in between.
    let (mut sum, mut bad) = (0.0, false);
    for &p in &*priors {
        sum += p;
        bad |= !(0.0..f32::INFINITY).contains(&p);
    }
    if bad {
        return Err(SearchError::NotFinite { what: "a prior that is not a probability" });
    }
    if !sum.is_finite() {
        return Err(SearchError::NotFinite { what: "priors with an infinite sum" });
    }
    // Below the least normal number a quotient has no precision left, or is infinite.
    if sum < f32::MIN_POSITIVE {
        priors.fill(1.0 / priors.len() as f32);
        return Ok(true);
    }
    priors.iter_mut().for_each(|p| *p /= sum);
    Ok(false)
}

/// Raises probabilities to `1 / temperature` and renormalises; they must be probabilities already.
pub(crate) fn temper(priors: &mut [f32], temperature: f32) {
    if temperature == 1.0 {
        return;
    }
    let max = priors.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    priors.iter_mut().for_each(|p| *p = (*p / max).powf(1.0 / temperature));
    let sum: f32 = priors.iter().sum();
    priors.iter_mut().for_each(|p| *p /= sum);
}

#[cfg(test)]
mod tests {
    use super::{legal_softmax, normalise, temper};

    #[test]
    fn m5_a_policy_without_mass_becomes_uniform_and_is_counted() {
        let policy = [0.7, 0.3, 0.0, 0.0];
        let mut legal = [policy[2], policy[3]];
        assert!(normalise(&mut legal).unwrap(), "the caller is told");
        assert_eq!(legal, [0.5, 0.5]);
        let mut tiny = [1e-44, 0.0];
        assert!(normalise(&mut tiny).unwrap());
        assert_eq!(tiny, [0.5, 0.5]);
        let mut good = [1.0, 3.0];
        assert!(!normalise(&mut good).unwrap());
        assert_eq!(good, [0.25, 0.75]);
    }

    #[test]
    fn m5_nan_is_refused() {
        for bad in [f32::NAN, f32::INFINITY, -0.1] {
            assert!(normalise(&mut [0.5, bad]).is_err());
        }
        let mut out = Vec::new();
        assert!(legal_softmax(&[0.0, f32::NAN], &[0, 1], &mut out).is_err());
        assert!(legal_softmax(&[0.0, f32::NEG_INFINITY], &[1], &mut out).is_err(), "a row all -inf");
        legal_softmax(&[f32::NAN, 1.0, 1.0], &[1, 2], &mut out).unwrap();
        assert_eq!(out, [0.5, 0.5], "an illegal move's logit is not looked at");
    }

    #[test]
    fn softmax_stands_large_logits() {
        let mut out = Vec::new();
        legal_softmax(&[1000.0, 0.0, -1000.0, f32::NEG_INFINITY], &[0, 2, 3], &mut out).unwrap();
        assert_eq!(out, [1.0, 0.0, 0.0]);
        assert!(legal_softmax(&[0.0], &[7], &mut out).is_err(), "an index outside the policy");
    }

    #[test]
    fn temperature_flattens() {
        let mut priors = [0.8, 0.2];
        temper(&mut priors, 2.0);
        assert!((priors[0] - 2.0 / 3.0).abs() < 1e-6 && (priors[1] - 1.0 / 3.0).abs() < 1e-6);
        let mut sharp = [1.0, 0.0];
        temper(&mut sharp, 1.5);
        assert_eq!(sharp, [1.0, 0.0]);
    }
}
