"""Learn a metric: two classes that differ in one mixed direction, hidden among louder ones."""

import tempfile
from pathlib import Path

import numpy as np

import ooc_pf as pf


def accuracy(train: np.ndarray, test: np.ndarray, classes: np.ndarray, expected: np.ndarray) -> float:
    """Of the five nearest neighbours."""
    distances = ((test[:, None] - train[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :5]
    return float(np.mean((classes[nearest].mean(axis=1) > 0.5) == expected))


def main() -> pf.ITML_Supervised:
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, 600)
    hidden = rng.normal(size=(600, 6)) * [0.4, 1, 2, 2, 3, 3] + np.outer(classes, [2, 0, 0, 0, 0, 0])
    points = hidden @ rng.normal(size=(6, 6))
    train, test = slice(0, 400), slice(400, 600)

    model = pf.ITML_Supervised().fit(points[train], classes[train])
    learnt = model.transform(points)
    print(f"{400 * 399 // 2:,} pairs, {model.n_passes_} looks at all of them, relative gap {model.gap_:.1e}")
    for name, space in (("Euclidean", points), ("learnt", learnt)):
        print(f"5 nearest neighbours, {name}: {accuracy(space[train], space[test], classes[train], classes[test]):.3f}")
    draw(points, learnt, classes)
    return model


def draw(points: np.ndarray, learnt: np.ndarray, classes: np.ndarray) -> None:
    """Both spaces along their two widest directions, in a temporary file; nothing without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: pip install 'ooc_pf[plot]'")
        return
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, space, title in zip(figure.subplots(1, 2), (points, learnt), ("Euclidean", "learnt"), strict=True):
        centred = space - space.mean(axis=0)
        flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        axes.scatter(*flat.T, c=classes, s=8, cmap="coolwarm")
        axes.set_title(title)
    path = Path(tempfile.gettempdir()) / "metric_learning.png"
    figure.savefig(path, dpi=120)
    print(f"picture in {path}")


if __name__ == "__main__":
    main()
