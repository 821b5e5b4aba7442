"""Games of a corpus as lines of text, in the order of their ids, for the fit of the alpha-beta engine's evaluation.

    python scripts/games.py data/cpu/corpus > games.txt

A line: result;fen;opening plies;moves;scores;best. docs/1-data.md says what the numbers mean; `-` is null.
"""

import sys

import polars as pl


def numbers(column: str) -> pl.Expr:
    return pl.col(column).list.eval(pl.element().cast(pl.String).fill_null("-")).list.join(" ")


games = (
    pl.scan_parquet(f"{sys.argv[1]}/*.parquet")
    .filter((pl.col("game") == "chess") & pl.col("result").is_not_null())
    .sort("game_id")
    .select("result", "start_fen", "opening_plies", numbers("moves"), numbers("score"), numbers("best"))
    .collect()
)
games.write_csv(sys.stdout.buffer, include_header=False, separator=";", quote_style="never")
