"""What settings of the search cost a move, in expected score, judged by a strong engine on one set of positions.

Positions are drawn from games, each setting's engine is asked for a move in every one of them (`go nodes N`, from an
empty tree), and the judge says by how much the expected score of that move is below the best one's. The settings see
the same positions, so that their differences are far better known than from as many seconds of games; they say which
setting to try in a match, and not what it is worth there.

Everything is kept in FOLDER: a second run with more settings asks only what is new.

usage: .venv/bin/python scripts/move_loss.py FOLDER --network data/cpu/pretrain --games data/cpu/eval/games.pgn \\
           --set "c_puct=2.2" --set "c_puct=2.2 policy_temperature=1.4"
"""

import argparse
import copy
import hashlib
import json
import pathlib
import queue
import random
import shutil
import statistics
import threading

import chess
import chess.engine
import chess.pgn

FIRST, LAST = 10, 100  # plies between which positions are drawn
A_GAME = 4  # positions of one game, at most
CHOICE = 5  # legal moves, at least
EVEN = 300  # centipawns; what is further from even is decided whatever is played
# What the engine takes from a checkpoint's [search], with least and most; the rest is for self-play and matches.
SEARCH = {"c_puct": (0, 100), "fpu_reduction": (0, 2), "policy_temperature": (0.1, 10)}
SCALE = 400  # centipawns of an expected score of 10 : 1
JUDGE = shutil.which("stockfish") or "/usr/games/stockfish"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--network", type=pathlib.Path, required=True, help="checkpoint folder")
    parser.add_argument("--games", type=pathlib.Path, nargs="+", required=True, help="PGN files to draw positions from")
    parser.add_argument("--set", action="append", default=[], help="settings of [search] beside the checkpoint's own")
    parser.add_argument("--engine", type=pathlib.Path, default=pathlib.Path("target/release/tabiya"))
    parser.add_argument("--positions", type=int, default=800)
    parser.add_argument("--nodes", type=int, default=4000, help="visits a move")
    parser.add_argument("--judge-nodes", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def in_parallel(jobs, workers, start, work):
    """Calls work(engine, job) for all jobs, each worker with an engine of its own."""
    waiting = queue.Queue()
    for job in jobs:
        waiting.put(job)
    failures = []

    def run():
        try:
            with start() as engine:
                while not failures:
                    work(engine, waiting.get_nowait())
        except queue.Empty:
            pass
        except Exception as error:  # noqa: BLE001 - shown below, by the caller
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(min(workers, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def keep(path, value):
    """Writes a JSON file, whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(path)


def kept(path, make):
    """The JSON of a file, which is made if it is not there."""
    if not path.exists():
        keep(path, make())
    return json.loads(path.read_text())


def check_folder(args):
    """What is kept was drawn from these games and judged like this, or the folder is another comparison's."""
    games = [hashlib.sha256(path.read_bytes()).hexdigest() for path in args.games]
    wanted = {"games": games, "positions": args.positions, "judge_nodes": args.judge_nodes}
    found = kept(args.folder / "drawn.json", lambda: wanted)
    changed = ", ".join(f"--{key.replace('_', '-')}" for key in wanted if found.get(key) != wanted[key])
    if changed:
        raise SystemExit(f"{args.folder} holds a comparison with other {changed}: name another folder")


def judge():
    engine = chess.engine.SimpleEngine.popen_uci(JUDGE)
    engine.configure({"Threads": 1, "Hash": 64})
    return engine


def expected(info):
    """The mover's expected score, 0 to 1."""
    return 1 / (1 + 10 ** (-info["score"].relative.score(mate_score=3000) / SCALE))


def draw(args):
    """FENs, each with the judge's best move."""
    rng, candidates = random.Random(1), []
    for path in args.games:
        with path.open() as file:
            while game := chess.pgn.read_game(file):
                moves = list(game.mainline_moves())
                plies = range(FIRST, min(len(moves) - 6, LAST))
                for ply in rng.sample(plies, min(A_GAME, len(plies))):
                    board = game.board()
                    for move in moves[:ply]:
                        board.push(move)
                    if board.legal_moves.count() >= CHOICE:
                        candidates.append(board.fen())
    rng.shuffle(candidates)
    found = {}

    def look(engine, fen):
        info = engine.analyse(chess.Board(fen), chess.engine.Limit(nodes=args.judge_nodes))
        if abs(info["score"].relative.score(mate_score=3000)) < EVEN:
            found[fen] = info["pv"][0].uci()

    # About half of the positions of a game are decided.
    in_parallel(list(dict.fromkeys(candidates))[: 2 * args.positions], args.workers, judge, look)
    return [[fen, found[fen]] for fen in candidates if fen in found][: args.positions]


def choose(args, info, positions, setting):
    """The moves by FEN that the network, whose checkpoint.json is `info`, plays with a setting."""
    folder = args.folder / "network"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    info = copy.deepcopy(info)
    for pair in setting.split():
        key, value = pair.split("=")
        if key not in SEARCH:
            raise SystemExit(f"--set {pair}: the engine takes {', '.join(SEARCH)} and nothing else of [search]")
        least, most = SEARCH[key]
        if not least <= float(value) <= most:
            raise SystemExit(f"--set {pair}: expected {least} to {most}")
        info["config"]["search"][key] = float(value)
    for name in info["files"]:
        shutil.copy(args.network / name, folder)
    (folder / "checkpoint.json").write_text(json.dumps(info))
    moves = {}

    def start():
        return chess.engine.SimpleEngine.popen_uci([str(args.engine.resolve()), "--network", str(folder.resolve())])

    def ask(engine, fen):
        # A game of its own: nothing is kept from the position before.
        moves[fen] = engine.play(chess.Board(fen), chess.engine.Limit(nodes=args.nodes), game=object()).move.uci()

    in_parallel([fen for fen, _ in positions], args.workers, start, ask)
    return moves


def judged(args, positions, answers):
    """Expected scores by FEN and move, of all moves in the answers and of the best ones."""
    path = args.folder / "judged.json"
    scores = kept(path, dict)
    played = {(fen, moves[fen]) for moves in answers for fen, _ in positions} | {(fen, best) for fen, best in positions}

    def look(engine, job):
        root = [chess.Move.from_uci(job[1])]
        info = engine.analyse(chess.Board(job[0]), chess.engine.Limit(nodes=args.judge_nodes), root_moves=root)
        scores[" ".join(job)] = expected(info)

    in_parallel(sorted(job for job in played if " ".join(job) not in scores), args.workers, judge, look)
    keep(path, scores)
    return scores


def main():
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    check_folder(args)
    positions = kept(args.folder / "positions.json", lambda: draw(args))
    info = json.loads((args.network / "checkpoint.json").read_text())
    weights = info["files"]["model.safetensors"]["blake3"][:8]
    # Another engine or other constants in the checkpoint are another player.
    own = {key: info["config"]["search"].get(key) for key in SEARCH}
    player = hashlib.sha256(args.engine.read_bytes() + json.dumps(own).encode()).hexdigest()[:8]
    settings = ["", *args.set]
    answers = []
    for setting in settings:
        name = "-".join([weights, player, str(args.nodes), *setting.split()])
        answers.append(kept(args.folder / f"moves-{name}.json", lambda: choose(args, info, positions, setting)))
    scores = judged(args, positions, answers)

    losses = []
    for moves in answers:
        pairs = [(scores[f"{fen} {best}"], scores[f"{fen} {moves[fen]}"]) for fen, best in positions]
        losses.append([max(best - move, 0) for best, move in pairs])
    print(f"{len(positions)} positions, {args.nodes} visits a move\n")
    print("| setting | loss of expected score a move | beside the first | standard error | the best move |")
    print("|---|---|---|---|---|")
    for setting, moves, loss in zip(settings, answers, losses):
        beside = [a - b for a, b in zip(loss, losses[0])]
        error = statistics.stdev(beside) / len(beside) ** 0.5
        same = sum(moves[fen] == best for fen, best in positions) / len(positions)
        mean, gain = statistics.mean(loss), statistics.mean(beside)
        print(f"| {setting or 'the checkpoint'} | {mean:.4f} | {gain:+.4f} | {error:.4f} | {100 * same:.1f} % |")


if __name__ == "__main__":
    main()
