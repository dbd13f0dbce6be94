"""Cycles from a few shortest-path trees: a tree bounds the distance of every pair that it joins."""

import numpy as np

from . import kernel
from .paths import DONE, EXPAND, HEAP, NODE, PHASE, START, UNLIMITED, _label, expand, settle


@kernel
def grow_tree(root, arc_start, slot_of_page, arc_node, arc_length, arc_edge,
              dist, hops, parent, parent_edge, place, heap, touched, state):  # fmt: skip
    """One shortest-path tree from ``root`` over all it can reach, in ``parent``, ``parent_edge`` and ``hops``.

    Returns DONE, or the number of the arc page to load before calling again. Nodes out of reach keep ``dist`` inf; the
    caller clears the labels.
    """
    if state[PHASE] == START:
        state[NODE] = -1
        _label(root, 0.0, 0, -1, -1, True, dist, hops, parent, parent_edge, place, heap, touched, state)
        state[PHASE] = EXPAND
    while state[HEAP] > 0 or state[NODE] >= 0:
        if state[NODE] < 0:
            settle(arc_start, dist, hops, place, heap, state)
        missing = expand(arc_start, slot_of_page, arc_node, arc_length, arc_edge, np.inf, UNLIMITED,
                         dist, hops, parent, parent_edge, place, heap, touched, state)  # fmt: skip
        if missing >= 0:
            return missing
    return DONE


@kernel
def _climb(a, b, x, limit, hops, parent, parent_edge):
    """Length of the way from ``a`` to ``b`` in a tree, or inf once it is not below ``limit``."""
    length = 0.0
    while a != b:
        if hops[a] >= hops[b]:
            if parent[a] < 0:
                return np.inf
            length += x[parent_edge[a]]
            a = parent[a]
        else:
            length += x[parent_edge[b]]
            b = parent[b]
        if length >= limit:
            return np.inf
    return length


@kernel
def best_trees(near, far, limit, slack, x, hops, parent, parent_edge, best, length):
    """The tree with the shortest way for each pair, -1 where no tree goes below the limit by more than ``slack``.

    Parameters
    ----------
    near, far : int32[pairs], limit : float64[pairs]
    x : float64[edges]
    hops, parent, parent_edge : int32[trees, nodes]
    best : int32[pairs], length : float64[pairs]
        Out.
    """
    for pair in range(len(near)):
        best[pair] = -1
        length[pair] = limit[pair] - slack
        for tree in range(len(hops)):
            found = _climb(near[pair], far[pair], x, length[pair], hops[tree], parent[tree], parent_edge[tree])
            if found < length[pair]:
                length[pair] = found
                best[pair] = tree


@kernel
def tree_rows(near, far, closing, best, hops, parent, parent_edge, row_start, entries):
    """Write the ways of `best_trees` as rows, the closing edge first; with empty ``entries`` only ``row_start``."""
    row = at = 0
    row_start[0] = 0
    for pair in range(len(near)):
        tree = best[pair]
        if tree < 0:
            continue
        if len(entries):
            entries[at] = closing[pair]
        at += 1
        a, b = near[pair], far[pair]
        while a != b:
            low = a if hops[tree, a] >= hops[tree, b] else b
            if len(entries):
                entries[at] = parent_edge[tree, low]
            at += 1
            if low == a:
                a = parent[tree, a]
            else:
                b = parent[tree, b]
        row += 1
        row_start[row] = at
