"""Find violated cycles: one frozen x, blocks of sources, two independent engines.

`NumbaOracle` runs the bounded search of `kernels.paths` in threads. `IgraphOracle` runs igraph's Dijkstra in
processes whose tasks carry an address, a generation and a block number. Both say the same of every edge; where
shortest paths tie they may name different ones.
"""

import functools
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

import igraph
import numpy as np

from .arrays import read_array
from .constraints import Rows
from .graph import Graph, with_closers
from .kernels import pairs, paths, trees
from .parallel import run_tasks

BLOCK_SOURCES = 32
_ROW_BUFFER, _ENTRY_BUFFER = 1 << 14, 1 << 17
_NO_PAIRS = np.empty((0, 2), np.int32)


@dataclass(frozen=True)
class Frozen:
    """The point a pass looks at.

    Attributes
    ----------
    graph : Graph
    x : float64[edges]
    limit : float64[closers]
        The length below which a path violates each closing edge.
    beyond : float
        The same for a pair of a complete graph that is not ``known``; -inf for other graphs.
    known : (int64[nodes + 1], int32[pairs]) or None
        Upper ends of the known pairs, in CSR by lower end.
    address : (Path, str) or None
        Where workers in other processes find the point: a group and the name of an array in it.
    """

    graph: Graph
    x: np.ndarray
    limit: np.ndarray
    beyond: float = -np.inf
    known: tuple[np.ndarray, np.ndarray] | None = None
    address: tuple[Path, str] | None = None


@dataclass(frozen=True)
class Found:
    """What a search of some source blocks found.

    Attributes
    ----------
    rows : Rows
        Violated rows; ``violation`` tells by how much.
    edge, reach : int32 array, float64 array
        The closing edges that were looked at, and ``min(limit, distance)`` of each.
    pairs : int32[new, 2]
        Pairs of a complete graph that need a variable. Until they have one, pair k goes by the edge number -1 - k.
    relaxed : int
        Arcs looked at.
    complete : bool
        Whether ``reach`` is exact for every closing edge of the graph.
    """

    rows: Rows
    violation: np.ndarray
    edge: np.ndarray
    reach: np.ndarray
    pairs: np.ndarray
    relaxed: int
    complete: bool

    @classmethod
    def join(cls, parts: Sequence["Found"], *, complete: bool) -> "Found":
        if not parts:
            return cls(Rows.empty(), np.empty(0), np.empty(0, np.int32), np.empty(0), _NO_PAIRS, 0, complete)
        before = np.cumsum([0, *(len(part.pairs) for part in parts)])
        rows = [Rows(part.rows.start, _behind(part.rows.edges, k)) for part, k in zip(parts, before)]
        return cls(
            Rows.join(rows),
            np.concatenate([part.violation for part in parts]),
            np.concatenate([_behind(part.edge, k) for part, k in zip(parts, before)]),
            np.concatenate([part.reach for part in parts]),
            np.concatenate([part.pairs for part in parts]),
            sum(part.relaxed for part in parts),
            complete,
        )

    def numbered(self, edges: int) -> "Found":
        """The same, with the new pairs numbered as edges from ``edges`` on."""
        rows = Rows(self.rows.start, _numbered(self.rows.edges, edges))
        return replace(self, rows=rows, edge=_numbered(self.edge, edges))


def _behind(edge: np.ndarray, before: int) -> np.ndarray:
    """Edge numbers in which the new pairs come after ``before`` others."""
    return edge if before == 0 else np.where(edge < 0, edge - np.int32(before), edge)


def _numbered(edge: np.ndarray, edges: int) -> np.ndarray:
    return np.where(edge < 0, np.int32(edges - 1) - edge, edge)


class SearchStopped(Exception):
    """A stop was asked for while blocks were still to be searched."""


