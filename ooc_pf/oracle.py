"""Find violated cycles: one frozen x, blocks of sources, two independent engines.

`NumbaOracle` runs the bounded search of `kernels.paths` in threads. `IgraphOracle` runs igraph's Dijkstra in
processes whose tasks carry an address, a generation and a block number. Both say the same of every edge; where
shortest paths tie they may name different ones.
"""

import functools
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import igraph
import numpy as np

from .arrays import read_array
from .constraints import Rows
from .graph import Graph
from .kernels import paths, trees
from .parallel import run_tasks

BLOCK_SOURCES = 32
_ROW_BUFFER, _ENTRY_BUFFER = 1 << 14, 1 << 17


@dataclass(frozen=True)
class Frozen:
    """The point a pass looks at: x by edge, the length below which a path violates each closing edge, and, for
    workers in other processes, where the point is on disk: a group and the name of an array in it."""

    x: np.ndarray
    limit: np.ndarray
    address: tuple[Path, str] | None = None


@dataclass(frozen=True)
class Found:
    """What a search of some source blocks found.

    Attributes
    ----------
    rows : Rows
        Violated rows; ``violation`` tells by how much.
    closers : slice
        The closing edges that were looked at, as positions in the graph's closer arrays.
    reach : float64 array
        For those, ``min(limit, distance)``.
    relaxed : int
        Arcs looked at.
    complete : bool
        Whether ``reach`` is exact for every closing edge of the graph.
    """

    rows: Rows
    violation: np.ndarray
    closers: slice
    reach: np.ndarray
    relaxed: int
    complete: bool

    @classmethod
    def join(cls, parts: Sequence["Found"], *, complete: bool) -> "Found":
        if not parts:
            return cls(Rows.empty(), np.empty(0), slice(0, 0), np.empty(0), 0, complete)
        return cls(
            Rows.join([part.rows for part in parts]),
            np.concatenate([part.violation for part in parts]),
            slice(parts[0].closers.start, parts[-1].closers.stop),
            np.concatenate([part.reach for part in parts]),
            sum(part.relaxed for part in parts),
            complete,
        )


class SearchStopped(Exception):
    """A stop was asked for while blocks were still to be searched."""


