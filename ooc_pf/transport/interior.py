"""Exact marginals where the support is hardly more than a tree, so that Newton steps lead nowhere.

Marginals are softened a little, so that a restricted problem always has an answer. It is solved by the interior-point
method of soft marginals, on pairs that searches bring. At the end the targets are moved by what the softening took
(a proximal step), which leaves nothing of it.
"""

from dataclasses import dataclass

import numpy as np

from ..kernels.transport_nodes import Terms
from . import settings
from .crew import Crew
from .inputs import Task
from .nodes import Order, solve_restricted
from .store import PairStore


@dataclass(frozen=True)
class Interior:
    """Potentials, a plan on the remembered pairs, and the steps it took."""

    z: np.ndarray
    store: PairStore
    steps: int


def solve_interior(task: Task, reg: float, z: np.ndarray, most: int | None, crew: Crew) -> Interior:
    """The problem with exact marginals, from potentials that are not far; ``most`` pairs fit the memory."""
    n, costs, masses = len(task.a), task.costs, np.concatenate([task.a, task.b])
    spread = task.spread or 1.0
    store, steps, target, part = PairStore(costs, most), 0, masses, settings.SOFT_START
    order = Order()
    limit, tol = -settings.NEAR * spread, settings.ROUGH
    terms = Terms(0.0, reg, 0.0, float(masses.max()), spread)
    for _ in range(settings.ROUNDS):
        best = costs.search(z[:n], z[n:], 2 * settings.BEST, limit, crew)
        fresh = store.fresh(best.left, best.right)
        left, right = best.left[fresh], best.right[fresh]
        if tol == settings.FINEST and not len(left):
            if missing(store, masses) <= settings.FINEST * masses.sum():
                break
            target = masses + terms.soft * z
        part, limit = max(settings.SOFTEN, 0.1 * part), settings.ROUNDING * spread
        if part == settings.SOFTEN and np.count_nonzero(np.diff(left, prepend=-1)) <= settings.FEW * n:
            tol = settings.FINEST
        terms = terms._replace(soft=part * float(masses.mean()) / spread)
        store.append((left, right, costs.of_pairs(left, right)))
        solved = solve_restricted(store, target, z, terms, tol, order, crew.stop)
        crew.check()
        used = solved.p * terms.pair_size > settings.IDLE * solved.slack * terms.node_size
        store.p = np.where(used, solved.p, 0.0)
        z, steps = solved.z, steps + solved.steps
    return Interior(z, store, steps)


def missing(store: PairStore, masses: np.ndarray) -> float:
    """Mass that the plan does not have where it should be."""
    sums = np.bincount(store.left, store.p, len(masses)) + np.bincount(store.right, store.p, len(masses))
    return float(np.abs(masses - sums).sum())
