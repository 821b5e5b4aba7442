//! Numbers of a run over time, twice: `metrics.jsonl` for queries and a TensorBoard event file for eyes.
//!
//! A line is `{"step":1200,"time":"2026-11-30T03:44:29Z","loss":1.25}`: one flat object, so that any reader of
//! line-delimited JSON gives one column per name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::clock::{host_name, unix_seconds, utc_now};
use crate::events;
use crate::files::create_folders;

/// What went wrong with a metrics file.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// A file could not be opened, read or written.
    #[error("metrics {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A value is named like one of the two columns that every line has.
    #[error("metrics: a value cannot be named `{0}`: every line has a column of that name")]
    Name(String),
}

/// Appends to the metrics of one folder. One writer at a time.
#[derive(Debug)]
pub struct Metrics {
    dir: PathBuf,
    path: PathBuf,
    lines: File,
    /// Bytes of whole lines, to which a failed write is cut back.
    length: u64,
    /// Opened by the first value, so that a run that logs nothing leaves no file.
    events: Option<(PathBuf, File)>,
}

impl Metrics {
    /// Opens `metrics.jsonl` in `dir`, creating both. A last line that a kill tore is dropped.
    ///
    /// # Errors
    /// [`MetricsError::Io`].
    pub fn open(dir: &Path) -> Result<Metrics, MetricsError> {
        let path = dir.join("metrics.jsonl");
        let opened = (|| {
            create_folders(dir)?;
            let mut lines = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            let length = whole_lines(&fs::read(&path)?);
            lines.set_len(length)?;
            lines.seek(SeekFrom::Start(length))?;
            Ok((lines, length))
        })();
        match opened {
            Ok((lines, length)) => Ok(Metrics { dir: dir.to_path_buf(), path, lines, length, events: None }),
            Err(source) => Err(MetricsError::Io { path, source }),
        }
    }

    /// Appends the values of a step. Non-finite values are written as null, and left out of the event file.
    ///
    /// # Errors
    /// [`MetricsError`]; a line that did not fit on the disk is taken back.
    pub fn log(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), MetricsError> {
        let mut line = format!("{{\"step\":{step},\"time\":\"{}\"", utc_now());
        for (name, value) in values {
            if matches!(*name, "step" | "time") {
                return Err(MetricsError::Name((*name).to_string()));
            }
            // Non-finite numbers have no JSON form: `Value::from` makes them null.
            line.push_str(&format!(",{}:{}", Value::from(*name), Value::from(*value)));
        }
        line.push_str("}\n");
        self.append_line(&line).map_err(|source| MetricsError::Io { path: self.path.clone(), source })?;

        let finite: Vec<(&str, f32)> =
            values.iter().filter(|(_, v)| v.is_finite()).map(|(name, v)| (*name, *v as f32)).collect();
        if finite.is_empty() {
            return Ok(());
        }
        self.append_event(&events::scalars_event(wall_time(), step, &finite))
    }

    /// Forgets every step after `step`, for a run that resumes from an earlier checkpoint and will log them again.
    ///
    /// # Errors
    /// [`MetricsError::Io`].
    pub fn rewind(&mut self, step: u64) -> Result<(), MetricsError> {
        let cut = (|| {
            let bytes = fs::read(&self.path)?;
            let keep = lines_up_to(&bytes, step);
            if keep == self.length {
                return Ok(false);
            }
            self.lines.set_len(keep)?;
            self.lines.seek(SeekFrom::Start(keep))?;
            self.length = keep;
            Ok(true)
        })();
        match cut {
            Ok(false) => Ok(()),
            Ok(true) => self.append_event(&events::restart_event(wall_time(), step + 1)),
            Err(source) => Err(MetricsError::Io { path: self.path.clone(), source }),
        }
    }

    fn append_line(&mut self, line: &str) -> io::Result<()> {
        if let Err(e) = self.lines.write_all(line.as_bytes()) {
            // A part of the line may be there; without this the next one would be glued to it.
            self.lines.set_len(self.length)?;
            self.lines.seek(SeekFrom::Start(self.length))?;
            return Err(e);
        }
        self.length += line.len() as u64;
        Ok(())
    }

    fn append_event(&mut self, event: &[u8]) -> Result<(), MetricsError> {
        let (path, file) = match &mut self.events {
            Some(open) => open,
            None => {
                let open = create_events(&self.dir)?;
                self.events.insert(open)
            }
        };
        let io = |source| MetricsError::Io { path: path.clone(), source };
        file.write_all(&events::record(event)).map_err(io)
    }
}