def count_blocks(graph: Graph) -> int:
    """How many blocks of sources a pass over the graph has."""
    return -(-len(graph.sources) // BLOCK_SOURCES)


def _block_span(graph: Graph, block: int) -> tuple[int, int, slice]:
    first = block * BLOCK_SOURCES
    last = min(first + BLOCK_SOURCES, len(graph.sources))
    return first, last, slice(int(graph.closer_start[first]), int(graph.closer_start[last]))


def lay_out(graph: Graph, frozen: Frozen, arcs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Arcs with their lengths beside them, shortest first, and how far a search needs to go for each closer.

    ``arcs`` are those of an earlier call, which are brought up to date.
    """
    if arcs is None:
        arcs = np.empty(len(graph.arc_node), paths.ARC)
        arcs["node"], arcs["edge"] = graph.arc_node, graph.arc_edge
    paths.set_lengths(graph.arc_start, frozen.x, arcs)
    return arcs, frozen.limit - paths.shortest_arcs(graph.arc_start, arcs)[graph.closer_node]


class NumbaOracle:
    """The bounded search, in threads over shared arrays."""

    def __init__(self, graph: Graph, pool: Executor, workers: int):
        self._graph, self._pool = graph, pool
        self._arcs: np.ndarray | None = None
        self._near = np.repeat(graph.sources, np.diff(graph.closer_start))
        self._arcs_resident = np.arange((len(graph.arc_node) >> paths.PAGE_SHIFT) + 1, dtype=np.int32)
        self._scratch: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
        most = int(np.diff(graph.closer_start).max(initial=0))
        for _ in range(workers):
            self._scratch.put(Scratch(graph.nodes, most))

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Search ``blocks``; ``tick`` is called before each and says whether to go on."""
        self._arcs, need = lay_out(self._graph, frozen, self._arcs)

        def search(block: int) -> Found | None:
            if not tick():
                return None
            scratch = self._scratch.get()
            try:
                return self._search(scratch, frozen.limit, need, block, hops, keep_paths, slack)
            finally:
                self._scratch.put(scratch)

        parts = run_tasks(self._pool, search, [(block,) for block in blocks])
        return _join_or_stop(parts, blocks, count_blocks(self._graph), hops)

    def find_by_trees(self, frozen: Frozen, roots: np.ndarray, *, penalty: float, slack: float,
                      tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Violated cycles through a shortest-path tree from each root, the best one for each closing edge."""
        graph = self._graph
        self._arcs, _ = lay_out(graph, frozen, self._arcs)
        forest = np.empty((len(roots), graph.nodes, 3), np.int32)
        radius = 2.0 * float(frozen.limit.max(initial=0.0)) + 1e-300

        def grow(number: int, root: int) -> bool:
            scratch = self._scratch.get()
            try:
                dist, label, head, touched = scratch.labels[:4]
                trees.grow_tree(root, radius, penalty, root, graph.arc_start, self._arcs, dist, label, head, touched,
                                forest[number])  # fmt: skip
            finally:
                self._scratch.put(scratch)
            return tick()

        if not all(run_tasks(self._pool, grow, enumerate(roots.tolist()))):
            raise SearchStopped
        spans = np.array_split(np.arange(len(graph.closer_node)), 16)
        calls = [(frozen, forest, slack, span[0], span[-1] + 1) for span in spans if len(span)]
        return Found.join(run_tasks(self._pool, self._climb, calls), complete=False)

    def _climb(self, frozen: Frozen, forest: np.ndarray, slack: float, first: int, last: int) -> Found:
        graph, span = self._graph, slice(first, last)
        near, far = self._near[span], graph.closer_node[span]
        best, length = np.empty(last - first, np.int32), np.empty(last - first)
        trees.best_trees(near, far, frozen.limit[span], slack, frozen.x, forest, best, length)
        hit = best >= 0
        start, edges = np.empty(int(hit.sum()) + 1, np.int64), np.empty(0, np.int32)
        trees.tree_rows(near, far, graph.closer_edge[span], best, forest, start, edges)
        edges = np.empty(int(start[-1]), np.int32)
        trees.tree_rows(near, far, graph.closer_edge[span], best, forest, start, edges)
        gap = (frozen.limit[span] - length)[hit]
        return Found(Rows(start, edges), gap, span, np.empty(0), 0, complete=False)

    def _search(self, scratch, limit, need, block, hops, keep_paths, slack) -> Found:
        graph = self._graph
        first, last, span = _block_span(graph, block)
        reach = np.empty(len(limit[span]))
        state, ends, gaps, edges = np.zeros(paths.STATE_SIZE, np.int64), [], [], []
        code = paths.FULL
        while code != paths.DONE:
            code = paths.advance(
                graph.sources[first:last], graph.closer_start[first : last + 1] - span.start,
                graph.closer_node[span], graph.closer_edge[span], limit[span], need[span], reach, hops, keep_paths,
                slack, graph.arc_start, self._arcs_resident, self._arcs, *scratch.labels, *scratch.rows, state,
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
            span,
            reach,
            int(state[paths.RELAXED]),
            hops == paths.UNLIMITED,
        )


class Scratch:
    """What one worker needs for its searches: labels by node, and buffers for the rows found."""

    def __init__(self, nodes: int, most_closers: int, most_paths: int = 8):
        self.labels = (
            np.full(nodes, np.inf),
            np.full((nodes, paths.LABEL_SIZE), paths.NOWHERE, np.int32),
            np.full((2, paths.BUCKETS), -1, np.int32),
            np.empty(nodes, np.int32),
            np.empty(most_closers, np.int64),
            np.empty(most_paths),
            np.empty((2, most_paths), np.int32),
        )
        self._buffers(_ROW_BUFFER, _ENTRY_BUFFER)

    def _buffers(self, rows: int, entries: int) -> None:
        self.rows = (np.empty(rows, np.int64), np.empty(rows), np.empty(entries, np.int32))

    def grow_rows(self) -> None:
        """Make room for rows too long for the buffers as they are."""
        self._buffers(2 * len(self.rows[0]), 2 * len(self.rows[2]))


class IgraphOracle:
    """igraph's Dijkstra, in processes that read the graph and the committed generation from the workspace.

    Without a pool the blocks are searched here, one after the other.
    """

    def __init__(self, graph: Graph, group: Path, limit_rule: tuple[float, float], pool: Executor | None):
        self._graph, self._group, self._rule, self._pool = graph, group, limit_rule, pool

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Search ``blocks`` completely; ``hops`` and ``keep_paths`` do not apply to this engine."""
        parts: list[Found | None] = []
        batch = 16
        for at in range(0, len(blocks), batch):
            part = blocks[at : at + batch]
            if not all([tick() for _ in part]):
                raise SearchStopped
            calls = [(str(self._group), *map(str, frozen.address), self._rule, block, slack) for block in part]
            if self._pool is None:
                parts += [search_block_with_igraph(*call) for call in calls]
            else:
                parts += run_tasks(self._pool, search_block_with_igraph, calls)
        return _join_or_stop(parts, blocks, count_blocks(self._graph), paths.UNLIMITED)


def _join_or_stop(parts: list[Found | None], blocks: range, total: int, hops: int) -> Found:
    if any(part is None for part in parts):
        raise SearchStopped
    return Found.join(parts, complete=len(blocks) == total and hops == paths.UNLIMITED)


@functools.lru_cache(maxsize=1)
def _igraph_of(group: str) -> tuple[Graph, igraph.Graph, np.ndarray]:
    """The graph in igraph's form, and the edge each of its edges stands for."""
    graph = Graph.read(Path(group))
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    once = tail < graph.arc_node
    edges = np.column_stack((tail[once], graph.arc_node[once]))
    return graph, igraph.Graph(n=graph.nodes, edges=edges), graph.arc_edge[once]


@functools.lru_cache(maxsize=1)
def _point_of(group: str, name: str) -> np.ndarray:
    return np.maximum(read_array(Path(group), name), 0.0)


def search_block_with_igraph(
    graph_group: str, point_group: str, point_name: str, rule: tuple[float, float], block: int, slack: float
) -> Found:
    """Search one block from its address alone; safe to run twice."""
    graph, engine, edge_of = _igraph_of(graph_group)
    x = _point_of(point_group, point_name)
    closing, rhs = rule
    length = x[edge_of]
    first, last, span = _block_span(graph, block)
    limit = closing * x[graph.closer_edge[span]] - rhs
    sources = graph.sources[first:last].tolist()
    distance = np.array(engine.distances(source=sources, weights=length))
    owner = np.repeat(np.arange(last - first), np.diff(graph.closer_start[first : last + 1]))
    far = graph.closer_node[span]
    gap = limit - distance[owner, far]
    rows, found = [], np.flatnonzero(gap > slack)
    for i in np.unique(owner[found]):
        own = found[owner[found] == i]
        ways = engine.get_shortest_paths(sources[i], to=far[own].tolist(), weights=length, output="epath")
        rows += [np.append(graph.closer_edge[span][at], edge_of[way]) for at, way in zip(own, ways, strict=True)]
    edges = np.concatenate(rows or [np.empty(0)]).astype(np.int32)
    start = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Found(Rows(start, edges), gap[found], span, np.minimum(limit, limit - gap), 0, True)
