"""Metric nearness on a sparse graph with random targets, on disk: time by kind of work, and peak memory.

    python tools/bench/nearness.py EDGES [--tol 1e-4] [--workers 2]

EDGES is an edge list whose values, if any, are ignored: the targets are uniform in [0, 1] with seed 0.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import ooc_pf as pf
from ooc_pf.storage.arrays import read_array
from ooc_pf.storage.workspace import Workspace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pf.convert(args.edges, Path(folder) / "edges.pf")
        edges = Workspace(Path(folder) / "edges.pf").edges
        u, v = read_array(edges, "u"), read_array(edges, "v")
        targets = np.random.default_rng(0).random(len(u))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        result = pf.metric_nearness(
            (u, v, targets),
            tol=args.tol,
            workers=args.workers,
            workspace=Path(folder) / "run.pf",
            progress=not args.json,
        )
        seconds = time.perf_counter() - began
    facts = {
        **result.summary(),
        "edges": len(u),
        "seconds": round(seconds, 2),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "rss_before_solve_mb": before // 1024,
        "relaxed_arcs": sum(record["relaxed"] for record in result.history),
        "projections": sum(record.get("projections", 0) for record in result.history),
    }
    for kind in ("oracle", "sweep", "disk"):
        facts[f"{kind}_seconds"] = round(sum(r["seconds"].get(kind, 0.0) for r in result.history), 2)
    print(json.dumps(facts) if args.json else "\n".join(f"{name:20s} {value}" for name, value in facts.items()))


if __name__ == "__main__":
    main()