/// Starts an event file under a name that no earlier one has; TensorBoard reads a folder's files in name order.
fn create_events(dir: &Path) -> Result<(PathBuf, File), MetricsError> {
    let stem = format!("events.out.tfevents.{}.{}.{}", unix_seconds(), host_name(), std::process::id());
    let mut number = 0;
    loop {
        let path = dir.join(format!("{stem}.{number}"));
        let created = OpenOptions::new().append(true).create_new(true).open(&path).and_then(|mut file| {
            file.write_all(&events::record(&events::version_event(wall_time())))?;
            Ok(file)
        });
        match created {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(MetricsError::Io { path, source }),
        }
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// How many leading bytes are whole lines: what follows the last line break is torn, and so are last lines that are
/// no objects (a power cut can leave zeros where data was to be).
fn whole_lines(bytes: &[u8]) -> u64 {
    let mut length = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    while length > 0 {
        let start = bytes[..length - 1].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        if step_of(&bytes[start..length]).is_some() {
            break;
        }
        length = start;
    }
    length as u64
}

/// How many leading bytes are lines of steps up to `step`.
fn lines_up_to(bytes: &[u8], step: u64) -> u64 {
    let kept = bytes.split_inclusive(|b| *b == b'\n').take_while(|line| step_of(line).is_some_and(|s| s <= step));
    kept.map(|line| line.len() as u64).sum()
}

fn step_of(line: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Map<String, Value>>(line).ok()?.get("step")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dir: &Path) -> Vec<Value> {
        let text = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn event_files(dir: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
        files.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("events.out.tfevents."));
        files.sort();
        files
    }

    #[test]
    fn a_torn_last_line_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(dir.path()).unwrap();
        metrics.log(1, &[("loss", 1.5)]).unwrap();
        metrics.log(2, &[("loss", f64::NAN), ("lr \"x\"", f64::INFINITY)]).unwrap();
        drop(metrics);
        for torn in [&b"{\"step\":3,\"ti"[..], b"{\"step\":3,\"ti\n", b"\0\0\0\0\n\0\0"] {
            OpenOptions::new().append(true).open(dir.path().join("metrics.jsonl")).unwrap().write_all(torn).unwrap();
            Metrics::open(dir.path()).unwrap();
            assert_eq!(lines(dir.path()).len(), 2);
        }
        Metrics::open(dir.path()).unwrap().log(3, &[("loss", 1.0)]).unwrap();
        let lines = lines(dir.path());
        assert_eq!(lines[0]["loss"], 1.5);
        assert!(lines[1]["loss"].is_null() && lines[1]["lr \"x\""].is_null());
        assert_eq!(lines[2]["step"], 3);
    }

    #[test]
    fn rewinding_forgets_later_steps() {
        let dir = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(dir.path()).unwrap();
        for step in 1..=5 {
            metrics.log(step, &[("loss", step as f64)]).unwrap();
        }
        metrics.rewind(9).unwrap();
        assert_eq!(lines(dir.path()).len(), 5);
        metrics.rewind(3).unwrap();
        metrics.log(4, &[("loss", 40.0)]).unwrap();
        let steps: Vec<_> = lines(dir.path()).iter().map(|l| l["step"].as_u64().unwrap()).collect();
        assert_eq!(steps, [1, 2, 3, 4]);
    }

    #[test]
    fn event_files_hold_whole_records_and_never_mix() {
        let dir = tempfile::tempdir().unwrap();
        Metrics::open(dir.path()).unwrap();
        assert!(event_files(dir.path()).is_empty());
        for step in 0..2 {
            Metrics::open(dir.path()).unwrap().log(step, &[("a", 1.0), ("b", f64::NAN)]).unwrap();
        }
        let files = event_files(dir.path());
        assert_eq!(files.len(), 2);
        let bytes = fs::read(&files[0]).unwrap();
        let mut at = 0;
        let mut records = 0;
        while at < bytes.len() {
            let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            assert_eq!(bytes[at..at + length + 16], events::record(&bytes[at + 12..at + 12 + length]));
            at += length + 16;
            records += 1;
        }
        assert_eq!(records, 2);
    }

    #[test]
    fn column_names_are_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let error = Metrics::open(dir.path()).unwrap().log(1, &[("time", 1.0)]).unwrap_err();
        assert!(error.to_string().contains("`time`"));
        assert!(lines(dir.path()).is_empty());
    }
}
