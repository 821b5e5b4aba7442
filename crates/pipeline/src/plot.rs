//! Line plots as SVG, for the pages that jobs write.

use std::fmt::Write;

use serde::Deserialize;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 150.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = HEIGHT - 46.0;
const COLOURS: [&str; 5] = ["#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#64473a"];
/// With at most so many different x, each is marked on the axis.
const MARKED: usize = 12;
/// Longer lines are drawn without a dot at each point.
const DOTTED: usize = 40;

/// A plot of some lines over one axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// The horizontal axis.
    #[serde(default)]
    pub axis: Axis,
    /// Whether the vertical axis holds 0; else it shows the range of the values.
    #[serde(default = "yes")]
    pub from_zero: bool,
    /// In the order of the legend.
    pub lines: Vec<Line>,
}

/// How a horizontal axis goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// By factors; a 0 stands a factor of two before the least number above it.
    #[default]
    Log,
    /// By differences.
    Linear,
}

/// A line of a plot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// `[x, y]` in the order of x.
    pub points: Vec<[f64; 2]>,
    /// `[x, low, high]` for a bar, with a point or without. An end that is infinite is open: the bar goes to the edge of the
    /// plot and ends in an arrow.
    #[serde(default)]
    pub intervals: Vec<[f64; 3]>,
}

fn yes() -> bool {
    true
}

impl Line {
    /// Its bars that have a place: at least one end is finite.
    fn bars(&self) -> impl Iterator<Item = &[f64; 3]> {
        self.intervals.iter().filter(|[x, low, high]| {
            x.is_finite() && !low.is_nan() && !high.is_nan() && (low.is_finite() || high.is_finite())
        })
    }
}

impl Plot {
    /// The plot as the text of an SVG file; `None` if no line shows something at two places. Points that are not finite
    /// are left out.
    pub fn svg(&self) -> Option<String> {
        let finite = |p: &&[f64; 2]| p.iter().all(|n| n.is_finite());
        let lines: Vec<(&Line, Vec<[f64; 2]>)> =
            self.lines.iter().map(|line| (line, line.points.iter().filter(finite).copied().collect())).collect();
        let points = || lines.iter().flat_map(|(_, points)| points);
        let bars = || self.lines.iter().flat_map(Line::bars);
        let sorted = |mut xs: Vec<f64>| {
            xs.sort_by(f64::total_cmp);
            xs.dedup();
            xs
        };
        let places = |(line, points): &(&Line, Vec<[f64; 2]>)| {
            sorted(points.iter().map(|p| p[0]).chain(line.bars().map(|bar| bar[0])).collect())
        };
        let xs = sorted(lines.iter().flat_map(places).collect());
        if !lines.iter().any(|line| places(line).len() > 1) {
            return None;
        }
        let ys = || points().map(|p| p[1]).chain(bars().flat_map(|bar| [bar[1], bar[2]])).filter(|y| y.is_finite());
        let (low, high) = if self.from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let marks = ticks(ys().fold(low, f64::min), ys().fold(high, f64::max));
        let scale = Scale::new(self.axis, &xs, &marks);

        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
            escaped(&self.title)
        );
        for mark in &marks {
            let y = scale.y(*mark);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"{}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                if *mark == 0.0 && marks[0] < 0.0 { "#888" } else { "#ddd" },
                LEFT - 6.0,
                y + 4.0,
                short(*mark)
            );
        }
        for x in scale.x_marks(&xs) {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                scale.x(x),
                BOTTOM + 18.0,
                short(x)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + RIGHT) / 2.0,
            HEIGHT - 8.0,
            escaped(&self.x_label)
        );
        for (i, (line, points)) in lines.iter().enumerate() {
            draw(&mut out, &scale, line, points, i);
        }
        out.push_str("</svg>\n");
        Some(out)
    }
}

