"""Metric nearness on the complete graph against its opponents, in one run.

    python tools/bench/dense.py [--sizes 100,200] [--kinds I,II,III] [--tol 1e-10] [--workers 2] [--limit 300]
    python tools/bench/dense.py --large 10000 --kinds I --memory 2GB --tol 1e-6 --limit 3600 --save FILE

The kinds are those of `pf.random_dissimilarities`, and "noisy": Euclidean distances of random points in the unit cube
times (1 + 0.8 normal noise), clipped at zero.

The opponents: cyclic Bregman (every triangle in every pass, dense duals, numba, one thread) stopped by the same rule,
and PDLP and OSQP on the problem with all its rows, up to size --general. A size is left out once the one before took
longer than --limit seconds. PDLP and OSQP stop by their own rules at tolerance 1e-6, so their objective is shown.
"""

import argparse
import json
import math
import tempfile
from pathlib import Path

import numba
import numpy as np
from common import SEED, Stopwatch, peak_from_here, peak_mb, save, seconds_by_phase, total
from scipy import sparse

import ooc_pf as pf


def draw(n, kind):
    """A table of one of the kinds, made a line at a time where the package has none."""
    if kind != "noisy":
        return pf.random_dissimilarities(n, kind, seed=SEED)
    rng, d = np.random.default_rng(SEED), np.zeros((n, n))
    points = rng.random((n, 3))
    for i in range(n - 1):
        far = np.linalg.norm(points[i + 1 :] - points[i], axis=1)
        d[i, i + 1 :] = d[i + 1 :, i] = np.maximum(far * (1.0 + 0.8 * rng.standard_normal(len(far))), 0.0)
    return d


@numba.njit(cache=True)
def bregman_pass(x, dual):
    """Project onto every row of every triangle in turn; ``dual`` has three numbers a triangle. Returns projections."""
    n, at = len(x), 0
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                a, b, c = x[i, j], x[i, k], x[j, k]
                step = max((a - b - c) / 3.0, -dual[at])
                a, b, c, dual[at] = a - step, b + step, c + step, dual[at] + step
                step = max((b - a - c) / 3.0, -dual[at + 1])
                a, b, c, dual[at + 1] = a + step, b - step, c + step, dual[at + 1] + step
                step = max((c - a - b) / 3.0, -dual[at + 2])
                a, b, c, dual[at + 2] = a + step, b + step, c - step, dual[at + 2] + step
                x[i, j], x[i, k], x[j, k] = a, b, c
                at += 3


@numba.njit(cache=True)
def close(x):
    """Shortest-path closure of the upper part, by Floyd and Warshall."""
    n = len(x)
    y = np.maximum(x, x.T)
    for i in range(n):
        for j in range(i):
            y[i, j] = x[j, i]
            y[j, i] = x[j, i]
    for k in range(n):
        for i in range(n):
            via = y[i, k]
            for j in range(n):
                y[i, j] = min(y[i, j], via + y[k, j])
    return y


def cyclic_bregman(d, tol, limit, every=10, measure=None):
    """Passes until gap and distance to the closure meet the rule of the solver, looked at after every few of them.

    The curve has projections, bound, and what ``measure`` says of the point (by default its distance), at each look.
    """
    upper = np.triu_indices(len(d), 1)
    x, dual = np.triu(d, 1), np.zeros(3 * math.comb(len(d), 3))
    scale = max(1.0, float(np.abs(d).max()))
    watch, passes, curve = Stopwatch(), 0, []
    while True:
        for _ in range(every):
            bregman_pass(x, dual)
        passes += every
        point = close(np.maximum(x, 0.0))[upper]
        y = np.maximum(x[upper], 0.0)
        value = 0.5 * float(np.sum((point - d[upper]) ** 2))
        bound = float(np.sum(0.5 * (y - d[upper]) ** 2 + (d[upper] - x[upper]) * y))
        gap, distance = (value - bound) / max(1.0, abs(bound)), float(np.linalg.norm(y - point))
        curve.append((passes * len(dual), bound, distance if measure is None else measure(np.maximum(x, 0.0))))
        done = gap <= tol and distance <= tol * scale
        if done or watch.clock() > limit:
            facts = {"objective": value, "status": "converged" if done else "time limit", "gap": gap}
            return {**watch.facts(), **facts, "distance": distance, "projections": curve[-1][0], "curve": curve}


