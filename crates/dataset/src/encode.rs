//! Records to Arrow arrays, and the encodings that keep a shard small.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, Int8Array, Int16Array, ListArray, ListBuilder, PrimitiveBuilder, RecordBatch,
    StringArray, StructArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Float32Type, Int16Type, UInt16Type};
use arrow::error::ArrowError;

use crate::schema::{ELEMENT, schema, visit_fields, visits_of_ply};
use crate::{GameRecord, Visits};

/// The columns of some games. `best` is written as null where it equals the move played.
pub(crate) fn to_batch(records: &[GameRecord]) -> Result<RecordBatch, ArrowError> {
    let text =
        |f: fn(&GameRecord) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(records.iter().map(f))) };
    let maybe_text =
        |f: fn(&GameRecord) -> Option<&str>| -> ArrayRef { Arc::new(records.iter().map(f).collect::<StringArray>()) };
    let columns: Vec<ArrayRef> = vec![
        text(|r| &r.game),
        Arc::new(UInt64Array::from_iter_values(records.iter().map(|r| r.game_id))),
        text(|r| &r.white),
        text(|r| &r.black),
        maybe_text(|r| r.start_fen.as_deref()),
        Arc::new(UInt16Array::from_iter_values(records.iter().map(|r| r.opening_plies))),
        lists::<UInt16Type, _>(records.iter().map(|r| Some(r.moves.iter().map(|m| Some(m.0)))), false),
        lists::<UInt16Type, _>(
            records.iter().map(|r| {
                let differs = |(best, played): (&Option<games::Move>, &games::Move)| {
                    best.filter(|best| best != played).map(|best| best.0)
                };
                Some(r.best.iter().zip(&r.moves).map(differs))
            }),
            true,
        ),
        lists::<Int16Type, _>(records.iter().map(|r| Some(r.score.iter().copied())), true),
        lists::<Float32Type, _>(records.iter().map(|r| r.value.as_ref().map(|v| v.iter().copied())), true),
        visits(records)?,
        Arc::new(records.iter().map(|r| r.result.map(games::GameResult::white)).collect::<Int8Array>()),
        text(|r| r.termination.as_str()),
        Arc::new(UInt16Array::from_iter_values(records.iter().map(|r| r.plies() as u16))),
        Arc::new(UInt32Array::from_iter_values(records.iter().map(|r| r.generation))),
        maybe_text(GameRecord::opening_name),
        maybe_text(|r| r.phase.as_deref()),
        Arc::new(records.iter().map(|r| r.rung).collect::<Int16Array>()),
        lists::<Float32Type, _>(records.iter().map(|r| r.reward.as_ref().map(|v| v.iter().copied().map(Some))), false),
    ];
    RecordBatch::try_new(schema(), columns)
}

fn lists<T, I>(rows: impl Iterator<Item = Option<I>>, nullable: bool) -> ArrayRef
where
    T: ArrowPrimitiveType,
    I: Iterator<Item = Option<T::Native>>,
{
    let field = Field::new(ELEMENT, T::DATA_TYPE, nullable);
    let mut builder = ListBuilder::new(PrimitiveBuilder::<T>::new()).with_field(field);
    rows.for_each(|row| builder.append_option(row));
    Arc::new(builder.finish())
}

fn visits(records: &[GameRecord]) -> Result<ArrayRef, ArrowError> {
    let plies: Vec<&Visits> = records.iter().flat_map(|r| &r.visits).collect();
    let pairs = || plies.iter().filter_map(|v| v.as_deref()).flatten();
    let pairs = StructArray::try_new(
        visit_fields(),
        vec![
            Arc::new(UInt16Array::from_iter_values(pairs().map(|(m, _)| m.0))),
            Arc::new(UInt32Array::from_iter_values(pairs().map(|(_, n)| *n))),
        ],
        None,
    )?;
    let by_ply = ListArray::try_new(
        Arc::new(Field::new(ELEMENT, DataType::Struct(visit_fields()), false)),
        OffsetBuffer::from_lengths(plies.iter().map(|v| v.as_ref().map_or(0, Vec::len))),
        Arc::new(pairs),
        Some(plies.iter().map(|v| v.is_some()).collect::<NullBuffer>()),
    )?;
    let by_game = ListArray::try_new(
        Arc::new(Field::new(ELEMENT, visits_of_ply(), true)),
        OffsetBuffer::from_lengths(records.iter().map(|r| r.visits.len())),
        Arc::new(by_ply),
        Some(records.iter().map(|r| !r.visits.is_empty()).collect::<NullBuffer>()),
    )?;
    Ok(Arc::new(by_game))
}

/// About how many bytes a game takes in a row group before compression.
///
/// Parquet's smallest integer has four bytes; levels take up to one more.
pub(crate) fn weight(record: &GameRecord) -> usize {
    let texts = [record.start_fen.as_deref(), record.opening_name(), record.phase.as_deref()]
        .into_iter()
        .flatten()
        .map(str::len);
    let visits: usize = record.visits.iter().map(|v| 1 + v.as_ref().map_or(0, |v| v.len() * 10)).sum();
    let by_ply = 15 + 5 * (usize::from(record.value.is_some()) + usize::from(record.reward.is_some()));
    100 + record.white.len() + record.black.len() + texts.sum::<usize>() + record.plies() * by_ply + visits
}
