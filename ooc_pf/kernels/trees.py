"""Cycles from a few shortest-path trees: a tree bounds the distance of every pair that it joins."""

import numpy as np

from ..kernels import inlined, kernel
from .paths import next_page
from .queue import BUCKETS, EDGE, HOPS, PARENT, QUEUED, TOUCHED, clear_labels, label_node, take_first
from .ragged import mix_bits


@inlined
def _noise(edge, seed):
    """A number in [0, 1) that edge and seed decide."""
    return float(mix_bits(np.uint64(edge) ^ np.uint64(seed)) >> np.uint64(11)) * 2.0**-53


@kernel
def grow_tree(root, radius, penalty, seed, arc_start, arcs, labels, tree):
    """Grow a shortest-path tree from ``root`` up to ``radius``, and clear the labels again.

    Each arc costs between one and two ``penalty`` more than its length: paths get short, and differ between seeds.
    ``tree`` (int32[nodes, 3]) receives hops, parent and parent edge; hops -1 where the tree does not reach. Returns how
    many arcs were looked at.
    """
    dist, label, head, touched, state = labels
    relaxed = 0
    scale = BUCKETS / radius
    tree[:, 0] = -1
    label_node(root, 0.0, 0, -1, -1, True, scale, dist, label, head, touched, state)
    while state[QUEUED] > 0:
        node = take_first(label, head, state)
        arc = arc_start[node]
        while arc < arc_start[node + 1]:
            if dist[node] + arcs[arc].length >= radius:
                arc = next_page(arc)
                continue
            relaxed += 1
            far, edge = arcs[arc].node, arcs[arc].edge
            length = dist[node] + arcs[arc].length + penalty * (1.0 + _noise(edge, seed))
            if length < dist[far] and length < radius:
                label_node(
                    far, length, label[node, HOPS] + 1, node, edge, True, scale, dist, label, head, touched, state
                )
            arc += 1
    for k in range(labels.state[TOUCHED]):
        node = touched[k]
        tree[node, 0], tree[node, 1], tree[node, 2] = label[node, HOPS], label[node, PARENT], label[node, EDGE]
    clear_labels(labels)
    return relaxed


@inlined
def _climb(a, b, x, limit, tree):
    """Length of the way from ``a`` to ``b`` in a tree, or inf once it is not below ``limit``."""
    length = 0.0
    if tree[a, 0] < 0 or tree[b, 0] < 0:
        length = np.inf
    while a != b and length < limit:
        if tree[a, 0] >= tree[b, 0]:
            length += x[tree[a, 2]]
            a = tree[a, 1]
        else:
            length += x[tree[b, 2]]
            b = tree[b, 1]
    return length if length < limit else np.inf


@kernel
def best_trees(near, far, limit, slack, x, trees, best, length):
    """The tree with the shortest way for each pair, -1 where no tree goes below the limit by more than ``slack``.

    Parameters
    ----------
    near, far : int32[pairs], limit : float64[pairs]
    x : float64[edges]
    trees : int32[trees, nodes, 3]
    best : int32[pairs], length : float64[pairs]
        Out.
    """
    for pair in range(len(near)):
        best[pair] = -1
        length[pair] = limit[pair] - slack
        for k in range(len(trees)):
            found = _climb(near[pair], far[pair], x, length[pair], trees[k])
            if found < length[pair]:
                length[pair] = found
                best[pair] = k


@kernel
def tree_rows(near, far, closing, best, trees, row_start, entries):
    """Write the ways of `best_trees` as rows, the closing edge first; with empty ``entries`` only ``row_start``."""
    row = at = 0
    row_start[0] = 0
    for pair in range(len(near)):
        if best[pair] < 0:
            continue
        tree = trees[best[pair]]
        if len(entries):
            entries[at] = closing[pair]
        at += 1
        a, b = near[pair], far[pair]
        while a != b:
            low = a if tree[a, 0] >= tree[b, 0] else b
            if len(entries):
                entries[at] = tree[low, 2]
            at += 1
            if low == a:
                a = tree[a, 1]
            else:
                b = tree[b, 1]
        row += 1
        row_start[row] = at