fn draw(out: &mut String, scale: &Scale, line: &Line, points: &[[f64; 2]], i: usize) {
    let colour = COLOURS[i % COLOURS.len()];
    for [x, low, high] in line.bars() {
        let x = scale.x(*x);
        // A cap at an end that is known, an arrow at one that is open.
        let end = |value: f64, edge: f64, into: f64| match value.is_finite() {
            true => (scale.y(value), format!("M{:.1} {:.1}h8", x - 4.0, scale.y(value))),
            false => (edge, format!("M{:.1} {:.1}L{x:.1} {edge:.1}l4 {into:.1}", x - 4.0, edge + into)),
        };
        let ((low, below), (high, above)) = (end(*low, BOTTOM, -6.0), end(*high, TOP, 6.0));
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {low:.1}V{high:.1}{below}{above}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-opacity=\"0.5\"/>"
        );
    }
    let places: Vec<(f64, f64)> = points.iter().map(|[x, y]| (scale.x(*x), scale.y(*y))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    if places.len() > 1 {
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
    }
    if places.len() <= DOTTED {
        for (x, y) in places {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
        RIGHT + 12.0,
        TOP + 8.0 + 18.0 * i as f64,
        escaped(&line.name)
    );
}

/// Where numbers lie in the picture.
struct Scale {
    axis: Axis,
    /// What stands for 0 and less on a logarithmic axis.
    least: f64,
    left: f64,
    width: f64,
    lowest: f64,
    height: f64,
}

impl Scale {
    /// For sorted `xs` and vertical marks.
    fn new(axis: Axis, xs: &[f64], marks: &[f64]) -> Self {
        let least = xs.iter().find(|x| **x > 0.0).map_or(1.0, |x| x / 2.0);
        let (lowest, highest) = (marks[0], marks[marks.len() - 1]);
        let mut scale = Scale { axis, least, left: 0.0, width: 1.0, lowest, height: highest - lowest };
        let (first, last) = (scale.along(xs[0]), scale.along(xs[xs.len() - 1]));
        scale.left = first;
        scale.width = if last > first { last - first } else { 1.0 };
        scale
    }

    fn along(&self, x: f64) -> f64 {
        match self.axis {
            Axis::Linear => x,
            Axis::Log if x <= 0.0 => self.least.ln(),
            Axis::Log => x.ln(),
        }
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + (self.along(x) - self.left) / self.width * (RIGHT - LEFT)
    }

    fn y(&self, y: f64) -> f64 {
        BOTTOM - (y - self.lowest) / self.height * (BOTTOM - TOP)
    }

    /// Every x where they are few; else round numbers, or some of them.
    fn x_marks(&self, xs: &[f64]) -> Vec<f64> {
        let (first, last) = (xs[0], xs[xs.len() - 1]);
        match self.axis {
            _ if xs.len() <= MARKED => xs.to_vec(),
            Axis::Linear => ticks(first, last).into_iter().filter(|x| (first..=last).contains(x)).collect(),
            Axis::Log => xs.iter().step_by(xs.len().div_ceil(MARKED)).copied().collect(),
        }
    }
}

/// Round numbers from a little under `low` to a little over `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let high = if high > low { high } else { low + 1.0 };
    let span = high - low;
    let power = 10_f64.powf(span.log10().floor());
    let step = [0.2, 0.5, 1.0, 2.0].map(|f| f * power).into_iter().find(|step| span / step <= 6.0).unwrap_or(power);
    ((low / step).floor() as i64..=(high / step).ceil() as i64).map(|i| i as f64 * step).collect()
}

