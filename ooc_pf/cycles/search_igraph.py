"""Find violated cycles with igraph's Dijkstra, in processes whose tasks carry an address and a block number."""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path

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

    Without a pool the blocks are searched here, one after the other.
    """

    def __init__(self, group: Path, limit_rule: tuple[float, float], pool: Executor | None):
        self._group, self._rule, self._pool = group, limit_rule, pool

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``; of the rules only ``slack`` matters here, and ``stop`` does not."""
        for part in batches(frozen, places):
            if not all([tick() for _ in range(count_blocks(part))]):
                raise SearchStopped
            rule = (*self._rule, frozen.beyond)
            blocks = cut(part, settings.BLOCK_SOURCES)
            calls = [(str(self._group), *map(str, frozen.address), rule, block, rules.slack) for block in blocks]
            if self._pool is None:
                yield join_or_stop([search_block_with_igraph(*call) for call in calls])
            else:
                yield join_or_stop(run_tasks(self._pool, search_block_with_igraph, calls))


@functools.lru_cache(maxsize=1)
def _igraph_of(group: str) -> tuple[Graph, igraph.Graph, np.ndarray]:
    """The graph in igraph's form, and the edge each of its edges stands for."""
    graph = Graph.read(Path(group))
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    once = tail < graph.arc_node.whole
    edges = np.column_stack((tail[once], graph.arc_node.whole[once]))
    return graph, igraph.Graph(n=graph.nodes, edges=edges), graph.arc_edge.whole[once]


@functools.lru_cache(maxsize=1)
def _point_of(graph_group: str, group: str, name: str) -> tuple[np.ndarray, Graph]:
    """The point at an address, and the graph with the closing edges that have a variable there."""
    graph = _igraph_of(graph_group)[0]
    x = np.maximum(read_array(Path(group), name), 0.0)
    if not (Path(group) / "pairs").exists():
        return x, graph
    return x, with_pairs(graph, read_array(Path(group), "pairs").reshape(-1, 2), len(x))


def search_block_with_igraph(
    graph_group: str, point_group: str, point_name: str, rule: tuple[float, float, float], places: Places, slack: float
) -> Found:
    """Search one block from its address alone; safe to run twice."""
    _, engine, edge_of = _igraph_of(graph_group)
    x, graph = _point_of(graph_group, point_group, point_name)
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
