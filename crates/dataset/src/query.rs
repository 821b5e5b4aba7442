//! The few lines in which Polars is told to scan shards, to filter by SQL, and to stream.
//!
//! Memory is bounded by asking for few shards at a time, not by settings of the process.

use std::path::Path;

use polars::lazy::dsl::Expr;
use polars::prelude::*;
use polars::sql::sql_expr;

use crate::DatasetError;

/// The games of some shards, in their order; `path_column` names a column that says which file a row is from.
pub(crate) fn scan(paths: &[&Path], path_column: Option<&str>) -> Result<LazyFrame, DatasetError> {
    let what = || describe(paths);
    let args = ScanArgsParquet {
        glob: false,
        hive_options: HiveOptions::new_disabled(),
        include_file_paths: path_column.map(PlSmallStr::from),
        cache: false,
        ..Default::default()
    };
    let sources = paths.iter().map(|p| PlRefPath::try_from_path(p)).collect::<PolarsResult<Vec<_>>>();
    let sources = sources.map_err(DatasetError::query(what()))?;
    LazyFrame::scan_parquet_files(sources.into_iter().collect(), args).map_err(DatasetError::query(what()))
}

/// Reads an SQL predicate and checks it against the columns of `paths`.
pub(crate) fn predicate(paths: &[&Path], sql: &str) -> Result<Expr, DatasetError> {
    let what = || format!("where = \"{sql}\"");
    let expr = sql_expr(sql).map_err(DatasetError::query(what()))?;
    let mut selected = scan(&paths[..1], None)?.select([expr.clone().alias("keep")]);
    let schema = selected.collect_schema().map_err(DatasetError::query(what()))?;
    match schema.get("keep") {
        Some(DataType::Boolean) => Ok(expr),
        other => Err(DatasetError::Setting {
            field: "where",
            reason: format!(
                "`{sql}` is of type {}, expected a condition such as `plies >= 20`",
                other.map_or_else(|| "unknown".to_owned(), ToString::to_string)
            ),
        }),
    }
}

/// Runs a query on the streaming engine.
pub(crate) fn collect(frame: LazyFrame, what: impl Into<String>) -> Result<DataFrame, DatasetError> {
    // A query with one sink has a single result.
    frame.collect_with_engine(Engine::Streaming).map(|r| r.unwrap_single()).map_err(DatasetError::query(what))
}

/// The files for a message: the first, and how many more.
pub(crate) fn describe(paths: &[&Path]) -> String {
    match paths {
        [] => "no shard".to_owned(),
        [one] => one.display().to_string(),
        [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
    }
}