/// A number to three digits, thousands as k and millions as M.
fn short(x: f64) -> String {
    let (x, unit) = match x.abs() {
        size if size >= 1e6 => (x / 1e6, "M"),
        size if size >= 1e3 => (x / 1e3, "k"),
        _ => (x, ""),
    };
    let digits = if x == 0.0 { 0.0 } else { (2.0 - x.abs().log10().floor()).clamp(0.0, 12.0) };
    let text = format!("{x:.*}", digits as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(axis: Axis, points: &[[f64; 2]], intervals: &[[f64; 3]]) -> Plot {
        let line = Line { name: "a < b".to_owned(), points: points.to_vec(), intervals: intervals.to_vec() };
        Plot { title: "T & U".to_owned(), x_label: "x".to_owned(), axis, from_zero: true, lines: vec![line] }
    }

    #[test]
    fn numbers_are_short_and_marks_round() {
        assert_eq!(
            [0.0, 0.1 + 0.2, 1500.0, 2e6, -50.0, 1234.5678].map(short),
            ["0", "0.3", "1.5k", "2M", "-50", "1.23k"]
        );
        assert_eq!(ticks(0.0, 10_500.0), [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10_000.0, 12_000.0]);
        assert_eq!(ticks(-120.0, 60.0), [-150.0, -100.0, -50.0, 0.0, 50.0, 100.0]);
        assert_eq!(ticks(0.0, 0.0).len(), 6);
    }

    #[test]
    fn a_logarithmic_axis_takes_equal_factors_and_zero() {
        let svg = plot(Axis::Log, &[[0.0, 0.0], [50.0, 1.0], [100.0, 2.0]], &[[50.0, 0.5, 3.0]]).svg().unwrap();
        for x in ["70.0", "280.0", "490.0"] {
            assert!(svg.contains(&format!("<circle cx=\"{x}\"")), "{svg}");
        }
        assert!(svg.contains("T &amp; U") && svg.contains("a &lt; b") && svg.contains("stroke-opacity"));
        // The interval's end sets the scale: 3 is the topmost mark.
        assert!(svg.contains("V36.0"), "{svg}");
    }

    #[test]
    fn negative_values_have_a_line_at_zero() {
        let svg = plot(Axis::Linear, &[[1.0, -100.0], [3.0, 100.0]], &[]).svg().unwrap();
        assert!(svg.contains("M70 155.0H490\" stroke=\"#888\""), "{svg}");
        assert!(svg.contains("<polyline points=\"70.0,274.0 490.0,36.0\""), "{svg}");
    }

    #[test]
    fn an_axis_that_does_not_hold_zero_shows_the_range_of_the_values() {
        let losses = [[0.0, 2.31], [100.0, 2.18], [200.0, 2.12]];
        let svg = Plot { from_zero: false, ..plot(Axis::Linear, &losses, &[]) }.svg().unwrap();
        assert!(svg.contains(">2.1<") && svg.contains(">2.35<") && !svg.contains(">0</text><path"), "{svg}");
        assert!(!svg.contains("text-anchor=\"end\">0<"), "{svg}");
        let flat = Plot { from_zero: false, ..plot(Axis::Linear, &[[0.0, 3.0], [1.0, 3.0]], &[]) }.svg().unwrap();
        assert!(flat.contains(">3<"), "{flat}");
    }

    #[test]
    fn an_interval_without_an_end_is_an_arrow_and_no_point() {
        // Every game was lost: there is a bound, and no estimate.
        let bars = [[1.0, f64::NEG_INFINITY, -529.0], [2.0, -100.0, 100.0], [3.0, 400.0, f64::INFINITY]];
        let svg = plot(Axis::Linear, &[[2.0, 0.0]], &bars).svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
        assert!(!svg.contains("<polyline"), "a line from one point to nowhere: {svg}");
        // From the cap at the bound down to the arrow at the edge, and up to it.
        let (bound, lower) =
            (svg.lines().find(|l| l.contains("M70.0 274.0V")), svg.lines().find(|l| l.contains("V36.0")));
        assert!(bound.unwrap().contains("L70.0 274.0l4 -6.0") && bound.unwrap().contains("h8"), "{svg}");
        assert!(lower.unwrap().contains("L490.0 36.0l4 6.0"), "{svg}");
        assert!(plot(Axis::Linear, &[], &[[1.0, f64::NAN, 2.0], [2.0, 1.0, 2.0]]).svg().is_none());
    }

    #[test]
    fn many_points_get_few_marks_and_no_dots() {
        let points: Vec<[f64; 2]> = (0..200).map(|i| [f64::from(i), 1.0]).collect();
        for axis in [Axis::Linear, Axis::Log] {
            let svg = plot(axis, &points, &[]).svg().unwrap();
            assert!(!svg.contains("<circle") && svg.matches("y=\"292\"").count() <= MARKED, "{svg}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_plot() {
        assert!(plot(Axis::Log, &[[1.0, 1.0]], &[]).svg().is_none());
        assert!(plot(Axis::Log, &[[1.0, 1.0], [2.0, f64::NAN]], &[]).svg().is_none());
        assert!(Plot { lines: Vec::new(), ..plot(Axis::Log, &[], &[]) }.svg().is_none());
    }
}
