"""Newton steps on the multipliers of the remembered rows.

Projections find out quickly which rows are active and then converge slowly where those rows are nearly dependent. With
the active rows known, the rest is a smooth equation. A step is taken only if it raises the dual objective, so it can do
no harm; rows that are not active any more get the multiplier zero and are forgotten as ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from ..engine.rows import RowBlock
from ..engine.store import ConstraintStore
from ..engine.sweeps import Iterate
from ..errors import SearchStopped
from . import settings
from .program import RowProgram


class Look(NamedTuple):
    """y, ``A x - b``, the dual objective and the size of its terms, and how far the worst multiplier is from optimal.

    The last is measured as a violation is.
    """

    y: np.ndarray
    excess: np.ndarray
    value: float
    worth: float
    idle: float


@dataclass(frozen=True)
class Gathered:
    """The remembered rows as one matrix, with what the dual objective needs.

    ``ease`` is how far x moves with a multiplier, on average: with it multipliers and violations can be compared.
    """

    program: RowProgram
    matrix: sparse.csr_array
    rhs: np.ndarray
    equality: np.ndarray
    ease: float

    def look(self, z: np.ndarray) -> "Look":
        """The point that belongs to multipliers."""
        y = self.program.origin - self.matrix.T @ z
        excess = self.matrix @ self.program.objective.point(y) - self.rhs
        moved = np.abs(self.ease * z - np.maximum(self.ease * z + excess, 0.0))
        idle = np.where(self.equality, np.abs(excess), moved)
        charge = float(self.rhs @ z)
        value, worth = self.program.dual_at(y, charge), self.program.worth(y, charge)
        return Look(y, excess, value, worth, float(idle.max(initial=0.0)))

    def direction(self, y: np.ndarray, excess: np.ndarray, z: np.ndarray) -> np.ndarray | None:
        """The step that is best for the quadratic model of the dual objective and keeps the signs; None: not found."""
        chosen = np.arange(len(z))
        if len(chosen) > settings.MOST_DENSE:
            chosen = np.flatnonzero(self.equality | (z > 0.0) | (excess > 0.0))
        rows, curved = self.matrix[chosen], self.program.objective.curvature(y)
        ridge = settings.RIDGE * max(_mean_diagonal(rows, curved), 1e-300)
        step = np.zeros(len(z))
        if len(chosen) > settings.MOST_DENSE:
            least = np.where(self.equality[chosen], -np.inf, -z[chosen])
            size = 1.0 / np.sqrt(np.maximum(curved.between(rows), ridge))
            step[chosen] = size * maximise_by_cg(
                lambda d: size * (rows @ curved.times(rows.T @ (size * d)) + ridge * size * d),
                size * excess[chosen],
                least / size,
                max(settings.LEAST_CG_STEPS, min(settings.CG_STEPS, settings.CG_WORK // max(rows.nnz, 1))),
            )
            return step
        system = curved.sandwiched(rows)
        system[np.diag_indices_from(system)] += ridge
        best = maximise_quadratic(system, excess[chosen], z[chosen], self.equality[chosen])
        if best is None:
            return None
        step[chosen] = best
        return step


def maximise_quadratic(matrix: np.ndarray, slope: np.ndarray, z: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """The step d that maximises ``<slope, d> - 1/2 d' matrix d`` with z + d >= 0 where not free.

    As nonnegative least squares, which does not mind rows that nearly depend on each other. None where the matrix is
    not positive definite to working precision.
    """
    try:
        root = cholesky(matrix, lower=True)
        target = solve_triangular(root, slope + matrix @ z, lower=True)
        # A free multiplier is the difference of two that are not negative.
        both = nnls(np.hstack((root.T, -root.T[:, free])), target)[0]
    except (LinAlgError, ValueError, RuntimeError):
        return None
    best = both[: len(z)]
    best[free] -= both[len(z) :]
    return best - z


def maximise_by_cg(times: Callable, slope: np.ndarray, least: np.ndarray, steps: int) -> np.ndarray:
    """The d >= least that maximises ``<slope, d> - 1/2 <d, times(d)>``, roughly: conjugate gradients that keep bounds.

    Steps along conjugate directions while the free entries have most of the gradient; where one would cross a bound,
    up to it and then along the gradient; else a step off the bounds (Dostal's MPRGP). The matrix behind ``times`` has
    a diagonal of ones.
    """
    d = np.zeros(len(slope))
    r = times(d) - slope
    length = 1.0 / _largest_eigenvalue(times, len(slope))
    free = _on_free(r, d, least)
    p, goal = free, settings.CG_ACCURACY * float(np.abs(slope).max(initial=0.0))
    for _ in range(steps):
        bound = np.where(d > least, 0.0, np.minimum(r, 0.0))
        if max(np.abs(free).max(initial=0.0), np.abs(bound).max(initial=0.0)) <= goal:
            break
        if bound @ bound > free @ np.minimum(free, (d - least) / length):
            moved = times(bound)
            along = float(r @ bound) / float(bound @ moved)
            d, r = d - along * bound, r - along * moved
            p = free = _on_free(r, d, least)
            continue
        moved = times(p)
        curve = float(p @ moved)
        if not curve > 0.0:
            break
        along, room = float(r @ p) / curve, float(np.min((d - least)[p > 0.0] / p[p > 0.0], initial=np.inf))
        if along <= room:
            d, r = d - along * p, r - along * moved
            free = _on_free(r, d, least)
            p = free - float(free @ moved) / curve * p
        else:
            d, r = d - room * p, r - room * moved
            d = np.maximum(np.maximum(d, least) - length * _on_free(r, d, least), least)
            r = times(d) - slope
            p = free = _on_free(r, d, least)
    return np.maximum(d, least)


def _on_free(r: np.ndarray, d: np.ndarray, least: np.ndarray) -> np.ndarray:
    return np.where(d > least, r, 0.0)


def _largest_eigenvalue(times: Callable, size: int) -> float:
    v = np.ones(size) + 0.1 * np.cos(np.arange(size))
    value = 1.0
    for _ in range(10):
        v /= np.linalg.norm(v)
        w = times(v)
        value, v = float(np.linalg.norm(w)), w
    return max(1.5 * value, 1.0)


def _mean_diagonal(rows: sparse.csr_array, curved) -> float:
    return float(curved.between(rows).mean()) if rows.shape[0] else 0.0


def newton_steps(point: Iterate, store: ConstraintStore, enough: float, stop: np.ndarray) -> int:
    """Raise the dual objective by Newton steps while they go up; returns how many were taken.

    ``stop`` (uint8[1]), once set, ends it with SearchStopped; everything is then as it was.
    """
    gathered = _gather(point, store)
    if gathered is None:
        return 0
    z = np.concatenate([block.dual[_at_hand(block)] for block in store.blocks()])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        taken, z = _climb(gathered, z, enough, stop)
    if taken:
        at = 0
        for block in store.blocks():
            here = _at_hand(block)
            block.dual[here] = z[at : at + len(here)]
            at += len(here)
        point.adopt(point.rebuilt((block, block.dual) for block in store.blocks()))
    return taken


def _at_hand(block: RowBlock) -> np.ndarray:
    """The rows of which more than the dual was kept."""
    return np.flatnonzero(np.diff(block.start))


def _climb(gathered: Gathered, z: np.ndarray, enough: float, stop: np.ndarray) -> tuple[int, np.ndarray]:
    here = gathered.look(z)
    scale = gathered.program.scale(gathered.program.objective.point(here.y))
    for taken in range(settings.NEWTON_STEPS):
        if stop[0]:
            raise SearchStopped
        step = gathered.direction(here.y, here.excess, z) if here.idle > enough else None
        if step is None or not np.isfinite(step).all():
            return taken, z
        longest = settings.LONGEST_STEP * max(scale / gathered.ease, float(np.abs(z).max(initial=0.0)))
        step *= min(1.0, longest / max(float(np.abs(step).max(initial=0.0)), longest))
        for part in settings.NEWTON_PARTS:
            trial = np.where(gathered.equality, z + part * step, np.maximum(z + part * step, 0.0))
            ahead = gathered.look(trial)
            # Near the end the objective is flat to rounding, and only the equation tells better from worse.
            flat = ahead.value >= here.value - settings.FLAT * here.worth
            if ahead.value > here.value or (flat and ahead.idle < settings.NEWTON_PROGRESS * here.idle):
                break
        else:
            return taken, z
        z, here = trial, ahead
    return settings.NEWTON_STEPS, z


def _gather(point: Iterate, store: ConstraintStore) -> Gathered | None:
    blocks = []
    for block in store.blocks():
        blocks.append(block.rows.select(np.diff(block.start) > 0))
        if sum(len(rows.edges) for rows in blocks) > settings.MOST_ENTRIES:
            return None
    if not sum(map(len, blocks)):
        return None
    parts = [
        sparse.csr_array((rows.coefficient, rows.edges, rows.start), shape=(len(rows), point.y.size)) for rows in blocks
    ]
    rhs, equality = (np.concatenate([getattr(rows, name) for rows in blocks]) for name in ("rhs", "equality"))
    matrix = sparse.vstack(parts, format="csr")
    return Gathered(point.program, matrix, rhs, equality, _ease(point, store, matrix))


def _ease(point: Iterate, store: ConstraintStore, rows: sparse.csr_array) -> float:
    """How far x moves with a multiplier; where it does not move at all, the ratio of their sizes."""
    program, y = point.program, point.y.whole
    ease = _mean_diagonal(rows, program.objective.curvature(y))
    if 0.0 < ease < np.inf:
        return ease
    largest = max((float(np.abs(block.dual).max(initial=0.0)) for block in store.blocks()), default=0.0)
    scale = program.scale(program.objective.point(y))
    return scale / largest if largest > 0.0 and scale > 0.0 else 1.0
