"""The weights of a support vector machine in one file."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..storage.arrays import read_array, read_labels
from ..storage.files import replacing
from ..storage.workspace import Workspace
from ..svm.files import held_source, holds_rows

INTERCEPT = "(intercept)"


class Weights(NamedTuple):
    """What a fit found.

    Attributes
    ----------
    points : float64[classes, features], with an intercept one more column
    classes : array
        All classes; of two, the weights are those of the second against the first.
    features : list of str
        Names of the features, or positions from 1.
    """

    points: np.ndarray
    classes: np.ndarray
    features: list[str]


def read_weights(place: Workspace) -> Weights:
    """The weights in a workspace; where it does not know names they are numbers from 0, or positions from 1."""
    points = read_array(place.outcome, "x", dtype=np.float64)
    count = read_array(place.generation, "lower").shape[0]
    points = points.reshape(count, -1)
    if holds_rows(place):
        return Weights(points, read_labels(place.edges), held_source(place)["features"])
    width = points.shape[1] - place.manifest["problem"]["options"]["fit_intercept"]
    return Weights(points, np.arange(max(count, 2)), [str(k + 1) for k in range(width)])


def write_weights(weights: Weights, target: Path, format: str, note: str | None = None) -> int:
    """Write ``class, feature, weight``; to npz arrays ``coef``, ``intercept``, ``classes`` and ``features``.

    Returns how many weights were written.
    """
    points, classes, features = weights
    d = len(features)
    positive = classes[1:] if len(points) == 1 else classes
    with replacing(target, ".partial") as file:
        if format == "npz":
            intercept = points[:, d] if points.shape[1] > d else np.zeros(len(points))
            extra: dict[str, Any] = {"note": np.array(note)} if note else {}
            names = np.array([str(name) for name in classes]) if classes.dtype.kind == "O" else classes
            np.savez(file, coef=points[:, :d], intercept=intercept, classes=names, features=np.array(features), **extra)
        else:
            names = [*features, INTERCEPT][: points.shape[1]]
            table = pa.table(
                {
                    "class": [str(name) for name in np.repeat(positive, len(names))],
                    "feature": names * len(points),
                    "weight": points.ravel(),
                }
            )
            write = pa.csv.write_csv if format == "csv" else pa.parquet.write_table
            write(table, file)
    return points.size
