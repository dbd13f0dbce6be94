"""All distances of a point by way of a small graph: what lies at distance zero of each other is one node.

Near the solution of a linear program most lengths are zero. What is left then are some percent of the nodes and arcs,
and a complete search over them costs next to nothing. Both graphs are exact: they say the same of every closing edge.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.components import join_ends, settle
from ..storage.vectors import PAGE, spans
from .frozen import Frozen
from .graph import Graph, lay_out_arcs, lay_out_closers


@dataclass(frozen=True)
class Contracted:
    """A small graph, and how the closing edges of the large one lie in it.

    Attributes
    ----------
    graph : Graph
        Its edges are the joins between groups, and then the pairs of groups with a closing edge between them.
    length : float64[edges]
        The shortest length of a join; of a pair the largest limit of its closing edges.
    group : int32[nodes]
        The node of the small graph that each node is part of.
    pair : int64[pairs]
        Lower group times how many there are plus higher group, sorted.
    """

    graph: Graph
    length: np.ndarray
    group: np.ndarray
    pair: np.ndarray

    def reach(self, near: np.ndarray, far: np.ndarray, limit: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """``min(limit, distance)`` of some closing edges, from the ``distance`` of each pair of groups."""
        a, b = self.group[near], self.group[far]
        reach = np.where(a == b, np.minimum(limit, 0.0), limit)
        open_ = (a != b) & (limit > 0.0)
        at = np.searchsorted(self.pair, _numbers(a[open_], b[open_], self.graph.nodes))
        reach[open_] = np.minimum(limit[open_], distance[at])
        return reach


def contract(frozen: Frozen, most: int) -> Contracted | None:
    """Join what is at distance zero; None if more than ``most`` joins between groups are left."""
    graph = frozen.graph
    parent = np.arange(graph.nodes, dtype=np.int32)
    for tail, head, length in _arcs(frozen):
        join_ends(tail, head, length == 0.0, parent)
    settle(parent)
    roots, group = np.unique(parent, return_inverse=True)
    group = group.astype(np.int32)
    pairs = _least(_limits(frozen, group, len(roots)), most)
    if pairs is None:
        return None
    pair, limit = pairs
    widest = float(-limit.min(initial=0.0))
    joins = _least(_joins(frozen, group, len(roots), widest), most)
    if joins is None:
        return None
    join, length = joins
    ends = np.divmod(np.concatenate((join, pair)), len(roots))
    arcs = lay_out_arcs(*ends, len(roots), np.arange(len(join)))
    closers = lay_out_closers(*ends, len(roots), np.arange(len(join), len(join) + len(pair)))
    return Contracted(Graph.of(*arcs, *closers), np.concatenate((length, -limit)), group, pair)


def closing_edges(frozen: Frozen) -> Iterator[tuple[np.ndarray, ...]]:
    """(Place of the source, near end, far end, edge, limit) of consecutive parts of the closing edges."""
    graph, first = frozen.graph, 0
    for far, edge in spans(graph.closer_node, graph.closer_edge):
        place = np.searchsorted(graph.closer_start, np.arange(first, first + len(far)), side="right") - 1
        yield place, graph.sources[place], far, edge, frozen.limit(frozen.x(edge))
        first += len(far)


def _arcs(frozen: Frozen) -> Iterator[tuple[np.ndarray, ...]]:
    """(Tail, head, length) of consecutive parts of the arcs, each edge in one direction."""
    graph, first = frozen.graph, 0
    for head, edge in spans(graph.arc_node, graph.arc_edge):
        tail = np.searchsorted(graph.arc_start, np.arange(first, first + len(head)), side="right") - 1
        upward = tail < head
        yield tail[upward].astype(np.int32), head[upward], frozen.x(edge[upward])
        first += len(head)


def _joins(frozen: Frozen, group: np.ndarray, groups: int, widest: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(Number, length) of what leads from group to group, and is not too long to matter."""
    for tail, head, length in _arcs(frozen):
        a, b = group[tail], group[head]
        between = (a != b) & (length < widest)
        yield _numbers(a[between], b[between], groups), length[between]


def _limits(frozen: Frozen, group: np.ndarray, groups: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(Number, limit with its sign turned) of pairs of groups that a path must not be too short between."""
    for _, near, far, _, limit in closing_edges(frozen):
        a, b = group[near], group[far]
        between = (a != b) & (limit > 0.0)
        yield _numbers(a[between], b[between], groups), -limit[between]


def _numbers(a: np.ndarray, b: np.ndarray, groups: int) -> np.ndarray:
    """One number for each unordered pair of groups."""
    return np.minimum(a, b).astype(np.int64) * groups + np.maximum(a, b)


def _least(parts: Iterator[tuple[np.ndarray, np.ndarray]], most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Each number once, sorted, with its least value; None if there are more than ``most``."""
    number, value = np.empty(0, np.int64), np.empty(0)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    held = 0
    for part in parts:
        waiting.append(part)
        held += len(part[0])
        if held > max(len(number), PAGE):
            number, value = _merged(number, value, waiting)
            waiting, held = [], 0
            if len(number) > most:
                return None
    number, value = _merged(number, value, waiting)
    return None if len(number) > most else (number, value)


def _merged(
    number: np.ndarray, value: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """The least value of each number."""
    number = np.concatenate((number, *(part[0] for part in parts)))
    value = np.concatenate((value, *(part[1] for part in parts)))
    order = np.lexsort((value, number))
    number, value = number[order], value[order]
    first = np.ones(len(number), bool)
    first[1:] = number[1:] != number[:-1]
    return number[first], value[first]
