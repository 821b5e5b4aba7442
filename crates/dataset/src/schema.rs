//! The columns of a shard: names, order and types. Every dataset has them all, in this order.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

/// The version in the file metadata; it goes up when a column's meaning changes.
pub const SCHEMA_VERSION: u32 = 1;

/// The name of list elements, as the Parquet format asks.
pub(crate) const ELEMENT: &str = "element";

fn list(element: DataType, nullable: bool) -> DataType {
    DataType::List(Arc::new(Field::new(ELEMENT, element, nullable)))
}

/// `struct{move u16, count u32}`: one move that a search visited.
pub(crate) fn visit_fields() -> Fields {
    Fields::from(vec![Field::new("move", DataType::UInt16, false), Field::new("count", DataType::UInt32, false)])
}

/// `list<struct{move, count}>`: the visits of one ply.
pub(crate) fn visits_of_ply() -> DataType {
    list(DataType::Struct(visit_fields()), false)
}

/// The schema of every dataset.
///
/// # Stability
/// This is a file format: one query reads a corpus, self-play, matches and imported games.
pub fn schema() -> SchemaRef {
    static SCHEMA: OnceLock<SchemaRef> = OnceLock::new();
    let build = || {
        Arc::new(Schema::new(vec![
            Field::new("game", DataType::Utf8, false),
            Field::new("game_id", DataType::UInt64, false),
            Field::new("white", DataType::Utf8, false),
            Field::new("black", DataType::Utf8, false),
            Field::new("start_fen", DataType::Utf8, true),
            Field::new("opening_plies", DataType::UInt16, false),
            Field::new("moves", list(DataType::UInt16, false), false),
            Field::new("best", list(DataType::UInt16, true), false),
            Field::new("score", list(DataType::Int16, true), false),
            Field::new("value", list(DataType::Float32, true), true),
            Field::new("visits", list(visits_of_ply(), true), true),
            Field::new("result", DataType::Int8, true),
            Field::new("termination", DataType::Utf8, false),
            Field::new("plies", DataType::UInt16, false),
            Field::new("generation", DataType::UInt32, false),
            Field::new("opening", DataType::Utf8, true),
            Field::new("phase", DataType::Utf8, true),
            Field::new("rung", DataType::Int16, true),
            Field::new("reward", list(DataType::Float32, false), true),
        ]))
    };
    Arc::clone(SCHEMA.get_or_init(build))
}

/// The first difference between a file's columns and the schema.
pub(crate) fn difference(found: &Schema) -> Option<String> {
    let expected = schema();
    for (i, want) in expected.fields().iter().enumerate() {
        match found.fields().get(i) {
            Some(field) if field.name() == want.name() && field.data_type() == want.data_type() => {}
            Some(field) => {
                return Some(format!(
                    "column {i} is `{}: {}`, expected `{}: {}`",
                    field.name(),
                    field.data_type(),
                    want.name(),
                    want.data_type()
                ));
            }
            None => return Some(format!("column {i}, `{}`, is missing", want.name())),
        }
    }
    let extra = found.fields().get(expected.fields().len())?;
    Some(format!("column `{}` is not one of the schema's", extra.name()))
}
