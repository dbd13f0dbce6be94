"""Transport with exact marginals: what a plan lacks of them, routed along a forest of its own pairs."""

import numpy as np

from . import kernel
from .components import root_of


@kernel
def route_rests(left, right, order, rest):
    """What to add to each pair so that every node gets its rest, with changes on a spanning forest only.

    Parameters
    ----------
    left, right : int64[pairs]
        Nodes.
    order : int64[pairs]
        The pairs, those first that the forest should have (Kruskal).
    rest : float64[nodes]
        What the pairs of a node are to sum up to more than they do. Changed: one node of every tree keeps what its tree
        has too much or too little as a whole, all others are left with zero.

    Returns
    -------
    flow : float64[pairs]
    """
    n, flow = len(rest), np.zeros(len(left))
    up, degree, link = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for e in order:
        a, b = root_of(left[e], up), root_of(right[e], up)
        if a != b:
            up[a] = b
            for node in (left[e], right[e]):
                degree[node] += 1
                link[node] ^= e  # of a leaf this is its only pair
    for leaf in range(n):
        node = leaf
        while degree[node] == 1:
            e = link[node]
            other = left[e] if right[e] == node else right[e]
            flow[e] = rest[node]
            rest[other] -= rest[node]
            rest[node], degree[node] = 0.0, 0
            degree[other] -= 1
            link[other] ^= e
            node = other
    return flow
