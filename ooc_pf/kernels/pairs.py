"""Pairs of a complete graph that have no variable yet, found where a path joins their ends too closely."""

import numpy as np

from ..kernels import kernel
from .paths import RELAXED, STATE_SIZE, next_page
from .queue import BUCKETS, EDGE, HOPS, PARENT, QUEUED, TOUCHED, clear_labels, label_node, take_first


@kernel
def _search(source, radius, max_hops, arc_start, arcs, dist, label, head, touched, state):
    """Shortest paths from ``source`` below ``radius`` over at most ``max_hops`` arcs."""
    scale = BUCKETS / radius
    label_node(source, 0.0, 0, -1, -1, True, scale, dist, label, head, touched, state)
    while state[QUEUED] > 0:
        node = take_first(label, head, state)
        hop = label[node, HOPS] + 1
        arc = arc_start[node]
        while arc < arc_start[node + 1]:
            length = dist[node] + arcs[arc].length
            if length >= radius:
                arc = next_page(arc)
                continue
            state[RELAXED] += 1
            far = arcs[arc].node
            if length < dist[far] or (length == dist[far] and hop < label[far, HOPS]):
                label_node(far, length, hop, node, arcs[arc].edge, hop < max_hops, scale,
                       dist, label, head, touched, state)  # fmt: skip
            arc += 1


@kernel
def _write(source, known, dist, label, touched, count, pair, reach, row_end, entries, rows, used):
    """Write one row for each new pair of ``source``; returns the rows, -1 if there is no room, and the entries used."""
    for k in range(count):
        node = touched[k]
        if node <= source or known[node] == source:
            continue
        if rows == len(row_end) or used + label[node, HOPS] + 1 > len(entries):
            return -1, used
        pair[rows, 0], pair[rows, 1], reach[rows] = source, node, dist[node]
        entries[used] = -1 - rows
        used += 1
        while label[node, PARENT] >= 0:
            entries[used] = label[node, EDGE]
            used += 1
            node = label[node, PARENT]
        row_end[rows] = used
        rows += 1
    return rows, used


@kernel
def discover(sources, first, radius, max_hops, known_start, known_node, arc_start, arcs,
             dist, label, head, touched, known, pair, reach, row_end, entries):  # fmt: skip
    """Pairs without a variable whose ends are closer than ``radius``, each from its lower end, with a row each.

    Parameters
    ----------
    sources : int32[s], first : int
        Sources before ``first`` are done already.
    known_start : int64[nodes + 1], known_node : int32[known]
        Pairs that have a variable, by lower end.
    arc_start, arcs
        All arcs, sorted by length (ARC).
    dist, label, head, touched
        Scratch of `paths.advance`; known : int32[nodes] filled with -1.
    pair : int32[rows, 2], reach : float64[rows], row_end : int64[rows], entries : int32[entries]
        Out: ends and distance of each pair found; rows with -1 - (number of the pair) as closing edge.

    Returns
    -------
    sources done, rows, entries, arcs relaxed : int
        The buffers were too small if not all sources are done: empty them, or make them larger if no row is there.
    """
    rows, used, relaxed = 0, 0, 0
    for at in range(first, len(sources)):
        source = sources[at]
        state = np.zeros(STATE_SIZE, np.int64)
        _search(source, radius, max_hops, arc_start, arcs, dist, label, head, touched, state)
        for k in range(known_start[source], known_start[source + 1]):
            known[known_node[k]] = source
        new_rows, new_used = _write(source, known, dist, label, touched, state[TOUCHED], pair, reach, row_end, entries,
                                    rows, used)  # fmt: skip
        for k in range(known_start[source], known_start[source + 1]):
            known[known_node[k]] = -1
        clear_labels(dist, label, head, touched, state)
        relaxed += state[RELAXED]
        if new_rows < 0:
            return at, rows, used, relaxed
        rows, used = new_rows, new_used
    return len(sources), rows, used, relaxed
