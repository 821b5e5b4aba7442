"""The answers of the Python recipes in docs/2-recipes.md, found again with loops over plain rows.

Reads the scripts as a JSON list from standard input, in the order of the document; DATA is the run's folder.
"""

import collections
import json
import os
import pathlib
import sys

import chess
import duckdb

DATA = os.environ["DATA"].rstrip("/")


def read(files):
    found = duckdb.sql(f"SELECT *, filename AS file FROM read_parquet('{files}', filename = true)")
    return [dict(zip(found.columns, row)) for row in found.fetchall()]


def answer(script):
    """What a recipe prints, as a list of rows."""
    printed = []
    exec(script, {"print": printed.append})
    (table,) = printed
    return table.fetchall() if hasattr(table, "fetchall") else table.rows()


def same(name, got, expected):
    def near(a, b):
        if isinstance(a, float) or isinstance(b, float):
            return a is not None and b is not None and abs(a - b) < 1e-6
        return a == b

    alike = len(got) == len(expected) and all(
        len(a) == len(b) and all(map(near, a, b)) for a, b in zip(got, expected)
    )
    assert alike, f"{name}:\n{got}\nexpected:\n{expected}"
    assert got, f"{name}: no rows"
    print(f"{name}: {len(got)} rows")


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def groups(pairs):
    found = collections.defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def text(move):
    return chess.square_name(move & 63) + chess.square_name(move >> 6 & 63)


def line(game, ply):
    return game["start_fen"] or "", tuple(game["moves"][:ply])


def replayed(games):
    for game in games:
        board = chess.Board(game["start_fen"]) if game["start_fen"] else chess.Board()
        for ply, move in enumerate(game["moves"]):
            yield " ".join(board.fen(en_passant="legal").split()[:4]), ply
            promotion = [None, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN][move >> 12]
            board.push(chess.Move(move & 63, move >> 6 & 63, promotion))
            assert board.is_valid()


corpus = read(f"{DATA}/corpus/*.parquet")
own = read(f"{DATA}/refine/**/selfplay/*.parquet")
every = read(f"{DATA}/**/*.parquet")
one, two, three, four, five, six, seven, eleven, twelve = map(answer, json.load(sys.stdin))

same("1", one, [(len(corpus), sum(g["plies"] for g in corpus), mean(g["plies"] for g in corpus))])

ends = collections.Counter((g["termination"], g["result"]) for g in corpus)
same("2", sorted(two, key=repr), sorted(((*end, n) for end, n in ends.items()), key=repr))
assert [n for *_, n in two] == sorted(ends.values(), reverse=True)

def stage(file):
    folder = pathlib.Path(file).parent
    return folder.parent.name if folder.name == "games" else folder.name


stages = groups((stage(g["file"]), g) for g in every)
draws = lambda games: mean(None if g["result"] is None else float(g["result"] == 0) for g in games)
expected = [(name, len(games), mean(g["plies"] for g in games), draws(games)) for name, games in sorted(stages.items())]
same("3", three, expected)
assert {"corpus", "selfplay", "gate", "eval"} <= set(stages) and None not in [row[0] for row in three]

asked = [best for g in corpus for best in g["best"]]
same("4", four, [(mean(float(best is not None) for best in asked),)])

buckets = groups(
    (max(-1000, min(1000, score if ply % 2 == 0 else -score)) // 200 * 200, g["result"])
    for g in corpus if g["result"] is not None for ply, score in enumerate(g["score"]) if score is not None
)
same("5", five, [(bucket, len(results), mean(results)) for bucket, results in sorted(buckets.items())])

replies = collections.Counter()
for g in corpus:
    first = g["moves"][g["opening_plies"]:][:2]
    if len(first) == 2:
        assert g["opening_plies"] > 0, "else this test sees no difference to the opening's moves"
        replies[text(first[0]), text(first[1])] += 1
ranked = sorted(((*pair, n) for pair, n in replies.items()), key=lambda row: (-row[2], row[:2]))
same("6", six, ranked[:10])

lengths = groups((g["plies"] // 20 * 20, g["result"]) for g in corpus)
same("7", seven, [(start, len(results), mean(results)) for start, results in sorted(lengths.items())])

scores, values = collections.defaultdict(list), collections.defaultdict(list)
for g in corpus:
    for ply in range(g["plies"]):
        scores[line(g, ply)].append(g["score"][ply])
for g in own:
    for ply in range(g["plies"]):
        values[line(g, ply)].append(g["value"][ply])
joined = collections.defaultdict(list)
for key in scores.keys() & values.keys():
    joined[len(key[1])] += [(s, v) for s in scores[key] for v in values[key]]
expected = [(ply, len(pairs), mean(s for s, _ in pairs), mean(v for _, v in pairs)) for ply, pairs in sorted(joined.items())]
same("11", eleven, expected)

counts, first_ply = [collections.Counter(), collections.Counter()], [{}, {}]
for side, games in enumerate([corpus, own]):
    for position, ply in replayed(games):
        counts[side][position] += 1
        first_ply[side][position] = min(ply, first_ply[side].get(position, ply))
met = counts[0].keys() & counts[1].keys()
expected = [(p, counts[0][p], first_ply[0][p], counts[1][p], first_ply[1][p]) for p in met]
same("12", twelve, sorted(expected, key=lambda row: (-row[1], -row[3], row[0])))
