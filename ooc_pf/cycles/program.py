"""Quadratic programs over cycles: the one shape behind metric nearness and correlation clustering.

    min 1/2 sum_e (x_e - t_e)^2 / inverse_e - offset   with   x >= 0   and   closing * x_c - sum_{e in P} x_e <= rhs

for every closing edge c and every path P between its ends. A path violates its row when it is shorter than
``limit = closing * x_c - rhs``, and the point that sets each closing x to ``closing * (reach + rhs)``, where reach is
the smaller of limit and distance, is feasible. For duals z >= 0 of the rows the minimiser is x = max(y, 0) with
``y = t - inverse * A'z``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..engine.certificate import check_inverse, check_worth
from ..engine.rows import RowBlock
from ..kernels.sweep import add_load, exceeding_load, gather, project_rows
from ..storage.vectors import Pool, Vector, spans
from . import settings
from .graph import Graph, group_by, with_closers
from .inputs import Edges


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
    """The data of a program over cycles; vectors are by edge.

    Attributes
    ----------
    target, inverse : Vector
    closing, rhs : float
    graph : Graph
    offset : float
    scale : float
        The size violations are judged by.
    magnitude : float
        The size of the numbers, which rounding goes by.
    worth : float
        The size of what the objective is a sum of.
    pairs : Pairs or None
        Of a complete graph.
    step : float or None
        Below zero: this stands for the linear program ``min cost @ x``, cost = -step / inverse, solved by proximal
        steps; the quadratic program is that of one step, around the centre ``target - step``. The larger -step, the
        nearer it is to the linear one.
    edges : Edges or None
        What it was made from, where the point is rounded on the way.

    Complete graphs need their vectors whole.
    """

    target: Vector
    inverse: Vector
    closing: float
    rhs: float
    graph: Graph
    offset: float = 0.0
    scale: float = 1.0
    magnitude: float = 1.0
    worth: float = 0.0
    pairs: Pairs | None = None
    step: float | None = None
    edges: Edges | None = None

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.inverse.size

    def checked(self) -> "CycleProgram":
        """Refuses numbers so large or small, or weights so far from one, that nothing is left of the objective."""
        with np.errstate(over="ignore"):
            size = self.value(Vector.constant(self.size, 0.0))
        # Where x = 0 costs nothing, as it does of clusterings, all that counts is that it is a number.
        largest = self.scale if self.closing > 0.0 else 0.0
        check_worth(size, largest)
        unlisted = 0.0 if self.pairs is None else self.pairs.inverse
        check_inverse(max((unlisted, *(float(part.max(initial=0.0)) for _, part in self.inverse.spans()))))
        return self

    @property
    def slack(self) -> float:
        """Violations below this are rounding."""
        return settings.ROUNDING * self.magnitude

    @property
    def beyond(self) -> float:
        """The length below which a path violates the row of a pair without a variable; none does if there is none."""
        return -self.rhs if self.pairs else -np.inf

    def limit(self, x: np.ndarray) -> np.ndarray:
        """The length below which a path violates its row, from the x of its closing edge."""
        return self.closing * x - self.rhs

    def within(self, reach: np.ndarray) -> np.ndarray:
        """The x that a closing edge may have whose paths are no shorter than ``reach``."""
        return np.maximum(self.closing * (reach + self.rhs), 0.0)

    def plain_point(self, pool: Pool | None = None) -> Vector:
        """The best of a few feasible points that need no search.

        Where paths must be no shorter than their closing edge, equal lengths everywhere will do. Where they must have
        length 1 with it, it is enough that the closing edges have it, or all others.
        """
        if self.pairs is not None:
            listed = np.where(self.pairs.passable, -self.rhs, 0.0)
            return Vector.of(np.concatenate((listed, np.zeros(len(self.pairs.unlisted)))))
        if self.closing > 0.0:
            return self._constant(self._mean_target(), pool)
        together, apart = self._constant(0.0, pool), self._constant(-self.rhs, pool)
        for _, edge in self.graph.closer_edge.spans():
            together.put(edge, np.full(len(edge), -self.rhs))
            apart.put(edge, np.zeros(len(edge)))
        best, other = (together, apart) if self.value(together) <= self.value(apart) else (apart, together)
        other.close()
        return best

    def _mean_target(self) -> float:
        """The equal length that is nearest to the targets; nothing is below zero."""
        total = weight = 0.0
        for target, inverse in spans(self.target, self.inverse):
            total, weight = total + float(np.sum(target / inverse)), weight + float(np.sum(1.0 / inverse))
        return max(total / weight, 0.0) if weight > 0.0 else 0.0

    def _constant(self, value: float, pool: Pool | None) -> Vector:
        parts = (np.full(len(part), value) for _, part in self.inverse.spans())
        return Vector.filled(parts, self.size, np.float64, pool)

    # -- complete graphs ------------------------------------------------------------------------------------------

    def with_pairs(self, ends: np.ndarray) -> "CycleProgram":
        """The program in which these unlisted pairs have variables as well."""
        count = len(ends)
        target = np.concatenate((self.target.whole, np.full(count, self.pairs.target)))
        inverse = np.concatenate((self.inverse.whole, np.full(count, self.pairs.inverse)))
        return self._over(np.concatenate((self.pairs.ends, ends)), target, inverse)

    def keep_pairs(self, keep: np.ndarray) -> "CycleProgram":
        """The program over some of its pairs, a mask that has all the listed ones."""
        return self._over(self.pairs.ends[keep], self.target.whole[keep], self.inverse.whole[keep])

    def _over(self, ends: np.ndarray, target: np.ndarray, inverse: np.ndarray) -> "CycleProgram":
        pairs = replace(self.pairs, ends=ends)
        closing = np.ones(len(ends), bool)
        closing[: pairs.listed] = ~pairs.passable
        edges = np.flatnonzero(closing)
        graph = with_closers(self.graph, ends[edges, 0], ends[edges, 1], edges)
        return replace(self, target=Vector.of(target), inverse=Vector.of(inverse), graph=graph, pairs=pairs)

    # -- values ---------------------------------------------------------------------------------------------------

    def stretched(self, step: float, target: Vector, pool: Pool | None) -> "CycleProgram":
        """A linear program with proximal steps of another length; call it on the program as it was made.

        So the numbers depend on ``step`` alone, not on how it was reached.
        """
        longer = (part * (step / self.step) for _, part in self.inverse.spans())
        inverse = Vector.filled(longer, self.size, np.float64, pool)
        return replace(self, target=target, inverse=inverse, step=step, magnitude=max(1.0, -step))

    def value(self, x: Vector) -> float:
        """The objective."""
        if self.step is not None:
            return sum(float(np.sum(x / inverse)) for x, inverse in spans(x, self.inverse)) * -self.step
        parts = (float(np.sum((x - t) ** 2 / inverse)) for x, t, inverse in spans(x, self.target, self.inverse))
        return 0.5 * sum(parts) - self.constant

    def value_of_any(self, x: Vector) -> float:
        """The objective of a point that may have other unlisted pairs of a complete graph than this program."""
        if self.pairs is None or x.size == self.size:
            return self.value(x)
        listed = self.keep_pairs(np.arange(self.size) < self.pairs.listed)
        return listed.value(Vector.of(x.whole[: listed.size])) + self.price_unlisted(x.whole[listed.size :])

    def price_unlisted(self, x: np.ndarray) -> float:
        """What unlisted pairs with these x add to the objective."""
        if self.step is not None:
            return float(np.sum(x / self.pairs.inverse)) * -self.step
        return 0.5 * float(np.sum(x * (x - 2.0 * self.pairs.target))) / self.pairs.inverse

    @property
    def constant(self) -> float:
        """The offset, with the share of the unlisted pairs: nothing is to be paid for them at x = 0."""
        if self.pairs is None:
            return self.offset
        return self.offset + len(self.pairs.unlisted) * 0.5 * self.pairs.target**2 / self.pairs.inverse

    def bound(self, y: Vector, dual_sum: float) -> float:
        """A lower bound of the optimum, where y belongs to any duals z >= 0."""
        if self.step is not None:
            return self.scaled_bound(y, dual_sum).value
        return self.dual(y, dual_sum)

    @property
    def unit(self) -> float:
        """The cost of an edge is this over its inverse; there must be edges."""
        # Around the centre zero a target is what is left of the step.
        return -self.step if self.step is not None else -float(self.target.read(0, 1)[0])

    def scaled_bound(self, y: Vector, dual_sum: float) -> "ScaledBound":
        """A lower bound of ``min cost @ x`` over x between 0 and 1, such as clusterings, from the same duals."""
        if not self.size:
            return ScaledBound(0.0, 0.0)  # no edge, no cost
        unit = self.unit

        def excess(scale: float) -> tuple[float, float]:
            parts = [exceeding_load(*part, unit, scale) for part in spans(y, self.target, self.inverse)]
            return sum(short for short, _ in parts), sum(load for _, load in parts)

        return best_scaling(excess, dual_sum)

    def cost_and_load(self, y: Vector, unit: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Parts of the cost ``unit / inverse`` and of the load of the multipliers that y belongs to."""
        for part, target, inverse in spans(y, self.target, self.inverse):
            yield unit / inverse, (part - target) / inverse

    def dual(self, y: Vector, dual_sum: float) -> float:
        """Value of the dual of the quadratic program, where y belongs to the duals."""
        total = 0.0
        for part, target, inverse in spans(y, self.target, self.inverse):
            x = np.maximum(part, 0.0)
            total += float(np.sum((target - x) * (target + x) / inverse))
        return 0.5 * total - self.rhs * dual_sum - self.constant

    # -- sweeps and storage ---------------------------------------------------------------------------------------

    def project(self, block: RowBlock, y: Vector) -> float:
        """Project onto every row of a block in turn; returns the largest correction."""
        table, inverse = block.table, self.inverse
        if y.whole is None or inverse.whole is None:
            local = np.column_stack((y.take(table), inverse.take(table)))
        else:
            local = gather(table, y.whole, inverse.whole)
        moved = project_rows(block.start, block.index, block.dual, local, self.closing, self.rhs)
        y.put(table, local[:, 0])
        return moved

    def charge(self, block: RowBlock, dual: np.ndarray) -> float:
        """What a block adds to the sum of the duals."""
        return float(dual.sum())

    def clipped(self, block: RowBlock, dual: np.ndarray) -> np.ndarray:
        """The nearest duals that are allowed."""
        return np.maximum(dual, 0.0)

    def changed(self) -> dict[str, Vector]:
        """What a run changes of the program, for a generation to hold: pairs with a variable, the target of a step."""
        found = {"pairs": Vector.of(self.pairs.unlisted.ravel())} if self.pairs else {}
        if self.step is None:
            return found
        return found | {"target": self.target, "step": Vector.of(np.array([self.step]))}

    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]], out: Vector) -> None:
        """Write y into ``out`` from duals alone, blocks with a vector each: the invariant that every sweep keeps."""
        for first, part in out.spans():
            out.write(first, np.zeros(len(part)))
        for block, dual in duals:
            load = out.take(block.table)
            add_load(block.start, block.index, dual, self.closing, load)
            out.put(block.table, load)
        for first, load in out.spans():
            last = first + len(load)
            out.write(first, self.target.read(first, last) - self.inverse.read(first, last) * load)


