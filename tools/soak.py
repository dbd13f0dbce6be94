"""Keep one process busy with solves, stops, resumes, exports and checks, and watch what it holds.

python tools/soak.py [--minutes 60]

Memory must stay flat, disk use within two generations, and no file handle, thread or process may be left over. Prints
a line a minute, and exits with 1 if something grows.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import ooc_pf as pf

WARM = 10  # lives until everything is compiled and every pool has been made
# What counts as growth: more than a tenth, and more than so many megabytes, or handles, threads and processes.
SLACK = 1.1
MORE_MB = 20
MORE = 2
MOST_GENERATIONS = 2.6  # on disk, in sizes of the largest: two while one is written, and some for their difference


def graph(rng: np.random.Generator, nodes: int = 800) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed, in groups of forty."""
    u = np.repeat(np.arange(nodes), 8)
    v = np.where(rng.random(len(u)) < 0.8, u // 40 * 40 + rng.integers(0, 40, len(u)), rng.integers(0, nodes, len(u)))
    pairs = np.unique(np.sort(np.column_stack((u, v)), axis=1), axis=0)
    u, v = pairs[pairs[:, 0] < pairs[:, 1]].T
    same = u // 40 == v // 40
    return u, v, np.where(same ^ (rng.random(len(u)) < 0.1), 1.0, -1.0) * rng.uniform(0.5, 1.5, len(u))


def one_life(folder: Path, rng: np.random.Generator) -> float:
    """A workspace from its first iteration to its answer, with stops between; returns its most generations on disk."""
    run, most = folder / "run.pf", 0.0
    edges, external = graph(rng), bool(rng.integers(0, 2))

    def watch(record: dict) -> bool:
        nonlocal most
        sizes = [size_of(entry) for entry in (run / "gen").iterdir()]
        most = max(most, sum(sizes) / max(sizes))
        return bool(rng.random() < 0.1)

    result = pf.correlation_clustering(edges, workspace=run, external=external, callback=watch)
    while not result.converged:
        result = pf.resume(run, callback=watch, workers=int(rng.integers(1, 3)))
    pf.verify(run, oracle="numba")
    pf.export(run, folder / "answer.parquet")
    return most


def size_of(folder: Path) -> int:
    """Bytes of all files below a directory that may vanish while we look."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.path.getsize(os.path.join(place, name))
            except FileNotFoundError:
                continue
    return max(total, 1)


def held() -> dict[str, int]:
    """What this process holds: memory in MB, file handles, threads, children."""
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
    return {
        "memory_mb": memory,
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": len(multiprocessing.active_children()),
    }


def grown(first: dict[str, int], last: dict[str, int]) -> list[str]:
    """Names of what a process holds more of than chance allows."""
    allowed = {name: SLACK * value + (MORE_MB if name == "memory_mb" else MORE) for name, value in first.items()}
    return [name for name in allowed if last[name] > allowed[name]]


def main() -> int:
    """Live one life after another until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    rng, began = np.random.default_rng(0), time.monotonic()
    lives = said = 0
    start: dict[str, int] | None = None
    generations = 0.0
    while time.monotonic() - began < 60 * args.minutes:
        with tempfile.TemporaryDirectory() as folder:
            generations = max(generations, one_life(Path(folder), rng))
        lives += 1
        now = held()
        if lives == WARM:
            start = now
        if time.monotonic() - began > 60 * (said + 1):
            said += 1
            print(f"{said} min, {lives} lives, {now}, generations on disk at most {generations:.2f}", flush=True)
    more = grown(start or {}, now)
    print(f"{lives} lives, first {start}, last {now}, generations on disk at most {generations:.2f}")
    print(f"grown: {more or 'nothing'}")
    return 1 if more or start is None or generations > MOST_GENERATIONS else 0


if __name__ == "__main__":
    sys.exit(main())
