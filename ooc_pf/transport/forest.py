"""The exact end: from the interior-point answer to potentials and multipliers on a forest, right to rounding."""

import numpy as np

from ..kernels.transport_forest import Forest, drop_negative, pivot, settle_trees, spanning_forest
from . import settings
from .store import PairStore


def grow_forest(store: PairStore, target: np.ndarray, rows: int, chosen: np.ndarray) -> Forest:
    """Trees over all nodes made of ``chosen`` pairs, each as long as it closes no cycle."""
    n, pairs = len(target), len(store)
    forest = Forest(
        rows, store.left, store.right, store.cost, np.zeros(pairs), target, np.empty(n), np.zeros(pairs, np.bool_),
        np.full(n, -1), np.full(2 * pairs, -1), np.full(2 * pairs, -1),
    )  # fmt: skip
    spanning_forest(forest, chosen)
    return forest


def support_of(p: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The pairs that carry mass at the end of an interior-point solve, those surest to first."""
    chosen = np.flatnonzero(p > slack)
    return chosen[np.argsort(-p[chosen] / slack[chosen], kind="stable")]


def finish(forest: Forest, size: float, stop: np.ndarray) -> tuple[bool, int]:
    """Make multipliers positive and pairs hold, up to rounding of numbers of this size.

    Returns whether that was done, and the nodes visited.

    First pairs with negative multipliers leave. What is left is optimal for itself, which pivots then keep true.
    """
    settle_trees(forest)
    while drop_negative(forest):
        settle_trees(forest)
    done, visited = pivot(forest, settings.ROUNDING * size, settings.PIVOTS, settings.WORK * len(forest.z), stop)
    if done:
        settle_trees(forest)  # against the rounding of many pivots
    return done, visited
