//! The recipes of `docs/2-recipes.md`, run as they stand, and every file read by Polars and DuckDB from Python.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
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

/// What a script prints that reads `input`.
fn python(script: &str, input: &str) -> String {
    let venv = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    let mut python = Command::new(venv);
    python.args(["-c", script]).env("DATA", RUN.path(""));
    let piped = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn there_are_twelve_recipes_and_the_python_ones_print_a_table() {
    let scripts = blocks("python");
    assert_eq!(scripts.len() + blocks("rust").len(), 12);
    for script in scripts {
        let printed = python(script, "");
        assert!(printed.lines().count() > 3, "{script}\n{printed}");
    }
}

/// By loops over plain rows in another language.
#[test]
fn the_python_recipes_give_the_right_answers() {
    let scripts = serde_json::to_string(&blocks("python")).unwrap();
    let checked = python(include_str!("recipes_check.py"), &scripts);
    assert_eq!(checked.lines().count(), blocks("python").len(), "{checked}");
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
        "",
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
    let folder = RUN.path("corpus");
    let corpus = folder.display().to_string();
    let data = dataset::Dataset::open(std::slice::from_ref(&folder), dataset::OnBad::Stop).unwrap();
    let games: Vec<dataset::GameRecord> = (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).collect();
    let number = |table: &DataFrame, column: &str, row: usize| {
        table.column(column).unwrap().cast(&DataType::Float64).unwrap().f64().unwrap().get(row)
    };

    let table = decided_games(&corpus).unwrap();
    let mut by_result: BTreeMap<i8, Vec<usize>> = BTreeMap::new();
    for game in &games {
        if let Some(result) = game.result {
            by_result.entry(result.white()).or_default().push(game.plies());
        }
    }
    assert_eq!(table.height(), by_result.len());
    for (row, (result, plies)) in by_result.into_iter().enumerate() {
        let mean = plies.iter().sum::<usize>() as f64 / plies.len() as f64;
        let found = ["result", "games", "mean_plies"].map(|column| number(&table, column, row).unwrap());
        assert_eq!(found, [f64::from(result), plies.len() as f64, mean]);
    }

    let table = results_by_players(&format!("{corpus}/*.parquet")).unwrap();
    let results: Vec<f64> = games.iter().filter_map(|g| g.result).map(|r| f64::from(r.white())).collect();
    assert_eq!((table.height(), number(&table, "games", 0)), (1, Some(games.len() as f64)));
    let score = (!results.is_empty()).then(|| results.iter().sum::<f64>() / results.len() as f64);
    assert_eq!(number(&table, "white_score", 0), score);

    let mut copies: BTreeMap<_, u32> = BTreeMap::new();
    for game in &games {
        let moves: Vec<u16> = game.moves.iter().map(|m| m.0).collect();
        *copies.entry((game.start_fen.clone(), moves)).or_default() += 1;
    }
    let copied: Vec<u32> = copies.into_values().filter(|n| *n > 1).collect();
    let table = copied_games(&corpus).unwrap();
    assert_eq!((table.height(), number(&table, "games", 0)), (1, Some(copied.len() as f64)));
    assert_eq!(number(&table, "copies", 0), copied.iter().max().map(|n| f64::from(*n)));
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
