"""Metric learning on labelled points: passes and gaps, accuracy of nearest neighbours, and speed of projections.

    python tools/bench/itml.py FOLDER [--names banana,ionosphere] [--splits 5] [--ablation] [--metric-learn FILE]
    python tools/bench/itml.py FOLDER --opponent > FILE      in an environment with metric-learn (and no ooc_pf)

FOLDER has KEEL files NAME.dat.gz: header lines that begin with @, then rows of numbers with the class at the end. Every
split takes a seeded 80 percent of the rows of each class to learn from; accuracy is that of the five nearest
neighbours on the rest, mean and standard deviation over the splits. Times are of the processor.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

NAMES = "ionosphere,banana,spambase,penbased"
COUNTS = (None, 100_000, 10_000, 1_000, "20c^2")
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt") as lines:
        rows = [line.split(",") for line in map(str.strip, lines) if line and not line.startswith("@")]
    classes = np.unique([row[-1].strip() for row in rows], return_inverse=True)[1]
    return np.array([row[:-1] for row in rows], float), classes


def splits(x: np.ndarray, y: np.ndarray, count: int) -> Iterator[Split]:
    for seed in range(count):
        a, b, train, test = train_test_split(x, y, test_size=0.2, random_state=seed, stratify=y)
        yield a, b, train, test


def standardised(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = np.where(a.std(axis=0) > 0, a.std(axis=0), 1.0)
    return (a - a.mean(axis=0)) / spread, (b - a.mean(axis=0)) / spread


def accuracy(a: np.ndarray, b: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    return 100.0 * KNeighborsClassifier(5).fit(a, train).score(b, test)


def told(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) if len(values) > 1 else 0.0:.1f}"


def over_splits(data: list[Split], measure: Callable[[Split], float]) -> str:
    return told([measure(split) for split in data])


def solve(name: str, split: Split, gamma: float) -> None:
    """One fit of all pairs, with its counts."""
    import ooc_pf as pf

    a, _, train, _ = split
    pf.ITML_Supervised().fit(a[:50], np.arange(50) % 2)  # compile
    began, wall = time.process_time(), time.perf_counter()
    model = pf.ITML_Supervised(gamma).fit(a, train)
    spent, wall = time.process_time() - began, time.perf_counter() - wall
    n, d = a.shape
    print(
        f"| {name} | {n:,} x {d} | {n * (n - 1) // 2:,} | {model.n_dropped_:,} | {gamma:g} | {model.n_passes_} | "
        f"{model.gap_:.1e} | {model.objective_:.8g} | {spent:.2f} s | {wall:.2f} s | {model.status_} |",
        flush=True,
    )


def compare(name: str, data: list[Split], opponent: dict[str, list[float]] | None) -> None:
    """Nearest neighbours under several metrics."""
    import ooc_pf as pf

    def learnt(split: Split) -> float:
        a, b, train, test = split
        model = pf.ITML_Supervised().fit(a, train)
        return accuracy(model.transform(a), model.transform(b), train, test)

    row = [
        over_splits(data, lambda split: accuracy(*split)),
        over_splits(data, lambda split: accuracy(*standardised(*split[:2]), *split[2:])),
        over_splits(data, learnt),
    ]
    row += [told(opponent[kind]) for kind in ("raw", "standardised")] if opponent else ["", ""]
    print(f"| {name}, {len(data)} splits | {' | '.join(row)} |", flush=True)


def ablate(name: str, data: list[Split]) -> None:
    """The same with fewer pairs, drawn at random."""
    import ooc_pf as pf

    row = []
    for count in COUNTS:
        classes = len(np.unique(data[0][2]))
        half = None if count is None else (20 * classes**2 if isinstance(count, str) else count) // 2
        found = []
        for seed, (a, b, train, test) in enumerate(data):
            model = pf.ITML_Supervised(n_constraints=half, random_state=seed).fit(a, train)
            found.append(accuracy(model.transform(a), model.transform(b), train, test))
        row.append(told(found))
    print(f"| {name} | {' | '.join(row)} |", flush=True)


def project(d: int, pairs: int = 20_000, sweeps: int = 5) -> None:
    """Projections a second, one thread."""
    from ooc_pf.kernels.itml import Terms, project_pairs

    rng = np.random.default_rng(0)
    differences, sign = rng.normal(size=(pairs, d)), rng.choice(np.array([-1, 1], np.int8), pairs)
    terms, stop = Terms(0.5 * d, 3.0 * d, 10.0 * d / pairs, 10.0 * d / pairs), np.zeros(1, np.uint8)
    project_pairs(np.eye(d), differences[:1], sign[:1], np.zeros(1), terms, stop)
    matrix, dual, done = np.eye(d), np.zeros(pairs), 0
    began = time.process_time()
    for _ in range(sweeps):
        done += project_pairs(matrix, differences, sign, dual, terms, stop)[0]
    spent = time.process_time() - began
    print(f"| {d} | {pairs * sweeps / spent / 1e6:.2f} | {done / spent / 1e6:.2f} |", flush=True)


def run_opponent(folder: Path, names: list[str], count: int) -> None:
    """metric-learn's ITML_Supervised as it comes, on the same splits."""
    import warnings

    from metric_learn import ITML_Supervised

    warnings.simplefilter("ignore")
    found = {}
    for name in names:
        found[name] = {"raw": [], "standardised": [], "seconds": []}
        for a, b, train, test in splits(*load(folder / f"{name}.dat.gz"), count):
            for kind, (left, right) in (("raw", (a, b)), ("standardised", standardised(a, b))):
                began = time.process_time()
                model = ITML_Supervised(random_state=0).fit(left, train)
                found[name]["seconds"].append(time.process_time() - began)
                found[name][kind].append(accuracy(model.transform(left), model.transform(right), train, test))
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--gammas", default="10", help="weights for the table of passes")
    parser.add_argument("--ablation", action="store_true", help="fewer pairs as well")
    parser.add_argument("--opponent", action="store_true", help="run metric-learn instead, and print JSON")
    parser.add_argument("--metric-learn", type=Path, help="what --opponent printed")
    args = parser.parse_args()
    names = args.names.split(",")
    if args.opponent:
        run_opponent(args.folder, names, args.splits)
        return
    data = {name: list(splits(*load(args.folder / f"{name}.dat.gz"), args.splits)) for name in names}
    opponent = json.loads(args.metric_learn.read_text()) if args.metric_learn else {}
    print("| | points | pairs | of equal points | gamma | passes | gap | objective | processor | wall | status |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        for gamma in map(float, args.gammas.split(",")):
            solve(name, data[name][0], gamma)
    print("\n| | Euclidean | standardised | learnt, all pairs | metric-learn | metric-learn, standardised |")
    print("|---|---|---|---|---|---|")
    for name in names:
        compare(name, data[name], opponent.get(name))
    if args.ablation:
        print(f"\n| | {' | '.join(str(count or 'all pairs') for count in COUNTS)} |\n|---|---|---|---|---|---|")
        for name in names:
            ablate(name, data[name])
    print("\n| d | pairs looked at, million a second | of which changed something |\n|---|---|---|")
    for d in (2, 16, 57):
        project(d)


if __name__ == "__main__":
    main()
