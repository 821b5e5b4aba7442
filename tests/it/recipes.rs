//! The recipes of `docs/2-recipes.md`, run as they stand, and every file read by Polars and DuckDB from Python.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use polars::prelude::*;

use crate::run_dir::{RunDir, small_profile};

static RUN: LazyLock<RunDir> = LazyLock::new(|| {
    let run = RunDir::new(&small_profile());
    for stage in ["corpus", "pretrain", "refine", "eval"] {
        run.ok(stage, &[]);
    }
    run
});

const RECIPES: &str = include_str!("../../docs/2-recipes.md");

fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    RECIPES.split(start.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

fn python(script: &str) -> String {
    let venv = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    let out = Command::new(venv).args(["-c", script]).env("DATA", RUN.path("")).output().unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn there_are_ten_recipes_and_the_python_ones_print_a_table() {
    let scripts = blocks("python");
    assert_eq!(scripts.len() + blocks("rust").len(), 10);
    for script in scripts {
        let printed = python(script);
        assert!(printed.lines().count() > 3, "{script}\n{printed}");
    }
}

#[test]
fn polars_and_duckdb_read_every_file_by_one_glob() {
    let printed = python(
        "import os, polars as pl, duckdb\n\
         glob = os.environ['DATA'] + '/**/*.parquet'\n\
         games = pl.scan_parquet(glob).collect()\n\
         rows = duckdb.sql(f\"SELECT count(*), sum(plies), sum(len(moves)) FROM '{glob}'\").fetchall()[0]\n\
         assert rows[0] == len(games) and rows[1] == rows[2] == games['plies'].sum(), rows\n\
         print(len(games), games.columns)",
    );
    // 12 of the corpus, 6 of self-play, 4 each of gate, the loop's match and the match.
    assert!(printed.starts_with("30 "), "{printed}");
}

/// The Rust recipes stand in the document exactly as they are compiled here.
#[test]
fn the_rust_recipes_run() {
    let source = include_str!("recipes.rs");
    for block in blocks("rust") {
        assert!(source.contains(block.trim()), "not compiled by this test:\n{block}");
    }
    let corpus = RUN.path("corpus").display().to_string();
    assert!(decided_games(&corpus).unwrap().width() == 3);
    assert!(results_by_players(&format!("{corpus}/*.parquet")).unwrap().height() >= 1);
    assert_eq!(copied_games(&corpus).unwrap().height(), 1);
}

fn decided_games(corpus: &str) -> PolarsResult<DataFrame> {
    LazyFrame::scan_parquet(PlRefPath::new(format!("{corpus}/*.parquet")), ScanArgsParquet::default())?
        .filter(col("result").is_not_null())
        .group_by([col("result")])
        .agg([len().alias("games"), col("plies").mean().alias("mean_plies")])
        .sort(["result"], SortMultipleOptions::default())
        .collect()
}

fn results_by_players(files: &str) -> PolarsResult<DataFrame> {
    LazyFrame::scan_parquet(PlRefPath::new(files), ScanArgsParquet::default())?
        .group_by([col("white"), col("black")])
        .agg([len().alias("games"), col("result").mean().alias("white_score")])
        .sort(["games"], SortMultipleOptions::default().with_order_descending(true))
        .collect()
}

fn copied_games(corpus: &str) -> PolarsResult<DataFrame> {
    LazyFrame::scan_parquet(PlRefPath::new(format!("{corpus}/*.parquet")), ScanArgsParquet::default())?
        .group_by([col("start_fen"), col("moves")])
        .agg([len().alias("copies")])
        .filter(col("copies").gt(lit(1)))
        .select([len().alias("games"), col("copies").max()])
        .collect()
}
