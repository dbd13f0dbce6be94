"""Quadratically regularised transport beside other solvers, in one process; the paper's table of masses on a line.

    python tools/bench/transport.py line [--sizes 501,1001,5001,10001,20001] [--alone]
    python tools/bench/transport.py clouds [--sizes 512,1024,4096,8192]
    python tools/bench/transport.py exact [--sizes 512,1024,2048] [--regs 10,1]
    python tools/bench/transport.py tails [--sizes 101,501,1001,2001] [--regs 1e6,1e4,1e3,100,10,1,0.1]

"line": normal densities around -15 and 15, variance 10, on n points from -20 to 20, squared distance, gamma = 1000.
"clouds": points near eight random lines of the colour cube, uniform masses, gamma = 100. Both beside an active-set loop
around Clarabel with the same search: the four most violated pairs of every row and column. "exact": the same clouds
with exact marginals, beside POT's smooth_ot_dual and RegOT's sparse Newton method. "tails": the masses of "line", which
go down to 1e-27, with exact marginals. Times are processor time of one
thread, compilation excluded.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before numpy is loaded

import argparse  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402

import clarabel  # noqa: E402
import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

import ooc_pf as pf  # noqa: E402
from ooc_pf.transport.crew import Crew  # noqa: E402
from ooc_pf.transport.inputs import read_task  # noqa: E402

BEST = 4  # pairs that the search brings for every row and column


def normal_masses(n: int) -> tuple[np.ndarray, ...]:
    x = np.linspace(-20.0, 20.0, n)
    a, b = np.exp(-((x + 15.0) ** 2) / 20.0), np.exp(-((x - 15.0) ** 2) / 20.0)
    return a / a.sum(), b / b.sum(), x[:, None], x[:, None]


def clouds(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)

    def cloud() -> np.ndarray:
        line, start, end, part = rng.integers(0, 8, n), rng.random((8, 3)), rng.random((8, 3)), rng.random((n, 1))
        return np.clip(start[line] * (1.0 - part) + end[line] * part + 0.03 * rng.normal(size=(n, 3)), 0.0, 1.0)

    return np.full(n, 1.0 / n), np.full(n, 1.0 / n), cloud(), cloud()


def timed(work, *args, **options):
    began = time.process_time()
    found = work(*args, **options)
    return found, time.process_time() - began


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


# -- soft marginals ---------------------------------------------------------------------------------------------------


def clarabel_loop(a, b, x, y, gamma, tol=1e-10):
    """Add the most violated pairs and solve again, until none is violated; returns solves, gap and violation."""
    task = read_task(a, b, (x, y), "sqeuclidean")
    n, m = task.costs.shape
    target = gamma * np.concatenate([task.a, task.b])
    size, z, key, solves = target.max(), target, np.empty(0, np.int64), 0
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    cost = p = np.empty(0)
    while True:
        found = task.costs.search(z[:n], z[n:], BEST, tol * size, Crew())
        fresh = np.setdiff1d(found.left * m + found.right, key)
        if not len(fresh):
            break
        key = np.concatenate([key, fresh])
        cost = task.costs.of_pairs(key // m, key % m)
        place = np.arange(len(key))
        ends = np.concatenate([place, place]), np.concatenate([key // m, n + key % m])
        A = sparse.csc_matrix((np.ones(2 * len(key)), ends), shape=(len(key), n + m))
        cones = [clarabel.NonnegativeConeT(len(key))]
        # In units of the largest target, so that the solver's absolute tolerances mean something.
        done = clarabel.DefaultSolver(
            sparse.eye(n + m, format="csc"), -target / size, A, cost / size, cones, settings
        ).solve()
        z, p, solves = size * np.array(done.x), size * np.maximum(done.z, 0.0), solves + 1
    rest = target - np.bincount(key // m, p, n + m) - np.bincount(n + key % m, p, n + m)
    value = (cost @ p + 0.5 * rest @ rest) / gamma
    z = z - 0.5 * max(found.worst, 0.0)
    bound = (target @ z - 0.5 * z @ z) / gamma
    return solves, value, (value - bound) / bound, max(found.worst, 0.0) / size


def soft(make, sizes, gamma, alone):
    a, b, x, y = make(200)
    pf.quadratic_transport(a, b, (x, y), gamma=gamma, workers=1)
    print(
        "| n | objective | gap | violation | iterations | processor s | Clarabel: solves | gap | processor s | times |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n in sizes:
        a, b, x, y = make(n)
        result, spent = timed(pf.quadratic_transport, a, b, (x, y), gamma=gamma, tol=1e-12, workers=1)
        violation = result.violation / (gamma * max(a.max(), b.max()))
        line = f"| {n} | {result.objective:.10g} | {result.gap:.0e} | {violation:.0e} | {result.n_iter} | {spent:.3f} |"
        assert result.converged
        if not alone:
            (solves, value, gap, _), other = timed(clarabel_loop, a, b, x, y, gamma)
            assert abs(value / result.objective - 1.0) < 1e-8
            line += f" {solves} | {gap:.0e} | {other:.2f} | {other / spent:.1f} |"
        print(line, flush=True)
    print(f"\npeak resident memory of the process: {peak()} MB")


# -- exact marginals --------------------------------------------------------------------------------------------------


def marginal_error(plan, a, b) -> float:
    """The larger one of rows and columns, as a part of the mass."""
    rows, columns = np.asarray(plan.sum(axis=1)).ravel(), np.asarray(plan.sum(axis=0)).ravel()
    return max(np.abs(rows - a).sum(), np.abs(columns - b).sum()) / a.sum()


def opponents(a, b, cost, reg):
    """Name, and a function that returns a plan and a remark."""
    import ot
    import regot

    def pot(stop: float):
        plan, log = ot.smooth.smooth_ot_dual(a, b, cost, reg, reg_type="l2", stopThr=stop, log=True)
        return plan, f"{log['res'].nit} iterations"

    def sparse_newton():
        found = regot.qrot_grssn(np.asfortranarray(cost), a, b, reg, tol=1e-10 / len(a) ** 0.5, max_iter=500)
        return found.plan, f"{found.niter} iterations"

    yield "POT smooth_ot_dual", lambda: pot(1e-9)  # its defaults
    yield "POT, stopThr=1e-15", lambda: pot(1e-15)
    yield "RegOT qrot_grssn", sparse_newton


def exact(sizes, regs):
    warnings.simplefilter("ignore")
    a, b, x, y = clouds(600)
    pf.quadratic_transport(a, b, (x, y), marginals="exact", reg=1.0, workers=1)
    print("| reg | n | solver | processor s | times ours | marginal error | value | remark |")
    print("|---|---|---|---|---|---|---|---|")
    for reg in regs:
        for n in sizes:
            a, b, x, y = clouds(n)
            result, base = timed(pf.quadratic_transport, a, b, (x, y), marginals="exact", reg=reg, workers=1)
            cost = ((x[:, None] - y) ** 2).sum(axis=2)
            error, most = marginal_error(result.plan, a, b), max(record["found"] for record in result.history)
            remark = f"gap {result.gap:.0e}, {result.n_iter} iterations, {most / n:.0f} pairs a row at most"
            print(f"| {reg:g} | {n} | ooc_pf | {base:.3f} | 1 | {error:.0e} | {result.objective:.10g} | {remark} |")
            assert result.converged and error <= 1e-10
            for name, work in opponents(a, b, cost, reg):
                (plan, remark), spent = timed(work)
                value = np.sum(cost * plan) + 0.5 * reg * np.sum(plan**2)
                facts = f"{spent:.2f} | {spent / base:.1f} | {marginal_error(plan, a, b):.0e} | {value:.10g} | {remark}"
                print(f"| {reg:g} | {n} | {name} | {facts} |", flush=True)


def tails(sizes, regs):
    print("| n | reg | status | iterations | gap | marginal error | processor s |")
    print("|---|---|---|---|---|---|---|")
    for n in sizes:
        a, b, x, y = normal_masses(n)
        for reg in regs:
            result, spent = timed(pf.quadratic_transport, a, b, (x, y), marginals="exact", reg=reg, workers=1)
            facts = f"{result.n_iter} | {result.gap:.0e} | {marginal_error(result.plan, a, b):.0e} | {spent:.2f}"
            print(f"| {n} | {reg:g} | {result.status} | {facts} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["line", "clouds", "exact", "tails"])
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--regs", type=lambda text: [float(reg) for reg in text.split(",")])
    parser.add_argument("--alone", action="store_true", help="without the Clarabel loop")
    args = parser.parse_args()
    if args.what == "line":
        soft(normal_masses, args.sizes or [501, 1001, 5001, 10001, 20001], 1000.0, args.alone)
    elif args.what == "clouds":
        soft(clouds, args.sizes or [512, 1024, 4096, 8192], 100.0, args.alone)
    elif args.what == "exact":
        exact(args.sizes or [512, 1024, 2048], args.regs or [10.0, 1.0])
    else:
        tails(args.sizes or [101, 501, 1001, 2001], args.regs or [1e6, 1e4, 1e3, 100.0, 10.0, 1.0, 0.1])


if __name__ == "__main__":
    main()
