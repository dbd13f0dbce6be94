"""A transport plan, as it is while a problem is worked on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .inputs import Task
from .store import PairStore


@dataclass(frozen=True)
class Transport:
    """What is moved along each pair, and what that leaves undone.

    Attributes
    ----------
    left, right : int64[pairs]
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
    def of(cls, store: PairStore, unit: float, a: np.ndarray, b: np.ndarray) -> "Transport":
        """The plan of multipliers times ``unit``."""
        used = store.p > 0.0
        left, right, mass = store.left[used], store.right[used] - len(a), store.p[used] * unit
        row_rest = a - np.bincount(left, mass, len(a))
        column_rest = b - np.bincount(right, mass, len(b))
        return cls(left, right, mass, float(store.cost[used] @ mass), row_rest, column_rest)

    @property
    def missing(self) -> float:
        """Mass that is not where it should be, in rows and columns."""
        return float(np.abs(self.row_rest).sum() + np.abs(self.column_rest).sum())

    def close(self) -> None:
        """Nothing is held."""

    def matrix(self, task: Task) -> sparse.csr_array:
        """The plan over rows and columns as they were given."""
        place = task.rows[self.left], task.columns[self.right]
        return sparse.coo_array((self.mass, place), shape=(len(task.a), len(task.b))).tocsr()

    def errors(self, task: Task) -> tuple[float, float]:
        """The part of the mass of rows, and of columns, that is not where it should be."""
        return (
            float(np.abs(self.row_rest).sum() / task.a.sum()),
            float(np.abs(self.column_rest).sum() / task.b.sum()),
        )


def made_of(task: Task, plan: Transport, z: np.ndarray | None) -> dict[str, Any]:
    """What a result has beside its certificate, in the order of the input."""
    n, m = len(task.a), len(task.b)
    f, h = np.zeros(n), np.zeros(m)
    if z is not None:
        f[task.rows], h[task.columns] = z[:n], z[n:]
    row_error, column_error = plan.errors(task)
    return {"plan": plan.matrix(task), "potentials": (f, h), "row_error": row_error, "column_error": column_error}


def northwest_corner(task: Task) -> Transport:
    """A plan with the right marginals: rows and columns are used up in turn."""
    ends_a, ends_b = np.cumsum(task.a), np.cumsum(task.b)
    ends = np.unique(np.concatenate([[0.0], ends_a, ends_b]))
    middle, mass = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
    left = np.minimum(np.searchsorted(ends_a, middle), len(task.a) - 1)
    right = np.minimum(np.searchsorted(ends_b, middle), len(task.b) - 1)
    row_rest = task.a - np.bincount(left, mass, len(task.a))
    column_rest = task.b - np.bincount(right, mass, len(task.b))
    return Transport(left, right, mass, float(task.costs.of_pairs(left, right) @ mass), row_rest, column_rest)
