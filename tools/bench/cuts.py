"""The linear program of clustering on complete graphs: ours beside a loop of cuts around HiGHS, in one run.

python tools/bench/cuts.py FILES [--tol 1e-6] [--limit 300] [--each 1,3,1000] [--output FOLDER]

The edges of each file attract and all other pairs repel, all with weight 1. The loop has a variable for every pair. It
begins without rows, looks at every triangle, adds the most violated ones of each pair, and solves again, by the dual
simplex method from the last basis, until no triangle is violated by more than --tol. Its value is then a lower bound of
the optimum, as ours is. How many triangles of a pair are best differs by graph: the loop is run with each number of
--each, and also by the interior point method with the last of them, and its quickest run counts. Ours is run once, with
its defaults. Times compare processor seconds.
"""

import argparse
from pathlib import Path
from typing import Any

import highspy
import numba
import numpy as np
from common import Stopwatch, read_pairs, save, signed_network, table

import ooc_pf as pf

OPTIMA = {"Karate": 38.5, "dolphins": 79.5, "lesmis": 91.5, "football": 273.0, "jazz": 1357.0, "CA-HepTh": 11290.5}


@numba.njit(cache=True)
def violated(x, most, least):
    """Triangles i, j, k with x[i, j] > x[i, k] + x[k, j] + least: of each pair i, j the ``most`` most violated ones."""
    n = len(x)
    rows, excess = [(0, 0, 0)][:0], np.empty(n)
    for i in range(n):
        for j in range(i + 1, n):
            count = 0
            for k in range(n):
                excess[k] = x[i, j] - x[i, k] - x[k, j] if k != i and k != j else -np.inf
                count += excess[k] > least
            for k in np.argsort(-excess)[: min(count, most)]:
                rows.append((i, j, k))
    return rows


def cut_loop(
    u: np.ndarray, v: np.ndarray, n: int, *, method: str, each: int, tol: float, limit: float
) -> dict[str, Any]:
    """Value, solves, rows and seconds of the loop around HiGHS."""
    i, j = np.triu_indices(n, 1)
    number = np.zeros((n, n), np.int32)
    number[i, j] = number[j, i] = np.arange(len(i))
    cost = np.full(len(i), -1.0)  # min sum x over edges + sum (1 - x) over the others
    cost[number[u, v]] = 1.0
    constant = float((cost < 0).sum())
    watch, model = Stopwatch(), highspy.Highs()
    model.silent()
    model.setOptionValue("solver", method)
    empty = np.empty(0, np.int32)
    model.addCols(len(i), cost, np.zeros(len(i)), np.ones(len(i)), 0, empty, empty, np.empty(0))
    rounds, facts = 0, {"status": "converged"}
    while True:
        model.setOptionValue("time_limit", model.getRunTime() + max(0.0, limit - watch.clock()))
        model.run()
        rounds += 1
        if watch.clock() > limit or model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            facts = {"status": "not done"}
            break
        x = np.zeros((n, n))
        x[i, j] = x[j, i] = model.getSolution().col_value
        chosen = np.array(violated(x, each, tol))
        if not len(chosen):
            break
        columns = np.column_stack([number[chosen[:, a], chosen[:, b]] for a, b in ((0, 1), (0, 2), (2, 1))])
        begins, signs = np.arange(len(chosen), dtype=np.int32) * 3, np.tile([1.0, -1.0, -1.0], len(chosen))
        model.addRows(len(chosen), np.full(len(chosen), -highspy.kHighsInf), np.zeros(len(chosen)), columns.size,
                      begins, columns.ravel().astype(np.int32), signs)  # fmt: skip
    value = model.getInfo().objective_function_value + constant
    name = f"{method}, {each} of a pair"
    return {"as": name, "value": value, **facts, "rounds": rounds, "rows": model.getNumRow(), **watch.facts()}


def ours(u: np.ndarray, v: np.ndarray, tol: float) -> tuple[pf.Result, dict[str, float]]:
    """Our answer to the same linear program, and what it took."""
    watch = Stopwatch()
    result = pf.correlation_clustering((u, v, np.ones(len(u))), base=-1.0, gamma=None, tol=tol)
    return result, watch.facts()


def ways(each: str) -> list[dict[str, Any]]:
    """How the loop is run."""
    numbers = [int(number) for number in each.split(",")]
    return [*({"method": "simplex", "each": number} for number in numbers), {"method": "ipm", "each": numbers[-1]}]


def compare(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """A line of the table."""
    u, v, n = read_pairs(path)
    result, facts = ours(u, v, args.tol)
    name = path.name.split(".")[0].removesuffix("A")
    line = {"graph": name, "nodes": n, "optimum known": OPTIMA.get(name)}
    line |= {"our lower bound": result.lower_bound, "gap": result.gap, "iterations": result.n_iter}
    line |= {"rows kept": result.n_active, "time, s": facts["seconds"], "processor s": facts["processor_seconds"]}
    loops = [cut_loop(u, v, n, **way, tol=args.tol, limit=args.limit) for way in ways(args.each)]
    done = [loop for loop in loops if loop["status"] == "converged"]
    best = min(done or loops, key=lambda loop: loop["processor_seconds"])
    shown = {"HiGHS": "value", "as": "as", "solves": "rounds", "rows": "rows"}
    shown |= {"its time, s": "seconds", "its processor s": "processor_seconds"}
    line |= {label: best[name] for label, name in shown.items()} if done else dict.fromkeys(shown, "not done")
    others = [
        f"{loop['processor_seconds']} ({loop['as']}, {loop['status']})"
        for loop in loops
        if not done or loop is not best
    ]
    times = best["processor_seconds"] / facts["processor_seconds"] if done else None
    return line | {"times ours": times, "its other runs": "; ".join(others)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of the loop for one graph")
    parser.add_argument("--each", default="1,3,1000", help="rows that the loop adds for a pair at a time, by commas")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    u, v, _ = signed_network(300, 50)
    ours(u, v, args.tol), cut_loop(u, v, 50, **ways("1")[0], tol=args.tol, limit=args.limit)  # compiles
    rows = [compare(path, args) for path in args.files]
    print(table(rows))
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        save(args.output / "cuts.json", rows=rows)


if __name__ == "__main__":
    main()
