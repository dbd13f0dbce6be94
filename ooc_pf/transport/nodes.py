"""The transport problem restricted to some pairs: order of the nodes, pattern, and the interior-point method."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spilu

from ..kernels.factor import Factor, elimination_tree
from ..kernels.transport_nodes import Pattern, Terms, follow_path, lay_out_pattern
from . import settings
from .store import PairStore


@dataclass(frozen=True)
class Solved:
    """What the interior-point method ended with.

    Attributes
    ----------
    z : float64[nodes]
        Potentials, rows first.
    p, slack : float64[pairs]
        Both positive.
    steps, fill : int
        Steps taken, and entries of the factor.
    """

    z: np.ndarray
    p: np.ndarray
    slack: np.ndarray
    steps: int
    fill: int


def minimum_degree(left: np.ndarray, right: np.ndarray, nodes: int) -> np.ndarray:
    """An order of the nodes with little fill (multiple minimum degree).

    SuperLU knows the order; an incomplete factor that drops everything is the cheapest way to ask for it.
    """
    upper = sparse.coo_array((np.ones(len(left)), (left, right)), shape=(nodes, nodes)).tocsc()
    matrix = (upper + upper.T + sparse.diags_array(np.full(nodes, 2.0 * len(left) + 1.0))).tocsc()
    incomplete = spilu(
        matrix, drop_tol=1.0, fill_factor=1.0, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )  # fmt: skip
    return np.argsort(incomplete.perm_c).astype(np.int64)


def prepare(left: np.ndarray, right: np.ndarray, order: np.ndarray) -> tuple[Pattern, Factor]:
    """Pattern of the equations over the nodes in this order, and room for their factor."""
    pattern = lay_out_pattern(left, right, order)
    parent, count = elimination_tree(pattern.start, pattern.index)
    start = np.concatenate(([0], np.cumsum(count)))
    return pattern, Factor(parent, start, np.empty(start[-1], np.int32), np.empty(start[-1]), np.empty(len(order)))


@dataclass
class Order:
    """An order of the nodes that is kept while few pairs are new; ``added`` is how many there were then."""

    nodes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    added: int = 0

    def of(self, store: PairStore, nodes: int) -> np.ndarray:
        if len(self.nodes) != nodes or store.added - self.added > settings.SAME_ORDER * len(store):
            self.nodes, self.added = minimum_degree(store.left, store.right, nodes), store.added
        return self.nodes


def solve_restricted(
    store: PairStore, target: np.ndarray, z: np.ndarray, terms: Terms, tol: float, order: Order, stop: np.ndarray
) -> Solved:
    """The problem on the remembered pairs, from the potentials z, to the relative gap ``tol``."""
    left, right, cost = store.left, store.right, store.cost
    pattern, factor = prepare(left, right, order.of(store, len(target)))
    z, p = z.copy(), np.full(len(left), settings.START * terms.node_size)
    slack = np.maximum(cost + terms.reg * p - (z[left] + z[right]), settings.START * terms.pair_size)
    steps, _ = follow_path(left, right, cost, target, z, p, slack, terms, pattern, factor, tol, settings.STEPS, stop)
    return Solved(z, p, slack, steps, len(factor.index))
