"""Metric nearness on a sparse graph with random targets, on disk: time by kind of work, and peak memory.

    python tools/bench/nearness.py EDGES [--tol 1e-4] [--workers 2]

EDGES is an edge list whose values, if any, are ignored: the targets are uniform in [0, 1] with seed 0. A small graph is
solved first, so that compiling is not counted.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from common import SEED, Stopwatch, peak_from_here, peak_mb, random_grid, read_edges, seconds_by_phase, show, total

import ooc_pf as pf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    u, v, _ = read_edges(args.edges, kind="distance")
    targets = np.random.default_rng(SEED).random(len(u))
    with tempfile.TemporaryDirectory() as folder:
        small = random_grid(12)
        pf.metric_nearness((*small[:2], abs(small[2])), workers=args.workers, workspace=Path(folder) / "small.pf")
        before, watch = peak_from_here(), Stopwatch()
        result = pf.metric_nearness(
            (u, v, targets),
            tol=args.tol,
            workers=args.workers,
            workspace=Path(folder) / "run.pf",
            progress=not args.json,
        )
        took = watch.facts()
    facts = {
        **result.summary(),
        "edges": len(u),
        **took,
        "peak_mb": peak_mb(),
        "before_mb": before,
        "relaxed_arcs": total(result.history, "relaxed"),
        "projections": total(result.history, "projections"),
        **seconds_by_phase(result.history),
    }
    show(facts, args.json)


if __name__ == "__main__":
    main()
