"""The page of benchmarks, made from the file of results."""
import json
import re
import statistics
import subprocess
from dataclasses import dataclass

INTRO = """\
# Benchmarks

Written by `make bench` and not by hand: every number below was printed by a command of that run.

{machine}

{dates}

**How to read it.** "Ours" and "against" are medians of the rounds, in the unit of the row. In a round both are measured one
after the other, and the ratio is the median of the rounds' own ratios, with the least and the greatest beside it. Rates move
with the machine and with what else runs on it; the ratio is what counts. "At least" is what the project holds itself to,
"aim" what it works towards. A row is met when its median is.

**How to run it again.** `make bench` measures all in about half an hour, which wants a machine with nothing else to do.
`ONLY=network,search` replaces some sections ({sections}), `RESUME=1` goes on where a run was stopped, `ROUNDS=9` takes more
rounds than five, and `QUICK=1` goes through everything in minutes only to see that it works, into `data/bench/quick`. Raw
results lie in `data/bench/results.jsonl`, one command a line.
"""

COMPARED = """\
## What is compared

* **Networks.** Both have a 3x3 stem, the same residual blocks with batch norm, and a 1x1 policy convolution to 73 planes
  straight from the trunk; 20 input planes; 32-bit floats. Ours has the larger value head (1x1 to 8 channels, norm, 64
  hidden, win/draw/loss) where the peer has a mean and one linear layer: about {head:.1f} % more work at 6x64. Ours also
  writes the input planes from packed positions, while the peer finds them ready.
* **Inference.** All cores on one batch at a time. Ours shares a batch out among executors, one a core, and evaluates a
  single position on one core; PyTorch and onnxruntime use as many threads as there are cores. PyTorch counts in the
  better of its memory formats, without `torch.compile`; onnxruntime has a graph of fixed batch size.
* **Training step.** Forward, losses, backward, AdamW, from a batch in memory. The peer's cross-entropy runs over all 4,672
  moves; ours, as in the program, over the legal moves of each position, and clips the gradient.
* **Self-play** is the common Python design (`benches/peers/selfplay.py`: four worker processes with python-chess, one
  process that batches for PyTorch) against the program's searches, executors and cache, one worker a core, with an untrained
  network. Only simulations made are counted, not visits that a tree keeps from the move before. The share is
  evaluations by the network per second in self-play, over those of the same executors alone at the same mean batch.
* **Search** is one thread with an evaluator that knows nothing: move generation, descent and backup.
* **Corpus, per core**: one Stockfish process, 1,500 nodes, the same openings; ours through `uci::Engine`, the peer through
  `python-chess`.
* **Corpus, against the engine alone**: the whole `corpus` stage with one worker a core (games, journal, shards), then
  as many Stockfish processes that are fed the very same `position` and `go` lines, prepared beforehand, and whose answers
  are only waited for.
* **Loader**: Parquet shards of random games (engine games in form and length), replayed, shuffled, and made into batches
  of 256 with planes, legal moves and targets. Filling the shuffle pool counts.
* **Memory**: the loader and the trainer of `pretrain` at 6x64, batch 256; the peak that the system reports.
"""


@dataclass
class Row:
    """A line of the main table. Without a peer, `least` and `aim` are in the row's unit, else they are ratios."""
    work: str
    section: str
    ours: str
    pattern: str
    least: float
    aim: float
    peer: str = ""
    against: str = ""
    peer_pattern: str = ""


def network_rows():
    rows = []
    for kind, verb, size, batches, least, aim in [
        ("training step", "train", "6x64", [256], 0.9, 1.2), ("training step", "train", "10x128", [256], 1.0, 1.4),
        ("inference", "forward", "6x64", [64, 256], 0.8, 1.2), ("inference", "forward", "10x128", [64, 256], 1.0, 1.5),
        ("inference", "forward", "6x64", [1, 8], 0.8, 1.2),
    ]:
        for batch in batches:
            pattern = rf"(\S+) {size} batch {batch}:.* {verb} (\d+)/s"
            against = "the faster PyTorch format" if verb == "train" else "the fastest of PyTorch and onnxruntime"
            rows.append(Row(f"{kind}, {size}, batch {batch}, positions/s", "network", f"network {size} {{}}", pattern,
                            least, aim, f"network {size} {{}} peer", against, pattern))
    return rows


