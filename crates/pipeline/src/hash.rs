//! One text and one hash for a JSON value, whatever order its keys were written in.

use std::fmt::Write;

use serde_json::Value;

/// The blake3 hash, in hex, of the canonical text of `value`.
///
/// # Stability
/// The hash names content on disk. Canonical text: keys sorted by bytes, no spaces, integers as written, other
/// numbers rounded to 12 significant digits (a value must hash alike before and after a trip through a file, and
/// JSON readers may differ in a number's last bit).
pub fn content_hash(value: &Value) -> String {
    blake3::hash(canonical(value).as_bytes()).to_hex().to_string()
}

/// The canonical text that [`content_hash`] hashes.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(&Value::String(key.clone()), out);
                out.push(':');
                write_canonical(item, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) if number.is_f64() => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{:.11e}", number.as_f64().unwrap_or(0.0));
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_matter_and_values_do() {
        let a: Value = serde_json::from_str(r#"{"b": [1, {"y": null, "x": "q\"uote"}], "a": 0.1}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":0.1,"b":[1,{"x":"q\"uote","y":null}]}"#).unwrap();
        assert_eq!(canonical(&a), r#"{"a":1.00000000000e-1,"b":[1,{"x":"q\"uote","y":null}]}"#);
        assert_eq!(content_hash(&a), content_hash(&b));
        assert_ne!(content_hash(&a), content_hash(&json!({"a": 0.1, "b": [1]})));
        assert_eq!(content_hash(&a).len(), 64);
    }

    #[test]
    fn survives_a_trip_through_text() {
        for i in 1..2000_u32 {
            let value = json!({ "single": i as f32 / 7.0, "double": f64::from(i).sqrt() * 1e-9 });
            let back: Value = serde_json::from_str(&value.to_string()).unwrap();
            assert_eq!(content_hash(&value), content_hash(&back));
        }
    }

    #[test]
    fn known_hash() {
        assert_eq!(content_hash(&json!({})), blake3::hash(b"{}").to_hex().to_string());
    }
}
