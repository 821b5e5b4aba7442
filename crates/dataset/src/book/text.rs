//! Bytes to text: zstd, byte order marks, UTF-16, line ends, bytes that are not UTF-8, and what is no text at all.

use std::path::Path;

use crate::DatasetError;

/// The first bytes of what has to be unpacked first, and its name.
const PACKED: [(&[u8], &str); 5] = [
    (&[0x1F, 0x8B], "gzip data: unpack it with `gunzip`"),
    (b"BZh", "bzip2 data: unpack it with `bunzip2`"),
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], "xz data: unpack it with `unxz`"),
    (b"PK\x03\x04", "a zip archive: unpack it with `unzip`"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive: unpack it"),
];
/// How much of a file is looked at to tell whether it is text.
const SAMPLE: usize = 1 << 16;

/// The text of a file, with `\n` at line ends, and warnings about what was replaced.
pub(super) fn read(path: &Path) -> Result<(String, Vec<String>), DatasetError> {
    let mut bytes = std::fs::read(path).map_err(DatasetError::io(path))?;
    if is_zstd(&bytes) {
        bytes = zstd::stream::decode_all(bytes.as_slice()).map_err(DatasetError::io(path))?;
    }
    if let Some(text) = utf16(&bytes) {
        bytes = text.into_bytes();
    }
    if let Some(what) = not_text(&bytes) {
        let reason = format!("is {what}; expected EPD or FEN lines, or PGN games, plain or zstd");
        return Err(DatasetError::Book { path: path.to_owned(), line: 1, reason });
    }
    let (text, odd) = decode(&bytes);
    let warning = |(line, count)| {
        format!("{}:{line}: {count} lines are not UTF-8 and were read as Latin-1, this one first", path.display())
    };
    Ok((text, odd.map(warning).into_iter().collect()))
}

/// Whether zstd data begins here: a frame of it, or one of those that readers pass over, as large files often begin.
fn is_zstd(bytes: &[u8]) -> bool {
    matches!(bytes, [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// What has the byte order mark of UTF-16, as UTF-8.
fn utf16(bytes: &[u8]) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units: Vec<u16> = bytes[2..].as_chunks().0.iter().map(|pair| unit(*pair)).collect();
    Some(String::from_utf16_lossy(&units))
}

/// What bytes are that are no text.
fn not_text(bytes: &[u8]) -> Option<&'static str> {
    if let Some((_, what)) = PACKED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(what);
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let control = sample.iter().filter(|b| b.is_ascii_control() && !b"\t\n\r\x0c\x1a\x1b".contains(b)).count();
    // A stray control character does no harm; a NUL or many of them are numbers or another encoding.
    (sample.contains(&0) || control * 50 > sample.len())
        .then_some("not text (a Polyglot book, or UTF-16 without its mark?)")
}

/// Foreign text in a message: in backquotes, not long, without control characters.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut short: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    format!("`{short}`")
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
