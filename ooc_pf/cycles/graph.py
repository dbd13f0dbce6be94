"""The graph the searches run on: split at cut vertices, arcs in CSR, closing edges grouped by source.

A cycle never leaves its biconnected component. Each component therefore gets its own copies of its nodes: searches
stay inside by themselves, and bridges drop out. The copies of one component are numbered together, best connected
first, so that the nodes every search touches share cache lines and pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, WorkspaceError
from ..kernels.biconnected import find_components
from ..storage.arrays import read_array, write_parts
from ..storage.vectors import Pool, Vector, read_vector, spans
from . import settings

MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)  # those of splitmix64


@dataclass(frozen=True)
class Graph:
    """Arcs to walk and edges to close, over split nodes.

    Attributes
    ----------
    arc_start : int64[nodes + 1]; arc_node, arc_edge : Vector int32[arcs]
        Arcs of split node i are ``arc_start[i]:arc_start[i + 1]``.
    sources : int32[s]; closer_start : int64[s + 1]; closer_node, closer_edge : Vector int32[closers]
        Closing edges, each listed once, under the end it is searched from.
    """

    arc_start: np.ndarray
    arc_node: Vector
    arc_edge: Vector
    sources: np.ndarray
    closer_start: np.ndarray
    closer_node: Vector
    closer_edge: Vector

    VECTORS = ("arc_node", "arc_edge", "closer_node", "closer_edge")

    @classmethod
    def of(cls, *arrays: np.ndarray) -> "Graph":
        """A graph from arrays in memory."""
        names = [field.name for field in fields(cls)]
        return cls(*(Vector.of(a) if name in cls.VECTORS else a for name, a in zip(names, arrays, strict=True)))

    @property
    def nodes(self) -> int:
        return len(self.arc_start) - 1

    @property
    def arcs(self) -> int:
        return self.arc_node.size

    @property
    def closers(self) -> int:
        return self.closer_node.size

    def write(self, group: Path) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            parts = (part for _, part in value.spans()) if field.name in self.VECTORS else [value]
            write_parts(group, field.name, parts, value.dtype)

    @classmethod
    def read(cls, group: Path, pool: Pool | None = None) -> "Graph":
        """The graph that `write` or `build_external_graph` wrote, its vectors as the pool has them."""
        parts: dict[str, Any] = {name: read_vector(group, name, pool, np.int32) for name in cls.VECTORS}
        kinds = {"arc_start": np.int64, "sources": np.int32, "closer_start": np.int64}
        parts |= {name: read_array(group, name, dtype=kind) for name, kind in kinds.items()}
        return cls(**parts)

    def check(self, edges: int, where: Path) -> "Graph":
        """Refuse arrays whose numbers cannot be right, before a kernel follows them; vectors a page at a time.

        Parameters
        ----------
        edges : int
            How many edges arcs and closing edges may stand for.
        where : Path
            Names the group in the message.

        Returns
        -------
        Graph
            This one.
        """
        sources = np.zeros(max(0, self.nodes), bool)
        sound = (
            _is_index(self.arc_start, self.arcs)
            and _is_index(self.closer_start, self.closers)
            and len(self.closer_start) == len(self.sources) + 1
            and self.arc_edge.size == self.arcs
            and self.closer_edge.size == self.closers
            and all(_within(part, self.nodes) for part in (self.sources, *_pages(self.arc_node, self.closer_node)))
            and all(_within(part, edges) for part in _pages(self.arc_edge, self.closer_edge))
        )
        if sound:
            sources[self.sources] = True
            sound = np.count_nonzero(sources) == len(self.sources) and self._goes_both_ways()
        if not sound:
            raise WorkspaceError(f"{where} is damaged: it is no graph; `ooc-pf solve --restart` starts again")
        return self

    def _goes_both_ways(self) -> bool:
        """Whether every arc has its reverse, over the same edge: searches in lanes find parents by walking back.

        In one pass, without sorting: a fingerprint of each arc is added upward and taken off downward.
        """
        total = first = 0
        for head, edge in spans(self.arc_node, self.arc_edge):
            tail = np.searchsorted(self.arc_start, np.arange(first, first + len(head)), side="right") - 1
            low, high = np.minimum(tail, head).astype(np.uint64), np.maximum(tail, head).astype(np.uint64)
            mark = (low << np.uint64(32) | high) * MIX[0] ^ edge.astype(np.uint64) * MIX[1]
            mark = (mark ^ mark >> np.uint64(29)) * MIX[2]
            if (tail == head).any():
                return False
            total += int(np.where(tail < head, mark, -mark).sum())
            first += len(head)
        return total % (1 << 64) == 0


def _is_index(start: np.ndarray, total: int) -> bool:
    """Whether ``start`` cuts so many entries into consecutive parts."""
    return len(start) > 0 and start[0] == 0 and start[-1] == total and bool((start[1:] >= start[:-1]).all())


def _pages(*vectors: Vector) -> Iterator[np.ndarray]:
    return (part for vector in vectors for _, part in vector.spans())


def _within(values: np.ndarray, end: int) -> bool:
    return not len(values) or (values.min() >= 0 and values.max() < end)


def build_graph(u: np.ndarray, v: np.ndarray, nodes: int, *, passable=None, closing=None) -> Graph:
    """Split the graph and lay out its passable arcs and closing edges, both masks by edge (None: all)."""
    component = find_components(u, v, nodes)
    cyclic = component >= 0
    near, far, split_nodes = _split_nodes(u, v, component)
    passable = cyclic if passable is None else cyclic & passable
    closing = cyclic if closing is None else cyclic & closing
    arc_start, arc_node, arc_edge = lay_out_arcs(near, far, split_nodes, np.flatnonzero(passable))
    return Graph.of(arc_start, arc_node, arc_edge, *lay_out_closers(near, far, split_nodes, np.flatnonzero(closing)))


def build_complete_graph(u: np.ndarray, v: np.ndarray, nodes: int, *, passable: np.ndarray) -> Graph:
    """The arcs of a complete graph that can be walked, as listed; any other pair may become a closing edge.

    Nodes keep their numbers: a complete graph does not fall apart. Every node that has an arc is a source.
    """
    arcs = lay_out_arcs(u, v, nodes, np.flatnonzero(passable))
    degree = np.diff(arcs[0])
    sources = np.flatnonzero(degree)
    sources = sources[np.argsort(_round_robin(degree[sources]))].astype(np.int32)
    nothing = np.empty(0, np.int32)
    return Graph.of(*arcs, sources, np.zeros(len(sources) + 1, np.int64), nothing, nothing)


def with_closers(graph: Graph, u: np.ndarray, v: np.ndarray, edges: np.ndarray) -> Graph:
    """A complete graph with these closing edges, each under its lower end u."""
    rank = np.full(graph.nodes, -1, np.int64)
    rank[graph.sources] = np.arange(len(graph.sources))
    joined = (rank[u] >= 0) & (rank[v] >= 0)  # no path leads to a node without arcs
    u, v, edges = u[joined], v[joined], edges[joined]
    start, order = group_by(rank[u], len(graph.sources))
    node, edge = Vector.of(v[order].astype(np.int32)), Vector.of(edges[order].astype(np.int32))
    return replace(graph, closer_start=start, closer_node=node, closer_edge=edge)


def with_pairs(graph: Graph, pairs: np.ndarray, edges: int) -> Graph:
    """A complete graph in which ``pairs``, the last of so many edges, are closing edges as well."""
    near = np.concatenate((np.repeat(graph.sources, np.diff(graph.closer_start)), pairs[:, 0]))
    edge = np.concatenate((graph.closer_edge.whole, np.arange(edges - len(pairs), edges)))
    return with_closers(graph, near, np.concatenate((graph.closer_node.whole, pairs[:, 1])), edge)


def group_by(group: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each group starts in the order that brings members of one group together, and that order."""
    start = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=groups), dtype=np.int64)))
    return start, np.argsort(group, kind="stable")


