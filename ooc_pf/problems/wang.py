"""Signed weights from a graph without signs, as in the dense clustering experiments of the paper (Wang et al.)."""

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..graph import canonical_edges

SHIFT = 0.05  # pairs whose neighbourhoods overlap by less than this repel
OFFSET = 0.01  # away from zero
BASE = float(np.log((1.0 - SHIFT) / (1.0 + SHIFT)))


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
    ones = np.ones(2 * len(u), np.int64)
    adjacent = sparse.coo_array((ones, (np.concatenate((u, v)), np.concatenate((v, u)))), shape=(n, n)).tocsr()
    degree = adjacent.sum(axis=1)
    common = sparse.coo_array(sparse.triu(adjacent @ adjacent, k=1))
    low, high = common.row, common.col
    overlap = common.data / (degree[low] + degree[high] - common.data)
    weight = np.log((1.0 + overlap - SHIFT) / (1.0 - overlap + SHIFT))
    touching = np.isin(low.astype(np.int64) * n + high, u * n + v)
    sign = np.where(weight == 0, np.where(touching, 1.0, -1.0), np.sign(weight))
    order = np.lexsort((high, low))
    return (low[order].astype(np.int32), high[order].astype(np.int32)), (weight + OFFSET * sign)[order], BASE
