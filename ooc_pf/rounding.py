"""From a fractional correlation clustering to clusters."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .errors import InputError
from .kernels import clusters


class Level(NamedTuple):
    """A graph to move nodes on: arcs in CSR, see `kernels.clusters`."""

    start: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    base: float


def clustering_cost(u, v, weight, labels, *, base=None) -> float:
    together = labels[u] == labels[v]
    cost = float(weight[~together & (weight > 0)].sum() - weight[together & (weight < 0)].sum())
    if base:
        size = np.unique(labels, return_counts=True)[1].astype(np.int64)
        cost -= base * float((size * (size - 1) // 2).sum() - np.count_nonzero(together))
    return cost


def _level(a, b, weight, size, base):
    nodes = len(size)
    m = sparse.coo_array((weight, (a, b)), shape=(nodes, nodes)).tocsr()
    return Level(m.indptr.astype(np.int64), m.indices.astype(np.int32), m.data, size, base)


def _contract(level, labels):
    k = int(labels.max()) + 1
    tail = np.repeat(labels, np.diff(level.start))
    head = labels[level.node]
    cross = tail != head
    return _level(tail[cross], head[cross], level.weight[cross], np.bincount(labels, level.size, k), level.base)


def _numbered(labels):
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _improve(level, labels, rng, least):
    while True:
        labels = labels.copy()
        order = rng.permutation(len(labels)).astype(np.int32)
        while clusters.move_nodes(*level, labels, order, least) > least:
            pass
        labels = _numbered(labels)
        k = int(labels.max()) + 1
        if k == len(labels):
            return labels
        joined = _improve(_contract(level, labels), np.arange(k, dtype=np.int32), rng, least)
        if joined.max() + 1 == k:
            return labels
        labels = joined[labels]
