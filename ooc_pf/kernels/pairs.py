"""Pairs of a complete graph that have no variable yet, found where a path joins their ends too closely."""

from typing import NamedTuple

import numpy as np

from ..kernels import kernel
from .paths import next_page
from .queue import BUCKETS, EDGE, HOPS, PARENT, QUEUED, TOUCHED, clear_labels, label_node, take_first


class Known(NamedTuple):
    """The pairs that have a variable, by lower end: ``node[start[a]:start[a + 1]]`` are the upper ends of ``a``.

    ``start`` int64[nodes + 1], ``node`` int32[known]; ``mark`` int32[nodes], filled with -1, is scratch.
    """

    start: np.ndarray
    node: np.ndarray
    mark: np.ndarray


class PairRows(NamedTuple):
    """Room for what is found: ends and distance of each pair, and its row, with -1 - (its number) as closing edge.

    ``pair`` int32[rows, 2], ``reach`` float64[rows], ``end`` int64[rows], ``entries`` int32[entries].
    """

    pair: np.ndarray
    reach: np.ndarray
    end: np.ndarray
    entries: np.ndarray


@kernel
def _search(source, radius, max_hops, arc_start, arcs, labels):
    """Shortest paths from ``source`` below ``radius`` over at most ``max_hops`` arcs; returns the arcs looked at."""
    dist, label, head, touched, state = labels
    relaxed = 0
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
            relaxed += 1
            far = arcs[arc].node
            if length < dist[far] or (length == dist[far] and hop < label[far, HOPS]):
                label_node(
                    far, length, hop, node, arcs[arc].edge, hop < max_hops, scale, dist, label, head, touched, state
                )
            arc += 1
    return relaxed


@kernel
def _write(source, mark, labels, found, rows, used):
    """Write one row for each new pair of ``source``; returns the rows, -1 if there is no room, and the entries used."""
    label = labels.label
    for k in range(labels.state[TOUCHED]):
        node = labels.touched[k]
        if node <= source or mark[node] == source:
            continue
        if rows == len(found.end) or used + label[node, HOPS] + 1 > len(found.entries):
            return -1, used
        found.pair[rows, 0], found.pair[rows, 1] = source, node
        found.reach[rows] = labels.dist[node]
        found.entries[used] = -1 - rows
        used += 1
        while label[node, PARENT] >= 0:
            found.entries[used] = label[node, EDGE]
            used += 1
            node = label[node, PARENT]
        found.end[rows] = used
        rows += 1
    return rows, used


@kernel
def discover(sources, first, radius, max_hops, known, arc_start, arcs, labels, found):
    """Pairs without a variable whose ends are closer than ``radius``, each from its lower end, with a row each.

    Parameters
    ----------
    sources : int32[s], first : int
        Sources before ``first`` are done already.
    radius : float, max_hops : int
        Paths are shorter than this, and have at most so many arcs.
    known : Known
    arc_start : int64[nodes + 1], arcs : ARC[arcs]
        All arcs, sorted by length as `lengths.set_lengths` does.
    labels : Labels
        Scratch.
    found : PairRows
        Out.

    Returns
    -------
    sources done, rows, entries, arcs relaxed : int
        The buffers were too small if not all sources are done: empty them, or make them larger if no row is there.
    """
    rows, used, relaxed = 0, 0, 0
    for at in range(first, len(sources)):
        source = sources[at]
        relaxed += _search(source, radius, max_hops, arc_start, arcs, labels)
        upper = known.node[known.start[source] : known.start[source + 1]]
        for node in upper:
            known.mark[node] = source
        new_rows, new_used = _write(source, known.mark, labels, found, rows, used)
        for node in upper:
            known.mark[node] = -1
        clear_labels(labels)
        if new_rows < 0:
            return at, rows, used, relaxed
        rows, used = new_rows, new_used
    return len(sources), rows, used, relaxed
