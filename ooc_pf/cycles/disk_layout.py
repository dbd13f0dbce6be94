"""Lay out a graph larger than memory: one pass over the edges for each range of nodes whose arcs fit.

Nodes keep their numbers, so whatever locality the input has is kept: neighbours that were listed near each other share
pages. The graph is not split at cut vertices, which would take all of it in memory; searches find no way around a
bridge anyway.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..storage.arrays import ArrayWriter, write_array
from ..storage.vectors import PAGE, Vector, spans
from . import settings

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # group, other end, edge
Edges = tuple[Vector, Vector, Vector, np.ndarray]  # ends, values, and the nodes that each page of them reaches


def build_external_graph(
    group: Path, u: Vector, v: Vector, value: Vector, nodes: int, *, signed: bool, memory: int
) -> None:
    """Write the arrays of a `Graph` into ``group``, using about ``memory`` bytes beyond a few numbers a node.

    Signed graphs are walked over positive edges and closed by negative ones; others both over all edges.
    """
    walked, closed = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    reaches = []  # of each part of the edges, the lowest node and the highest
    for a, b, w in spans(u, v, value):
        reaches.append((a.min(initial=nodes), b.max(initial=-1)))
        for mask, count in ((w > 0 if signed else slice(None), walked), (w < 0 if signed else slice(None), closed)):
            np.add.at(count, a[mask], 1)
            np.add.at(count, b[mask], 1)

    def arcs(a: np.ndarray, b: np.ndarray, w: np.ndarray, edge: np.ndarray) -> Columns:
        on = w > 0 if signed else slice(None)
        return np.concatenate((a[on], b[on])), np.concatenate((b[on], a[on])), np.tile(edge[on], 2)

    def closers(a: np.ndarray, b: np.ndarray, w: np.ndarray, edge: np.ndarray) -> Columns:
        on = w < 0 if signed else slice(None)
        a, b = a[on], b[on]
        # From the end that closes more: a small cover.
        from_a = (closed[a] > closed[b]) | ((closed[a] == closed[b]) & (a < b))
        return np.where(from_a, a, b), np.where(from_a, b, a), edge[on]

    room = max(1, memory // settings.LAYOUT_ENTRY_BYTES)
    edges = (u, v, value, np.array(reaches).reshape(-1, 2))
    count = _write_grouped(group, "arc", edges, walked, arcs, room)
    write_array(group, "arc_start", np.concatenate(([0], np.cumsum(count))))
    count = _write_grouped(group, "closer", edges, closed, closers, room)
    sources = np.flatnonzero(count)
    write_array(group, "sources", sources.astype(np.int32))
    write_array(group, "closer_start", np.concatenate(([0], np.cumsum(count[sources]))))


def _write_grouped(
    group: Path, name: str, edges: Edges, most: np.ndarray, columns: Callable[..., Columns], room: int
) -> np.ndarray:
    """Write ``name_node`` and ``name_edge`` ordered by node and then by the other end; returns how many each node has.

    ``most`` says how many a node can have, so that a range of nodes can be chosen that has ``room``.
    """
    count = np.zeros(len(most), np.int64)
    with ArrayWriter(group, f"{name}_node", np.int32) as heads, ArrayWriter(group, f"{name}_edge", np.int32) as ids:
        for first, last in node_ranges(np.concatenate(([0], np.cumsum(most))), room):
            near, far, edge = (np.concatenate(part) for part in zip(*_in_range(edges, columns, first, last)))
            order = np.lexsort((far, near))
            count[first:last] = np.bincount(near - first, minlength=last - first)
            heads.append(far[order])
            ids.append(edge[order])
    return count


def node_ranges(start: np.ndarray, room: int) -> Iterator[tuple[int, int]]:
    """Ranges of nodes with at most ``room`` entries together, or of one; node i has ``start[i]:start[i + 1]``."""
    first = 0
    while first < len(start) - 1:
        last = max(first + 1, int(np.searchsorted(start, start[first] + room, side="right")) - 1)
        yield first, last
        first = last


def _in_range(edges: Edges, columns: Callable[..., Columns], first: int, last: int) -> Iterator[Columns]:
    """What the parts of the edges that reach into ``first:last`` have there; the others are not even read."""
    yield np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    *vectors, reaches = edges
    for part in np.flatnonzero((reaches[:, 0] < last) & (reaches[:, 1] >= first)).tolist():
        begin, end = part * PAGE, min((part + 1) * PAGE, vectors[0].size)
        near, far, ids = columns(*(vector.read(begin, end) for vector in vectors), np.arange(begin, end))
        inside = (near >= first) & (near < last)
        yield near[inside], far[inside], ids[inside]
