"""Clusters of one graph laid out for memory and for disk, beside Leiden, in the same run.

python tools/bench/passes.py EDGES [--duplicates sign] [--columns A,B,VALUE] [--max-iter 12] [--memory SIZE]

Prints the cost of the first clusters and of the last, the bound, and the seconds spent on clusters on the way. The
budget is for the run on disk.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import igraph
import numpy as np

import ooc_pf as pf
from ooc_pf.problems.rounding import clustering_cost
from ooc_pf.storage.arrays import read_array
from ooc_pf.storage.workspace import Workspace


def solve(name: str, run: Path, **options) -> None:
    shutil.rmtree(run.parent / "copy.pf", ignore_errors=True)
    path = shutil.copytree(run, run.parent / "copy.pf")
    began, worked = time.perf_counter(), time.process_time()
    result = pf.correlation_clustering(path, **options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    rounding = sum(record["seconds"].get("round", 0.0) for record in result.history)
    first = next(record["cost"] for record in result.history if "cost" in record)
    read = sum(record["read_bytes"] for record in result.history) / 1e6
    print(
        f"{name}: first clusters {first:.8g}, last {result.cost:.8g}, bound {result.lp_lower_bound:.8g}, "
        f"{result.n_iter} iterations, {seconds:.1f} s, {cpu:.1f} s of processor time, "
        f"clusters on the way {rounding:.1f} s, {read:,.0f} MB read from scratch files",
        flush=True,
    )


def run_leiden(run: Path, iterations: int) -> None:
    """Leiden for CPM with resolution 0, whose objective on signed weights is the cost of clusters."""
    u, v, weight = (read_array(Workspace(run).edges, name) for name in ("u", "v", "value"))
    network = igraph.Graph(n=int(max(u.max(), v.max())) + 1, edges=np.column_stack((u, v)))
    worked = time.process_time()
    found = network.community_leiden("CPM", weights=weight, resolution=0.0, n_iterations=iterations)
    cpu = time.process_time() - worked
    cost = clustering_cost(u, v, weight, np.array(found.membership))
    print(f"Leiden, {iterations} iterations: {cost:.8g}, {cpu:.1f} s of processor time", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--duplicates", default="sign")
    parser.add_argument("--columns")
    parser.add_argument("--max-iter", type=int, default=12)
    parser.add_argument("--memory", default="2GB")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    u, v = np.triu_indices(60, 1)
    with tempfile.TemporaryDirectory() as folder:
        small = u, v, rng.choice([-1.0, 1.0], len(u))
        pf.correlation_clustering(small, max_iter=4)  # compiles
        pf.correlation_clustering(small, max_iter=4, external=True, workspace=Path(folder) / "small.pf")
        run = Path(folder) / "run.pf"
        pf.convert(args.edges, run, kind="signed", duplicates=args.duplicates, columns=args.columns)
        solve("laid out for memory", run, max_iter=args.max_iter, external=False)
        solve("laid out for disk", run, max_iter=args.max_iter, external=True, memory=args.memory)
        for iterations in (2, 10):
            run_leiden(run, iterations)


if __name__ == "__main__":
    main()
