"""Nodes that an engine takes to a depth with some options, beside those that it takes without, position by position.

Moves in a better order are cut earlier: the same depth takes fewer nodes. Positions are drawn from games, every one of
them is searched as the first of a game, and the mean is that of the logarithms, so that no hard position decides.

usage: .venv/bin/python scripts/depth_nodes.py data/match/NAME/games.pgn --depth 11 \\
           --set "Policy=true PolicyFile=data/policy/policy/export/policy.bin" --set "History=false"
"""

import argparse
import concurrent.futures
import math
import os
import pathlib
import random
import statistics

import chess
import chess.engine
import chess.pgn

# Where cargo and make put what they build.
TARGET = os.environ.get("CARGO_TARGET_DIR") or "target"
FIRST, LAST = 8, 100  # plies between which positions are drawn


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("games", type=pathlib.Path, help="a PGN file to draw positions from, one of a game")
    parser.add_argument("--set", action="append", default=[], help="options, NAME=VALUE, separated by spaces")
    parser.add_argument("--engine", type=pathlib.Path, default=pathlib.Path(TARGET) / "release/tabiya-ab")
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=11)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def draw(args):
    rng, boards = random.Random(1), []
    with args.games.open() as file:
        while len(boards) < args.positions and (game := chess.pgn.read_game(file)):
            moves = list(game.mainline_moves())
            last = min(len(moves) - 6, LAST)
            if last > FIRST:
                board = game.board()
                for move in moves[: rng.randrange(FIRST, last)]:
                    board.push(move)
                boards.append(chess.Board(board.fen()))
    return boards


def search(args, options, boards):
    """Nodes of each position."""
    with chess.engine.SimpleEngine.popen_uci(str(args.engine)) as engine:
        engine.configure(options)
        limit = chess.engine.Limit(depth=args.depth)
        return [engine.analyse(board, limit, game=object())["nodes"] for board in boards]


def nodes(args, options, boards):
    parts = [boards[i :: args.workers] for i in range(args.workers)]
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        return [n for part in pool.map(lambda part: search(args, options, part), parts) for n in part]


def main():
    args = arguments()
    boards = draw(args)
    if not boards:
        raise SystemExit(f"{args.games} has no game of more than {FIRST + 6} plies")
    before = nodes(args, {}, boards)
    print(f"{len(boards)} positions to depth {args.depth}: {sum(before) / len(before):.0f} nodes on average")
    for text in args.set:
        after = nodes(args, dict(pair.split("=", 1) for pair in text.split()), boards)
        logs = [math.log(a / b) for a, b in zip(after, before)]
        mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0
        if not any(logs):
            raise SystemExit(f"{text}: every position takes the same nodes, so the engine does not use this (a file not found?)")
        low, high = (100 * math.expm1(mean + s * 1.96 * error) for s in (-1, 1))
        print(f"{text}: {100 * math.expm1(mean):+.1f} % nodes (95 %: {low:+.1f} to {high:+.1f})", flush=True)


if __name__ == "__main__":
    main()
