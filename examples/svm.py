"""A linear classifier on rows that stay on disk, with a proof of how good it is; and a picture of how it got there."""

import contextlib
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import ooc_pf as pf

PICTURE = Path(tempfile.gettempdir()) / "svm.png"


def write_rows(path: Path, rows: int, columns: int) -> np.ndarray:
    """Rows in a file, with labels that a plane separates but for noise in the features."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float64, (rows, columns))
    X[:] = rng.normal(0.0, 2.0, (rows, columns))
    y = X @ rng.normal(size=columns) > 0.0
    X += rng.normal(size=(rows, columns))
    X.flush()
    return y


def draw(history: list[dict]) -> None:
    """The proven gap after each complete pass, if matplotlib is installed."""
    with contextlib.suppress(ImportError):
        from matplotlib.figure import Figure

        passes = [record for record in history if "gap" in record]
        figure = Figure(figsize=(6, 4))
        axes = figure.subplots()
        axes.semilogy(range(1, len(passes) + 1), [max(record["gap"], 1e-16) for record in passes], "o-")
        axes.set(xlabel="complete passes over the rows", ylabel="relative gap", title="Newton from a sampled start")
        figure.savefig(PICTURE)
        print(f"picture in {PICTURE}")


def main() -> SimpleNamespace:
    with tempfile.TemporaryDirectory() as folder:
        y = write_rows(Path(folder) / "X.npy", 50_000, 20)
        X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        model = pf.LinearSVM(C=100.0, memory="50MB").fit(X, y)
        fast = pf.LinearSVM(C=100.0, method="stochastic").fit(X, y)
        print(f"{model.status_}: objective {model.objective_:.6f}, proven to be at least {model.lower_bound_:.6f}")
        print(f"{model.n_passes_:.1f} passes over the file; {model.score(X, y):.2%} of the rows on their side")
        print(f"stochastic projections, nothing proven: {fast.score(X, y):.2%}")
    draw(model.history_)
    return SimpleNamespace(converged=model.status_ == "converged", model=model)


if __name__ == "__main__":
    main()
