//! The tables that Polars makes.

use polars::prelude::*;

use super::{Length, Results};
use crate::{Dataset, DatasetError, query};

/// Plies in one row of the histogram.
const LENGTH_STEP: u64 = 20;

pub(super) struct Tables {
    pub(super) results: Results,
    pub(super) players: Vec<Results>,
    pub(super) openings: Vec<Results>,
    pub(super) terminations: Vec<Results>,
    pub(super) lengths: Vec<Length>,
}

pub(super) fn run(dataset: &Dataset) -> Result<Tables, DatasetError> {
    let games = dataset.scan()?;
    let what = dataset.describe();
    let collect = |frame: LazyFrame| query::collect(frame, what.as_str());
    let by = |name: Expr| {
        let rows = games.clone().select([name.alias("name"), col("result").alias("points")]);
        results(&collect(grouped(rows))?).map_err(DatasetError::query(what.as_str()))
    };
    // A player's own view: White's result as it is, Black's with its sign changed.
    let side = |player: &str, sign: i8| {
        let points = (col("result") * lit(sign)).cast(DataType::Int8);
        games.clone().select([col(player).alias("name"), points.alias("points")])
    };
    let both = concat([side("white", 1), side("black", -1)], UnionArgs::default());
    let players = grouped(both.map_err(DatasetError::query(what.as_str()))?);
    let players = results(&collect(players)?).map_err(DatasetError::query(what.as_str()))?;
    let lengths = games
        .clone()
        .group_by([(col("plies").cast(DataType::UInt64).floor_div(lit(LENGTH_STEP)) * lit(LENGTH_STEP)).alias("from")])
        .agg([len().cast(DataType::UInt64).alias("games")])
        .sort(["from"], SortMultipleOptions::default());
    let lengths = lengths_of(&collect(lengths)?).map_err(DatasetError::query(what.as_str()))?;
    Ok(Tables {
        results: by(lit("all"))?.into_iter().next().unwrap_or_default(),
        players,
        openings: by(col("opening").fill_null(lit("unknown")))?,
        terminations: by(col("termination"))?,
        lengths,
    })
}

/// Games, wins, draws, losses and games without result of each `name`; the most games first.
fn grouped(rows: LazyFrame) -> LazyFrame {
    let count = |points: i8| col("points").eq(lit(points)).sum().cast(DataType::UInt64);
    rows.group_by([col("name")])
        .agg([
            len().cast(DataType::UInt64).alias("games"),
            count(1).alias("wins"),
            count(0).alias("draws"),
            count(-1).alias("losses"),
            col("points").null_count().cast(DataType::UInt64).alias("none"),
        ])
        .sort(["games", "name"], SortMultipleOptions::default().with_order_descending_multi([true, false]))
}

fn results(frame: &DataFrame) -> PolarsResult<Vec<Results>> {
    let number = |name: &str, row| Ok::<_, PolarsError>(frame.column(name)?.u64()?.get(row).unwrap_or(0));
    (0..frame.height())
        .map(|row| {
            Ok(Results {
                name: frame.column("name")?.str()?.get(row).unwrap_or_default().to_owned(),
                games: number("games", row)?,
                wins: number("wins", row)?,
                draws: number("draws", row)?,
                losses: number("losses", row)?,
                none: number("none", row)?,
            })
        })
        .collect()
}

fn lengths_of(frame: &DataFrame) -> PolarsResult<Vec<Length>> {
    let (from, games) = (frame.column("from")?.u64()?, frame.column("games")?.u64()?);
    let row = |(from, games): (Option<u64>, Option<u64>)| {
        let from = from.unwrap_or(0);
        Length { from, to: from + LENGTH_STEP - 1, games: games.unwrap_or(0) }
    };
    Ok(from.iter().zip(games.iter()).map(row).collect())
}
