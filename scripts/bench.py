"""Ours beside the peers: each pair of commands in turn, five rounds, medians and their ratio, into docs/benchmarks.md."""
import os
import platform
import re
import statistics
import subprocess
import sys

BIN = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
PYTHON = sys.executable
# name, our command, the peer's command, (our figure, the peer's figures: the best of them counts)
WORK = []
for blocks, channels, batch in [(6, 64, 256), (6, 64, 64), (10, 128, 256)]:
    size = [str(blocks), str(channels), str(batch)]
    peer = [PYTHON, "benches/peers/net.py", *size, "2"]
    ours = [f"{BIN}/bench", "net", *size, "2"]
    WORK.append((f"training step, {blocks}x{channels}, batch {batch}, positions/s", ours, peer, r"train (\d+)/s"))
    WORK.append((f"inference, {blocks}x{channels}, batch {batch}, positions/s", ours, peer, r"forward (\d+)/s"))
WORK.append(("self-play, 4x64, 50 simulations, simulations/s",
             [f"{BIN}/bench", "selfplay", "4", "64", "50", "10"],
             [PYTHON, "benches/peers/selfplay.py", "4", "64", "50", "10"], r"(\d+) sims/s"))
WORK.append(("corpus, 1,500 nodes, one process, positions/s",
             [f"{BIN}/bench", "corpus", "1500", "8"],
             [PYTHON, "benches/peers/corpus.py", "nodes", "1500", "8"], r"positions ([\d.]+)/s"))


def run(command, cache):
    key = tuple(command)
    if key not in cache:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"bench: {' '.join(command)} failed:\n{result.stderr[-2000:]}")
        cache[key] = result.stdout
    return cache[key]


def best(pattern, text):
    return max(float(x) for x in re.findall(pattern, text))


figures = {name: ([], []) for name, *_ in WORK}
for round_number in range(ROUNDS):
    cache = {}
    for name, ours, peer, pattern in WORK:
        figures[name][0].append(best(pattern, run(ours, cache)))
        figures[name][1].append(best(pattern, run(peer, cache)))
    print(f"bench: round {round_number + 1} of {ROUNDS}", flush=True)

cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor()) \
    if os.path.exists("/proc/cpuinfo") else platform.processor()
versions = subprocess.run([PYTHON, "-c", "import torch, onnxruntime, chess; print(f'PyTorch {torch.__version__}, onnxruntime "
                           "{onnxruntime.__version__}, python-chess {chess.__version__}')"], capture_output=True, text=True).stdout.strip()
lines = [
    "# Benchmarks",
    "",
    f"Written by `make bench`: medians of {ROUNDS} rounds, ours and the peer's in turn in one run. {os.cpu_count()} cores, {cpu}; {versions}.",
    "The peer of the network rows is the fastest of PyTorch in both memory formats and onnxruntime. Rates on a shared",
    "machine vary; the ratio is what counts.",
    "",
    "| work | ours | peer | ratio | ratios of the rounds |",
    "|---|---|---|---|---|",
]
for name, (ours, peer) in figures.items():
    ratios = sorted(a / b for a, b in zip(ours, peer))
    lines.append(f"| {name} | {statistics.median(ours):.0f} | {statistics.median(peer):.0f} | "
                 f"{statistics.median(ratios):.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f} |")
with open("docs/benchmarks.md", "w") as file:
    file.write("\n".join(lines) + "\n")
print("\n".join(lines))
