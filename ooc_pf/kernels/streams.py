"""Clusters of a graph whose edges come in parts: its arcs are brought into order by node, and nodes move in that order.

What is kept by node is in memory, what is kept by arc comes and goes. Labels are numbers of clusters, int32[nodes].
"""

import numpy as np

from ..kernels import kernel
from .clusters import best_cluster, pulls, put_into

# An arc on its way to the others of its tail.
ARC = np.dtype((np.record, [("weight", np.float64), ("tail", np.int32), ("head", np.int32)]))


@kernel
def count_across(u, v, labels, count):
    """Add to ``count`` int64[clusters] the edges between each cluster and others."""
    for edge in range(len(u)):
        a, b = labels[u[edge]], labels[v[edge]]
        if a != b:
            count[a] += 1
            count[b] += 1


@kernel
def deal_arcs(u, v, weight, labels, ends, arcs):
    """Write both arcs of every edge between two clusters to ``arcs`` ARC[2 * edges], grouped by range of the tail.

    ``ends`` int64[ranges] has the first cluster behind each range. Returns where the groups begin,
    int64[ranges + 1]. Within a group the order of the edges is kept.
    """
    begin = np.zeros(len(ends) + 1, np.int64)
    for edge in range(len(u)):
        a, b = labels[u[edge]], labels[v[edge]]
        if a != b:
            begin[np.searchsorted(ends, a, "right") + 1] += 1
            begin[np.searchsorted(ends, b, "right") + 1] += 1
    for group in range(len(ends)):
        begin[group + 1] += begin[group]
    free = begin.copy()
    for edge in range(len(u)):
        a, b = labels[u[edge]], labels[v[edge]]
        if a == b:
            continue
        for tail, head in ((a, b), (b, a)):
            group = np.searchsorted(ends, tail, "right")
            arc = arcs[free[group]]
            arc.weight, arc.tail, arc.head = weight[edge], tail, head
            free[group] += 1
    return begin


@kernel
def merge_tail(arcs, seen, node, weight, lowest, used):
    """Put the arcs of one tail into ``node`` int32[n] and ``weight`` float64[n], and add up those to the same head.

    What is at ``lowest:used`` already is of this tail too. ``seen`` int32[clusters] has anything at first, and then the
    place of each head. Returns the new end. Arcs stay in the order in which their heads first came.
    """
    for k in range(len(arcs)):
        head = arcs[k].head
        slot = seen[head]
        # What another tail left in ``seen`` points elsewhere, or to another head.
        if lowest <= slot < used and node[slot] == head:
            weight[slot] += arcs[k].weight
        else:
            seen[head], node[used], weight[used] = used, head, arcs[k].weight
            used += 1
    return used


@kernel
def merge_arcs(arcs, first, degree, seen, node, weight):
    """Order the arcs of clusters ``first, first + 1, ...`` by tail, and merge those of each, see `merge_tail`.

    ``degree`` int64[range] has how many arcs each tail has, and then how many merged ones.
    """
    free = np.zeros(len(degree) + 1, np.int64)
    for tail in range(len(degree)):
        free[tail + 1] = free[tail] + degree[tail]
    ordered = np.empty_like(arcs)
    for k in range(len(arcs)):
        tail = arcs[k].tail - first
        ordered[free[tail]] = arcs[k]
        free[tail] += 1
    used = 0
    for tail in range(len(degree)):
        lowest = used
        used = merge_tail(ordered[free[tail] - degree[tail] : free[tail]], seen, node, weight, lowest, used)
        degree[tail] = used - lowest
    return used


@kernel
def move_in_order(first, start, node, weight, size, least, labels, total, members, spare, pull, met, waiting):
    """Move the waiting nodes among ``first, first + 1, ...``, whose arcs these are, each to where it saves most.

    ``waiting`` bool[nodes] is cleared for them, and set for neighbours that may want to move now. The other arrays by
    node are those of `clusters.move_nodes`. Returns how many moved.
    """
    moved = 0
    for k in range(len(start) - 1):
        at = first + k
        if not waiting[at]:
            continue
        waiting[at] = False
        count = pulls(start, node, weight, labels, k, pull, met)
        target, _ = best_cluster(size, 0.0, least, labels, total, at, pull, met, count)
        home = labels[at]
        if target == home:
            continue
        target = put_into(size, labels, total, members, spare, at, target)
        moved += 1
        for arc in range(start[k], start[k + 1]):
            far = node[arc]
            if labels[far] != (target if weight[arc] > 0 else home):
                waiting[far] = True
    return moved
