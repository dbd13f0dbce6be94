"""Quadratic programs over cycles: the one shape behind metric nearness and correlation clustering.

    min 1/2 sum_e (x_e - t_e)^2 / inverse_e - offset   with   x >= 0   and   closing * x_c - sum_{e in P} x_e <= rhs

for every closing edge c and every path P between its ends. A path violates its row when it is shorter than
``limit = closing * x_c - rhs``, and the point that sets each closing x to ``closing * (reach + rhs)``, where reach is
the smaller of limit and distance, is feasible. For duals z >= 0 of the rows the minimiser is x = max(y, 0) with
``y = t - inverse * A'z``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .constraints import RowBlock
from .graph import Graph
from .kernels.sweep import add_load


@dataclass(frozen=True)
class CycleProgram:
    """The data of a program over cycles; vectors are by edge. ``scale`` is the size violations are judged by."""

    target: np.ndarray
    inverse: np.ndarray
    closing: float
    rhs: float
    graph: Graph
    offset: float = 0.0
    scale: float = 1.0

    @property
    def slack(self) -> float:
        """Violations below this are rounding."""
        return 1e-14 * max(1.0, float(np.abs(self.target).max(initial=0.0)))

    def limit(self, x: np.ndarray) -> np.ndarray:
        """The length below which a path violates its row, by closing edge."""
        return self.closing * x[self.graph.closer_edge] - self.rhs

    def feasible(self, x: np.ndarray, reach: np.ndarray, closers: slice) -> np.ndarray:
        """``x`` with the closing edges brought within their reach."""
        point = x.copy()
        point[self.graph.closer_edge[closers]] = np.maximum(self.closing * (reach + self.rhs), 0.0)
        return point

    def value(self, x: np.ndarray) -> float:
        """The objective."""
        return 0.5 * float(np.sum((x - self.target) ** 2 / self.inverse)) - self.offset

    def bound(self, y: np.ndarray, dual_sum: float) -> float:
        """Value of the dual, where y belongs to the duals: a lower bound of the optimum for every z >= 0."""
        x = np.maximum(y, 0.0)
        dual = 0.5 * float(np.sum((self.target - x) * (self.target + x) / self.inverse)) - self.rhs * dual_sum
        return dual - self.offset

    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]]) -> np.ndarray:
        """y from duals alone, given as blocks with a vector each: the invariant every sweep keeps."""
        load = np.zeros(len(self.target))
        for block, dual in duals:
            local = load[block.table]
            add_load(block.start, block.index, dual, self.closing, local)
            load[block.table] = local
        return self.target - self.inverse * load


def sum_duals(blocks: Iterable[RowBlock]) -> float:
    """Sum of all duals."""
    return sum(float(block.dual.sum()) for block in blocks)
