//! TensorBoard event files: the record format and the four kinds of event that a training run needs.
//!
//! A record is `length u64 LE | masked CRC-32C of the length | payload | masked CRC-32C of the payload`
//! (TensorFlow, `core/lib/io/record_writer.h`); the payload is an `Event` message in protobuf's wire format
//! (`core/util/event.proto`), of which a few fields are written by hand here.

/// The length-framed, checksummed record of a payload.
pub(crate) fn record(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(payload.len() + 16);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(crc32c(&length)).to_le_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(&masked(crc32c(payload)).to_le_bytes());
    out
}

/// The first event of every file: `Event { wall_time: 1, file_version: 3 }`.
pub(crate) fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, b"brain.Event:2");
    event
}

/// One step's scalars: `Event { wall_time: 1, step: 2, summary: 5 { value: 1 { tag: 1, simple_value: 2 } } }`.
pub(crate) fn scalars_event(wall_time: f64, step: u64, values: &[(&str, f32)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, tag.as_bytes());
        put_key(&mut entry, 2, 5);
        entry.extend_from_slice(&value.to_le_bytes());
        put_bytes(&mut summary, 1, &entry);
    }
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_key(&mut event, 2, 0);
    put_varint(&mut event, step);
    put_bytes(&mut event, 5, &summary);
    event
}

/// A restart: `Event { wall_time: 1, step: 2, session_log: 7 { status: 1 = START } }`. On reading it, TensorBoard
/// drops the points at `step` and after that earlier files of the run hold.
pub(crate) fn restart_event(wall_time: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_key(&mut event, 2, 0);
    put_varint(&mut event, step);
    put_bytes(&mut event, 7, &[0x08, 0x01]);
    event
}

fn put_key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    put_varint(out, field << 3 | wire_type);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_key(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Rotated and offset, so that a checksum of data that holds checksums stays useful (`core/lib/hash/crc32c.h`).
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected, a byte at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| (crc >> 8) ^ CRC_TABLE[usize::from(crc as u8 ^ byte)])
}

static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_vectors() {
        // RFC 3720, B.4, and the common check value.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn record_begins_as_every_tensorboard_file_does() {
        let payload = version_event(1.0);
        assert_eq!(payload.len(), 24);
        let bytes = record(&payload);
        // The first twelve bytes of event files written by TensorFlow: length 24 and its masked checksum.
        assert_eq!(bytes[..12], [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22]);
        assert_eq!(bytes.len(), 24 + 16);
        assert_eq!(&bytes[21..36], b"\x1a\x0dbrain.Event:2");
    }

    #[test]
    fn scalar_event_bytes() {
        let event = scalars_event(0.0, 300, &[("loss", 0.5)]);
        let expected = [
            &[0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0xac, 0x02, 0x2a, 13, 0x0a, 11, 0x0a, 4][..],
            b"loss",
            &[0x15, 0, 0, 0, 0x3f],
        ]
        .concat();
        assert_eq!(event, expected);
    }
}
