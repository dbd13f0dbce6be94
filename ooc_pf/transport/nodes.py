"""The transport problem restricted to some pairs: order of the nodes, pattern, and the interior-point method."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spilu

from ..kernels.factor import Factor, elimination_tree
from ..kernels.transport_nodes import Pattern, Terms, follow_path, lay_out_pattern
from . import settings


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


def prepare(left: np.ndarray, right: np.ndarray, nodes: int) -> tuple[Pattern, Factor]:
    """Pattern of the equations over the nodes, and room for their factor."""
    pattern = lay_out_pattern(left, right, minimum_degree(left, right, nodes))
    parent, count = elimination_tree(pattern.start, pattern.index)
    start = np.concatenate(([0], np.cumsum(count)))
    return pattern, Factor(parent, start, np.empty(start[-1], np.int32), np.empty(start[-1]), np.empty(nodes))


def solve_restricted(
    left: np.ndarray, right: np.ndarray, cost: np.ndarray, target: np.ndarray, z: np.ndarray, terms: Terms, tol: float,
    stop: np.ndarray,
) -> Solved:  # fmt: skip
    """The problem on these pairs, from the potentials z, to the relative gap ``tol``."""
    pattern, factor = prepare(left, right, len(target))
    z, p = z.copy(), np.full(len(left), settings.START * terms.node_size)
    slack = np.maximum(cost + terms.reg * p - (z[left] + z[right]), settings.START * terms.pair_size)
    steps, _ = follow_path(left, right, cost, target, z, p, slack, terms, pattern, factor, tol, settings.STEPS, stop)
    return Solved(z, p, slack, steps, len(factor.index))
