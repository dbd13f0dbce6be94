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

from .constraints import Rows
from .graph import Graph
from .kernels import paths
from .parallel import run_tasks
from .workspace import read_array

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


def lay_out(graph: Graph, frozen: Frozen) -> tuple[np.ndarray, np.ndarray]:
    """Arcs with their lengths beside them, shortest first, and how far a search needs to go for each closer."""
    arcs = np.empty(len(graph.arc_node), paths.ARC)
    paths.lay_out_arcs(graph.arc_start, graph.arc_node, graph.arc_edge, frozen.x, arcs)
    return arcs, frozen.limit - paths.shortest_arcs(graph.arc_start, arcs)[graph.closer_node]


class NumbaOracle:
    """The bounded search, in threads over shared arrays."""

    staged = True  # can stop at a number of hops

    def __init__(self, graph: Graph, pool: Executor, workers: int):
        self._graph, self._pool = graph, pool
        self._arcs_resident = np.arange((len(graph.arc_node) >> paths.PAGE_SHIFT) + 1, dtype=np.int32)
        self._scratch: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
        most = int(np.diff(graph.closer_start).max(initial=0))
        for _ in range(workers):
            self._scratch.put(Scratch(graph.nodes, most))

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool]) -> Found:  # fmt: skip
        """Search ``blocks``; ``tick`` is called before each and says whether to go on."""
        arcs, need = lay_out(self._graph, frozen)

        def search(block: int) -> Found | None:
            if not tick():
                return None
            scratch = self._scratch.get()
            try:
                return self._search(scratch, frozen.limit, need, arcs, block, hops, keep_paths, slack)
            finally:
                self._scratch.put(scratch)

        parts = run_tasks(self._pool, search, [(block,) for block in blocks])
        return _join_or_stop(parts, blocks, count_blocks(self._graph), hops)

    def _search(self, scratch, limit, need, arcs, block, hops, keep_paths, slack) -> Found:
        graph = self._graph
        first, last, span = _block_span(graph, block)
        reach = np.empty(len(limit[span]))
        state, ends, gaps, edges = np.zeros(paths.STATE_SIZE, np.int64), [], [], []
        code = paths.FULL
        while code != paths.DONE:
            code = paths.advance(
                graph.sources[first:last], graph.closer_start[first : last + 1] - span.start,
                graph.closer_node[span], graph.closer_edge[span], limit[span], need[span], reach, hops, keep_paths,
                slack, graph.arc_start, self._arcs_resident, arcs, *scratch.labels, *scratch.rows, state,
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
        return Found(rows, np.concatenate(gaps), span, reach, int(state[paths.RELAXED]), hops == paths.UNLIMITED)


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
    """igraph's Dijkstra, in processes that read the graph and the committed generation from the workspace."""

    staged = False

    def __init__(self, graph: Graph, group: Path, limit_rule: tuple[float, float], pool: Executor):
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
