"""Quadratic programs over cycles: the one shape behind metric nearness and correlation clustering.

    min 1/2 sum_e (x_e - t_e)^2 / inverse_e - offset   with   x >= 0   and   closing * x_c - sum_{e in P} x_e <= rhs

for every closing edge c and every path P between its ends. A path violates its row when it is shorter than
``limit = closing * x_c - rhs``, and the point that sets each closing x to ``closing * (reach + rhs)``, where reach is
the smaller of limit and distance, is feasible. For duals z >= 0 of the rows the minimiser is x = max(y, 0) with
``y = t - inverse * A'z``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from .constraints import RowBlock
from .graph import Graph, group_by, with_closers
from .kernels.sweep import add_load


@dataclass(frozen=True)
class Pairs:
    """The pairs of a complete graph: those that are listed, and the others, which are all alike.

    An unlisted pair gets a variable, numbered after the listed ones, when a row needs it, and loses it with its last
    row. Until then its x is zero and its distance at least 1, or it would be violated.

    Attributes
    ----------
    ends : int32[edges, 2]
        Ends of all pairs that have a variable, the lower one first.
    listed : int
        How many of them are listed.
    passable : bool[listed]
        The listed pairs that paths go over; the others close them.
    target, inverse : float
        Of a pair that is not listed.
    """

    ends: np.ndarray
    listed: int
    passable: np.ndarray
    target: float
    inverse: float

    @property
    def unlisted(self) -> np.ndarray:
        """Ends of the unlisted pairs that have a variable."""
        return self.ends[self.listed :]

    def by_lower_end(self, nodes: int) -> tuple[np.ndarray, np.ndarray]:
        """Upper ends of all pairs with a variable, in CSR by lower end."""
        start, order = group_by(self.ends[:, 0], nodes)
        return start, self.ends[order, 1]


@dataclass(frozen=True)
class CycleProgram:
    """The data of a program over cycles; vectors are by edge. ``scale`` is the size violations are judged by.

    With a ``step`` below zero it stands for the linear program ``min cost @ x``, cost = -step / inverse, solved by
    proximal steps: the quadratic program is that of one step, around the centre ``target - step``.
    """

    target: np.ndarray
    inverse: np.ndarray
    closing: float
    rhs: float
    graph: Graph
    offset: float = 0.0
    scale: float = 1.0
    pairs: Pairs | None = None
    step: float | None = None

    @property
    def slack(self) -> float:
        """Violations below this are rounding."""
        return 1e-14 * max(1.0, float(np.abs(self.target).max(initial=0.0)))

    @property
    def beyond(self) -> float:
        """The length below which a path violates the row of a pair without a variable; none does if there is none."""
        return -self.rhs if self.pairs else -np.inf

    def limit(self, x: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """The length below which a path violates the row that closing edge has with it."""
        return self.closing * x[edge] - self.rhs

    def feasible(self, x: np.ndarray, edge: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """``x`` with the closing edges brought within their reach."""
        point = x.copy()
        point[edge] = np.maximum(self.closing * (reach + self.rhs), 0.0)
        return point

    def plain_point(self, x: np.ndarray) -> np.ndarray:
        """A feasible point that needs no search."""
        if self.pairs is None:
            edge = self.graph.closer_edge
            return self.feasible(x, edge, np.zeros(len(edge)))
        return np.concatenate((np.where(self.pairs.passable, -self.rhs, 0.0), np.zeros(len(self.pairs.unlisted))))

    def with_pairs(self, ends: np.ndarray) -> "CycleProgram":
        """The program in which these unlisted pairs have variables as well."""
        count = len(ends)
        target = np.concatenate((self.target, np.full(count, self.pairs.target)))
        inverse = np.concatenate((self.inverse, np.full(count, self.pairs.inverse)))
        return self._over(np.concatenate((self.pairs.ends, ends)), target, inverse)

    def keep_pairs(self, keep: np.ndarray) -> "CycleProgram":
        """The program over some of its pairs, a mask that has all the listed ones."""
        return self._over(self.pairs.ends[keep], self.target[keep], self.inverse[keep])

    def _over(self, ends: np.ndarray, target: np.ndarray, inverse: np.ndarray) -> "CycleProgram":
        pairs = replace(self.pairs, ends=ends)
        closing = np.ones(len(ends), bool)
        closing[: pairs.listed] = ~pairs.passable
        edges = np.flatnonzero(closing)
        graph = with_closers(self.graph, ends[edges, 0], ends[edges, 1], edges)
        return replace(self, target=target, inverse=inverse, graph=graph, pairs=pairs)

    @property
    def cost(self) -> np.ndarray:
        """The objective of the linear program."""
        return -self.step / self.inverse

    def recentred(self, centre: np.ndarray) -> "CycleProgram":
        """The next proximal step of a linear program."""
        return replace(self, target=centre + self.step)

    def value(self, x: np.ndarray) -> float:
        """The objective."""
        if self.step is not None:
            return float(self.cost @ x)
        return 0.5 * float(np.sum((x - self.target) ** 2 / self.inverse)) - self.constant

    @property
    def constant(self) -> float:
        """The offset, with the share of the unlisted pairs: nothing is to be paid for them at x = 0."""
        if self.pairs is None:
            return self.offset
        return self.offset + len(self.pairs.unlisted) * 0.5 * self.pairs.target**2 / self.pairs.inverse

    def bound(self, y: np.ndarray, dual_sum: float) -> float:
        """A lower bound of the optimum, where y belongs to any duals z >= 0."""
        if self.step is not None:
            return linear_bound(self.cost, (y - self.target) / self.inverse, dual_sum)
        return self.dual(y, dual_sum)

    def dual(self, y: np.ndarray, dual_sum: float) -> float:
        """Value of the dual of the quadratic program, where y belongs to the duals."""
        x = np.maximum(y, 0.0)
        dual = 0.5 * float(np.sum((self.target - x) * (self.target + x) / self.inverse)) - self.rhs * dual_sum
        return dual - self.constant

    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]]) -> np.ndarray:
        """y from duals alone, given as blocks with a vector each: the invariant every sweep keeps."""
        load = np.zeros(len(self.target))
        for block, dual in duals:
            local = load[block.table]
            add_load(block.start, block.index, dual, self.closing, local)
            load[block.table] = local
        return self.target - self.inverse * load


def linear_bound(cost: np.ndarray, load: np.ndarray, duals: float) -> float:
    """The best of ``s * sum z + sum min(0, cost - s * load)`` over s >= 0: a lower bound for ``min cost @ x``.

    It belongs to rows ``sum x >= 1`` with x between 0 and 1, as clusterings have. Scaled multipliers ``s z`` are
    feasible for the dual up to what they exceed the cost by. The value is concave and piecewise linear in s with bends
    at cost / load, so the best bend is the best s.
    """
    loaded = load > 1e-300
    if not loaded.any():
        return 0.0
    cost, load = cost[loaded], load[loaded]
    order = np.argsort(cost / load, kind="stable")
    bend = (cost / load)[order]
    # At a bend, the edges before it are over their cost.
    over_cost, over_load = np.cumsum(cost[order]), np.cumsum(load[order])
    return max(0.0, float(np.max(bend * duals + over_cost - bend * over_load)))


def sum_duals(blocks: Iterable[RowBlock]) -> float:
    """Sum of all duals."""
    return sum(float(block.dual.sum()) for block in blocks)