ROWS = network_rows() + [
    Row("self-play, 4x64, 50 simulations, simulations/s", "selfplay", "selfplay {}", r"()(\d+) sims/s", 10, 25,
        "selfplay {} peer", "Python design", r"()(\d+) sims/s"),
    Row("self-play as a whole, evaluations/s", "selfplay", "selfplay {}", r"()(\d+) evaluations/s", 0.85, 0.95,
        "selfplay {}", "our executors alone at that batch", r"()of (\d+)/s alone"),
    Row("search with a uniform evaluator, one core, simulations/s", "search", "search {}", r"()(\d+) sims/s",
        100_000, 300_000),
    Row("corpus, 1,500 nodes, per core, positions/s", "corpus", "corpus {}", r"()([\d.]+)/s", 1.3, None,
        "corpus {} peer", "python-chess", r"()([\d.]+)/s"),
    Row("corpus, 1,500 nodes, the stage on all cores, positions/s", "corpus", "stage {}", r"()positions ([\d.]+)/s",
        0.97, 0.99, "stage {}", "the engine alone on the same positions", r"()alone ([\d.]+)/s"),
    Row("shards to batches, one core, positions/s", "loader", "loader {}", r"()([\d.]+)/s", 150_000, 500_000),
]


def best(pattern, text):
    """The greatest number, and the name in front of it."""
    found = [(float(number), name) for name, number in re.findall(pattern, text or "") if float(number) > 0]
    return max(found) if found else None


