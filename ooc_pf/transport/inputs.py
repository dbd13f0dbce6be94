"""What may be handed over to transport: masses, and costs in one of several forms."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..errors import InputError
from . import settings
from .blocks import BlockCosts
from .costs import PointCosts, tree_order

METRICS = ("sqeuclidean", "euclidean")
Costs = PointCosts | BlockCosts


@dataclass(frozen=True)
class Task:
    """A transport problem in the order it is worked on.

    Attributes
    ----------
    a, b : float64[rows], float64[columns]
    costs : PointCosts or BlockCosts
    rows, columns : int64[rows], int64[columns]
        Where each row and column was in the input.
    """

    a: np.ndarray
    b: np.ndarray
    costs: Costs
    rows: np.ndarray
    columns: np.ndarray

    @property
    def spread(self) -> float:
        """No two costs differ by more."""
        least, most = self.costs.ends
        return most - least


def read_task(a: Any, b: Any, cost: Any, metric: str) -> Task:
    """Check the input and put points in an order that keeps neighbours together."""
    a, b = read_masses("a", a), read_masses("b", b)
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, found {metric!r}")
    if isinstance(cost, tuple | list) and len(cost) == 2:
        x, y = read_points("X", cost[0], "a", len(a)), read_points("Y", cost[1], "b", len(b))
        if x.shape[1] != y.shape[1]:
            raise InputError(f"X has points of {x.shape[1]} coordinates, Y of {y.shape[1]}")
        rows, columns = tree_order(x), tree_order(y)
        costs: Costs = PointCosts(x[rows], y[columns], metric == "euclidean")
    else:
        shape = len(a), len(b)
        costs = BlockCosts.of(read_blocks(cost, shape), block_sides(cost), shape, function=callable(cost))
        rows, columns = np.arange(len(a)), np.arange(len(b))
    return Task(a[rows], b[columns], costs, rows, columns)


def read_masses(name: str, masses: Any) -> np.ndarray:
    """A vector of masses: finite, none negative, not all zero."""
    found = np.asarray(masses)
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        raise InputError(f"{name} must be a vector of masses, found shape {list(found.shape)} of {found.dtype}")
    if not len(found):
        raise InputError(f"{name} is empty; it must have one mass for each point")
    found = found.astype(np.float64)
    _refuse_where(name, found, ~np.isfinite(found), "masses must be finite")
    _refuse_where(name, found, found < 0.0, "masses must not be negative")
    if not found.any():
        raise InputError(f"{name} has no support: all of its {len(found)} masses are zero")
    return found


def _refuse_where(name: str, found: np.ndarray, wrong: np.ndarray, why: str) -> None:
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        place = ", ".join(map(str, at))
        raise InputError(f"{name}[{place}] is {found[at]}; {why}")


def read_points(name: str, points: Any, masses: str, count: int) -> np.ndarray:
    found = np.asarray(points)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] == 0 or found.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be [points, coordinates], found shape {list(found.shape)} of {found.dtype}; "
            "cost is (X, Y), a matrix, or a function of rows and columns"
        )
    if len(found) != count:
        raise InputError(f"{name} has {len(found)} points, but {masses} has {count} masses")
    found = found.astype(np.float64)
    _refuse_where(name, found, ~np.isfinite(found), "coordinates must be finite")
    return found


def read_blocks(cost: Any, shape: tuple[int, int]) -> Callable[[slice, slice], np.ndarray]:
    """How to read a block of costs, checked, from a function or an array of any kind that can be sliced."""
    if not callable(cost):
        cost = cost if hasattr(cost, "shape") else np.asarray(cost)
        if tuple(cost.shape) != shape:
            raise InputError(
                f"cost has shape {list(cost.shape)}, but a and b have {shape[0]} and {shape[1]} masses; "
                "give a matrix of that shape, points (X, Y), or a function of rows and columns"
            )

    def read(rows: slice, columns: slice) -> np.ndarray:
        if callable(cost):
            block = np.asarray(cost(*(np.arange(part.start, part.stop, part.step or 1) for part in (rows, columns))))
        else:
            block = np.asarray(cost[rows, columns])
        expected = len(range(*rows.indices(shape[0]))), len(range(*columns.indices(shape[1])))
        if block.shape != expected or block.dtype.kind not in "fiub":
            raise InputError(
                f"cost(rows, columns) must return {expected[0]} x {expected[1]} numbers for so many rows and columns; "
                f"found shape {list(block.shape)} of {block.dtype}"
            )
        block = np.ascontiguousarray(block, np.float64)
        if not np.isfinite(block).all():
            i, j = np.argwhere(~np.isfinite(block))[0]
            row, column = rows.start + i * (rows.step or 1), columns.start + j * (columns.step or 1)
            raise InputError(f"cost[{row}, {column}] is {block[i, j]}; costs must be finite")
        return block

    return read


def block_sides(cost: Any) -> tuple[int, int]:
    """Rows and columns read at a time: whole chunks where there are some of a fitting size."""
    chunks = getattr(cost, "chunks", None)
    sides = chunks if isinstance(chunks, tuple) and len(chunks) == 2 else (settings.BLOCK, settings.BLOCK)
    return tuple(min(max(int(side), settings.LEAST_BLOCK), settings.LARGEST_BLOCK) for side in sides)  # type: ignore[return-value]


def read_weight(name: str, value: Any, what: str) -> float:
    """gamma or reg: a positive number."""
    if value is None:
        raise InputError(f"{name} is needed: {what}")
    if not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
        raise InputError(f"{name} must be a positive number, found {value!r}")
    return float(value)


def check_equal_masses(task: Task) -> None:
    """Refuse marginals that no plan has."""
    total, other = float(task.a.sum()), float(task.b.sum())
    if abs(total - other) > settings.SAME_MASS * total:
        raise InputError(
            f"a sums to {total:.17g} and b to {other:.17g}; exact marginals need equal masses: scale one of them, as "
            'in b * (a.sum() / b.sum()), or use marginals="soft"'
        )
