"""A transport plan, as it is while a problem is worked on, and as it is stored."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..storage.records import require
from ..storage.vectors import Vector
from .inputs import Task
from .store import PairStore


@dataclass(frozen=True)
class Transport:
    """What is moved along each pair, and what that leaves undone.

    Attributes
    ----------
    left, right : integers[pairs]
        Rows and columns.
    mass : float64[pairs]
        Not negative.
    cost : float
        <C, P>.
    row_rest, column_rest : float64[rows], float64[columns]
        a - P1 and b - P'1.
    """

    left: np.ndarray
    right: np.ndarray
    mass: np.ndarray
    cost: float
    row_rest: np.ndarray
    column_rest: np.ndarray

    @classmethod
    def of(cls, task: Task, left: np.ndarray, right: np.ndarray, mass: np.ndarray, cost: np.ndarray) -> "Transport":
        """A plan with these masses, on pairs with these costs."""
        row_rest = task.a - np.bincount(left, mass, len(task.a))
        column_rest = task.b - np.bincount(right, mass, len(task.b))
        return cls(left, right, mass, float(cost @ mass), row_rest, column_rest)

    @classmethod
    def of_store(cls, task: Task, store: PairStore, unit: float) -> "Transport":
        """The plan of multipliers times ``unit``."""
        used = store.p > 0.0
        left, right = store.left[used], store.right[used] - len(task.a)
        return cls.of(task, left, right, store.p[used] * unit, store.cost[used])

    @property
    def missing(self) -> float:
        """Mass that is not where it should be, in rows and columns."""
        return float(np.abs(self.row_rest).sum() + np.abs(self.column_rest).sum())

    def pack(self) -> np.ndarray:
        """Rows, columns and masses in one vector."""
        return np.concatenate([self.left, self.right, self.mass]).astype(np.float64)

    def shown(self) -> Vector:
        return Vector.of(self.pack())


def unpack(task: Task, packed: np.ndarray, where: Any = "the plan") -> Transport:
    """The plan of a vector that `Transport.pack` made."""
    require(len(packed) % 3 == 0 and bool(np.isfinite(packed).all()), where, "x is not what a run writes")
    left, right, mass = np.split(packed, 3)
    whole = [np.array_equal(np.floor(side), side) for side in (left, right)]
    ends = [(side >= 0.0).all() and (side < n).all() for side, n in zip((left, right), task.costs.shape, strict=True)]
    require(all(whole) and all(ends) and bool((mass >= 0.0).all()), where, "x is not what a run writes")
    left, right = left.astype(np.int64), right.astype(np.int64)
    return Transport.of(task, left, right, mass, task.costs.of_pairs(left, right))


def split_answer(task: Task, x: np.ndarray, where: Any = "the answer") -> tuple[np.ndarray, Transport]:
    """Potentials and plan of the vector that a run shows; refuses what no run writes."""
    nodes = sum(task.costs.shape)
    require(len(x) >= nodes and bool(np.isfinite(x[:nodes]).all()), where, "x has not one potential for each point")
    return x[:nodes], unpack(task, x[nodes:], where)


def made_of(task: Task, plan: Transport, z: np.ndarray) -> dict[str, Any]:
    """What a result has beside its certificate, in the order of the input."""
    f, h = np.empty(len(task.a)), np.empty(len(task.b))
    f[task.rows], h[task.columns] = z[: len(f)], z[len(f) :]
    place = task.rows[plan.left], task.columns[plan.right]
    return {
        "plan": sparse.coo_array((plan.mass, place), shape=task.costs.shape).tocsr(),
        "potentials": (f, h),
        "row_error": float(np.abs(plan.row_rest).sum() / task.a.sum()),
        "column_error": float(np.abs(plan.column_rest).sum() / task.b.sum()),
    }


def northwest_corner(task: Task) -> Transport:
    """A plan with the right marginals: rows and columns are used up in turn."""
    left, right, mass = staircase(task.a, task.b)
    return Transport.of(task, left, right, mass, task.costs.of_pairs(left, right))


def staircase(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs, sorted and each once, and masses that use up a and b in turn, until one of them is used up."""
    ends_a, ends_b = np.cumsum(a), np.cumsum(b)
    ends = np.unique(np.concatenate([[0.0], ends_a, ends_b]))
    ends = ends[ends <= min(ends_a[-1], ends_b[-1])]
    return np.searchsorted(ends_a, ends[1:]), np.searchsorted(ends_b, ends[1:]), np.diff(ends)
