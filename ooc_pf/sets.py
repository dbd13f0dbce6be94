"""Convex sets for `project_onto_sets`: each a record of a projection, and of the variables it is about.

A projection must be the one of the objective's own Bregman distance. Half-spaces, slabs and boxes have one for every
separable objective; the other ready-made sets are for the plain quadratic one (a simplex also for entropy).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .engine.rows import RowBlock
from .errors import InputError
from .general.program import RowProgram
from .kernels.bregman import ENTROPY, QUADRATIC
from .objectives import Objective
from .storage.vectors import Vector

Projection = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ConvexSet:
    """A convex set; made by the functions of this module.

    Attributes
    ----------
    name : str
        What messages call it.
    bind : Objective -> (array -> array)
        The projection for an objective over the variables of this set alone.
    on : int array or None
        The variables the set is about; None: all.
    """

    name: str
    bind: Callable[[Objective], Projection]
    on: np.ndarray | None = None

    def variables(self, size: int) -> np.ndarray:
        return np.arange(size) if self.on is None else self.on


def _on(on: Any) -> np.ndarray | None:
    if on is None:
        return None
    found = np.asarray(on)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(np.unique(found)) != len(found):
        raise InputError("on= must be a list of different variable numbers")
    return found.astype(np.int64)


def _numbers(name: str, values: Any) -> np.ndarray:
    found = np.asarray(values, np.float64)
    if np.isnan(found).any():
        raise InputError(f"{name} has an entry that is not a number")
    return found


def _plain(name: str, project: Projection) -> Callable[[Objective], Projection]:
    """For sets whose projection is known for equal weights only."""

    def bind(objective: Objective) -> Projection:
        even = objective.code == QUADRATIC and (objective.weight == objective.weight[:1]).all()
        if not even:
            raise InputError(
                f"{name} has no ready projection for the objective {objective.name}; it has for the quadratic one with "
                "equal weights. Give a projection of your own: sets.from_function(project)"
            )
        return project

    return bind


def from_function(project: Projection, *, on: Any = None, name: str = "function") -> ConvexSet:
    """A set given by your own projection, for the objective you use it with.

    ``project`` takes and returns the variables ``on``; None means all. ``name`` is for messages.
    """
    if not callable(project):
        raise InputError(f"a set is given by a function that projects onto it, found {type(project).__name__}")
    return ConvexSet(name, lambda objective: project, _on(on))


def halfspace(a: Any, b: float, *, on: Any = None) -> ConvexSet:
    """``<a, x> <= b``, for any separable objective.

    ``on`` names the variables it is about; None means all.
    """
    return slab(a, -np.inf, b, on=on)


def slab(a: Any, low: float, high: float, *, on: Any = None) -> ConvexSet:
    """``low <= <a, x> <= high``, for any separable objective.

    ``on`` names the variables it is about; None means all.
    """
    a, low, high = _numbers("a", a), float(low), float(high)
    if a.ndim != 1 or not np.any(a) or not np.isfinite(a).all():
        raise InputError("a must be a finite vector that is not zero")
    if not low <= high:
        raise InputError(f"a slab needs low <= high, found {low} and {high}")

    def bind(objective: Objective) -> Projection:
        def project(x: np.ndarray) -> np.ndarray:
            now = float(a @ x)
            if low <= now <= high:
                return x
            return _project_row(objective, x, a, high if now > high else low)

        return project

    return ConvexSet("slab", bind, _on(on))


def _project_row(objective: Objective, x: np.ndarray, a: np.ndarray, rhs: float) -> np.ndarray:
    used, none = np.flatnonzero(a).astype(np.int32), np.zeros(1)
    block = RowBlock.of(
        table=np.arange(len(a), dtype=np.int32),
        start=np.array([0, len(used)], np.int32),
        index=used,
        dual=none,
        key=np.zeros(1, np.uint64),
        coefficient=a[used],
        rhs=none + rhs,
        equality=np.ones(1, bool),
    )
    y = objective.gradient(x)
    RowProgram.of(objective).project(block, Vector.of(y))
    return objective.point(y)


def box(low: Any, high: Any, *, on: Any = None) -> ConvexSet:
    """``low <= x <= high`` in every entry, for any separable objective.

    ``on`` names the variables it is about; None means all.
    """
    low, high = _numbers("low", low), _numbers("high", high)
    if np.any(low > high):
        raise InputError("a box needs low <= high in every entry")

    def bind(objective: Objective) -> Projection:
        if objective.matrix is not None:
            raise InputError("a box has no ready projection for a quadratic objective with Q")
        return lambda x: np.clip(x, low, high)

    return ConvexSet("box", bind, _on(on))


def ball(center: Any, radius: float, *, on: Any = None) -> ConvexSet:
    """``|x - center| <= radius``.

    ``on`` names the variables it is about; None means all.
    """
    center, radius = _numbers("center", center), float(radius)
    if not radius >= 0:
        raise InputError(f"radius must not be negative, found {radius}")

    def project(x: np.ndarray) -> np.ndarray:
        away = x - center
        length = float(np.linalg.norm(away))
        return x if length <= radius else center + radius / length * away

    return ConvexSet("ball", _plain("a ball", project), _on(on))


def second_order_cone(*, on: Any = None) -> ConvexSet:
    """``|x_1..| <= x_0``, the first variable being the height.

    ``on`` names the variables it is about; None means all.
    """

    def project(x: np.ndarray) -> np.ndarray:
        height, length = float(x[0]), float(np.linalg.norm(x[1:]))
        if length <= height:
            return x
        if length <= -height:
            return np.zeros_like(x)
        middle = 0.5 * (height + length)
        return np.concatenate(([middle], middle / length * x[1:]))

    return ConvexSet("second_order_cone", _plain("a second-order cone", project), _on(on))


def psd_cone(side: int, *, on: Any = None) -> ConvexSet:
    """Symmetric positive semidefinite ``side`` by ``side`` matrices, all entries as variables, row by row.

    ``on`` names the variables it is about; None means all.
    """

    def project(x: np.ndarray) -> np.ndarray:
        if x.size != side * side:
            raise InputError(f"a positive semidefinite {side} by {side} matrix has {side * side} entries, not {x.size}")
        matrix = x.reshape(side, side)
        value, vector = np.linalg.eigh(0.5 * (matrix + matrix.T))
        raised = (vector * np.maximum(value, 0.0)) @ vector.T
        return (0.5 * (raised + raised.T)).ravel()

    return ConvexSet("psd_cone", _plain("the positive semidefinite cone", project), _on(on))


def simplex(total: float = 1.0, *, on: Any = None) -> ConvexSet:
    """``x >= 0`` with sum ``total``; for entropy with equal weights as well.

    ``on`` names the variables it is about; None means all.
    """
    total = float(total)
    if not 0 < total < np.inf:
        raise InputError(f"total must be positive, found {total}")

    def project(x: np.ndarray) -> np.ndarray:
        ordered = np.sort(x)[::-1]
        excess = (np.cumsum(ordered) - total) / np.arange(1, len(x) + 1)
        cut = excess[np.flatnonzero(ordered > excess)[-1]]
        return np.maximum(x - cut, 0.0)

    def bind(objective: Objective) -> Projection:
        if objective.code == ENTROPY and (objective.weight == objective.weight[:1]).all():
            return lambda x: x * (total / float(x.sum()))
        return _plain("a simplex", project)(objective)

    return ConvexSet("simplex", bind, _on(on))
