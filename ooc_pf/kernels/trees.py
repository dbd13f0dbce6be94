"""Cycles from a few shortest-path trees: a tree bounds the distance of every pair that it joins.

The trees are those of `kernels.lanes`, one in each lane. Labels grow along every path, so that of two nodes the one
with the larger label is never above the other.
"""

import numpy as np

from ..kernels import inlined, kernel
from .lanes import FAR


@inlined
def _climb(a, b, lane, bar, label, parent, length):
    """Length of the way from ``a`` to ``b`` in a tree, or inf once it is not below ``bar``."""
    way = 0.0
    if label[a, lane] == FAR or label[b, lane] == FAR:
        way = np.inf
    while a != b and way < bar:
        if label[a, lane] >= label[b, lane]:
            way += length[a, lane]
            a = parent[a, lane]
        else:
            way += length[b, lane]
            b = parent[b, lane]
    return way if way < bar else np.inf


@kernel
def best_trees(near, far, lanes, best, shortest):
    """The tree with the shortest way for each pair, -1 where no way is shorter than the one known.

    Parameters
    ----------
    near, far : int32[pairs]
    lanes : Lanes
        One tree in each.
    best : int32[pairs]
        Out.
    shortest : float64[pairs]
        What a way must stay below; brought down to the length of the best one.
    """
    _, label, _, parent, _, length = lanes
    for pair in range(len(near)):
        best[pair] = -1
        for lane in range(label.shape[1]):
            way = _climb(near[pair], far[pair], lane, shortest[pair], label, parent, length)
            if way < shortest[pair]:
                shortest[pair] = way
                best[pair] = lane


@kernel
def tree_rows(near, far, closing, best, lanes, row_start, entries):
    """Write the ways of `best_trees` as rows, the closing edge first; with empty ``entries`` only ``row_start``."""
    label, parent, edge = lanes.label, lanes.parent, lanes.edge
    row = at = 0
    row_start[0] = 0
    for pair in range(len(near)):
        lane = best[pair]
        if lane < 0:
            continue
        if len(entries):
            entries[at] = closing[pair]
        at += 1
        a, b = near[pair], far[pair]
        while a != b:
            low = a if label[a, lane] >= label[b, lane] else b
            if len(entries):
                entries[at] = edge[low, lane]
            at += 1
            if low == a:
                a = parent[a, lane]
            else:
                b = parent[b, lane]
        row += 1
        row_start[row] = at
