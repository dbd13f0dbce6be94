"""Programs over general rows: min f(x) with ``<a, x> <= rhs`` or ``=``, for f of `objectives`.

For duals z, nonnegative where the row is an inequality, the minimiser of the Lagrangian is ``x = point(y)`` with
``y = t - A'z``, and ``f(x) + <t - y, x> - <rhs, z>`` is a lower bound of the optimum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from ..engine.rows import RowBlock
from ..kernels import bregman
from ..objectives import Objective
from ..storage.vectors import Vector
from . import settings


@dataclass(frozen=True)
class RowProgram:
    """What sweeps and bounds need to know of an objective.

    Attributes
    ----------
    objective : Objective
    origin : float64 array
        y without the duals of the rows at hand: the start of the objective, less the load of rows of which only the
        duals were kept.
    interior : float64 array or None
        A point that satisfies every row.

    Vectors over variables are whole.
    """

    objective: Objective
    origin: np.ndarray
    interior: np.ndarray | None = None

    @classmethod
    def of(cls, objective: Objective, interior: np.ndarray | None = None) -> "RowProgram":
        return cls(objective, objective.start, interior)

    def around(self, y: Vector, blocks: Iterable[RowBlock]) -> "RowProgram":
        """The program of the rows at hand, all other duals staying as they are in y."""
        return replace(self, origin=y.whole + self.load((block, block.dual) for block in blocks))

    def project(self, block: RowBlock, y: Vector) -> float:
        """Project onto every row of a block in turn; returns the largest correction."""
        return self._project(block, y.whole)

    def _project(self, block: RowBlock, y: np.ndarray) -> float:
        objective, rows = self.objective, (block.coefficient, block.rhs, block.equality, block.dual)
        if objective.own is not None:
            return _project_own(objective, block, y)
        if objective.inverse is not None:
            x = objective.point(y)
            return bregman.project_dense(block.start, block.table[block.index], *rows, y, x, objective.inverse)
        # What the largest deviation takes up is a block of duals of its own: optimal before, fixed during the sweep.
        taken = objective.absorbed(y)
        local = (y - taken)[block.table]
        before = local.copy()
        parameters = (values[block.table] for values in objective.parameters)
        residual = bregman.project_general(
            objective.code, block.start, block.index, *rows, local, *parameters, objective.power
        )
        if objective.peak:
            y[block.table] += local - before
        else:
            y[block.table] = local
        return residual

    def charge(self, block: RowBlock, dual: np.ndarray) -> float:
        """``<rhs, z>`` of a block."""
        return float(block.rhs @ dual)

    def clipped(self, block: RowBlock, dual: np.ndarray) -> np.ndarray:
        """The nearest duals that are allowed; of a row of which only the dual was kept, that one."""
        allowed = np.where(block.equality, dual, np.maximum(dual, 0.0))
        return np.where(np.diff(block.start) > 0, allowed, block.dual)

    def growth(self, block: RowBlock) -> np.ndarray:
        """By how much the duals grew in the last round of sweeps, where that is more than rounding."""
        grown = np.where(np.diff(block.start) > 0, block.dual - block.trail[0], 0.0)
        grown = np.where(block.equality, grown, np.maximum(grown, 0.0))
        return np.where(np.abs(grown) > settings.GROWN * np.abs(block.dual), grown, 0.0)

    def load(self, duals: Iterable[tuple[RowBlock, np.ndarray]]) -> np.ndarray:
        """``A'z`` of duals given as blocks with a vector each."""
        return add_loads(duals, self.objective.size)

    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]], out: Vector) -> None:
        """Write y into ``out`` from duals alone: the invariant that every sweep keeps."""
        out.write(0, self.origin - self.load(duals))

    def bound(self, y: Vector, charge: float) -> float:
        """A lower bound of the optimum."""
        return self.dual(y, charge)

    def dual(self, y: Vector, charge: float) -> float:
        """Value of the dual, where y belongs to the duals."""
        return self.dual_at(y.whole, charge)

    def dual_at(self, y: np.ndarray, charge: float) -> float:
        x = self.objective.point(y)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.objective.value(x) + float((self.objective.start - y) @ x) - charge

    @cached_property
    def home(self) -> float:
        """The largest entry of the point without any row."""
        return float(np.abs(self.objective.point(self.objective.start)).max(initial=0.0))

    def scale(self, x: np.ndarray) -> float:
        """The size of the variables: what violations are judged by."""
        return max(self.home, float(np.abs(x).max(initial=0.0)))

    def worth(self, y: np.ndarray, charges: float) -> float:
        """The size of the terms of the dual objective; ``charges`` is that of b'z."""
        x = self.objective.point(y)
        return abs(self.objective.value(x)) + float(np.abs(self.objective.start - y) @ np.abs(x)) + abs(charges)

    def excludes(self, load: np.ndarray, charges: list[float], reach: float, y: np.ndarray) -> bool:
        """Whether ``<load, x> > sum of charges`` for all x of the domain with entries up to ``reach`` times those of y.

        With ``load = A'z`` and ``charges = <b, z>`` for multipliers of allowed sign, no such x is feasible then.
        """
        low, high = self.objective.domain
        far = reach * self.scale(self.objective.point(y))
        with np.errstate(over="ignore", invalid="ignore"):
            least = np.sum(np.where(load > 0, load * max(low, -far), load * min(high, far)))
            return bool(least > sum(charges) + settings.EXCLUDED * sum(map(abs, charges)))


def add_loads(duals: Iterable[tuple[RowBlock, np.ndarray]], size: int) -> np.ndarray:
    """``A'z`` over ``size`` variables, of duals given as blocks with a vector each."""
    load = np.zeros(size)
    for block, dual in duals:
        local = load[block.table]
        bregman.add_general_load(block.start, block.index, block.coefficient, dual, local)
        load[block.table] = local
    return load


def _project_own(objective: Objective, block: RowBlock, y: np.ndarray) -> float:
    """`project_general` for a function of the user's: the root by Brent's method, as no second derivative is given."""
    own, largest = objective.own, 0.0
    for row in range(len(block.dual)):
        entries = slice(block.start[row], block.start[row + 1])
        at, a = block.table[block.index[entries]], block.coefficient[entries]
        if not len(at):
            continue
        here, parameters = y[at], [values[at] for values in own.parameters]

        def excess(step, here=here, a=a, parameters=parameters, rhs=block.rhs[row]):
            return float(a @ own.inverse_gradient(here - step * a, *parameters)) - rhs

        first, dual = excess(0.0), block.dual[row]
        if first == 0.0 or (first < 0.0 and dual == 0.0 and not block.equality[row]):
            continue
        least = -np.inf if block.equality[row] else -dual
        step, left_over = _find_root(excess, first, least)
        y[at] = here - step * a
        block.dual[row] = 0.0 if step == least else dual + step
        largest = max(largest, abs(first - left_over))
    return largest


def _find_root(excess, first: float, least: float) -> tuple[float, float]:
    """The step, not below ``least``, at which a falling function is zero, or ``least``; and what is left there."""
    if first < 0.0 and np.isfinite(least):
        left_over = excess(least)
        return (least, left_over) if left_over <= 0.0 else (float(brentq(excess, least, 0.0, xtol=1e-300)), 0.0)
    near, far = 0.0, 1.0 if first > 0.0 else -1.0
    for _ in range(60):
        here = excess(far)
        if (here > 0.0) != (first > 0.0):
            return float(brentq(excess, near, far, xtol=1e-300)), 0.0
        near, far = far, 2.0 * far
    return near, first
