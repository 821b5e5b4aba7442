//! The metrics of a training, as lines of plots.

use std::collections::BTreeMap;
use std::path::Path;

use pipeline::{Axis, Line, Plot};
use serde_json::{Map, Value};

use crate::{Error, Result};

/// Points of a line at most; more are averaged.
const POINTS: usize = 100;

/// The numbers of a `metrics.jsonl`: by name, `[step, value]` in the order of steps. A step that is there twice has
/// the later value.
pub(super) struct Curves(BTreeMap<String, BTreeMap<u64, f64>>);

impl Curves {
    /// Those of a stage's folder; none if it has none.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("metrics.jsonl");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::File { path, source }),
        };
        let mut curves: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
        // A line that a kill tore is no object.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok()) {
            let Some(step) = line.get("step").and_then(Value::as_u64) else { continue };
            for (name, value) in &line {
                if let (true, Some(value)) = (name != "step", value.as_f64()) {
                    curves.entry(name.clone()).or_default().insert(step, value);
                }
            }
        }
        Ok(Curves(curves))
    }

    /// A line for a plot, its values times `factor`.
    fn line(&self, label: &str, name: &str, factor: f64) -> Line {
        let points = self.0.get(name).into_iter().flatten();
        let points: Vec<[f64; 2]> = points.map(|(step, value)| [*step as f64, value * factor]).collect();
        Line { name: label.to_owned(), points: thinned(&points), ..Line::default() }
    }

    /// The policy loss of training and validation by step.
    pub(super) fn policy_loss(&self, title: String) -> Plot {
        self.plot(title, &[("train", "train/policy_loss"), ("validation", "validation/policy_loss")], 1.0)
    }

    /// The value loss of training and validation by step, which is another quantity on another scale.
    pub(super) fn value_loss(&self, title: String) -> Plot {
        self.plot(title, &[("train", "train/value_loss"), ("validation", "validation/value_loss")], 1.0)
    }

    /// The share of positions whose likeliest move is the teacher's, in percent, by step.
    pub(super) fn top1(&self, title: String) -> Plot {
        self.plot(title, &[("train", "train/top1"), ("validation", "validation/top1")], 100.0)
    }

    fn plot(&self, title: String, lines: &[(&str, &str)], factor: f64) -> Plot {
        let lines = lines.iter().map(|(label, name)| self.line(label, name, factor));
        let lines = lines.filter(|line| !line.points.is_empty()).collect();
        Plot { title, x_label: "optimizer steps".to_owned(), axis: Axis::Linear, from_zero: false, lines }
    }
}

/// Means of so many neighbours that at most [`POINTS`] are left.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mean = |some: &[[f64; 2]], i: usize| some.iter().map(|p| p[i]).sum::<f64>() / some.len() as f64;
    points.chunks(points.len().div_ceil(POINTS).max(1)).map(|some| [mean(some, 0), mean(some, 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_the_metrics() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Curves::read(dir.path()).unwrap().policy_loss(String::new()).lines.is_empty());
        let mut text: String =
            (1..=1000).map(|i| format!("{{\"step\":{i},\"time\":\"t\",\"train/policy_loss\":{i}}}\n")).collect();
        text += "{\"step\":1000,\"validation/top1\":0.5}\n{\"step\":1000,\"validation/top1\":0.25}\n{\"step\":10";
        std::fs::write(dir.path().join("metrics.jsonl"), text).unwrap();
        let curves = Curves::read(dir.path()).unwrap();
        let losses = curves.policy_loss(String::new());
        assert!(curves.value_loss(String::new()).lines.is_empty() && !losses.from_zero);
        assert_eq!(losses.lines.len(), 1);
        assert_eq!(losses.lines[0].points.len(), 100);
        assert_eq!(losses.lines[0].points[0], [5.5, 5.5]);
        assert_eq!(curves.top1(String::new()).lines[0].points, [[1000.0, 25.0]]);
    }
}