def _split_nodes(u: np.ndarray, v: np.ndarray, component: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Ends of each edge as numbers of (component, node) copies; -1 for bridges."""
    cyclic = np.flatnonzero(component >= 0)
    span = int(max(u.max(initial=0), v.max(initial=0))) + 1
    ends = np.concatenate((u[cyclic], v[cyclic])) + np.tile(component[cyclic], 2) * span
    copies, name, degree = np.unique(ends, return_inverse=True, return_counts=True)
    order = np.lexsort((-degree, copies // span))
    number = np.empty(len(copies), np.int64)
    number[order] = np.arange(len(copies))
    near, far = np.full(len(u), -1, np.int64), np.full(len(u), -1, np.int64)
    near[cyclic], far[cyclic] = np.split(number[name], 2)
    return near, far, len(copies)


def lay_out_arcs(near, far, nodes, edges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both directions of ``edges``, by tail and then by head."""
    tail = np.concatenate((near[edges], far[edges]))
    head = np.concatenate((far[edges], near[edges]))
    order = np.lexsort((head, tail))
    start = np.concatenate(([0], np.cumsum(np.bincount(tail, minlength=nodes), dtype=np.int64)))
    return start, head[order].astype(np.int32), np.tile(edges, 2)[order].astype(np.int32)


def lay_out_closers(near, far, nodes, edges) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Assign each closing edge to the end that closes more: a small vertex cover, taken greedily by degree."""
    a, b = near[edges], far[edges]
    degree = np.bincount(np.concatenate((a, b)), minlength=nodes)
    from_a = (degree[a] > degree[b]) | ((degree[a] == degree[b]) & (a < b))
    source, target = np.where(from_a, a, b), np.where(from_a, b, a)
    sources, own, count = np.unique(source, return_inverse=True, return_counts=True)
    rank = _round_robin(count)
    order = np.lexsort((target, rank[own]))
    by_rank = np.argsort(rank)
    start = np.concatenate(([0], np.cumsum(count[by_rank], dtype=np.int64)))
    return sources[by_rank].astype(np.int32), start, target[order].astype(np.int32), edges[order].astype(np.int32)


def _round_robin(count: np.ndarray) -> np.ndarray:
    """Ranks that deal sources out round-robin by degree, so that blocks of them cost about the same."""
    by_count = np.argsort(-count, kind="stable")
    rank = np.empty(len(count), np.int64)
    rank[by_count] = np.argsort(np.arange(len(count)) % settings.DEALT, kind="stable").argsort()
    return rank


def canonical_edges(u, v, value, labels=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check arrays of edges given by a caller and return them as ``(u, v, value)`` with u < v, in the given order.

    What is wrong is told with the ``labels`` of the nodes, if they have any.
    """
    u, v, value = np.asarray(u), np.asarray(v), np.asarray(value, np.float64)
    if not (u.ndim == v.ndim == value.ndim == 1 and len(u) == len(v) == len(value)):
        raise InputError(
            f"u, v and values must be vectors of one length, found shapes {u.shape}, {v.shape}, {value.shape}"
        )
    for name, ends in (("u", u), ("v", v)):
        if len(ends) and not np.issubdtype(ends.dtype, np.integer):
            raise InputError(f"{name} must hold integer node numbers, found dtype {ends.dtype}")
        if len(ends) and (ends.min() < 0 or ends.max() >= 2**31 - 1):
            raise InputError(f"{name} must hold node numbers from 0 to {2**31 - 2}, found {ends.min()} to {ends.max()}")
    for wrong, what, remedy in (
        (~np.isfinite(value), "not a finite number", "remove it or give it a value"),
        (u == v, "a self loop", "remove it"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"edge {at}: {_names(labels, u[at], v[at])} with value {value[at]}: {what}; {remedy}")
    low, high = np.minimum(u, v).astype(np.int64), np.maximum(u, v).astype(np.int64)
    pair = low * (high.max(initial=0) + 1) + high
    order = np.argsort(pair, kind="stable")
    again = np.flatnonzero(np.diff(pair[order]) == 0)
    if len(again):
        first, second = order[again[0]], order[again[0] + 1]
        pair = _names(labels, low[first], high[first])
        raise InputError(f"edges {first} and {second} are both {pair}; edges are undirected, merge them first")
    return low, high, value


def _names(labels, u, v) -> str:
    """An edge as the caller knows it."""
    return f"({u}, {v})" if labels is None else f"({labels[u]}, {labels[v]})"
