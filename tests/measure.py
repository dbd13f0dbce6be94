"""Run a problem on a generated graph under a budget and print what it took.

`python -m tests.measure PROBLEM NODES DEGREE MEMORY ITERATIONS FOLDER`: a process of its own, so that peak memory is
that of the run. "scattered" is "clustering" with the nodes numbered at random: a graph without locality. MEMORY may be
two budgets with a colon between: the one that a run is planned for, and the one that it is given.
"""

import json
import os
import shutil
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

import ooc_pf as pf
from ooc_pf.storage.workspace import create_workspace
from tests.gallery import communities

SOLVERS = {
    "clustering": partial(pf.correlation_clustering, external=True),
    "scattered": partial(pf.correlation_clustering, external=True),
    "nearness": partial(pf.metric_nearness, external=True),
    "whole": partial(pf.correlation_clustering, external=False),
    "linear": partial(pf.correlation_clustering, gamma=None),
    "complete": partial(pf.correlation_clustering, base=-0.05),
}


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Watch(threading.Thread):
    """The largest resident memory seen, by a look every few milliseconds."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self._over = 0, threading.Event()

    def run(self):
        while not self._over.wait(0.003):
            self.peak = max(self.peak, resident())

    def stop(self):
        self._over.set()
        self.join()
        return self.peak


def make(path, nodes, degree, problem):
    signed = problem != "nearness"
    u, v, value = communities(np.random.default_rng(1), nodes, degree, signed=signed)
    if problem == "scattered":
        number = np.random.default_rng(2).permutation(nodes)
        u, v = np.sort((number[u], number[v]), axis=0)
        order = np.lexsort((v, u))
        u, v, value = u[order], v[order], value[order]
    create_workspace(path, u, v, value, np.arange(nodes), kind="signed" if signed else "distance",
                     source={"file": None, "digest": ""})  # fmt: skip


def main(problem, nodes, degree, memory, iterations, folder):
    solve, folder = SOLVERS[problem], Path(folder)
    big, small = folder / "big.pf", folder / "small.pf"
    if not big.exists():
        make(big, int(nodes), int(degree), problem)
        os.execv(sys.executable, [sys.executable, "-m", "tests.measure", *sys.argv[1:]])  # give the memory back
    shutil.rmtree(small, ignore_errors=True)
    make(small, 300, 12, problem)
    solve(small, max_iter=4, memory="200MB")  # compile and import all there is
    before, watch = resident(), Watch()
    watch.start()
    began, iterations = time.perf_counter(), int(iterations)
    records = []

    def seen(record):
        records.append(record)
        return record["iteration"] >= iterations

    planned, given = (None if part == "none" else part for part in (memory.split(":") * 2)[:2])
    if planned != given:
        solve(big, max_iter=0, memory=planned)
    result = solve(big, callback=seen, memory=given)
    seconds, peak = time.perf_counter() - began, watch.stop()
    state = sum(file.stat().st_size for file in big.rglob("*") if file.is_file())
    facts = {"edges": pf.open(big).x.size, "seconds": seconds, "before": before, "peak": peak - before, "state": state}
    facts |= {"lower_bound": result.lower_bound, "rows": result.n_active}
    facts |= {name: sum(record[name] for record in records) for name in ("read_bytes", "written_bytes")}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
