"""The remembered pairs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BudgetError
from ..storage.arrays import read_array, write_array
from ..storage.records import require
from . import settings
from .inputs import Costs

KEPT = ("left", "right", "cost", "p", "member")


class PairStore:
    """Remembered pairs with their multipliers.

    Parameters
    ----------
    costs : Costs
        Of all pairs.
    most : int or None
        How many pairs fit the memory.

    Attributes
    ----------
    left, right : int64[pairs]
        Nodes: rows, and columns numbered after the rows.
    cost, p : float64[pairs]
        Multipliers: gamma times the plan.
    member : bool[pairs]
        Whether the pair is in the forest.
    added : int
        Pairs taken up so far.
    """

    def __init__(self, costs: Costs, most: int | None = None):
        self.left = self.right = np.empty(0, np.int64)
        self.cost, self.p, self.member = np.empty(0), np.empty(0), np.empty(0, np.bool_)
        self._costs, self._shape, self._most, self.added = costs, costs.shape, most, 0

    def __len__(self) -> int:
        return len(self.left)

    def keys(self) -> np.ndarray:
        return self.left * self._shape[1] + (self.right - self._shape[0])

    def fresh(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Which of these pairs, rows and columns, are not remembered."""
        held, key = np.sort(self.keys()), left * self._shape[1] + right
        at = np.searchsorted(held, key)
        return np.append(held, -1)[at] != key

    def append(self, rows: Any) -> int:
        """Take up pairs that are not remembered: rows, columns and costs."""
        left, right, cost = rows
        if self._most is not None and len(self) + len(left) > self._most:
            raise BudgetError(
                f"{len(self) + len(left):,} pairs are to be remembered and {self._most:,} fit memory=; allow "
                f"{settings.PAIR_BYTES:,} bytes a pair"
            )
        self.left = np.concatenate([self.left, left])
        self.right = np.concatenate([self.right, right + self._shape[0]])
        self.cost = np.concatenate([self.cost, cost])
        self.p = np.concatenate([self.p, np.zeros(len(left))])
        self.member = np.concatenate([self.member, np.zeros(len(left), np.bool_)])
        self.added += len(left)
        return len(left)

    def keep(self, kept: np.ndarray) -> int:
        """Forget all other pairs; returns how many."""
        for name in KEPT:
            setattr(self, name, getattr(self, name)[kept])
        return int(np.sum(~kept))

    def forget(self) -> int:
        return self.keep(self.member | (self.p > 0.0))

    def slack(self, z: np.ndarray) -> np.ndarray:
        return self.cost - (z[self.left] + z[self.right])

    def blocks(self) -> Iterator[Any]:
        return iter(())

    def write(self, group: Path) -> None:
        for name in KEPT:
            write_array(group, name, getattr(self, name))
        write_array(group, "added", np.array([self.added]))

    def read(self, group: Path) -> None:
        """Take up what `write` wrote; refuses anything else, and costs that are not those of the pairs."""
        for name in KEPT:
            setattr(self, name, read_array(group, name, dtype=getattr(self, name).dtype))
        added = read_array(group, "added", dtype=np.int64)
        n, m = self._shape
        same = len({len(getattr(self, name)) for name in KEPT}) == 1 == len(added)
        inside = same and (self.left >= 0).all() and (self.left < n).all() and (self.right >= n).all()
        sound = inside and (self.right < n + m).all() and np.isfinite(self.cost).all() and (self.p >= 0.0).all()
        require(bool(sound), group, "the pairs are not what a run writes")
        require(len(np.unique(self.keys())) == len(self), group, "a pair is remembered twice")
        cost = self._costs.of_pairs(self.left, self.right - n)
        near = np.allclose(self.cost, cost, rtol=settings.SAME_COST, atol=0.0)
        require(near, group, "the costs are not those of the pairs")
        self.added = int(added[0])
