//! Bytes to text: zstd, byte order marks, line ends, and bytes that are not UTF-8.

use std::path::Path;

use crate::DatasetError;

const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The text of a file, with `\n` at line ends, and warnings about what was replaced.
pub(super) fn read(path: &Path) -> Result<(String, Vec<String>), DatasetError> {
    let mut bytes = std::fs::read(path).map_err(DatasetError::io(path))?;
    if bytes.starts_with(&ZSTD) {
        bytes = zstd::stream::decode_all(bytes.as_slice()).map_err(DatasetError::io(path))?;
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        let reason = "is UTF-16, expected UTF-8: convert it first".to_owned();
        return Err(DatasetError::Book { path: path.to_owned(), line: 1, reason });
    }
    let (text, odd) = decode(&bytes);
    let warning = |(line, count)| {
        format!("{}:{line}: {count} lines are not UTF-8 and were read as Latin-1, this one first", path.display())
    };
    Ok((text, odd.map(warning).into_iter().collect()))
}

/// The text, and the first line that is not UTF-8 with the number of such lines.
pub(super) fn decode(bytes: &[u8]) -> (String, Option<(usize, usize)>) {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut text = String::with_capacity(bytes.len());
    let mut odd = None;
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if i > 0 {
            text.push('\n');
        }
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => {
                text.extend(line.iter().map(|b| char::from(*b)));
                odd = Some(odd.map_or((i + 1, 1), |(first, n)| (first, n + 1)));
            }
        }
    }
    (text.replace("\r\n", "\n").replace('\r', "\n"), odd)
}
