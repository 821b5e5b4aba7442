//! Writing a shard: encode, read back and compare, put whole, then its sidecar last.

use std::collections::BTreeMap;
use std::path::PathBuf;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use pipeline::{Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::encode::{to_batch, weight};
use crate::schema::{SCHEMA_VERSION, schema};
use crate::{DatasetError, GameRecord, frame};

/// Games a row group may weigh, as [`weight`] counts: with the format's own overhead it stays below 16 MiB.
const ROW_GROUP_BYTES: usize = 14 << 20;
/// Decoding speed hardly depends on the level, and a shard takes far longer to play than to compress.
const ZSTD_LEVEL: i32 = 12;
/// Numbers by ply that spread over two bytes or more: split by byte, they compress to what is random in them. Moves
/// have few values, and stay with the dictionary that is the default.
const SPLIT: [&str; 5] =
    ["best.list.element", "score.list.element", "value.list.element", "reward.list.element", VISIT_COUNT];
const VISIT_COUNT: &str = "visits.list.element.list.element.count";
/// The legal moves of a ply, nearly the same at the next: long repetitions, which a dictionary's bits would hide.
const VISIT_MOVE: &str = "visits.list.element.list.element.move";
/// Columns whose row-group statistics queries can use.
const STATISTICS: [&str; 5] = ["game_id", "result", "plies", "generation", "rung"];

/// What determines the content of a dataset; it is written into each file.
///
/// Nothing else is: two machines that write the same shard write the same bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Meta {
    /// The dataset's name, a part of its games' identity ("corpus", "selfplay").
    pub dataset: String,
    /// The settings that determine the games.
    pub settings: Value,
    /// The run's seed.
    pub seed: u64,
    /// The engine's `id name` and options, if an engine played.
    pub engine: Option<String>,
    /// Whether the same settings give the same bytes (not with time limits or reduced strength). In the sidecar only.
    pub reproducible: bool,
}

/// Keys of the file metadata.
pub(crate) const META_DATASET: &str = "tabiya.dataset";

impl Meta {
    fn key_values(&self) -> Vec<KeyValue> {
        let mut pairs = vec![
            KeyValue::new("tabiya.schema".to_owned(), SCHEMA_VERSION.to_string()),
            KeyValue::new(META_DATASET.to_owned(), self.dataset.clone()),
            KeyValue::new("tabiya.settings".to_owned(), canonical(&self.settings).to_string()),
            KeyValue::new("tabiya.seed".to_owned(), self.seed.to_string()),
        ];
        pairs.extend(self.engine.clone().map(|engine| KeyValue::new("tabiya.engine".to_owned(), engine)));
        pairs
    }
}

/// The value with object keys in order, whatever order the map type keeps.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> = map.iter().map(|(k, v)| (k, canonical(v))).collect();
            sorted.into_iter().map(|(k, v)| (k.clone(), v)).collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// The file beside a shard that makes it part of the dataset: `shard-00042.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sidecar {
    /// The shard's number.
    pub shard: u32,
    /// Its first game.
    pub first_game: u64,
    /// Games.
    pub rows: u64,
    /// Plies of all games.
    pub positions: u64,
    /// Size of the Parquet file.
    pub bytes: u64,
    /// BLAKE3 of the Parquet file, hexadecimal.
    pub blake3: String,
    /// Who wrote it: host, process, time, version. No part of the content.
    pub writer: Value,
    /// Whether the same settings give the same bytes.
    pub reproducible: bool,
}

/// `shard-00042.parquet`.
pub fn shard_name(shard: u32) -> String {
    format!("shard-{shard:05}.parquet")
}

/// `shard-00042.json`.
pub fn sidecar_name(shard: u32) -> String {
    format!("shard-{shard:05}.json")
}

/// Writes one shard and its sidecar; the same records and `meta` give the same Parquet bytes.
///
/// The bytes are read back before they are put (by the reader that training uses) and after (by hash).
///
/// # Errors
/// [`DatasetError::Record`] if a record breaks the schema or the game ids do not ascend; errors of encoding and of
/// the store. Without a sidecar the shard does not count, so that a failure leaves nothing behind that is read.
pub fn write_shard(store: &Store, shard: u32, records: &[GameRecord], meta: &Meta) -> Result<Sidecar, DatasetError> {
    write_shard_as(store, shard, records, meta, &json!({}))
}

