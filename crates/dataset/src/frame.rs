//! Polars data frames to records: the one way in which games are read.

use std::io::Cursor;

use games::{GameResult, Move, Termination};
use polars::prelude::*;

use crate::{DatasetError, GameRecord, Visits};

/// The games of a whole Parquet file in memory.
pub(crate) fn records_from_bytes(bytes: Vec<u8>, what: &str) -> Result<Vec<GameRecord>, DatasetError> {
    let frame = ParquetReader::new(Cursor::new(bytes)).finish().map_err(DatasetError::query(what))?;
    records_from_frame(&frame, what)
}

/// The games of a frame. Nullable columns may be absent (a query that selected fewer); they read as null.
pub(crate) fn records_from_frame(frame: &DataFrame, what: &str) -> Result<Vec<GameRecord>, DatasetError> {
    decode(frame).map_err(DatasetError::query(what))
}

fn decode(frame: &DataFrame) -> PolarsResult<Vec<GameRecord>> {
    let rows = frame.height();
    let ids = Cells::of(frame, "game_id")?.numbers(Series::u64)?;
    let mut out = Vec::with_capacity(rows);
    for (row, id) in ids.into_iter().enumerate() {
        let id = id.ok_or_else(|| null("game_id", row))?;
        out.push(GameRecord::new("", id));
    }
    let texts = |name: &'static str| Cells::optional(frame, name)?.map(|c| c.texts()).transpose();
    fill(&mut out, texts("game")?, |r, v| r.game = v);
    fill(&mut out, texts("white")?, |r, v| r.white = v);
    fill(&mut out, texts("black")?, |r, v| r.black = v);
    fill(&mut out, texts("start_fen")?, |r, v| r.start_fen = Some(v));
    fill(&mut out, texts("opening")?, |r, v| r.opening = Some(v));
    fill(&mut out, texts("phase")?, |r, v| r.phase = Some(v));
    if let Some(names) = texts("termination")? {
        for (record, name) in out.iter_mut().zip(names) {
            let name = name.unwrap_or_default();
            record.termination = Termination::parse(&name).ok_or_else(
                || polars_err!(SchemaMismatch: "game {}: termination `{name}` is unknown", record.game_id),
            )?;
        }
    }
    if let Some(results) = Cells::optional(frame, "result")? {
        for (record, result) in out.iter_mut().zip(results.numbers(Series::i8)?) {
            let known = |v| {
                GameResult::from_white(v)
                    .ok_or_else(|| polars_err!(SchemaMismatch: "game {}: result {v} is not 1, 0 or -1", record.game_id))
            };
            record.result = result.map(known).transpose()?;
        }
    }
    fill(&mut out, Some(Cells::of(frame, "opening_plies")?.numbers(Series::u16)?), |r, v| r.opening_plies = v);
    let numbers = Cells::optional(frame, "generation")?.map(|c| c.numbers(Series::u32)).transpose()?;
    fill(&mut out, numbers, |r, v| r.generation = v);
    fill(&mut out, Cells::optional(frame, "rung")?.map(|c| c.numbers(Series::i16)).transpose()?, |r, v| {
        r.rung = Some(v);
    });
    let moves = Cells::of(frame, "moves")?.lists(|s| numbers_of(s, Series::u16))?;
    fill(&mut out, Some(moves), |r, v| r.moves = v.into_iter().flatten().map(Move).collect());
    let best = Cells::of(frame, "best")?.lists(|s| numbers_of(s, Series::u16))?;
    fill(&mut out, Some(best), |r, v| r.best = v.into_iter().map(|m| m.map(Move)).collect());
    fill(&mut out, Some(Cells::of(frame, "score")?.lists(|s| numbers_of(s, Series::i16))?), |r, v| r.score = v);
    let floats = |name| Cells::optional(frame, name)?.map(|c| c.lists(|s| numbers_of(s, Series::f32))).transpose();
    fill(&mut out, floats("value")?, |r, v| r.value = Some(v));
    fill(&mut out, floats("reward")?, |r, v| r.reward = Some(v.into_iter().flatten().collect()));
    let visits = Cells::optional(frame, "visits")?.map(|c| c.lists(visits_of)).transpose()?;
    fill(&mut out, visits, |r, v| r.visits = v);
    Ok(out)
}

