"""The paper's tables and figures made again, with its own figures in columns of their own.

python tools/bench/paper.py nearness [--sizes 100,200,...,1000] [--instances 1] [--limit 300] [--output FOLDER]
python tools/bench/paper.py clustering --data FOLDER [--only power,Slashdot] [--output FOLDER]

nearness: the table of times by size, with cyclic Bregman in the same run, how far the two answers differ, and errors
against projections as a picture. clustering: the tables of dense and of sparse graphs, and rows and violations by
iteration as a picture. Each ends with a sentence on every difference. With --output tables and pictures are saved.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import clustering
import dense
import numba
import numpy as np
from common import SEED, save, table
from plots import Panel, draw

import ooc_pf as pf

# Seconds of Project and Forget and of cyclic Bregman, by size (type I graphs).
NEARNESS = {
    100: (13.5, 1.77),
    200: (32.7, 10.5),
    300: (85.1, 47.1),
    400: (170, 141),
    500: (271, 322),
    600: (458, 558),
    700: (720, 910),
    800: (983, 1472),
    900: (1356, 2251),
    1000: (1649, 3167),
}
NEARNESS_DIFFERENCES = """
- Times of the paper are from another machine, with 52 GB of memory, and means over five instances.
- The paper stops once the iterate is within 1e-10 of its closure. Here the distance is relative to the largest number,
  and a gap of 1e-10 is asked for as well: a point near the metrics need not be near the best of them.
- Its figure has the difference of objectives, which can have either sign. The picture here has the error of the proven
  lower bound and the largest violation of a triangle, each over the projections done by then.
- Cyclic Bregman was written anew, with one multiplier for each row of every triangle, on one thread. It is looked at
  every ten passes, in the picture after every pass.
