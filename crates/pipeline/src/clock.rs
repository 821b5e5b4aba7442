//! The time of day in UTC and the name of this machine, for stamps, sidecars and lock notes.
//!
//! Both are for people to read: nothing that determines content depends on them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present as `2026-11-30T03:44:29Z`.
pub fn utc_now() -> String {
    let [year, month, day, hour, minute, second] = fields(unix_seconds());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The present as `20261130T034429Z`: no colons, for names of files and folders.
pub(crate) fn utc_compact() -> String {
    let [year, month, day, hour, minute, second] = fields(unix_seconds());
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Seconds since 1970, UTC; zero on a machine whose clock is set before that.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Year, month, day, hour, minute and second of a Unix time, by the days-to-civil algorithm of Howard Hinnant
/// ("chrono-Compatible Low-Level Date Algorithms"), for dates from 1970 on.
fn fields(unix: u64) -> [u64; 6] {
    let (days, rest) = (unix / 86_400, unix % 86_400);
    // Days are counted from 0000-03-01, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    [year, month, day, rest / 3_600, rest / 60 % 60, rest % 60]
}

/// A length of time as `2h05m`, `4m35s` or `37s`.
pub fn span(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s:02}s"),
        (h, m, _) => format!("{h}h{m:02}m"),
    }
}

/// The name of this machine, or `unknown`.
pub fn host_name() -> String {
    let from_file = |path: &str| std::fs::read_to_string(path).ok();
    [from_file("/proc/sys/kernel/hostname"), from_file("/etc/hostname"), std::env::var("HOSTNAME").ok()]
        .into_iter()
        .flatten()
        .map(|name| name.trim().to_string())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        assert_eq!(fields(0), [1970, 1, 1, 0, 0, 0]);
        assert_eq!(fields(951_782_399), [2000, 2, 28, 23, 59, 59]);
        assert_eq!(fields(951_782_400), [2000, 2, 29, 0, 0, 0]);
        assert_eq!(fields(1_796_010_269), [2026, 11, 30, 3, 44, 29]);
        assert_eq!(fields(4_107_542_400), [2100, 3, 1, 0, 0, 0]);
    }

    #[test]
    fn spans() {
        assert_eq!([0.4, 36.6, 275.0, 7500.0].map(span), ["0s", "37s", "4m35s", "2h05m"]);
    }

    #[test]
    fn shapes() {
        assert_eq!(utc_now().len(), "2026-11-30T03:44:29Z".len());
        assert_eq!(utc_compact().len(), "20261130T034429Z".len());
        assert!(!host_name().is_empty());
    }
}
