"""Clusters with a proven ratio over time, beside Leiden, which proves nothing, in the same run.

python tools/bench/ratio.py EDGES [--duplicates sign] [--columns A,B,VALUE] [--ratio 1.0015] [--max-time 120] [--grid N]

Prints seconds, cost, bound and ratio each time one of them has become clearly better, then the result of both. With
--grid there is no file: a square grid of N x N nodes with random signs and weights 1 to 5.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import igraph
import numpy as np

import ooc_pf as pf
from ooc_pf.problems.rounding import clustering_cost
from ooc_pf.storage.arrays import read_array
from ooc_pf.storage.workspace import Workspace

Graph = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_graph(args: argparse.Namespace) -> Graph:
    """(u, v, weight)."""
    if args.grid:
        return random_grid(args.grid)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pf"
        pf.convert(args.edges, path, kind="signed", duplicates=args.duplicates, columns=args.columns)
        edges = Workspace(path).edges
        return read_array(edges, "u"), read_array(edges, "v"), read_array(edges, "value")


def random_grid(side: int) -> Graph:
    rng, node = np.random.default_rng(0), np.arange(side * side).reshape(side, side)
    u = np.concatenate((node[:, :-1].ravel(), node[:-1].ravel()))
    v = np.concatenate((node[:, 1:].ravel(), node[1:].ravel()))
    return u, v, np.where(rng.random(len(u)) < 0.35, -1.0, 1.0) * rng.integers(1, 6, len(u))


def solve(graph: Graph, args: argparse.Namespace) -> None:
    """Our clusters, with what is known of them on the way."""
    began, worked, shown = time.perf_counter(), time.process_time(), np.inf

    def show(record):
        nonlocal shown
        ratio = record.get("ratio", np.inf)
        if ratio - 1.0 <= 0.7 * (shown - 1.0):
            shown = ratio
            seconds, cpu = time.perf_counter() - began, time.process_time() - worked
            known = f"cost {record['cost']:.8g}  bound {record['bound_of_clusterings']:.8g}  ratio {ratio:.6f}"
            print(f"{seconds:8.1f} s  {cpu:8.1f} s of processor time  iteration {record['iteration']:4d}  {known}")

    result = pf.correlation_clustering(
        graph, tol=args.tol, ratio=args.ratio, max_time=args.max_time, callback=show
    )  # fmt: skip
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    print(
        f"ours: {result.status}, cost {result.cost:.8g}, bound {result.lp_lower_bound:.8g}, ratio "
        f"{result.certified_ratio:.6f}, optimal: {result.optimal}, {result.n_iter} iterations, {seconds:.1f} s, "
        f"{cpu:.1f} s of processor time, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at most"
    )


def run_leiden(graph: Graph) -> None:
    """Leiden for CPM with resolution 0, whose objective on signed weights is the cost of clusters."""
    u, v, weight = graph
    network = igraph.Graph(n=int(max(u.max(), v.max())) + 1, edges=np.column_stack((u, v)))
    began, worked = time.perf_counter(), time.process_time()
    found = network.community_leiden("CPM", weights=weight, resolution=0.0, n_iterations=-1)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    cost = clustering_cost(u, v, weight, np.array(found.membership))
    print(f"Leiden: cost {cost:.8g}, nothing proven, {seconds:.1f} s, {cpu:.1f} s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges", nargs="?")
    parser.add_argument("--duplicates", default="sign")
    parser.add_argument("--columns")
    parser.add_argument("--grid", type=int)
    parser.add_argument("--ratio", type=float)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-time", type=float)
    parser.add_argument("--no-leiden", action="store_true")
    args = parser.parse_args()
    graph = read_graph(args)
    pf.correlation_clustering(random_grid(8), tol=1e-6, max_iter=40)  # compiles
    print(f"{len(graph[0]):,} edges")
    solve(graph, args)
    if not args.no_leiden:
        run_leiden(graph)


if __name__ == "__main__":
    main()
