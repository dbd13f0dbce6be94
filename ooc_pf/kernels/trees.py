"""Cycles from a few shortest-path trees: a tree bounds the distance of every pair that it joins.

The trees are those of `kernels.lanes`, one in each lane. Labels grow along every path, so that of two nodes the one
with the larger label is never above the other.
"""

import numpy as np

from ..kernels import inlined, kernel
from .lanes import SCRAMBLE, far


@inlined
def _climb(a, b, lane, bar, most, penalty, chance, label, parent, length):
    """(Length, price) of the way from ``a`` to ``b`` in a tree, where the price is length, penalties and ``chance``.

    Both are inf once the first is not below ``bar``, or the second not below ``most``.
    """
    way, cost = 0.0, 0.0
    if label[a, lane] == far(label) or label[b, lane] == far(label):
        way = np.inf
    while a != b and way < bar and cost + chance < most:
        if label[a, lane] >= label[b, lane]:
            way, cost = way + length[a, lane], cost + length[a, lane] + penalty
            a = parent[a, lane]
        else:
            way, cost = way + length[b, lane], cost + length[b, lane] + penalty
            b = parent[b, lane]
    return (way, cost + chance) if way < bar and cost + chance < most else (np.inf, np.inf)


@inlined
def _chance(pair, tree):
    """A number between 0 and 1 that pair and tree decide, by two rounds of multiplicative hashing."""
    mixed = np.uint64(pair) * SCRAMBLE + np.uint64(tree)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * SCRAMBLE
    mixed = (mixed ^ (mixed >> np.uint64(32))) * SCRAMBLE
    return np.float64(mixed >> np.uint64(40)) / (1 << 24)


@kernel
def best_trees(near, far, closing, bar, lanes, first, penalty, best, price, shortest):
    """The tree with the cheapest way for each pair, -1 where none is cheaper than the one known; of equals the first.

    Every arc costs ``penalty`` beside its length. Of ways that cost nearly the same each pair takes one at random, so
    that rows share few edges.

    Parameters
    ----------
    near, far, closing : int32[pairs]
    bar : float64[pairs]
        What the length of a way must stay below.
    lanes : Lanes
        One tree in each, the first of which has the number ``first``.
    best : int32[pairs]
        Out: the lane.
    price : float64[pairs]
        What a way must cost less than, its share of chance included; brought down to that of the best one.
    shortest : float64[pairs]
        Out: its length.
    """
    _, label, _, parent, _, length = lanes
    for pair in range(len(near)):
        best[pair] = -1
        for lane in range(label.shape[1]):
            chance, most = penalty * _chance(closing[pair], first + lane), price[pair]
            way, cost = _climb(near[pair], far[pair], lane, bar[pair], most, penalty, chance, label, parent, length)
            if cost < most:
                price[pair], shortest[pair], best[pair] = cost, way, lane


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
