"""The paper's support vector machines, beside LIBLINEAR; and rows on disk, twenty times the memory allowed.

    python tools/bench/svm.py [--rows 1000000] [--noise 10,5,2] [--dual 20]
    python tools/bench/svm.py --disk [--rows 5000000] [--memory 200MB]

Data: entries of X from N(0, K^2), labels sign(X h) with h from N(0, I), then noise from N(0, 1) added to X. C = 1000,
no intercept; a tenth as many test rows. Times are processor time, compilation excluded. LIBLINEAR does not halve
the loss, so its C is half of ours. Its dual solver is stopped after ``--dual`` passes (0 leaves it out).
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC

import ooc_pf as pf

COLUMNS, C = 100, 1000.0
PART = 1 << 16


def draw_rows(rng: np.random.Generator, h: np.ndarray, rows: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(0.0, noise, (rows, COLUMNS))
    y = np.where(X @ h > 0.0, 1, -1)
    X += rng.normal(size=X.shape)
    return X, y


def objective(model, X: np.ndarray, y: np.ndarray) -> float:
    w = model.coef_[0]
    return 0.5 * float(w @ w) + 0.5 * C * float(np.sum(np.maximum(0.0, 1.0 - y * (X @ w)) ** 2))


def compile_kernels() -> None:
    X, y = draw_rows(np.random.default_rng(1), np.ones(COLUMNS), 20_000, 2.0)
    for method in ("newton", "stochastic"):
        pf.LinearSVM(C=C, method=method, max_iter=50 if method == "newton" else 1).fit(X, y)


def compare(args: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    compile_kernels()
    print("| K | solver | processor s | times newton's | passes | above the lower bound | test accuracy |")
    print("|---|---|---|---|---|---|---|")
    for noise in (float(each) for each in args.noise.split(",")):
        rng = np.random.default_rng(int(noise))
        h = rng.normal(size=COLUMNS)
        X, y = draw_rows(rng, h, args.rows, noise)
        test = draw_rows(rng, h, max(args.rows // 10, 1000), noise)
        models = {
            "newton": pf.LinearSVM(C=C),
            "stochastic, one pass": pf.LinearSVM(C=C, method="stochastic", max_iter=1),
            "LinearSVC primal": LinearSVC(C=C / 2, dual=False, fit_intercept=False, tol=args.primal_tol),
        }
        if args.dual:
            models[f"LinearSVC dual, {args.dual} passes"] = LinearSVC(
                C=C / 2, dual=True, fit_intercept=False, max_iter=args.dual, random_state=0
            )
        base = bound = None
        for name, model in models.items():
            began = time.process_time()
            model.fit(X, y)
            spent = time.process_time() - began
            base, bound = base or spent, bound or model.lower_bound_
            passes = f"{model.n_passes_:.2f}" if hasattr(model, "n_passes_") else f"{model.n_iter_}"
            above = model.gap_ if name == "newton" else objective(model, X, y) / bound - 1.0
            facts = f"{spent:.2f} | {spent / base:.1f} | {passes} | {above:.1e} | {model.score(*test):.4f}"
            print(f"| {noise:g} | {name} | {facts} |", flush=True)
            if name == "newton":
                whole = sum(record["relaxed"] == args.rows for record in model.history_)
                assert model.gap_ <= 1e-8 and whole <= 5, (model.gap_, whole)


# -- from disk --------------------------------------------------------------------------------------------------------


def write_rows(folder: Path, rows: int, noise: float) -> None:
    rng = np.random.default_rng(0)
    h, y = rng.normal(size=COLUMNS), np.empty(rows, np.int8)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (rows, COLUMNS))
    for first in range(0, rows, PART):
        part, labels = draw_rows(rng, h, min(PART, rows - first), noise)
        X[first : first + len(part)], y[first : first + len(part)] = part, labels
    np.save(folder / "y.npy", y)


def watch_memory(stop: threading.Event, peak: dict[str, int]) -> None:
    """Keep the largest values, in MB."""
    while not stop.wait(0.01):
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        for name in peak:
            peak[name] = max(peak[name], int(fields[name].split()[0]) >> 10)


def fit_from_disk(folder: Path, memory: str) -> None:
    compile_kernels()
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    stop, peak = threading.Event(), {"VmRSS": 0, "RssAnon": 0}
    watcher = threading.Thread(target=watch_memory, args=(stop, peak))
    watcher.start()
    time.sleep(0.1)
    before, began, spent = dict(peak), time.perf_counter(), time.process_time()
    model = pf.LinearSVM(C=C, memory=memory, workspace=folder / "run.pf").fit(X, y)
    spent, seconds = time.process_time() - spent, time.perf_counter() - began
    stop.set()
    watcher.join()
    facts = {
        "bytes of rows": f"{X.nbytes:,}",
        "memory": memory,
        "resident MB before and at most": (before["VmRSS"], peak["VmRSS"]),
        "of its own MB before and at most": (before["RssAnon"], peak["RssAnon"]),
        "passes": round(model.n_passes_, 2),
        "bytes of rows gone through": f"{int(model.n_passes_ * X.nbytes):,}",
        "gap": model.gap_,
        "processor s": round(spent, 1),
        "s": round(seconds, 1),
    }
    print("\n".join(f"{name:34s} {fact}" for name, fact in facts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--noise", default="10,5,2", help="the K of the paper, by commas")
    parser.add_argument("--dual", type=int, default=20, help="passes of LIBLINEAR's dual solver")
    parser.add_argument("--primal-tol", type=float, default=1e-4)
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--memory", default="200MB")
    parser.add_argument("--folder", help="where the rows are written; a temporary folder is made in it")
    args = parser.parse_args()
    args.rows = args.rows or (5_000_000 if args.disk else 1_000_000)
    if not args.disk:
        compare(args)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        write_rows(Path(name), args.rows, 5.0)
        process = multiprocessing.get_context("spawn").Process(target=fit_from_disk, args=(Path(name), args.memory))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
