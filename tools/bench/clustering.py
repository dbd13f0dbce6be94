"""Correlation clustering on disk: bounds, clusters, counts, time by kind of work, peak memory.

python tools/bench/clustering.py EDGES [--duplicates sign] [--tol 1e-2] [--gamma 1] [--columns A,B,VALUE]

EDGES has signs; with --wang it has none and stands for a complete graph with the weights of `wang_weights`, with
--complete for one in which the edges attract and all other pairs repel, all with weight one.
"""

import argparse
import json
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import ooc_pf as pf


def read_graph(args: argparse.Namespace, path: Path):
    """The graph to solve, a workspace or arrays, and the weight of the pairs it does not list."""
    if not (args.wang or args.complete):
        pf.convert(args.edges, path, kind="signed", duplicates=args.duplicates, columns=args.columns)
        return path, None
    pairs = np.unique(np.sort(np.loadtxt(args.edges, dtype=np.int64, comments="#")[:, :2], axis=1), axis=0)
    names, pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], return_inverse=True)
    u, v = pairs.reshape(-1, 2).T
    if args.complete:
        return (u, v, np.ones(len(u))), -1.0
    (u, v), weight, base = pf.wang_weights(u, v, len(names))
    return (u, v, weight), base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--duplicates", default="sign")
    parser.add_argument("--columns")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--gamma", default="1")
    parser.add_argument("--wang", action="store_true")
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--max-time", type=float)
    parser.add_argument("--memory")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pf"
        graph, base = read_graph(args, path)
        gamma = None if args.gamma == "none" else float(args.gamma)
        began = time.perf_counter()
        result = pf.correlation_clustering(
            graph, gamma=gamma, base=base, tol=args.tol, max_time=args.max_time, memory=args.memory,
            workspace=path, progress=not args.json,
        )  # fmt: skip
        seconds = time.perf_counter() - began
    facts = {
        **result.summary(),
        "clusters": len(np.unique(result.labels)),
        "seconds": round(seconds, 1),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "relaxed_arcs": sum(record["relaxed"] for record in result.history),
        "projections": sum(record.get("projections", 0) for record in result.history),
        "iterations_by_stage": dict(Counter(record["stage"] for record in result.history)),
    }
    for kind in ("oracle", "sweep", "disk"):
        facts[f"{kind}_seconds"] = round(sum(r["seconds"].get(kind, 0.0) for r in result.history), 1)
    print(json.dumps(facts) if args.json else "\n".join(f"{name:20s} {value}" for name, value in facts.items()))


if __name__ == "__main__":
    main()