"""
# Seconds, ratio and GiB of the dense graphs; seconds, ratio, active rows and iterations of the sparse one.
DENSE = {"power": (1393, 1.33, 5.9), "CA-GrQc": (2098, 1.33, 4.4), "CA-HepTh": (9660, 1.33, 24.0)}
SPARSE = {"Slashdot": (168_120, 1.78, 384_227, 145)}
FILES = {name: f"collab/{name}.txt.gz" for name in DENSE} | {"Slashdot": "signed/soc-sign-Slashdot090221.txt.gz"}
DENSE_DIFFERENCES = """
- The paper's figures are from another machine. Its memory is the mean over iterations, ours the peak of the process.
- All stop at a violation of 0.01. Here a relative gap of 0.01 is asked for as well, and reached by far.
- The paper's ratio is (1 + gamma) / (1 + R) with R = x'Wx / (2 gamma w'x). That is 4/3 for any x of zeros and ones, and
  nearly all pairs of such a graph are apart. With f, the variables of its program, the formula gives "as printed".
- What holds is (1 + 1/gamma) / (1 + 2R) with f: "corrected". It is about the relaxation. The certified ratio is about
  clusters: their cost over a bound of every clustering.
- CA-HepPh, the paper's fourth graph, is left out.
"""
SPARSE_DIFFERENCES = """
- The paper's time is from another machine. Its violation was 0.01; here a relative gap of 0.01 is asked for as well.
- Direction is dropped, repeated votes count once, and pairs with both signs cancel. The paper does not say what it did.
- An iteration of the paper searches from every node and sweeps 75 times. Here it may be a few trees and ten sweeps.
- The paper's ratio is (1 + gamma) / (1 + R): "as printed". What holds is (1 + 1/gamma) / (1 + 2R): "corrected". The
  certified ratio is the cost of clusters over a bound of every clustering.
- Epinions, its second graph, is left out.
"""


@numba.njit(cache=True)
def worst_triangle(x):
    """The largest violation of a triangle, of the upper part."""
    worst = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            for k in range(j + 1, len(x)):
                a, b, c = x[i, j], x[i, k], x[j, k]
                worst = max(worst, a - b - c, b - a - c, c - a - b)
    return worst


def nearness_row(n: int, slow: bool, args: argparse.Namespace) -> dict[str, Any]:
    """A line of the table of sizes, means over instances."""
    ours, cyclic = [], []
    for seed in range(SEED, SEED + args.instances):
        d = pf.random_dissimilarities(n, "I", seed=seed)
        ours.append(dense.ours(d, args.tol, args.workers))
        if not slow:
            cyclic.append(dense.cyclic_bregman(d, args.tol, args.limit))

    def mean(runs: list[dict[str, Any]], name: str, unit: float = 1.0) -> float | None:
        return float(f"{np.mean([run[name] for run in runs]) / unit:.4g}") if runs else None

    pairs = list(zip(ours, cyclic))
    objective = [(their["objective"] - our["objective"]) / our["objective"] for our, their in pairs]
    distance = [their["distance"] - our["distance"] for our, their in pairs]
    done = all(run["status"] == "converged" for run in cyclic)
    return {
        "n": n,
        "ours, s": mean(ours, "seconds"),
        "processor s": mean(ours, "processor_seconds"),
        "gap": mean(ours, "gap"),
        "distance": mean(ours, "distance"),
        "projections, million": mean(ours, "projections", 1e6),
        "cyclic Bregman, s": mean(cyclic, "seconds") if done else f"not done after {args.limit:.0f}",
        "its projections, million": mean(cyclic, "projections", 1e6),
        "its objective, relative difference": float(f"{np.mean(objective):.2g}") if pairs else None,
        "its distance, difference": float(f"{np.mean(distance):.2g}") if pairs else None,
        "paper, s": NEARNESS.get(n, (None, None))[0],
        "paper, cyclic Bregman, s": NEARNESS.get(n, (None, None))[1],
    }


def error_curves(n: int, args: argparse.Namespace) -> list[Panel]:
    """Error of the bound and largest violation over projections, for both."""
    d = pf.random_dissimilarities(n, "I", seed=SEED)
    ours = dense.ours(d, args.tol, args.workers)
    cyclic = dense.cyclic_bregman(d, args.tol, args.limit, every=1, measure=worst_triangle)
    best, curves = ours["objective"], {"ooc_pf": ours["curve"], "cyclic Bregman": cyclic["curve"]}
    bound = {name: [(done, (best - low) / best) for done, low, _ in curve] for name, curve in curves.items()}
    # Ours knows the violation at the start of an iteration, so after the projections of the one before.
    begun = [0, *(done for done, _, _ in ours["curve"])]
    worst = {"ooc_pf": [(done, over) for done, (_, _, over) in zip(begun, ours["curve"])]}
    worst["cyclic Bregman"] = [(done, over) for done, _, over in cyclic["curve"]]
    panels = []
    for label, found in (("relative error of the bound", bound), ("largest violation of a triangle", worst)):
        shown = {name: [(a, b) for a, b in curve if a > 0 and b > 1e-16] for name, curve in found.items()}
        lines = {name: tuple(zip(*curve)) for name, curve in shown.items() if curve}
        panels.append(Panel("projections", label, lines, log_x=True, log_y=True))
    return panels


def nearness(args: argparse.Namespace) -> None:
    """The table of sizes, and errors against projections."""
    dense.warm_up(args.tol, args.workers)
    rows, slow = [], False
    for n in map(int, args.sizes.split(",")):
        rows.append(nearness_row(n, slow, args))
        slow = slow or not isinstance(rows[-1]["cyclic Bregman, s"], float)
        print(rows[-1], flush=True)
    print(f"\n{table(rows)}\n{NEARNESS_DIFFERENCES}")
    if args.output:
        save(args.output / "paper-nearness.json", rows=rows)
        draw(args.output / "paper-nearness.svg", f"{args.curve} points, type I", error_curves(args.curve, args))


def clustering_row(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """A line of the table of dense graphs, or of sparse ones."""
    seconds, ratio, *more = (DENSE | SPARSE)[name]
    line = {
        "graph": name,
        "time, s": facts["seconds"],
        "processor s": facts["processor_seconds"],
        "peak, MB": facts["peak_mb"],
        "gap": float(f"{facts['gap']:.2g}"),
        "violation": float(f"{facts['violation']:.2g}"),
        "iterations": facts["n_iter"],
        "rows kept": facts["n_active"],
        "ratio as printed": facts["paper_ratio"],
        "corrected": facts["apriori_ratio"],
        "certified, of clusters": facts["certified_ratio"],
        "paper, s": seconds,
        "paper, ratio": ratio,
    }
    names = ("paper, GiB",) if name in DENSE else ("paper, rows", "paper, iterations")
    return line | dict(zip(names, more, strict=True))


def history_curves(history: list[dict[str, Any]]) -> list[Panel]:
    """Rows found and kept, and the largest violation, by iteration."""
    at = [record["iteration"] for record in history]
    rows = {f"rows {name}": (at, [record[name] for record in history]) for name in ("found", "kept")}
    worst = [(record["iteration"], record["worst"]) for record in history if record["worst"] > 0.0]
    violation = {"largest violation found": tuple(zip(*worst))}
    return [Panel("iteration", "rows", rows, log_y=True), Panel("iteration", "violation", violation, log_y=True)]


def solve(name: str, data: Path) -> tuple[pf.Result, dict[str, Any]]:
    """One graph of the paper, by its program."""
    with tempfile.TemporaryDirectory() as folder:
        path, file = Path(folder) / "run.pf", data / FILES[name]
        if name in DENSE:
            graph, base = clustering.complete_graph(file, wang=True)
        else:
            pf.convert(file, path, kind="signed", duplicates="sign")
            graph, base = path, None
        return clustering.solve(graph, path, gamma=1.0, base=base, tol=1e-2, progress=False)


def cluster(args: argparse.Namespace) -> None:
    """The tables of dense and sparse graphs, and a picture of each run."""
    found = {}
    for name in args.only.split(","):
        result, facts = solve(name, args.data)
        found[name] = clustering_row(name, facts)
        print(found[name], flush=True)
        if args.output:
            draw(args.output / f"paper-{name}.svg", name, history_curves(result.history))
    for group, differences in ((DENSE, DENSE_DIFFERENCES), (SPARSE, SPARSE_DIFFERENCES)):
        rows = [row for name, row in found.items() if name in group]
        print(f"\n{table(rows)}\n{differences}" if rows else "")
    if args.output:
        save(args.output / "paper-clustering.json", rows=list(found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("nearness")
    one.add_argument("--sizes", default=",".join(map(str, NEARNESS)))
    one.add_argument("--instances", type=int, default=1)
    one.add_argument("--tol", type=float, default=1e-10)
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--limit", type=float, default=300.0, help="seconds of cyclic Bregman for one instance")
    one.add_argument("--curve", type=int, default=200, help="points of the picture")
    one.set_defaults(run=nearness)
    two = commands.add_parser("clustering")
    two.add_argument("--data", type=Path, required=True, help="folder of public edge lists, with collab/ and signed/")
    two.add_argument("--only", default=",".join(FILES), help="graphs, by commas")
    two.set_defaults(run=cluster)
    for each in (one, two):
        each.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
    args.run(args)


if __name__ == "__main__":
    main()
