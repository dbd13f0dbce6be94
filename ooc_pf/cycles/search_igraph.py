"""Find violated cycles with igraph's Dijkstra, in processes whose tasks carry an address and a block number."""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import igraph
import numpy as np

from ..engine.parallel import run_tasks
from ..engine.rows import Rows
from ..errors import SearchStopped
from ..storage.arrays import read_array
from . import settings
from .graph import Graph, with_pairs
from .search import Block, Found, Frozen, Places, SearchRules, batches, count_blocks, cut, join_or_stop


class IgraphOracle:
    """igraph's Dijkstra, in processes that read the graph and the committed generation from the workspace.

    Without a pool the blocks are searched here, one after the other. What is read is kept as long as this oracle, and
    in a process of a pool as long as the pool.
    """

    def __init__(self, group: Path, limit_rule: tuple[float, float], pool: Executor | None):
        self._group, self._rule, self._pool = group, limit_rule, pool
        self._here = IgraphSearcher(group) if pool is None else None

    def release(self) -> None:
        """Nothing is kept between searches."""

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``; of the rules only ``slack`` matters here, and ``stop`` does not."""
        assert frozen.address is not None
        for part in batches(frozen, places):
            if not all([tick() for _ in range(count_blocks(part))]):
                raise SearchStopped
            rule = (*self._rule, frozen.beyond)
            calls = [(*frozen.address, rule, block, rules.slack) for block in cut(part, settings.BLOCK_SOURCES)]
            if self._here is not None:
                yield join_or_stop([self._here.search(*call) for call in calls])
            else:
                yield join_or_stop(run_tasks(self._pool, search_block, [(self._group, *call) for call in calls]))


class IgraphSearcher:
    """A graph in igraph's form, and the last point that was looked at."""

    def __init__(self, group: Path):
        self._graph = graph = Graph.read(group)
        tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
        once = tail < graph.arc_node.whole
        edges = np.column_stack((tail[once], graph.arc_node.whole[once]))
        self._engine = igraph.Graph(n=graph.nodes, edges=edges)
        self._edge_of = graph.arc_edge.whole[once]
        self._point: tuple[tuple[Path, str], np.ndarray, Graph] | None = None

    def _look_at(self, group: Path, name: str) -> tuple[np.ndarray, Graph]:
        """The point at an address, and the graph with the closing edges that have a variable there."""
        if self._point is None or self._point[0] != (group, name):
            x, graph = np.maximum(read_array(group, name), 0.0), self._graph
            if (group / "pairs").exists():
                graph = with_pairs(graph, read_array(group, "pairs").reshape(-1, 2), len(x))
            self._point = (group, name), x, graph
        return self._point[1:]

    def search(self, group: Path, name: str, rule: tuple[float, float, float], places: Places, slack: float) -> Found:
        """Search one block from the address of a point; safe to run twice."""
        x, graph = self._look_at(group, name)
        return _search(self._engine, self._edge_of, graph, x, rule, places, slack)


@functools.lru_cache(maxsize=1)
def _searcher(group: Path) -> IgraphSearcher:
    return IgraphSearcher(group)


def search_block(group: Path, *call: Any) -> Found:
    """Search one block in a process of a pool, which lives no longer than a run."""
    return _searcher(group).search(*call)


def _search(
    engine: igraph.Graph,
    edge_of: np.ndarray,
    graph: Graph,
    x: np.ndarray,
    rule: tuple[float, float, float],
    places: Places,
    slack: float,
) -> Found:
    closing, rhs, beyond = rule
    block = Block.read(graph, places)
    sources, owner, far, edge = block.sources, block.owner, block.node, block.edge
    distance = np.array(engine.distances(source=sources.tolist(), weights=x[edge_of]))
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
    return Found(Rows(start, edges), gaps, block.peak(owner, gap), edge, np.minimum(limit, limit - gap), pairs, 0)


def _unknown_pairs(graph: Graph, sources, owner, far, near) -> tuple[np.ndarray, np.ndarray]:
    """(Number of the source, far end) of the pairs that are ``near`` and have no variable, each from its lower end."""
    near[owner, far] = False
    for i, source in enumerate(sources):
        near[i, graph.arc_node.read(*graph.arc_start[source : source + 2])] = False
        near[i, : source + 1] = False
    return np.nonzero(near)