/// As [`write_shard`], with more to say about the writer (`workers`, `seconds`, ...) in the sidecar.
///
/// # Errors
/// As [`write_shard`].
pub fn write_shard_as(
    store: &Store,
    shard: u32,
    records: &[GameRecord],
    meta: &Meta,
    writer: &Value,
) -> Result<Sidecar, DatasetError> {
    let name = shard_name(shard);
    let place = store.describe(&name);
    let bytes = encode_shard(records, meta, &place)?;
    let back = frame::records_from_bytes(bytes.clone(), &place)?;
    let same = |(written, read): (&GameRecord, &GameRecord)| written.clone().normalized() == *read;
    if back.len() != records.len() || !records.iter().zip(&back).all(same) {
        return Err(DatasetError::BadFile {
            path: PathBuf::from(&place),
            reason: "the encoded games read back differently; nothing was written".into(),
        });
    }
    let hash = blake3::hash(&bytes);
    store.put(&name, &bytes)?;
    if blake3::hash(&store.get(&name)?) != hash {
        return Err(DatasetError::BadFile {
            path: PathBuf::from(&place),
            reason: "the file reads back differently from what was written: check the disk".into(),
        });
    }
    let sidecar = Sidecar {
        shard,
        first_game: records[0].game_id,
        rows: records.len() as u64,
        positions: records.iter().map(|r| r.plies() as u64).sum(),
        bytes: bytes.len() as u64,
        blake3: hash.to_hex().to_string(),
        writer: writer_note(writer),
        reproducible: meta.reproducible,
    };
    let text = serde_json::to_vec_pretty(&sidecar).map_err(|e| DatasetError::io(&place)(e.into()))?;
    store.put(&sidecar_name(shard), &text)?;
    Ok(sidecar)
}

/// The whole shards of a store, by number: those whose sidecar can be read and whose file has the size it says.
///
/// Cheap (no content is read): what a writer needs to know to go on. Readers use [`crate::Dataset`].
///
/// # Errors
/// Errors of the store.
pub fn finished_shards(store: &Store) -> Result<BTreeMap<u32, Sidecar>, DatasetError> {
    let entries = store.list("")?;
    let size = |name: &str| entries.iter().find(|e| e.path == name).map(|e| e.bytes);
    let mut shards = BTreeMap::new();
    for entry in entries.iter().filter(|e| e.path.ends_with(".json")) {
        let Some(number) = shard_number(&entry.path) else { continue };
        let text = match store.get(&entry.path) {
            Ok(text) => text,
            Err(StoreError::NotFound { .. }) => continue,
            Err(e) => return Err(e.into()),
        };
        let Ok(sidecar) = serde_json::from_slice::<Sidecar>(&text) else { continue };
        if sidecar.shard == number && size(&shard_name(number)) == Some(sidecar.bytes) {
            shards.insert(number, sidecar);
        }
    }
    Ok(shards)
}

/// The number in `shard-00042.parquet` or `shard-00042.json`; `None` for other names.
pub(crate) fn shard_number(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".parquet").or_else(|| name.strip_suffix(".json"))?;
    let digits = stem.strip_prefix("shard-")?;
    let number = digits.parse().ok()?;
    (digits == format!("{number:05}")).then_some(number)
}

fn encode_shard(records: &[GameRecord], meta: &Meta, place: &str) -> Result<Vec<u8>, DatasetError> {
    records.iter().try_for_each(GameRecord::validate)?;
    if records.is_empty() {
        return Err(DatasetError::Setting {
            field: "records",
            reason: format!("{place}: a shard has at least one game"),
        });
    }
    if let Some(pair) = records.windows(2).find(|w| w[0].game_id >= w[1].game_id) {
        let reason = format!("follows game {}, expected ascending ids in {place}", pair[0].game_id);
        return Err(DatasetError::Record { game_id: pair[1].game_id, field: "game_id", reason });
    }
    let error = || DatasetError::parquet(place);
    let mut writer =
        ArrowWriter::try_new(Vec::new(), schema(), Some(properties(meta).map_err(error())?)).map_err(error())?;
    let mut rest = records;
    while !rest.is_empty() {
        let (group, after) = rest.split_at(row_group(rest));
        rest = after;
        writer.write(&to_batch(group).map_err(|e| error()(e.into()))?).map_err(error())?;
        writer.flush().map_err(error())?;
    }
    writer.into_inner().map_err(error())
}

/// How many of the next games go into one row group.
fn row_group(records: &[GameRecord]) -> usize {
    let mut bytes = 0;
    let fits = records.iter().take_while(|record| {
        bytes += weight(record);
        bytes <= ROW_GROUP_BYTES
    });
    fits.count().max(1)
}

fn properties(meta: &Meta) -> Result<WriterProperties, parquet::errors::ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(meta.key_values()))
        .set_statistics_enabled(EnabledStatistics::None);
    for column in STATISTICS {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk);
    }
    let split = SPLIT.map(|column| (column, Encoding::BYTE_STREAM_SPLIT));
    let others = [(VISIT_MOVE, Encoding::PLAIN), ("game_id", Encoding::DELTA_BINARY_PACKED)];
    for (column, encoding) in split.into_iter().chain(others) {
        let path = ColumnPath::from(column.split('.').map(str::to_owned).collect::<Vec<_>>());
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    Ok(properties.build())
}

fn writer_note(more: &Value) -> Value {
    let mut note = json!({
        "host": pipeline::host_name(),
        "pid": std::process::id(),
        "time": pipeline::utc_now(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let (Value::Object(note), Value::Object(more)) = (&mut note, more) {
        note.extend(more.clone());
    }
    note
}

#[cfg(test)]
#[path = "shard/tests.rs"]
mod tests;
