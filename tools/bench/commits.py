"""What a commit costs, and what checking the arrays before kernels follow them does.

python tools/bench/commits.py [edges]

Solves metric nearness on a random graph into a workspace, stops after five iterations and goes on. Processor seconds
are those of the whole process; syncs are counted.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ooc_pf as pf

TIMED = (
    ("ooc_pf.cycles.graph", "Graph.check"),
    ("ooc_pf.storage.workspace", "Workspace.check_groups"),
    ("ooc_pf.engine.store", "ConstraintStore.read"),
    ("ooc_pf.storage.workspace", "Workspace.commit"),
    ("ooc_pf.workspace", "Workspace.commit"),  # of older releases
)


def timed(spent: dict[str, float]) -> None:
    """Have the functions that check and commit add up their processor seconds."""
    for module, name in TIMED:
        owner_name, method = name.split(".")
        owner = getattr(sys.modules.get(module), owner_name, None)
        inner = getattr(owner, method, None)
        if inner is not None:
            setattr(owner, method, _counting(spent, name, inner))


def _counting(spent, name, inner):
    def call(*args, **more):
        began = time.process_time()
        try:
            return inner(*args, **more)
        finally:
            spent[name] = spent.get(name, 0.0) + time.process_time() - began

    return call


def random_graph(edges: int):
    """Ten edges a node."""
    rng, nodes = np.random.default_rng(0), edges // 10
    pairs = np.unique(np.sort(rng.integers(0, nodes, (edges, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    return pairs[:, 0], pairs[:, 1], rng.random(len(pairs))


def main() -> None:
    edges = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    graph, syncs, sync = random_graph(edges), [0], os.fsync

    def counted(handle):
        syncs[0] += 1
        return sync(handle)

    os.fsync = counted
    pf.metric_nearness(random_graph(1000), workers=1)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        run, spent = Path(folder) / "run.pf", {}
        pf.metric_nearness(graph, workspace=run, workers=1, max_iter=5, tol=1e-6)
        timed(spent)
        syncs[0], began, clock = 0, time.process_time(), time.perf_counter()
        result = pf.resume(run, workers=1)
        total, clock = time.process_time() - began, time.perf_counter() - clock
    commits = result.n_iter - 5
    print(f"{len(graph[0]):,} edges, {commits} commits, {total:.2f} processor seconds, {clock:.1f} on the clock")
    print(f"{syncs[0] / commits:.1f} syncs a commit")
    for name, seconds in spent.items():
        print(f"{name}: {seconds:.4f} s, {100 * seconds / total:.2f} % of the processor time")


if __name__ == "__main__":
    main()