def all_rows(n):
    """Every triangle row as a sparse matrix over edges."""
    i, j, k = np.array([(i, j, k) for i in range(n) for j in range(i + 1, n) for k in range(j + 1, n)]).T

    def edge(a, b):
        return a * (2 * n - a - 1) // 2 + b - a - 1

    sides = [edge(i, j), edge(i, k), edge(j, k)]
    rows = np.arange(3 * len(i))
    columns = np.concatenate(
        [np.concatenate((sides[c], *(s for t, s in enumerate(sides) if t != c))) for c in range(3)]
    )
    values = np.tile(np.repeat([1.0, -1.0, -1.0], len(i)), 3)
    lines = np.concatenate([np.tile(rows[c * len(i) : (c + 1) * len(i)], 3) for c in range(3)])
    return sparse.csc_matrix((values, (lines, columns)), (3 * len(i), n * (n - 1) // 2))


def osqp(d, limit):
    import osqp as package

    n, upper = len(d), np.triu_indices(len(d), 1)
    watch = Stopwatch()
    matrix = all_rows(n)
    eye = sparse.eye(len(upper[0]), format="csc")
    solver = package.OSQP()
    solver.setup(P=eye, q=-d[upper], A=matrix, l=np.full(matrix.shape[0], -np.inf), u=np.zeros(matrix.shape[0]),
                 verbose=False, eps_abs=1e-6, eps_rel=1e-6, max_iter=10**6, time_limit=limit)  # fmt: skip
    found = solver.solve()
    value = 0.5 * float(np.sum((found.x - d[upper]) ** 2))
    return {**watch.facts(), "objective": value, "status": str(found.info.status)}


def pdlp(d, limit):
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp as package

    n, upper = len(d), np.triu_indices(len(d), 1)
    watch = Stopwatch()
    program = package.QuadraticProgram()
    edges = len(upper[0])
    program.objective_vector = -d[upper]
    program.set_objective_matrix_diagonal(np.ones(edges))
    program.constraint_matrix = all_rows(n)
    program.constraint_lower_bounds = np.full(3 * math.comb(n, 3), -np.inf)
    program.constraint_upper_bounds = np.zeros(3 * math.comb(n, 3))
    program.variable_lower_bounds = np.zeros(edges)
    program.variable_upper_bounds = np.full(edges, np.inf)
    settings = solvers_pb2.PrimalDualHybridGradientParams()
    optimal = settings.termination_criteria.simple_optimality_criteria
    optimal.eps_optimal_relative = optimal.eps_optimal_absolute = 1e-6
    settings.termination_criteria.time_sec_limit = limit
    settings.presolve_options.use_glop = False
    found = package.primal_dual_hybrid_gradient(program, settings)
    value = 0.5 * float(np.sum((np.array(found.primal_solution) - d[upper]) ** 2))
    reason = solve_log_pb2.TerminationReason.Name(found.solve_log.termination_reason)
    return {**watch.facts(), "objective": value, "status": reason}


def ours(d, tol, workers, **options):
    """Our answer; the curve has projections and bound after each iteration, and the largest violation found in it."""
    peak_from_here()
    watch = Stopwatch()
    result = pf.metric_nearness(d, tol=tol, workers=workers, **options)
    facts = {
        **watch.facts(),
        "objective": result.objective,
        "status": result.status,
        **seconds_by_phase(result.history),
    }
    done = np.cumsum([record.get("projections", 0) + record["found"] for record in result.history])
    curve = [(int(count), record["lower_bound"], record["worst"]) for count, record in zip(done, result.history)]
    return facts | {"projections": int(done[-1]), "gap": result.gap, "distance": result.violation,
                    "sweeps": total(result.history, "sweeps"), "iterations": result.n_iter, "rows": result.n_active,
                    "peak_mb": peak_mb(), "curve": curve}  # fmt: skip


def warm_up(tol, workers):
    """Compile before the clock starts."""
    small = pf.random_dissimilarities(70)
    ours(small, tol, 1), ours(small, tol, workers)
    cyclic_bregman(small, 1e-6, 60)


def table(args):
    warm_up(args.tol, args.workers)
    for kind in args.kinds.split(","):
        slow = {}
        for n in map(int, args.sizes.split(",")):
            d = draw(n, kind)
            runs = {"ooc_pf": lambda d=d: ours(d, args.tol, args.workers)}
            if not args.alone:
                runs["cyclic Bregman"] = lambda d=d: cyclic_bregman(d, args.tol, args.limit)
            if n <= args.general and not args.alone:
                runs |= {"OSQP": lambda d=d: osqp(d, args.limit), "PDLP": lambda d=d: pdlp(d, args.limit)}
            for name, run in runs.items():
                if slow.get(name):
                    continue
                facts = run()
                slow[name] = facts["seconds"] > args.limit
                shown = {"kind": kind, "n": n, "solver": name, **facts}
                shown.pop("curve", None)
                print(json.dumps({k: float(f"{v:.12g}") if isinstance(v, float) else v for k, v in shown.items()}),
                      flush=True)  # fmt: skip


def large(args):
    """Large tables on disk under a memory budget, each verified under the same; all figures as one object a table."""
    warm_up(args.tol, args.workers)
    found = []
    for kind in args.kinds.split(","):
        d = draw(args.large, kind)
        before = peak_from_here()
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            path, history = Path(folder) / "run.pf", []
            facts = ours(d, args.tol, args.workers, workspace=path, memory=args.memory, max_time=args.limit,
                         progress=True, callback=history.append)  # fmt: skip
            facts["above_mb"] = facts["peak_mb"] - before
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            facts |= {"triangles": total(history, "relaxed"), "workspace_bytes": size}
            facts |= {name: total(history, name) for name in ("read_bytes", "written_bytes")}
            del d
            facts |= check(path, args)
        facts["curve"] = None
        found.append({"kind": kind, "n": args.large, "memory": args.memory, "before_mb": before, **facts})
        print(json.dumps(found[-1]), flush=True)
        if args.save:
            save(args.save, tables=found)


def check(path, args):
    """What verifying a workspace takes."""
    before, watch = peak_from_here(), Stopwatch()
    report = pf.verify(path, oracle="numba", workers=args.workers, memory=args.memory)
    took = {f"verify_{name}": value for name, value in watch.facts().items()}
    return {**took, "verify_above_mb": peak_mb() - before, "verified_violation": report["violation_of_x"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,200,300,400,500,700,1000")
    parser.add_argument("--kinds", default="I,II,III")
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one opponent at one size")
    parser.add_argument("--general", type=int, default=50, help="largest n for PDLP and OSQP")
    parser.add_argument("--alone", action="store_true", help="without opponents")
    parser.add_argument("--large", type=int)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", type=Path, help="where the workspace of a large table goes")
    parser.add_argument("--save", type=Path, help="a file for the figures of large tables, as JSON")
    args = parser.parse_args()
    large(args) if args.large else table(args)


if __name__ == "__main__":
    main()
