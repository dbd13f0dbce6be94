"""A random feasible problem with millions of rows, scanned from disk within a memory budget.

    python tools/bench/linear.py [--rows 10000000] [--variables 1000] [--terms 5] [--memory 500MB] [--tol 1e-6]

The rows are written first, in parts, as raw files that the solve reads as memory maps. Row i is a random sparse vector
times x <= its value at a hidden point plus an exponential slack; the objective is the squared distance from another
point. The solve runs in a process of its own, whose memory is watched: all that is resident, pages of mapped files
included, and the part that is its own.
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from common import SEED, Stopwatch, seconds_by_phase, show, total

import ooc_pf as pf

PART = 1 << 18


def write_rows(folder: Path, rows: int, variables: int, terms: int) -> None:
    rng = np.random.default_rng(SEED)
    hidden = rng.normal(size=variables)
    np.save(folder / "hidden.npy", hidden)
    index = np.memmap(folder / "index", np.int32, "w+", shape=(rows, terms))
    value = np.memmap(folder / "value", np.float64, "w+", shape=(rows, terms))
    rhs = np.memmap(folder / "rhs", np.float64, "w+", shape=(rows,))
    for first in range(0, rows, PART):
        last = min(first + PART, rows)
        # Different variables in a row: one from each of as many equal ranges.
        width = variables // terms
        index[first:last] = rng.integers(0, width, (last - first, terms)) + width * np.arange(terms)
        value[first:last] = rng.normal(size=(last - first, terms))
        rhs[first:last] = np.sum(value[first:last] * hidden[index[first:last]], axis=1)
        rhs[first:last] += rng.exponential(size=last - first)


def watch_memory(stop: threading.Event, peak: dict[str, int]) -> None:
    """Keep the largest values, in MB."""
    while not stop.wait(0.02):
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        for name in peak:
            peak[name] = max(peak[name], int(fields[name].split()[0]) >> 10)


def solve(folder: Path, args: argparse.Namespace) -> None:
    index = np.memmap(folder / "index", np.int32, "r").ravel()
    value = np.memmap(folder / "value", np.float64, "r").ravel()
    rhs = np.memmap(folder / "rhs", np.float64, "r")
    hidden = np.load(folder / "hidden.npy")
    target = hidden + np.random.default_rng(1).normal(size=len(hidden))
    starts = range(0, len(value) + 1, args.terms)
    oracle = pf.oracles.explicit((starts, index, value), rhs)
    pf.project_and_forget(pf.objectives.quadratic([2.0, 1.0]), (np.array([[1.0, 1.0]]), [1.0]))  # compile
    stop, peak = threading.Event(), {"VmRSS": 0, "RssAnon": 0}
    watcher = threading.Thread(target=watch_memory, args=(stop, peak))
    watcher.start()
    time.sleep(0.1)
    before = dict(peak)
    watch = Stopwatch()
    result = pf.project_and_forget(
        pf.objectives.quadratic(target), oracle, interior=hidden, tol=args.tol, memory=args.memory,
        workspace=folder / "run.pf", progress=not args.json, max_time=args.max_time,
    )  # fmt: skip
    took = watch.facts()
    stop.set()
    watcher.join()
    facts = {
        **result.summary(),
        **took,
        "rows_measured": total(result.history, "relaxed"),
        "projections": total(result.history, "projections"),
        "complete_passes": sum("gap" in record for record in result.history),
        "bytes_of_rows": index.nbytes + value.nbytes + rhs.nbytes,
        "resident_mb": (before["VmRSS"], peak["VmRSS"]),
        "own_mb": (before["RssAnon"], peak["RssAnon"]),
        **seconds_by_phase(result.history),
    }
    show(facts, args.json)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument("--terms", type=int, default=5)
    parser.add_argument("--memory", default="500MB")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-time", type=float)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name), args.rows, args.variables, args.terms)
        process = multiprocessing.get_context("spawn").Process(target=solve, args=(Path(name), args))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