fn fill<T>(out: &mut [GameRecord], column: Option<Vec<Option<T>>>, mut set: impl FnMut(&mut GameRecord, T)) {
    for (record, value) in out.iter_mut().zip(column.into_iter().flatten()) {
        if let Some(value) = value {
            set(record, value);
        }
    }
}

fn null(column: &str, row: usize) -> PolarsError {
    polars_err!(SchemaMismatch: "column `{column}` is null in row {row}")
}

/// A column in one chunk.
struct Cells(Series);

impl Cells {
    fn of(frame: &DataFrame, name: &str) -> PolarsResult<Self> {
        Ok(Cells(frame.column(name)?.as_materialized_series().rechunk()))
    }

    fn optional(frame: &DataFrame, name: &str) -> PolarsResult<Option<Self>> {
        let present = frame.get_column_names().iter().any(|n| n.as_str() == name);
        present.then(|| Cells::of(frame, name)).transpose()
    }

    fn numbers<T>(&self, get: Getter<T>) -> PolarsResult<Vec<Option<T::Native>>>
    where
        T: PolarsNumericType,
    {
        numbers_of(&self.0, get)
    }

    fn texts(&self) -> PolarsResult<Vec<Option<String>>> {
        Ok(self.0.str()?.iter().map(|v| v.map(str::to_owned)).collect())
    }

    fn lists<E: Clone>(&self, values: impl Fn(&Series) -> PolarsResult<Vec<E>>) -> PolarsResult<Vec<Option<Vec<E>>>> {
        lists_of(&self.0, values)
    }
}

type Getter<T> = fn(&Series) -> PolarsResult<&ChunkedArray<T>>;

fn numbers_of<T: PolarsNumericType>(series: &Series, get: Getter<T>) -> PolarsResult<Vec<Option<T::Native>>> {
    Ok(get(series)?.iter().collect())
}

/// Cuts the values of a list column, read at once, into one list a row.
fn lists_of<E: Clone>(
    series: &Series,
    values: impl Fn(&Series) -> PolarsResult<Vec<E>>,
) -> PolarsResult<Vec<Option<Vec<E>>>> {
    let column = series.list()?;
    let mut out = Vec::with_capacity(column.len());
    for (chunk, inner) in column.downcast_iter().zip(column.get_inner().chunks()) {
        let inner = Series::try_from((series.name().clone(), inner.clone()))?;
        let elements = values(&inner)?;
        for row in 0..chunk.offsets().len_proxy() {
            let valid = chunk.validity().is_none_or(|v| v.get_bit(row));
            let (start, end) = chunk.offsets().start_end(row);
            out.push(valid.then(|| elements[start..end].to_vec()));
        }
    }
    Ok(out)
}

fn visits_of(series: &Series) -> PolarsResult<Vec<Visits>> {
    lists_of(series, |pairs| {
        let pairs = pairs.struct_()?;
        let moves = numbers_of(&pairs.field_by_name("move")?, Series::u16)?;
        let counts = numbers_of(&pairs.field_by_name("count")?, Series::u32)?;
        Ok(moves.into_iter().zip(counts).map(|(m, n)| (Move(m.unwrap_or(0)), n.unwrap_or(0))).collect())
    })
}

/// Id, plies and plies of the opening of each game.
pub(crate) fn lengths(frame: &DataFrame, what: &str) -> Result<Vec<(u64, u64, u64)>, DatasetError> {
    let read = || -> PolarsResult<Vec<(u64, u64, u64)>> {
        let ids = Cells::of(frame, "game_id")?.numbers(Series::u64)?;
        let plies = |name| Cells::of(frame, name)?.numbers(Series::u16);
        let rows = ids.into_iter().zip(plies("plies")?).zip(plies("opening_plies")?).enumerate();
        rows.map(|(row, ((id, plies), opening))| {
            let id = id.ok_or_else(|| null("game_id", row))?;
            let plies = plies.ok_or_else(|| null("plies", row))?;
            Ok((id, plies.into(), opening.unwrap_or_default().into()))
        })
        .collect()
    };
    read().map_err(DatasetError::query(what))
}

/// A column of texts.
pub(crate) fn texts(frame: &DataFrame, name: &str, what: &str) -> Result<Vec<Option<String>>, DatasetError> {
    Cells::of(frame, name).and_then(|c| c.texts()).map_err(DatasetError::query(what))
}