def count_blocks(graph: Graph) -> int:
    """How many blocks of sources a pass over the graph has."""
    return -(-len(graph.sources) // BLOCK_SOURCES)


def _block_span(graph: Graph, block: int) -> tuple[int, int, slice]:
    first = block * BLOCK_SOURCES
    last = min(first + BLOCK_SOURCES, len(graph.sources))
    return first, last, slice(int(graph.closer_start[first]), int(graph.closer_start[last]))


def lay_out(frozen: Frozen, arcs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Arcs with their lengths beside them, shortest first, and how far a search needs to go for each closer.

    ``arcs`` are those of an earlier call, which are brought up to date.
    """
    graph = frozen.graph
    if arcs is None:
        arcs = np.empty(len(graph.arc_node), paths.ARC)
        arcs["node"], arcs["edge"] = graph.arc_node, graph.arc_edge
    paths.set_lengths(graph.arc_start, frozen.x, arcs)
    return arcs, frozen.limit - paths.shortest_arcs(graph.arc_start, arcs)[graph.closer_node]


class NumbaOracle:
    """The bounded search, in threads over shared arrays."""

    def __init__(self, graph: Graph, pool: Executor, workers: int):
        self._pool = pool
        self._arcs: np.ndarray | None = None
        self._arcs_resident = np.arange((len(graph.arc_node) >> paths.PAGE_SHIFT) + 1, dtype=np.int32)
        self._scratch: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
        for _ in range(workers):
            self._scratch.put(Scratch(graph.nodes))

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Search ``blocks``; ``tick`` is called before each and says whether to go on."""
        self._arcs, need = lay_out(frozen, self._arcs)

        def search(block: int) -> Found | None:
            if not tick():
                return None
            scratch = self._scratch.get()
            try:
                found = self._search(scratch, frozen, need, block, hops, keep_paths, slack)
                if frozen.known is None:
                    return found
                return Found.join([found, self._discover(scratch, frozen, block, hops, slack)], complete=found.complete)
            finally:
                self._scratch.put(scratch)

        parts = run_tasks(self._pool, search, [(block,) for block in blocks])
        return _join_or_stop(parts, blocks, frozen, hops)

    def find_by_trees(self, frozen: Frozen, roots: np.ndarray, *, penalty: float, slack: float,
                      tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Violated cycles through a shortest-path tree from each root, the best one for each closing edge."""
        graph = frozen.graph
        self._arcs, _ = lay_out(frozen, self._arcs)
        forest = np.empty((len(roots), graph.nodes, 3), np.int32)
        radius = 2.0 * float(frozen.limit.max(initial=0.0)) + 1e-300

        def grow(number: int, root: int) -> int | None:
            if not tick():
                return None
            scratch = self._scratch.get()
            try:
                return trees.grow_tree(root, radius, penalty, root, graph.arc_start, self._arcs, *scratch.labels,
                                       forest[number])  # fmt: skip
            finally:
                self._scratch.put(scratch)

        relaxed = run_tasks(self._pool, grow, enumerate(roots.tolist()))
        if None in relaxed:
            raise SearchStopped
        spans = np.array_split(np.arange(len(graph.closer_node)), 16)
        near = np.repeat(graph.sources, np.diff(graph.closer_start))
        calls = [(frozen, near, forest, slack, span[0], span[-1] + 1) for span in spans if len(span)]
        found = Found.join(run_tasks(self._pool, self._climb, calls), complete=False)
        return replace(found, relaxed=sum(relaxed))

    def _climb(self, frozen: Frozen, near: np.ndarray, forest: np.ndarray, slack: float, first: int,
               last: int) -> Found:  # fmt: skip
        graph, span = frozen.graph, slice(first, last)
        near, far = near[span], graph.closer_node[span]
        best, length = np.empty(last - first, np.int32), np.empty(last - first)
        trees.best_trees(near, far, frozen.limit[span], slack, frozen.x, forest, best, length)
        hit = best >= 0
        start, edges = np.empty(int(hit.sum()) + 1, np.int64), np.empty(0, np.int32)
        trees.tree_rows(near, far, graph.closer_edge[span], best, forest, start, edges)
        edges = np.empty(int(start[-1]), np.int32)
        trees.tree_rows(near, far, graph.closer_edge[span], best, forest, start, edges)
        gap = (frozen.limit[span] - length)[hit]
        return Found(Rows(start, edges), gap, np.empty(0, np.int32), np.empty(0), _NO_PAIRS, 0, complete=False)

    def _search(self, scratch, frozen, need, block, hops, keep_paths, slack) -> Found:
        graph, limit = frozen.graph, frozen.limit
        first, last, span = _block_span(graph, block)
        reach = np.empty(len(limit[span]))
        order = scratch.order(int(np.diff(graph.closer_start[first : last + 1]).max(initial=0)))
        state, ends, gaps, edges = np.zeros(paths.STATE_SIZE, np.int64), [], [], []
        code = paths.FULL
        while code != paths.DONE:
            code = paths.advance(
                graph.sources[first:last], graph.closer_start[first : last + 1] - span.start,
                graph.closer_node[span], graph.closer_edge[span], limit[span], need[span], reach, hops, keep_paths,
                slack, graph.arc_start, self._arcs_resident, self._arcs, *scratch.labels, order,
                *scratch.best, *scratch.rows, state,
            )  # fmt: skip
            count, used = state[paths.ROWS], state[paths.ENTRIES]
            if code == paths.FULL and count == 0:
                scratch.grow_rows()
            ends.append(np.diff(scratch.rows[0][:count], prepend=0))
            gaps.append(scratch.rows[1][:count].copy())
            edges.append(scratch.rows[2][:used].copy())
            state[paths.ROWS] = state[paths.ENTRIES] = 0
        start = np.concatenate(([0], np.cumsum(np.concatenate(ends), dtype=np.int64)))
        rows = Rows(start, np.concatenate(edges))
        return Found(
            rows,
            np.concatenate(gaps),
            graph.closer_edge[span],
            reach,
            _NO_PAIRS,
            int(state[paths.RELAXED]),
            hops == paths.UNLIMITED,
        )

    def _discover(self, scratch, frozen, block, hops, slack) -> Found:
        """The pairs without a variable that are closer than they may be."""
        graph = frozen.graph
        first, last, _ = _block_span(graph, block)
        parts, done, most = [], 0, min(hops, paths.UNLIMITED - 1) + 1
        while done < last - first:
            ends, reach = np.empty((len(scratch.rows[0]), 2), np.int32), np.empty(len(scratch.rows[0]))
            row_end, _, entries = scratch.rows
            done, count, used, relaxed = pairs.discover(
                graph.sources[first:last], done, frozen.beyond - slack, most, *frozen.known, graph.arc_start,
                self._arcs, *scratch.labels, scratch.known, ends, reach, row_end, entries,
            )  # fmt: skip
            if done < last - first and count == 0:
                scratch.grow_rows()
            start = np.concatenate(([0], row_end[:count]))
            rows = Rows(start, entries[:used].copy())
            edge = -1 - np.arange(count, dtype=np.int32)
            gap = frozen.beyond - reach[:count]
            parts.append(Found(rows, gap, edge, reach[:count], ends[:count], relaxed, hops == paths.UNLIMITED))
        return Found.join(parts, complete=False)


class Scratch:
    """What one worker needs for its searches: labels by node, and buffers for the rows found."""

    def __init__(self, nodes: int, most_paths: int = 8):
        self.labels = (
            np.full(nodes, np.inf),
            np.full((nodes, paths.LABEL_SIZE), paths.NOWHERE, np.int32),
            np.full((2, paths.BUCKETS), -1, np.int32),
            np.empty(nodes, np.int32),
        )
        self.known = np.full(nodes, -1, np.int32)
        self.best = (np.empty(most_paths), np.empty((2, most_paths), np.int32))
        self._order = np.empty(0, np.int64)
        self._buffers(_ROW_BUFFER, _ENTRY_BUFFER)

    def order(self, closers: int) -> np.ndarray:
        """Room for the order of as many closing edges."""
        if len(self._order) < closers:
            self._order = np.empty(closers, np.int64)
        return self._order

    def _buffers(self, rows: int, entries: int) -> None:
        self.rows = (np.empty(rows, np.int64), np.empty(rows), np.empty(entries, np.int32))

    def grow_rows(self) -> None:
        """Make room for rows too long for the buffers as they are."""
        self._buffers(2 * len(self.rows[0]), 2 * len(self.rows[2]))


class IgraphOracle:
    """igraph's Dijkstra, in processes that read the graph and the committed generation from the workspace.

    Without a pool the blocks are searched here, one after the other.
    """

    def __init__(self, group: Path, limit_rule: tuple[float, float], pool: Executor | None):
        self._group, self._rule, self._pool = group, limit_rule, pool

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Search ``blocks`` completely; ``hops`` and ``keep_paths`` do not apply to this engine."""
        parts: list[Found | None] = []
        batch = 16
        for at in range(0, len(blocks), batch):
            part = blocks[at : at + batch]
            if not all([tick() for _ in part]):
                raise SearchStopped
            rule = (*self._rule, frozen.beyond)
            calls = [(str(self._group), *map(str, frozen.address), rule, block, slack) for block in part]
            if self._pool is None:
                parts += [search_block_with_igraph(*call) for call in calls]
            else:
                parts += run_tasks(self._pool, search_block_with_igraph, calls)
        return _join_or_stop(parts, blocks, frozen, paths.UNLIMITED)


def _join_or_stop(parts: list[Found | None], blocks: range, frozen: Frozen, hops: int) -> Found:
    if any(part is None for part in parts):
        raise SearchStopped
    complete = len(blocks) == count_blocks(frozen.graph) and hops == paths.UNLIMITED
    return Found.join(parts, complete=complete).numbered(len(frozen.x))


@functools.lru_cache(maxsize=1)
def _igraph_of(group: str) -> tuple[Graph, igraph.Graph, np.ndarray]:
    """The graph in igraph's form, and the edge each of its edges stands for."""
    graph = Graph.read(Path(group))
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    once = tail < graph.arc_node
    edges = np.column_stack((tail[once], graph.arc_node[once]))
    return graph, igraph.Graph(n=graph.nodes, edges=edges), graph.arc_edge[once]


@functools.lru_cache(maxsize=1)
def _point_of(graph_group: str, group: str, name: str) -> tuple[np.ndarray, Graph]:
    """The point at an address, and the graph with the closing edges that have a variable there."""
    graph = _igraph_of(graph_group)[0]
    x = np.maximum(read_array(Path(group), name), 0.0)
    if not (Path(group) / "pairs").exists():
        return x, graph
    pairs = read_array(Path(group), "pairs").reshape(-1, 2)
    near = np.concatenate((np.repeat(graph.sources, np.diff(graph.closer_start)), pairs[:, 0]))
    edge = np.concatenate((graph.closer_edge, np.arange(len(x) - len(pairs), len(x))))
    return x, with_closers(graph, near, np.concatenate((graph.closer_node, pairs[:, 1])), edge)


def search_block_with_igraph(
    graph_group: str, point_group: str, point_name: str, rule: tuple[float, float, float], block: int, slack: float
) -> Found:
    """Search one block from its address alone; safe to run twice."""
    _, engine, edge_of = _igraph_of(graph_group)
    x, graph = _point_of(graph_group, point_group, point_name)
    closing, rhs, beyond = rule
    first, last, span = _block_span(graph, block)
    sources = graph.sources[first:last]
    distance = np.array(engine.distances(source=sources.tolist(), weights=x[edge_of]))
    owner = np.repeat(np.arange(last - first), np.diff(graph.closer_start[first : last + 1]))
    far, edge = graph.closer_node[span], graph.closer_edge[span]
    limit = closing * x[edge] - rhs
    new_owner, new_far = _unknown_pairs(graph, sources, owner, far, distance < beyond - slack)
    owner, far = np.append(owner, new_owner), np.append(far, new_far)
    edge = np.append(edge, -1 - np.arange(len(new_far))).astype(np.int32)
    limit = np.append(limit, np.full(len(new_far), beyond))
    gap = limit - distance[owner, far]
    rows, order, found = [], [], np.flatnonzero(gap > slack)
    for i in np.unique(owner[found]):
        own = found[owner[found] == i]
        ways = engine.get_shortest_paths(sources[i], to=far[own].tolist(), weights=x[edge_of], output="epath")
        rows += [np.append(edge[at], edge_of[way]) for at, way in zip(own, ways, strict=True)]
        order.append(own)
    edges = np.concatenate(rows or [np.empty(0)]).astype(np.int32)
    start = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    gaps = gap[np.concatenate(order)] if order else np.empty(0)
    pairs = np.column_stack((sources[new_owner], new_far)).astype(np.int32)
    return Found(Rows(start, edges), gaps, edge, np.minimum(limit, limit - gap), pairs, 0, True)


def _unknown_pairs(graph: Graph, sources, owner, far, near) -> tuple[np.ndarray, np.ndarray]:
    """(Number of the source, far end) of the pairs that are ``near`` and have no variable, each from its lower end."""
    near[owner, far] = False
    for i, source in enumerate(sources):
        near[i, graph.arc_node[graph.arc_start[source] : graph.arc_start[source + 1]]] = False
        near[i, : source + 1] = False
    return np.nonzero(near)
