"""Potentials for exact marginals where the support is hardly more than a tree, and Newton steps lead nowhere.

Marginals are softened a little, so that a restricted problem always has an answer. It is solved by the interior-point
method of soft marginals, on pairs that searches bring.
"""

import numpy as np

from ..kernels.transport_nodes import Terms
from . import settings
from .crew import Crew
from .inputs import Costs
from .nodes import solve_restricted
from .store import PairStore


def interior_potentials(
    a: np.ndarray, b: np.ndarray, costs: Costs, reg: float, z: np.ndarray, crew: Crew
) -> tuple[np.ndarray, int]:
    """Potentials near the best ones, from some that are not far; and the steps it took."""
    n, target, spread = len(a), np.concatenate([a, b]), costs.spread() or 1.0
    store, steps, tol, limit = PairStore(costs.shape), 0, settings.ROUGH, -settings.NEAR * spread
    for turn in range(settings.ROUNDS):
        best = costs.search(z[:n], z[n:], 2 * settings.BEST, limit, crew)
        fresh = store.fresh(best.left, best.right)
        left, right = best.left[fresh], best.right[fresh]
        if not len(left) and tol < settings.ROUGH:
            break
        part, limit = max(settings.SOFTEN, 10.0 ** (-turn - 3)), settings.ROUNDING * spread
        if part == settings.SOFTEN and len(np.unique(left)) <= settings.FEW * n:
            tol = settings.FINE
        terms = Terms(part * float(target.mean()) / spread, reg, 0.0, float(target.max()), spread)
        store.append((left, right, costs.of_pairs(left, right)))
        solved = solve_restricted(store.left, store.right, store.cost, target, z, terms, tol, crew.stop)
        crew.check()
        z, steps = solved.z, steps + solved.steps
    return z, steps
