"""Data of the paper's experiments: signed weights of a graph without signs (Wang et al.), and random tables."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from ..cycles.graph import canonical_edges
from ..errors import InputError

# These define the weights of the paper's experiments.
SHIFT = 0.05  # pairs whose neighbourhoods overlap by less than this repel
OFFSET = 0.01  # every weight of a listed pair is moved so far away from zero
BASE = float(np.log((1.0 - SHIFT) / (1.0 + SHIFT)))  # weight of a pair without a common neighbour
KINDS = ("I", "II", "III")


def wang_weights(u: Any, v: Any, n: int | None = None) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, float]:
    """Weights of all pairs of nodes from how much their neighbourhoods overlap.

    A pair with a common neighbour and Jaccard coefficient J gets ``log((1 + J - 0.05) / (1 - J + 0.05))``, moved by
    0.01 away from zero. All other pairs, adjacent or not, share one small negative weight, so they are not listed.

    Parameters
    ----------
    u, v : int arrays
        Ends of the edges of a simple graph, each edge once.
    n : int, optional
        Number of nodes; by default the largest that occurs, plus one.

    Returns
    -------
    pairs : (int32 array, int32 array)
        Ends u < v of the listed pairs.
    weights : float64 array
        Positive attracts, negative repels.
    base : float
        Weight of every pair that is not listed.

    Examples
    --------
    >>> import ooc_pf as pf
    >>> (u, v), weight, base = pf.wang_weights([0, 1, 0, 2], [1, 2, 2, 3])
    >>> len(weight), round(base, 6)
    (5, -0.100083)
    >>> result = pf.correlation_clustering((u, v, weight), base=base)
    """
    u, v, _ = canonical_edges(u, v, np.ones(len(np.atleast_1d(u))))
    last = int(max(u.max(initial=-1), v.max(initial=-1)))
    n = last + 1 if n is None else n
    if n <= last:
        raise InputError(f"n is {n}, but there is a node {last}; n must be larger than every node number")
    low, high, overlap = _jaccard(u, v, n)
    weight = np.log((1.0 + overlap - SHIFT) / (1.0 - overlap + SHIFT))
    touching = np.isin(low.astype(np.int64) * n + high, u * n + v)
    sign = np.where(weight == 0, np.where(touching, 1.0, -1.0), np.sign(weight))
    order = np.lexsort((high, low))
    return (low[order].astype(np.int32), high[order].astype(np.int32)), (weight + OFFSET * sign)[order], BASE


def _jaccard(u: np.ndarray, v: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends, low < high, of all pairs with a common neighbour, and the Jaccard coefficient of their neighbourhoods."""
    ones = np.ones(2 * len(u), np.int64)
    tail, head = np.concatenate((u, v)), np.concatenate((v, u))
    adjacent = sparse.coo_array((ones, (tail, head)), shape=(n, n)).tocsr()
    degree = adjacent.sum(axis=1)
    common = sparse.coo_array(sparse.triu(adjacent @ adjacent, k=1))
    low, high = common.row, common.col
    return low, high, common.data / (degree[low] + degree[high] - common.data)


def random_dissimilarities(n: int, kind: str = "I", seed: int = 0) -> np.ndarray:
    """A symmetric n x n array with zero diagonal.

    Parameters
    ----------
    n : int
        Number of points.
    kind : {"I", "II", "III"}
        "I": standard normal numbers, so half of them negative. "II": 1 with probability 0.8, else 0. "III":
        ``ceil(1000 * u * v**2)`` with u uniform in [0, 1] and v standard normal.
    seed : int
        The same seed gives the same table.

    Returns
    -------
    float64[n, n]

    Examples
    --------
    >>> import ooc_pf as pf
    >>> table = pf.random_dissimilarities(50, "I", seed=0)
    >>> round(pf.metric_nearness(table, tol=1e-9).objective, 4)
    566.0744
    """
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n must be a positive whole number, found {n!r}")
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, found {kind!r}")
    if not isinstance(seed, Integral):
        raise InputError(f"seed must be a whole number, found {seed!r}")
    rng = np.random.default_rng(int(seed))
    if kind == "I":
        table = rng.standard_normal((n, n))
    elif kind == "II":
        table = (rng.random((n, n)) < 0.8).astype(np.float64)
    else:
        table = np.ceil(1000.0 * rng.random((n, n)) * rng.standard_normal((n, n)) ** 2)
    table = np.triu(table, 1)
    table += table.T
    return table
