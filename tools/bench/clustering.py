"""Correlation clustering on disk: bounds, clusters, counts, time by kind of work, peak memory.

python tools/bench/clustering.py EDGES [--duplicates sign] [--tol 1e-2] [--gamma 1] [--columns A,B,VALUE]

EDGES is a file, or "collaboration:NODES" or "ring:NODES" for a generated graph. It has signs; with --wang it has none
and stands for a complete graph with the weights of `wang_weights`, with --complete for one in which the edges attract
and all other pairs repel, all with weight one. A small graph is solved first, so that compiling is not counted.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    Stopwatch,
    collaboration,
    peak_from_here,
    peak_mb,
    read_pairs,
    ring_of_neighbours,
    seconds_by_phase,
    show,
    signed_network,
    total,
)

import ooc_pf as pf

GENERATED = {"collaboration": collaboration, "ring": ring_of_neighbours}


def complete_graph(path: str | Path, wang: bool) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float]:
    """The attractive pairs of a complete graph, and the weight of all others."""
    kind, _, size = str(path).partition(":")
    u, v, nodes = GENERATED[kind](int(size)) if kind in GENERATED else read_pairs(path)
    if not wang:
        return (u, v, np.ones(len(u))), -1.0
    (u, v), weight, base = pf.wang_weights(u, v, nodes)
    return (u, v, weight), base


def solve(graph: Any, path: Path, **options: Any) -> tuple[pf.Result, dict[str, Any]]:
    """Solve on disk; returns the result and what it took."""
    u, v, sign = signed_network(2000, 300)
    small = (u, v, sign) if options.get("base") is None else (u, v, np.ones(len(u)))
    pf.correlation_clustering(small, workspace=path.with_name("small.pf"), **{**options, "progress": False})  # compiles
    before, watch = peak_from_here(), Stopwatch()
    result = pf.correlation_clustering(graph, workspace=path, **options)
    facts = {
        **result.summary(),
        "clusters": len(np.unique(result.labels)),
        **watch.facts(),
        "peak_mb": peak_mb(),
        "before_mb": before,
        "relaxed_arcs": total(result.history, "relaxed"),
        "projections": total(result.history, "projections"),
        "iterations_by_stage": dict(Counter(record["stage"] for record in result.history)),
        **seconds_by_phase(result.history),
    }
    return result, {**facts, "workspace": None}


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
        if args.wang or args.complete:
            graph, base = complete_graph(args.edges, args.wang)
        else:
            pf.convert(args.edges, path, kind="signed", duplicates=args.duplicates, columns=args.columns)
            graph, base = path, None
        gamma = None if args.gamma == "none" else float(args.gamma)
        _, facts = solve(graph, path, gamma=gamma, base=base, tol=args.tol, max_time=args.max_time, memory=args.memory,
                         progress=not args.json)  # fmt: skip
    show(facts, args.json)


if __name__ == "__main__":
    main()