def nonnegative(y: Vector, pool: Pool | None = None) -> Vector:
    """x = max(y, 0) as a vector of its own."""
    return Vector.filled((np.maximum(part, 0.0) for _, part in y.spans()), y.size, np.float64, pool)


class ScaledBound(NamedTuple):
    """A lower bound, and the multiple of the multipliers that gives it."""

    value: float
    scale: float


def linear_bound(excess: Callable[[float], tuple[float, float]], duals: float) -> float:
    """The value of `best_scaling`."""
    return best_scaling(excess, duals).value


def best_scaling(excess: Callable[[float], tuple[float, float]], duals: float) -> ScaledBound:
    """The best of ``s * sum z + sum min(0, cost - s * load)`` over s >= 0: a lower bound for ``min cost @ x``.

    It belongs to rows ``sum x >= 1`` with x between 0 and 1, as clusterings have. Scaled multipliers ``s z`` are
    feasible for the dual up to what they exceed the cost by. Every s gives a valid bound. The value is concave and
    piecewise linear in s, so that Kelley's cutting planes find the best one in a few passes: the next s is where the
    tangents on both sides of the best one meet.

    ``excess(s)`` gives ``sum min(0, cost - s * load)``, and the sum of the load where that is below zero.
    """
    # (s, value, slope) on the rising and on the falling side.
    rising, falling = (0.0, 0.0, duals), None
    best, scale, s = 0.0, 0.0, 1.0
    for _ in range(settings.MOST_PLANES):
        short, load = excess(s)
        value, slope = s * duals + short, duals - load
        if value > best:
            best, scale = value, s
        if slope > 0.0:
            rising = (s, value, slope)
        else:
            falling = (s, value, slope)
        if falling is None:
            s = 2.0 * s
            if not s < 1e300:
                break
            continue
        (left, low, up), (right, high, down) = rising, falling
        s = (high - low + up * left - down * right) / (up - down) if up > down else left
        # No s is worth more than the tangents allow where they meet.
        if not left < s < right or low + up * (s - left) - best <= settings.BEST_SCALE * abs(best):
            break
    return ScaledBound(best, scale)


# From edges, weights or None, the graph if it is laid out already, and where vectors are made.
MakeProgram = Callable[[Edges, np.ndarray | Vector | None, Graph | None, Pool], CycleProgram]