def table(head, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def met(value, least, aim):
    if aim is not None and value >= aim:
        return "yes, and the aim"
    return "yes" if value >= least else "**no**"


def rounds(log, key):
    """The rounds in which something was measured."""
    n = 1
    while log.text(key.format(n)):
        yield n
        n += 1


def main_row(row, log):
    pairs, peers = [], []
    for n in rounds(log, row.ours):
        ours = best(row.pattern, log.text(row.ours.format(n)))
        peer = best(row.peer_pattern, log.text(row.peer.format(n))) if row.peer else (1.0, "")
        if ours and peer:
            pairs.append((ours[0], peer[0]))
            peers.append(peer[1])
    limits = [number(x) if x is not None else "the engine's own limit" for x in (row.least, row.aim)]
    if not pairs:
        return [row.work, "not measured", row.against, "", "", *limits, ""]
    ratios = sorted(a / b for a, b in pairs)
    middle = statistics.median(ratios)
    spread = f"{number(ratios[0])} to {number(ratios[-1])}"
    if not row.peer:
        return [row.work, number(middle), "", "", spread, *limits, met(middle, row.least, row.aim)]
    name = statistics.mode(peers)
    against = f"{number(statistics.median(b for _, b in pairs))} ({name or row.against})"
    digits = ".3f" if row.aim and row.aim < 1 else ".2f"  # a share of what is possible
    return [row.work, number(statistics.median(a for a, _ in pairs)), against, f"**{middle:{digits}}**",
            f"{ratios[0]:{digits}} to {ratios[-1]:{digits}}", *limits, met(middle, row.least, row.aim)]


def memory_part(log, settings):
    rows = []
    for positions, _ in settings.memory:
        text = log.text(f"memory {positions}")
        pattern = r", (\d+) positions in the corpus: (\d+) MiB after (\d+) batches, (\d+) MiB after (\d+), (\d+)"
        found = re.search(pattern, text or "")
        if not found:
            rows.append([number(positions), "not measured", "", "", "", "", ""])
            continue
        corpus, early, first, late, last, rate = map(int, found.groups())
        flat = "yes" if late <= early * 1.05 else f"**no**, +{late - early} MiB"
        rows.append([number(corpus), f"{first} batches: {early} MiB", f"{last} batches: {late} MiB", "1,536 MiB",
                     "yes" if late < 1536 else "**no**", flat, f"{rate:,}"])
    head = ["positions in the corpus", "peak after", "peak after", "under", "met", "flat (within 5 %)", "positions/s trained"]
    exact = re.search(r"tabiya-exact: (.*)", log.text("exact") or "")
    return ("## Memory of pre-training, 6x64, batch 256\n\n" + table(head, rows) + "\n\n## Exactness\n\n"
            + (exact.group(1).capitalize() if exact else "Not measured") + ".\n")


def figures(text, pattern):
    found = re.search(pattern, text or "")
    return [float(x) for x in found.groups()] if found else None


def multiply_adds(blocks, channels):
    """Of one position: stem, blocks and policy; the value head is next to nothing."""
    return 64 * (9 * 20 * channels + 2 * blocks * 9 * channels ** 2 + 73 * channels)


class Curves:
    """Small tables, and a plot beside each where it says more. `program` draws it."""

    def __init__(self, log, settings, folder, program):
        self.log, self.settings, self.folder, self.program, self.parts = log, settings, folder, program, []

    def add(self, name, title, note, head, rows, x_label="", lines=None):
        rows = [r for r in rows if r]
        if not rows:
            return
        self.parts.append(f"### {title}\n\n{note}\n\n" + table(head, rows) + "\n")
        lines = [{"name": k, "points": v} for k, v in (lines or {}).items() if len(v) > 1]
        if lines:
            plot = json.dumps({"title": title, "x_label": x_label, "lines": lines})
            svg = subprocess.run([self.program, "plot"], input=plot, capture_output=True, text=True, check=True).stdout
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{name}.svg").write_text(svg.rstrip() + "\n")
            self.parts.append(f"![{title}](benchmarks/{name}.svg)\n")

    def batch(self):
        rows, lines = [], {name: [] for name in ("ours, inference", "peer, inference", "ours, training", "peer, training")}
        for batch in self.settings.batches:
            cells = [str(batch)]
            for verb, what in (("forward", "inference"), ("train", "training")):
                pattern = rf"(\S+) 6x64 batch {batch}:.* {verb} (\d+)/s"
                for who, key in (("ours", "curve batch"), ("peer", "curve batch peer")):
                    found = best(pattern, self.log.text(key))
                    cells.append(number(found[0]) if found else "")
                    if found:
                        lines[f"{who}, {what}"].append((batch, found[0]))
            rows.append(cells if any(cells[1:]) else None)
        self.add("batch", "Batch, 6x64", "Positions/s on all cores; the peer is the fastest of PyTorch and onnxruntime.",
                 ["batch", "inference", "peer", "training", "peer"], rows, "batch", lines)

    def size(self, name, title, keys):
        rows = []
        for value, blocks, channels in keys:
            found = figures(self.log.text(f"curve {name} {value}"), r"forward (\d+)/s train (\d+)/s")
            if found:
                work = multiply_adds(blocks, channels)
                rows.append([str(value), f"{work / 1e6:.1f} M", number(found[0]), number(found[0] * work / 1e9),
                             number(found[1]), number(3 * found[1] * work / 1e9)])
        note = ("Batch 64, all cores. Cost is in proportion to the multiply-adds of a position (of direct convolutions; three"
                " times as many in training) where the work per second stays level.")
        self.add(name, title, note, [name, "multiply-adds", "inference, positions/s", "10^9 multiply-adds/s",
                                     "training, positions/s", "10^9 multiply-adds/s"], rows)

    def games(self):
        rows, points = [], []
        for games in self.settings.games_in_flight:
            found = figures(self.log.text(f"curve games {games}"), r"(\d+) sims/s.* batch ([\d.]+), share ([\d.]+)")
            if found:
                rows.append([str(games), number(found[0]), f"{found[1]:.1f}", f"{found[2]:.3f}"])
                points.append((games, found[0]))
        self.add("games", "Games in flight a core, self-play 4x64, 50 simulations", "One worker a core, with its own executor.",
                 ["games", "simulations/s", "mean batch", "share of the executors alone"], rows, "games a core",
                 {"simulations/s": points})

    def corpus(self):
        rows = []
        for positions in self.settings.sizes:
            pattern = r"of (\d+) positions (\d+)/s, open ([\d.]+) s, peak (\d+) MiB"
            found = figures(self.log.text(f"curve size {positions}"), pattern)
            rows.append(found and [f"{found[0]:,.0f}", number(found[1]), f"{found[2]:.3f}", f"{found[3]:.0f}"])
        note = ("The loader on all cores, at most the first three million positions. Opening reads and hashes every shard, so"
                " it is to grow with the corpus; rate and memory are to stay level.")
        self.add("size", "Size of the corpus", note, ["positions", "positions/s", "seconds to open", "peak MiB"], rows)

    def cores(self):
        columns = [("inference, 6x64", "network", r"forward (\d+)/s"), ("training, 6x64", "network", r"train (\d+)/s"),
                   ("self-play, simulations/s", "selfplay", r"(\d+) sims/s"), ("corpus", "corpus", r"positions ([\d.]+)/s"),
                   ("loader", "loader", r" (\d+)/s")]
        counts = sorted({int(m.group(1)) for key in self.log.results if (m := re.match(r"curve cores (\d+) ", key))})
        rows = []
        one = {}
        for cores in counts:
            cells = [str(cores)]
            for name, key, pattern in columns:
                found = figures(self.log.text(f"curve cores {cores} {key}"), pattern)
                if cores == 1 and found:
                    one[name] = found[0]
                gain = f" ({found[0] / one[name]:.2f}x)" if found and cores > 1 and name in one else ""
                cells.append(number(found[0]) + gain if found else "")
            rows.append(cells)
        self.add("cores", "Cores", "Processes confined to so many cores; positions/s where nothing else is said.",
                 ["cores"] + [name for name, *_ in columns], rows)

    def text(self):
        self.batch()
        self.size("width", "Width, 6 blocks", [(c, 6, c) for c in (32, 64, 96, 128, 192)])
        self.size("depth", "Depth, 64 channels", [(b, b, 64) for b in (2, 4, 6, 8, 10, 12)])
        self.games()
        self.corpus()
        self.cores()
        return "## Curves: twice as much of it\n\n" + "\n".join(self.parts)


def write(path, log, settings, program):
    machine = json.loads(log.text("machine") or "{}")
    used = [r for key, r in log.results.items() if key != "machine"]
    times = sorted(r["time"][:10] for r in used) or ["never"]
    counts = sorted({len(list(rounds(log, row.ours))) for row in ROWS} - {0}) or [0]
    taken = " to ".join(map(str, sorted({counts[0], counts[-1]})))
    dates = f"Measured {times[0] if times[0] == times[-1] else f'from {times[0]} to {times[-1]}'} (UTC); rounds: {taken}."
    builds = len({r["program"] for r in used})
    if builds > 1:
        dates += f" The results come from {builds} builds of the program: sections were run again since."
    head = ["work", "ours", "against", "ratio", "over the rounds", "at least", "aim", "met"]
    parts = [
        INTRO.format(machine="; ".join(f"{k} {v}" for k, v in machine.items() if v) + ".", dates=dates,
                     sections=", ".join(dict.fromkeys(["exact", *(r.section for r in ROWS), "memory", "curves"]))),
        "## Rates\n\n" + table(head, [main_row(row, log) for row in ROWS]) + "\n",
        memory_part(log, settings),
        Curves(log, settings, path.parent / "benchmarks", program).text(),
        COMPARED.format(head=100 * (64 * 64 * 8 + 64 * 8 * 64 + 64 * 3) / multiply_adds(6, 64)),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts))
