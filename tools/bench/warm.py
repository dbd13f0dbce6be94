"""What `warm_start=` saves: a graph is solved, a part of its weights changes, and it is solved again from both ends.

python tools/bench/warm.py EDGES [--problem clustering] [--share 0.01] [--change little] [--tol 1e-4]

"little" multiplies the weights that change by a factor between 0.8 and 1.25; "much" draws them again, or of signed
graphs turns the sign of every other one and doubles the rest. Prints iterations, projections, arcs relaxed and
processor time.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from common import Graph, Stopwatch, add_graph, random_grid, signed_graph, total

import ooc_pf as pf
from ooc_pf.engine.result import Result


def changed(graph: Graph, args: argparse.Namespace) -> Graph:
    """The graph after the change."""
    (u, v, weight), rng = graph, np.random.default_rng(1)
    weight, hit = weight.copy(), rng.random(len(weight)) < args.share
    if args.change == "little":
        weight[hit] *= np.exp(rng.uniform(np.log(0.8), np.log(1.25), hit.sum()))
    elif args.problem == "nearness":
        weight[hit] = rng.random(hit.sum())
    else:
        weight[hit] *= np.where(rng.random(hit.sum()) < 0.5, -1.0, 2.0)
    return u, v, weight


def measure(name: str, args: argparse.Namespace, graph: Graph, **options) -> tuple[Result, np.ndarray]:
    """Solve; returns the result and its counts."""
    solve = pf.metric_nearness if args.problem == "nearness" else pf.correlation_clustering
    watch = Stopwatch()
    result = solve(graph, tol=args.tol, **options)
    seconds = watch.processor()
    projections, relaxed = total(result.history, "projections"), total(result.history, "relaxed")
    print(
        f"{name:5s} {result.status}, bound {result.lower_bound:.9g}, objective {result.objective:.9g}, {result.n_iter} "
        f"iterations, {projections:,} projections, {relaxed:,} arcs, {seconds:.2f} s of processor time"
    )
    return result, np.array([result.n_iter, projections, relaxed, seconds])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_graph(parser)
    parser.add_argument("--problem", choices=("clustering", "nearness"), default="clustering")
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--change", choices=("little", "much"), default="little")
    parser.add_argument("--tol", type=float, default=1e-4)
    args = parser.parse_args()
    u, v, weight = signed_graph(args)
    if args.problem == "nearness":
        weight = np.random.default_rng(0).random(len(u))
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.pf"
        grid = random_grid(12)
        grid = (*grid[:2], abs(grid[2])) if args.problem == "nearness" else grid
        measure("tiny", args, grid, workspace=small)  # compiles
        measure("tiny", args, grid, warm_start=small)
        path, after = Path(folder) / "before.pf", changed((u, v, weight), args)
        measure("first", args, (u, v, weight), workspace=path)
        cold, cost = measure("cold", args, after)
        warm, again = measure("warm", args, after, warm_start=path)
    assert warm.lower_bound <= cold.objective * (1.0 + 1e-9) and cold.lower_bound <= warm.objective * (1.0 + 1e-9)
    shares = zip(("iterations", "projections", "arcs", "processor time"), again / cost, strict=True)
    print("warm over cold: " + ", ".join(f"{name} {share:.2f}" for name, share in shares))


if __name__ == "__main__":
    main()
