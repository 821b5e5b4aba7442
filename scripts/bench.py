"""Ours beside the peers on this machine, in one run, into docs/benchmarks.md.

usage: bench.py FOLDER_OF_EXECUTABLES [--rounds N] [--quick] [--only SECTION,...] [--resume] [--page]

Every command's output goes to data/bench/results.jsonl as it comes, and the page is made from that file alone. A section
that is run again replaces its part; --resume leaves out the commands that this build of the program has done already;
--page writes the page from what is there. --quick measures everything too briefly to mean something, to see that it
works, and keeps its files and its page in data/bench/quick.
"""
import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import bench_page

SECTIONS = ["exact", "network", "selfplay", "search", "corpus", "loader", "memory", "curves"]
SIZES = [(6, 64), (10, 128)]
WIDTHS, DEPTHS = [32, 64, 96, 128, 192], [2, 4, 6, 8, 10, 12]


@dataclass
class Settings:
    """How long things are measured: seconds where nothing else is said."""
    rounds: int = 5
    step: float = 2.0
    curve: float = 1.0
    play: float = 6.0
    corpus_games: int = 20
    stage_games: int = 240
    loader_positions: int = 1_000_000
    loader_at_most: int = 3_000_000
    sizes: list = field(default_factory=lambda: [300_000, 1_000_000, 3_000_000, 10_000_000, 20_000_000])
    # (positions in the corpus, training steps)
    memory: list = field(default_factory=lambda: [(3_000_000, 2000), (20_000_000, 400)])
    games_in_flight: list = field(default_factory=lambda: [1, 2, 4, 8, 16, 32, 64])
    batches: list = field(default_factory=lambda: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])


QUICK = dict(step=0.2, curve=0.1, play=1.0, corpus_games=1, stage_games=4, loader_positions=100_000,
             loader_at_most=100_000, sizes=[50_000, 100_000], memory=[(50_000, 12), (100_000, 6)],
             games_in_flight=[1, 8], batches=[1, 8, 64])


class Log:
    """The file of results: one line a command, the last one with a key counts."""

    def __init__(self, path, program):
        self.path, self.program, self.results = path, program, {}
        if path.exists():
            for line in path.read_text().splitlines():
                result = json.loads(line)
                self.results[result["key"]] = result

    def forget(self, section):
        """Drops what a section has measured before."""
        self.results = {k: r for k, r in self.results.items() if r["section"] != section}
        self.path.write_text("".join(json.dumps(r) + "\n" for r in self.results.values()))

    def add(self, section, key, text, **more):
        now = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M}"
        result = {"section": section, "key": key, "program": self.program, "time": now, **more, "text": text}
        self.results[key] = result
        with open(self.path, "a") as file:
            file.write(json.dumps(result) + "\n")

    def done(self, key):
        return key in self.results and self.results[key]["program"] == self.program

    def text(self, key):
        return self.results[key]["text"] if key in self.results else None


