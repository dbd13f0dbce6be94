"""Costs that are read by blocks, from a function or a matrix in memory or on disk."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels.transport_newton import balance_rows, collect_block
from ..kernels.transport_search import Best, search_block
from . import settings
from .costs import Found, Support, no_best
from .crew import Crew

Read = Callable[[slice, slice], np.ndarray]


@dataclass(frozen=True)
class BlockCosts:
    """A matrix of costs of which only the least entry of every block is held.

    Attributes
    ----------
    block : (rows, columns) -> float64[rows, columns]
        Reads a block, given by two slices.
    sides : (int, int)
        Rows and columns of a block.
    shape : (int, int)
    least : float64[blocks, blocks]
        The least cost of each block: with the largest potentials it bounds every excess.
    most : float
        The largest cost.
    function : bool
        Whether the costs come from a function of the caller.
    """

    block: Read
    sides: tuple[int, int]
    shape: tuple[int, int]
    least: np.ndarray
    most: float
    function: bool = False

    @classmethod
    def of(cls, read: Read, sides: tuple[int, int], shape: tuple[int, int], *, function: bool = False) -> "BlockCosts":
        """Read all blocks once."""
        parts = [[slice(k, min(k + side, n)) for k in range(0, n, side)] for side, n in zip(sides, shape, strict=True)]
        blocks = ((read(rows, columns) for columns in parts[1]) for rows in parts[0])
        ends = np.array([[(block.min(), block.max()) for block in line] for line in blocks])
        return cls(read, sides, shape, ends[..., 0].copy(), float(ends[..., 1].max()), function)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest cost."""
        return float(self.least.min()), self.most

    def fingerprint(self) -> str:
        """Recognises the same costs later; all of them are read."""
        total = hashlib.blake2b(digest_size=16)
        for at in np.ndindex(self.least.shape):
            total.update(self.block(self.part(0, at[0]), self.part(1, at[1])).tobytes())
        return total.hexdigest()

    def part(self, axis: int, block: int) -> slice:
        side = self.sides[axis]
        return slice(block * side, min(block * side + side, self.shape[axis]))

    def of_pairs(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The costs of single pairs: blocks that hold some are read once."""
        cost = np.empty(len(left))
        block = left // self.sides[0] * self.least.shape[1] + right // self.sides[1]
        order = np.argsort(block, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
            if len(some):
                at = divmod(int(block[some[0]]), self.least.shape[1])
                rows, columns = self.part(0, at[0]), self.part(1, at[1])
                cost[some] = self.block(rows, columns)[left[some] - rows.start, right[some] - columns.start]
        return cost

    def search(self, f: np.ndarray, h: np.ndarray, k: int, limit: float, crew: Crew) -> Found:
        """The k pairs with the largest excess above ``limit`` of every row and every column."""
        by_row, by_column, looked = no_best(len(f), k), no_best(len(h), k), 0
        bound = self.bounds(f, h)
        worst = float(bound[bound <= limit].max(initial=-np.inf))
        for at in np.argwhere(bound > limit):
            crew.check()
            rows, columns = self.part(0, at[0]), self.part(1, at[1])
            block = self.block(rows, columns)
            found = search_block(block, rows.start, columns.start, f, h, limit, by_row, by_column)
            worst, looked = max(worst, found), looked + block.size
        return Found.of(Best(*by_row), Best(*by_column), worst, looked)

    def bounds(self, f: np.ndarray, h: np.ndarray) -> np.ndarray:
        """An upper bound of the excesses of every block."""
        most_f = np.maximum.reduceat(f, np.arange(0, len(f), self.sides[0]))
        most_h = np.maximum.reduceat(h, np.arange(0, len(h), self.sides[1]))
        return (most_f[:, None] + most_h) - self.least

    def support(self, f: np.ndarray, h: np.ndarray, crew: Crew) -> Support:
        """All pairs with an excess above zero."""
        parts, looked = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))], 0
        for at in np.argwhere(self.bounds(f, h) > 0.0):
            crew.check()
            rows, columns = self.part(0, at[0]), self.part(1, at[1])
            block = self.block(rows, columns)
            parts.append(collect_block(block, rows.start, columns.start, f, h))
            looked += block.size
        left, right, excess = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Support(left, right, excess, looked)

    def every(self, stride: int) -> "BlockCosts":
        """The costs of one row and column in ``stride``."""

        def wide(part: slice) -> slice:
            return slice(part.start * stride, (part.stop - 1) * stride + 1, stride * (part.step or 1))

        rows, columns = (-(-n // stride) for n in self.shape)
        return BlockCosts.of(lambda rows, columns: self.block(wide(rows), wide(columns)), self.sides, (rows, columns))

    def balance(
        self, stride: int, f: np.ndarray, h: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Potentials of all rows and columns from those of one in ``stride``.

        ``rows`` and ``columns`` are the sums of excesses they need.
        """
        (n, m), every = self.shape, stride
        found_f, found_h = np.empty(n), np.empty(m)
        for part in self.slabs(n, len(h)):
            found_f[part] = balance_rows(self.block(part, slice(0, m, every)), h, rows[part])
        for part in self.slabs(m, len(f)):
            block = np.ascontiguousarray(self.block(slice(0, n, every), part).T)
            found_h[part] = balance_rows(block, f, columns[part])
        return found_f, found_h

    def balance_lines(self, side: int, lines: np.ndarray, others: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Potentials of some rows (``side`` 0) or columns (1) alone, given those of the other side, as in `balance`."""
        found, whole = np.empty(len(lines)), slice(0, len(others))
        for part in self.slabs(self.shape[side], len(others)):
            there = slice(*np.searchsorted(lines, [part.start, part.stop]))
            if there.stop > there.start:
                block = self.block(part, whole) if side == 0 else self.block(whole, part).T
                some = np.ascontiguousarray(block[lines[there] - part.start])
                found[there] = balance_rows(some, others, need[there])
        return found

    @staticmethod
    def slabs(lines: int, entries: int) -> list[slice]:
        """Parts of so many lines, each with so many entries, that are read at a time."""
        side = max(1, settings.SLAB // max(entries, 1))
        return [slice(k, min(k + side, lines)) for k in range(0, lines, side)]
