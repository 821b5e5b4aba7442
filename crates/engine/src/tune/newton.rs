//! Logistic regression by Newton's method.

use super::beliefs::Belief;
use super::samples::Samples;
use crate::weights::TERMS;

/// The chance that a number of logits stands for.
pub(super) fn chance(logits: f64) -> f64 {
    1.0 / (1.0 + (-logits).exp())
}

/// How many logits a unit of the first number is, so that it predicts the second, a chance, best.
pub(super) fn slope(pairs: &[(f64, f64)]) -> f64 {
    let mut k = 0.0;
    for _ in 0..50 {
        let (mut first, mut second) = (0.0, f64::MIN_POSITIVE);
        for (x, y) in pairs {
            let p: f64 = chance(k * x);
            first += (y - p) * x;
            second += p * (1.0 - p) * x * x;
        }
        k += first / second;
    }
    k
}

/// The mean cross-entropy of the targets, in nats.
pub(super) fn loss(samples: &Samples, values: &[f64], scale: f64) -> f64 {
    let each = samples.iter().map(|s| {
        let logits = scale * s.evaluate(values);
        // ln(1 + exp(x)) - target x, without overflow.
        logits.max(0.0) + (-logits.abs()).exp().ln_1p() - s.target * logits
    });
    each.sum::<f64>() / samples.len() as f64
}

/// One step: to where the parabola that touches the sum of all losses here has its lowest point. Gives the largest
/// change of a value.
pub(super) fn step(samples: &Samples, beliefs: &[Belief], scale: f64, values: &mut [f64]) -> f64 {
    let n = 2 * TERMS;
    let mut gradient = vec![0.0; n];
    // For each pair of terms, the later first: middlegame with middlegame, mixed, endgame with endgame.
    let mut pairs = vec![[0.0; 3]; TERMS * TERMS];
    for sample in samples.iter() {
        let p = chance(scale * sample.evaluate(values));
        let (slope, curvature) = (scale * (p - sample.target), scale * scale * p * (1.0 - p));
        let (middle, end) = (sample.phase, 1.0 - sample.phase);
        let weights = [middle * middle, middle * end, end * end].map(|w| w * curvature);
        for (i, (term, times)) in sample.terms.iter().enumerate() {
            let (term, times) = (usize::from(*term), f64::from(*times));
            gradient[term] += slope * middle * times;
            gradient[TERMS + term] += slope * end * times;
            let row = &mut pairs[term * TERMS..][..=term];
            for (other, other_times) in &sample.terms[..=i] {
                let product = times * f64::from(*other_times);
                let pair = &mut row[usize::from(*other)];
                for (sum, weight) in pair.iter_mut().zip(weights) {
                    *sum += product * weight;
                }
            }
        }
    }
    let mut hessian = vec![0.0; n * n];
    for term in 0..TERMS {
        for other in 0..TERMS {
            let [middle, mixed, end] = pairs[term.max(other) * TERMS + term.min(other)];
            hessian[term * n + other] = middle;
            hessian[(TERMS + term) * n + other] = mixed;
            hessian[(TERMS + term) * n + TERMS + other] = end;
        }
    }
    // A position has a curvature of at most this.
    let position = scale * scale / 4.0;
    for belief in beliefs {
        for half in [0, TERMS] {
            let off = belief.sum.iter().map(|(term, factor)| factor * values[half + term]).sum::<f64>() - belief.value;
            for (term, factor) in &belief.sum {
                gradient[half + term] += position * belief.weight * off * factor;
                for (other, other_factor) in &belief.sum {
                    hessian[(half + term) * n + half + other] += position * belief.weight * factor * other_factor;
                }
            }
        }
    }
    let change = solve(&mut hessian, gradient);
    values.iter_mut().zip(&change).for_each(|(value, change)| *value -= change);
    change.iter().fold(0.0, |most, c| c.abs().max(most))
}

/// The `x` of `matrix x = right` for a positive definite matrix of which only the lower half is looked at, by Cholesky's
/// method.
pub(super) fn solve(matrix: &mut [f64], mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for i in 0..n {
        let (above, from_i) = matrix.split_at_mut(i * n);
        let row = &mut from_i[..=i];
        for j in 0..i {
            let done = &above[j * n..][..=j];
            let dot: f64 = row[..j].iter().zip(done).map(|(a, b)| a * b).sum();
            row[j] = (row[j] - dot) / done[j];
        }
        row[i] = (row[i] - row[..i].iter().map(|a| a * a).sum::<f64>()).sqrt();
        let dot: f64 = row[..i].iter().zip(&right).map(|(a, b)| a * b).sum();
        right[i] = (right[i] - dot) / row[i];
    }
    for i in (0..n).rev() {
        right[i] /= matrix[i * n + i];
        let solved = right[i];
        right[..i].iter_mut().zip(&matrix[i * n..][..i]).for_each(|(r, a)| *r -= a * solved);
    }
    right
}
