"""Writes crates/arena/src/variations.txt: balanced continuations of the built-in openings, two plies longer.

A match of deterministic players needs a new opening for every pair. After each opening of builtin.rs the engine names
its best moves, and its best answers to each; what stays within BALANCE of even, and reaches a position that no other
line does, is kept, at most LINES an opening. One thread and a node limit: the same engine gives the same file.

usage: .venv/bin/python scripts/variations.py
"""

import collections
import pathlib
import re
import shutil

import chess
import chess.engine

BEHIND = 35  # centipawns behind the best move at which a move is still played
BALANCE = 60  # centipawns from even, of either side
MOVES = 4  # moves looked at in a position
LINES = 6  # lines kept of an opening
NODES = 400_000

SOURCE = pathlib.Path(__file__).parent.parent / "crates/arena/src"


def good_moves(engine, board):
    """The moves worth playing with their scores from White's view, the best first."""
    infos = engine.analyse(board, chess.engine.Limit(nodes=NODES), multipv=MOVES, game=object())
    scored = [(info["pv"][0], info["score"].white().score(mate_score=10_000)) for info in infos]
    sign = 1 if board.turn else -1
    best = max(sign * score for _, score in scored)
    return [(move, score) for move, score in scored if sign * score >= best - BEHIND]


def main():
    openings = re.findall(r'^    \("(.+?)", "(.+?)"\),$', (SOURCE / "builtin.rs").read_text(), re.M)
    boards = []
    for name, moves in openings:
        board = chess.Board()
        for move in moves.split():
            board.push_uci(move)
        boards.append((name, moves, board))
    seen = {board.epd() for _, _, board in boards}
    lines = []
    with chess.engine.SimpleEngine.popen_uci(shutil.which("stockfish") or "/usr/games/stockfish") as engine:
        engine.configure({"Threads": 1, "Hash": 64})
        for name, moves, board in boards:
            kept = []
            for first, _ in good_moves(engine, board):
                after = board.copy()
                after.push(first)
                for second, score in good_moves(engine, after):
                    end = after.copy()
                    end.push(second)
                    kept.append((abs(score), first, second, end))
            # Each first move in turn, its most even answers first.
            kept.sort(key=lambda line: line[0])
            turns = collections.Counter()
            ranked = []
            for line in kept:
                turns[line[1]] += 1
                ranked.append((turns[line[1]], line))
            ranked.sort(key=lambda entry: entry[0])
            count = 0
            for _, (score, first, second, end) in ranked:
                if score > BALANCE or end.epd() in seen or count == LINES:
                    continue
                seen.add(end.epd())
                count += 1
                text = board.variation_san([first, second])
                lines.append(f"{name}, {text}\t{moves} {first} {second}\n")
    (SOURCE / "variations.txt").write_text("".join(lines))
    print(f"{len(lines)} lines of {len(openings)} openings")


if __name__ == "__main__":
    main()
