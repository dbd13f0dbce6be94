"""Costs between points: boxes let a search skip most pairs, and none are held."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..kernels.transport_newton import balance_points
from ..kernels.transport_search import FAN, LEAF, Best, Side, collect_points, merge_best, search_points
from ..storage.arrays import digest
from . import settings
from .crew import Crew


@dataclass(frozen=True)
class Found:
    """Pairs with the largest excesses, sorted by row and column, each once.

    Attributes
    ----------
    left, right : int64[pairs]
        Rows and columns.
    worst : float
        No pair has a larger excess, looked at or skipped.
    looked : int
        How many pairs were looked at.
    """

    left: np.ndarray
    right: np.ndarray
    worst: float
    looked: int

    @classmethod
    def of(cls, by_row: Best, by_column: Best, worst: float, looked: int) -> "Found":
        """The pairs of rows and of columns together."""
        row, at = np.nonzero(by_row.excess > -np.inf)
        column, at2 = np.nonzero(by_column.excess > -np.inf)
        left = np.concatenate([row, by_column.other[column, at2]])
        right = np.concatenate([by_row.other[row, at], column])
        left, right = unique_pairs(left, right, len(by_column.excess))
        return cls(left, right, worst, looked)


class Support(NamedTuple):
    """All pairs with an excess above zero: rows, columns, excesses; and how many pairs were looked at."""

    left: np.ndarray
    right: np.ndarray
    excess: np.ndarray
    looked: int


def unique_pairs(left: np.ndarray, right: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Each pair once, sorted by row and column."""
    key = np.sort(left * columns + right)
    key = key[np.append(True, key[1:] != key[:-1])[: len(key)]]
    return key // columns, key % columns


def no_best(lines: int, k: int) -> Best:
    return Best(np.full((lines, k), -np.inf), np.zeros((lines, k), np.int64))


def tree_order(points: np.ndarray) -> np.ndarray:
    """An order of points that keeps neighbours together: a kd-tree whose leaves are blocks of `LEAF`.

    Parts are halved, at a multiple of the leaf, along their longest side; all parts of a level at once.
    """
    n = len(points)
    order = np.arange(n)
    if points.shape[1] == 1:
        return np.argsort(points[:, 0], kind="stable")
    size = LEAF
    while size < n:
        size *= 2
    position = np.arange(n)
    while size > LEAF:
        part = position // size
        starts = np.arange(0, n, size)
        now = points[order]
        spread = np.maximum.reduceat(now, starts) - np.minimum.reduceat(now, starts)
        key = now[position, spread.argmax(axis=1)[part]]
        order = order[np.lexsort((key, part))]
        size //= 2
    return order


def lay_out_side(points: np.ndarray) -> Side:
    """Points, already in order, with the boxes of their blocks and groups."""
    starts = np.arange(0, len(points), LEAF)
    low, high = np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)
    groups = np.arange(0, len(low), FAN)
    return Side(
        np.ascontiguousarray(points.T), low, high,
        np.minimum.reduceat(low, groups), np.maximum.reduceat(high, groups),
    )  # fmt: skip


@dataclass(frozen=True)
class PointCosts:
    """Distances, or their squares, between two sets of points in an order of their own.

    Attributes
    ----------
    x, y : float64[rows, d], float64[columns, d]
    root : bool
        Costs are distances; else their squares.
    """

    x: np.ndarray
    y: np.ndarray
    root: bool

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.y)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        return lay_out_side(self.x), lay_out_side(self.y)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """No pair costs less than the first, none more than the second: the boxes of all points tell."""
        low, high, low2, high2 = self.x.min(axis=0), self.x.max(axis=0), self.y.min(axis=0), self.y.max(axis=0)
        near = np.maximum(np.maximum(low - high2, low2 - high), 0.0)
        far = np.maximum(high - low2, high2 - low)
        least, most = float(np.sum(near**2)), float(np.sum(far**2))
        return (math.sqrt(least), math.sqrt(most)) if self.root else (least, most)

    def fingerprint(self) -> str:
        """Recognises the same points later."""
        return digest(self.x, self.y, np.array([self.root]))

    def of_pairs(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The costs of single pairs, to the same bits as in a search."""
        total = np.zeros(len(left))
        for k in range(self.x.shape[1]):
            apart = self.x[left, k] - self.y[right, k]
            total += apart * apart
        return np.sqrt(total) if self.root else total

    def block(self, rows: slice, columns: slice) -> np.ndarray:
        """The costs of a block of pairs."""
        total = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for k in range(self.x.shape[1]):
            total += np.subtract.outer(self.x[rows, k], self.y[columns, k]) ** 2
        return np.sqrt(total) if self.root else total

    def search(self, f: np.ndarray, h: np.ndarray, k: int, limit: float, crew: Crew) -> Found:
        """The k pairs with the largest excess above ``limit`` of every row and every column."""
        rows, columns = self.sides
        groups = len(rows.group_low)
        stride = -(-groups // settings.STRIPES)
        by_row, by_column, worst, looked = no_best(len(f), k), no_best(len(h), k), -np.inf, 0

        def look(first: int) -> tuple[Best, Any]:
            # Side by side each part has its own list of the columns' best; one after the other they share it.
            own = by_column if crew.threads is None else no_best(len(h), k)
            part = first, min(first + stride, groups)
            return own, search_points(part, rows, columns, f, h, self.root, limit, by_row, own, crew.stop)

        for best, (largest, skipped, count) in crew.each(look, range(0, groups, stride)):
            if best is not by_column:
                merge_best(by_column, best)
            worst, looked = max(worst, largest, skipped), looked + count
        crew.check()
        return Found.of(by_row, by_column, worst, looked)

    def support(self, f: np.ndarray, h: np.ndarray, crew: Crew) -> Support:
        """All pairs with an excess above zero."""
        rows, columns = self.sides
        groups = len(rows.group_low)
        stride = -(-groups // settings.STRIPES)

        def look(first: int) -> Any:
            return collect_points((first, min(first + stride, groups)), rows, columns, f, h, self.root, crew.stop)

        left, right, excess, looked = zip(*crew.each(look, range(0, groups, stride)), strict=True)
        crew.check()
        return Support(np.concatenate(left), np.concatenate(right), np.concatenate(excess), sum(looked))

    def every(self, stride: int) -> "PointCosts":
        """The costs of one point in ``stride``."""
        return PointCosts(self.x[::stride].copy(), self.y[::stride].copy(), self.root)

    def balance(
        self, stride: int, f: np.ndarray, h: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Potentials of all points from those of one in ``stride``.

        ``rows`` and ``columns`` are the sums of excesses they need.
        """
        return (
            balance_points(self.x, self.y[::stride].copy(), h, rows, self.root),
            balance_points(self.y, self.x[::stride].copy(), f, columns, self.root),
        )

    def balance_lines(self, side: int, lines: np.ndarray, others: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Potentials of some rows (``side`` 0) or columns (1) alone, given those of the other side, as in `balance`."""
        own, other = (self.x, self.y) if side == 0 else (self.y, self.x)
        return balance_points(own[lines], other, others, need, self.root)
