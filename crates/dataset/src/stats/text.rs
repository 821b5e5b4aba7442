//! The report as text tables.

use std::fmt::{Display, Formatter, Result};

use super::{Count, Results, StatsReport};

/// Rows of a table that may be long.
const ROWS: usize = 20;

impl Display for StatsReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (games, positions) = (self.games, self.positions);
        writeln!(f, "games              {games:>12}")?;
        writeln!(
            f,
            "  distinct         {:>12}  ({})",
            shown(self.distinct_games),
            repeated(self.distinct_games, games)
        )?;
        writeln!(f, "positions          {positions:>12}")?;
        writeln!(f, "  chosen by players{:>12}", self.played_positions)?;
        let repeats = repeated(self.distinct_positions, self.counted_positions);
        writeln!(f, "  distinct         {:>12}  ({repeats})", shown(self.distinct_positions))?;
        writeln!(f, "bytes              {:>12}  ({:.2} a position)", self.bytes, self.bytes_per_position)?;
        if self.bad_games > 0 {
            writeln!(f, "cannot be replayed {:>12}", self.bad_games)?;
        }
        table(f, "result (White's view)", std::slice::from_ref(&self.results))?;
        table(f, "player (own view)", &self.players)?;
        table(f, "opening (White's view)", &self.openings)?;
        table(f, "ended by (White's view)", &self.terminations)?;
        writeln!(f, "\n{:<16} {:>10}", "plies", "games")?;
        let most = self.lengths.iter().map(|l| l.games).max().unwrap_or(1).max(1);
        for row in &self.lengths {
            let bar = "#".repeat((row.games * 40).div_ceil(most) as usize);
            writeln!(f, "{:<16} {:>10}  {bar}", format!("{}-{}", row.from, row.to), row.games)?;
        }
        if !self.calibration.is_empty() {
            writeln!(f, "\n{:<16} {:>10} {:>12}", "score (mover)", "positions", "mean result")?;
        }
        for row in &self.calibration {
            let bucket = match (row.from, row.to) {
                (-32_000, _) => "mated in n".to_owned(),
                (30_001, _) => "mate in n".to_owned(),
                (from, to) => format!("{from}..{to}"),
            };
            writeln!(f, "{bucket:<16} {:>10} {:>+12.3}", row.positions, row.mean_result)?;
        }
        Ok(())
    }
}

fn shown(count: Count) -> String {
    format!("{}{}", if count.exact { "" } else { "~" }, count.count)
}

fn repeated(distinct: Count, of: u64) -> String {
    let share = 1.0 - distinct.count as f64 / of.max(1) as f64;
    format!("{:.1} % repeated", (share * 100.0).clamp(0.0, 100.0))
}

fn table(f: &mut Formatter<'_>, title: &str, rows: &[Results]) -> Result {
    let width = rows.iter().take(ROWS).map(|r| r.name.chars().count()).max().unwrap_or(0).clamp(title.len(), 60);
    writeln!(
        f,
        "\n{title:<width$} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "games", "won", "drawn", "lost", "none", "score"
    )?;
    for r in rows.iter().take(ROWS) {
        let score = r.score().map_or_else(|| "-".to_owned(), |s| format!("{:.1} %", s * 100.0));
        let name: String = r.name.chars().take(width).collect();
        writeln!(
            f,
            "{name:<width$} {:>9} {:>8} {:>8} {:>8} {:>8} {score:>7}",
            r.games, r.wins, r.draws, r.losses, r.none
        )?;
    }
    if rows.len() > ROWS {
        let games: u64 = rows[ROWS..].iter().map(|r| r.games).sum();
        writeln!(f, "{:<width$} {games:>9}", format!("{} more", rows.len() - ROWS))?;
    }
    Ok(())
}