class Bench:
    def __init__(self, folder, settings, log, resume, data):
        self.program, self.settings, self.log, self.resume, self.data = f"{folder}/bench", settings, log, resume, data
        self.failed, self.section = 0, ""

    def measure(self, section):
        self.section = section
        if not self.resume:
            self.log.forget(section)
        getattr(self, section)()

    def run(self, key, *command, cores=None):
        """Runs a command, on some of the cores only if asked, and logs what it prints."""
        if self.resume and self.log.done(key):
            return
        print(f"bench: {key}", flush=True)
        start = time.perf_counter()
        confine = cores and hasattr(os, "sched_setaffinity") and (lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores]))
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True, preexec_fn=confine or None)
        if result.returncode in (130, 143):
            raise SystemExit(result.returncode)
        if result.returncode != 0:
            self.failed += 1
            print(f"bench: failed: {result.stderr[-1500:]}", file=sys.stderr, flush=True)
            return
        self.log.add(self.section, key, result.stdout.strip(), seconds=round(time.perf_counter() - start, 2))

    def ours(self, key, *command, cores=None):
        self.run(key, self.program, *command, cores=cores)

    def peer(self, key, script, *command):
        self.run(key, sys.executable, f"benches/peers/{script}.py", *command)

    def rounds(self):
        return range(1, self.settings.rounds + 1)

    def exact(self):
        self.ours("exact", "exact")

    def network(self):
        seconds = self.settings.step
        for n in self.rounds():
            for blocks, channels in SIZES:
                batches = "1,8,64,256" if blocks == 6 else "64,256"
                size, name = [blocks, channels, batches, seconds], f"{blocks}x{channels} {n}"
                self.ours(f"network {name}", "net", *size, "--train", 256)
                self.peer(f"network {name} peer", "net", *size, 256)

    def selfplay(self):
        work = [4, 64, 50, self.settings.play]
        for n in self.rounds():
            self.ours(f"selfplay {n}", "selfplay", *work)
            self.peer(f"selfplay {n} peer", "selfplay", *work)

    def search(self):
        for n in self.rounds():
            self.ours(f"search {n}", "search", self.settings.step, cores=1)

    def corpus(self):
        openings, games = self.data / "openings.txt", self.settings.corpus_games
        for n in self.rounds():
            self.ours(f"corpus {n}", "corpus", 1500, games, "--openings", openings)
            self.peer(f"corpus {n} peer", "corpus", "nodes", 1500, games, "", openings)
            self.ours(f"stage {n}", "teacher", self.data / "stage", 1500, self.settings.stage_games)

    def synthetic(self, positions):
        """A folder with about so many positions: the first shards of the largest one."""
        whole = self.data / "synthetic"
        most = max(self.settings.sizes + [p for p, _ in self.settings.memory])
        marker = whole / f".{most}"
        if not marker.exists():
            print(f"bench: writing {most:,} synthetic positions", flush=True)
            subprocess.run([self.program, "synthetic", str(whole), str(most)], check=True, stdout=subprocess.DEVNULL)
            marker.touch()
        if positions >= most:
            return whole
        part, found = self.data / f"synthetic-{positions}", 0
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for sidecar in sorted(whole.glob("shard-*.json")):
            if found >= positions:
                break
            found += json.loads(sidecar.read_text())["positions"]
            for file in (sidecar, sidecar.with_suffix(".parquet")):
                os.link(file, part / file.name)
        return part

    def loader(self):
        folder = self.synthetic(self.settings.loader_positions)
        for n in self.rounds():
            self.ours(f"loader {n}", "loader", folder, cores=1)

    def memory(self):
        for positions, steps in self.settings.memory:
            self.ours(f"memory {positions}", "memory", self.synthetic(positions), 256, steps)

    def curves(self):
        s = self.settings
        batches = ",".join(map(str, s.batches))
        self.ours("curve batch", "net", 6, 64, batches, s.curve, "--train", batches)
        self.peer("curve batch peer", "net", 6, 64, batches, s.curve / 2)
        for channels in WIDTHS:
            self.ours(f"curve width {channels}", "net", 6, channels, 64, s.curve, "--train", 64)
        for blocks in DEPTHS:
            self.ours(f"curve depth {blocks}", "net", blocks, 64, 64, s.curve, "--train", 64)
        for games in s.games_in_flight:
            self.ours(f"curve games {games}", "selfplay", 4, 64, 50, s.play / 2, "--games", games)
        for positions in s.sizes:
            self.ours(f"curve size {positions}", "loader", self.synthetic(positions), s.loader_at_most)
        for cores in core_counts():
            self.ours(f"curve cores {cores} network", "net", 6, 64, 256, s.step, "--train", 256, cores=cores)
            self.ours(f"curve cores {cores} selfplay", "selfplay", 4, 64, 50, s.play, cores=cores)
            self.ours(f"curve cores {cores} corpus", "teacher", self.data / "stage", 1500, s.stage_games // 8, cores=cores)
            self.ours(f"curve cores {cores} loader", "loader", self.synthetic(s.loader_positions), cores=cores)


def core_counts():
    """1, 2, 4 and so on, and all; none where processes cannot be confined to cores."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    most = len(os.sched_getaffinity(0))
    return sorted({1, most} | {1 << i for i in range(most.bit_length()) if 1 << i < most})


def machine(peers):
    """What was measured on and with: no names, no paths."""
    def first(command, pattern=r"(.+)", text=""):
        try:
            out = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60).stdout
        except OSError:
            return None
        found = re.search(pattern, out)
        return found and found.group(1)

    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        cpu = (re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text()) or [cpu])[0]
    flags = re.search(r"^flags\s*: (.+)", Path("/proc/cpuinfo").read_text(), re.M) if os.path.exists("/proc/cpuinfo") else None
    flags = flags.group(1).split() if flags else []
    widest = [name for flag, name in [("avx512f", "AVX-512"), ("avx2", "AVX2")] if flag in flags]
    stockfish = shutil.which("stockfish") or "/usr/games/stockfish"
    ask = f"import {', '.join(peers)}; print({', '.join(f'{p}.__version__' for p in peers)}, sep='|')"
    versions = (first([sys.executable, "-c", ask]) or "").split("|")
    return {
        "CPU": cpu,
        "instruction set": widest[0] if widest else "NEON" if platform.machine() in ("arm64", "aarch64") else None,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Tabiya": re.search(r'^version = "(.+)"', Path("Cargo.toml").read_text(), re.M).group(1),
        "rustc": first(["rustc", "--version"], r"rustc (\S+)"),
        "Stockfish": first([stockfish], r"id name Stockfish (\S+)", "uci\nquit\n"),
        **dict(zip(["PyTorch", "onnxruntime", "python-chess"], versions)),
        "Python": platform.python_version(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of the executables")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help=f"sections, separated by commas: {', '.join(SECTIONS)}")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    sections = args.only.split(",") if args.only else SECTIONS
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(unknown)}: expected {', '.join(SECTIONS)}")
    settings = Settings(**QUICK) if args.quick else Settings()
    settings.rounds = args.rounds or (1 if args.quick else settings.rounds)
    data = Path("data/bench/quick" if args.quick else "data/bench")
    data.mkdir(parents=True, exist_ok=True)
    results = data / "results.jsonl"
    if not (args.only or args.resume or args.page) and results.exists():
        results.rename(data / "results.previous.jsonl")
    program = hashlib.sha256(Path(f"{args.folder}/bench").read_bytes()).hexdigest()[:12]
    log = Log(results, program)
    bench = Bench(args.folder, settings, log, args.resume, data)
    if not args.page:
        log.add("machine", "machine", json.dumps(machine(["torch", "onnxruntime", "chess"])))
        for section in sections:
            bench.measure(section)
    page = data / "benchmarks.md" if args.quick else Path("docs/benchmarks.md")
    bench_page.write(page, log, settings, bench.program)
    print(f"bench: wrote {page}")
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: stopped; RESUME=1 goes on from here")
