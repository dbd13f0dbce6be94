"""All benchmarks in one go, with what is needed to judge them: machine, versions, seed and commit.

    python tools/bench/run.py --quick                 small versions, about five minutes, nothing to download
    python tools/bench/run.py --full --data FOLDER    those of README.md, with public edge lists and KEEL files
    python tools/bench/run.py --quick --only dense,svm

Each script runs in a process of its own, one after the other. What it printed, and its seconds of the clock and of the
processor, are written to a JSON file (--output), and a table is printed. A script that fails, such as for want of an
opponent (pip install 'ooc_pf[bench]'), is noted with the reason. All scripts have fixed seeds.
"""

import argparse
import gzip
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SEED = 0  # of generated data; those of the scripts are in them
PACKAGES = (
    "ooc_pf",
    "numpy",
    "scipy",
    "numba",
    "igraph",
    "duckdb",
    "pyarrow",
    "scikit-learn",
    "clarabel",
    "pot",
    "regot",
)
LONGEST = 600  # seconds of a script in the quick version; the full one has as long as it takes

# GRAPH and POINTS are made for the occasion.
QUICK = {
    "convert": "convert.py --rows 500000 --json",
    "nearness": "nearness.py GRAPH --tol 1e-4 --json",
    "clustering": "clustering.py GRAPH --gamma none --tol 1e-3 --json",
    "ratio": "ratio.py --grid 60 --tol 1e-4",
    "warm": "warm.py --grid 60",
    "dense": "dense.py --sizes 100,200 --limit 10 --general 20",
    "linear": "linear.py --rows 100000 --variables 100 --json",
    "svm": "svm.py --rows 50000 --noise 10",
    "itml": "itml.py POINTS --names blobs --splits 2",
    "transport line": "transport.py line --sizes 501,1001",
    "transport exact": "transport.py exact --sizes 512 --regs 10",
    "paper, transport": "paper.py transport --sizes 501,1001 --as-paper 501",
    "paper, colours": "paper.py colours --sizes 512",
    "commits": "commits.py 10000",
    "budget": "budget.py GRAPH --rounds 1",
    "scaling": "scaling.py GRAPH --workers 1,2 --iterations 6",
}
# As README.md has them.
FULL = {
    "convert": "convert.py --rows 20000000 --json",
    "nearness": "nearness.py DATA/WikiElec.txt.gz --tol 1e-4 --json",
    "clustering": "clustering.py DATA/WikiElec.txt.gz --tol 1e-2 --json",
    "clustering of complete graphs": "clustering.py DATA/CA-HepTh.txt.gz --wang --tol 1e-3 --json",
    "ratio, WikiElec": "ratio.py DATA/WikiElec.txt.gz",
    "ratio, Slashdot": "ratio.py DATA/soc-sign-Slashdot090221.txt.gz --ratio 1.0015 --no-leiden",
    "ratio, grid": "ratio.py --grid 200 --tol 1e-4",
    "warm": "warm.py DATA/WikiElec.txt.gz",
    "dense": "dense.py --sizes 100,200,300,500,1000 --limit 45 --general 100",
    "linear": "linear.py --json",
    "svm": "svm.py",
    "itml": "itml.py DATA --gammas 10,300 --ablation",
    "transport line": "transport.py line",
    "transport clouds": "transport.py clouds",
    "transport exact": "transport.py exact",
    "paper, transport": "paper.py transport --as-paper 1001",
    "paper, colours": "paper.py colours",
    "paper, itml": "paper.py itml DATA",
    "paper, svm": "paper.py svm",
    "commits": "commits.py 100000",
    "budget": "budget.py DATA/WikiElec.txt.gz",
    "scaling": "scaling.py DATA/WikiElec.txt.gz --workers 1,2 --tol 3e-2",
}


def make_graph(path: Path) -> None:
    """Three camps of 1,500 nodes, a few of them with many edges; one sign in ten is wrong."""
    rng = np.random.default_rng(SEED)
    ends = (1500 * rng.random((2, 12_000)) ** 2).astype(int)
    u, v = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    sign = np.where((u % 3 == v % 3) ^ (rng.random(len(u)) < 0.1), 1, -1)
    np.savetxt(path, np.column_stack((u, v, sign)), fmt="%d")


def make_points(folder: Path) -> None:
    """Two classes of points, as a KEEL file."""
    rng = np.random.default_rng(SEED)
    lines = [f"{x[0]:.4f},{x[1]:.4f},{x[2]:.4f},{k % 2}" for k, x in enumerate(rng.normal(size=(400, 3)))]
    with gzip.open(folder / "blobs.dat.gz", "wt") as file:
        file.write("@data\n" + "\n".join(lines) + "\n")


def circumstances() -> dict[str, Any]:
    """Where and with what this runs."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "commit": commit.stdout.strip() or None,
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "processor": _processor()},
        "python": platform.python_version(),
        "versions": versions,
        "seed": SEED,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def measure(command: str, longest: float | None) -> dict[str, Any]:
    """Run a script; returns what it printed and what it took."""
    script, *arguments = command.split()
    began, before = time.perf_counter(), os.times()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments], capture_output=True, text=True, timeout=longest
        )
        text, error = done.stdout, done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired:
        text, error = "", [f"not done after {longest} s"]
    after = os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    found = {
        "command": command,
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(worked, 1),
    }
    return {**found, "error": error[0] if error else None, "printed": _parsed(text)}


def _parsed(text: str) -> Any:
    """What a script printed: an object if that is what it is, else lines."""
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true")
    size.add_argument("--full", action="store_true")
    parser.add_argument("--data", help="folder of public edge lists and KEEL files, for --full")
    parser.add_argument("--only", help="names of benchmarks, by commas")
    parser.add_argument("--output", type=Path, help="the JSON file (bench-quick.json, bench-full.json)")
    args = parser.parse_args()
    cases = QUICK if args.quick else FULL
    if args.full and args.data is None:
        parser.error("--full needs --data FOLDER")
    if args.only:
        cases = {name: cases[name] for name in args.only.split(",")}
    output = args.output or Path(f"bench-{'quick' if args.quick else 'full'}.json")
    report = {**circumstances(), "results": {}}
    print(f"| benchmark | command | time | processor time | |\n|{'---|' * 5}")
    with tempfile.TemporaryDirectory() as folder:
        make_graph(Path(folder, "graph.txt"))
        make_points(Path(folder))
        for name, command in cases.items():
            words = {"GRAPH": str(Path(folder, "graph.txt")), "POINTS": folder, "DATA": str(args.data)}
            for word, place in words.items():
                command = command.replace(word, place)
            found = {**measure(command, LONGEST if args.quick else None), "command": cases[name]}
            report["results"][name] = found
            output.write_text(json.dumps(report, indent=1) + "\n")  # what there is, should the next one not end
            times = f"{found['seconds']} s | {found['processor_seconds']} s"
            print(f"| {name} | `{cases[name]}` | {times} | {found['error'] or 'done'} |", flush=True)
    print(f"\nwritten to {output}")
    return int(any(found["error"] for found in report["results"].values()))


if __name__ == "__main__":
    sys.exit(main())
