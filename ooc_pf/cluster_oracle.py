"""Find violated cycles on the workers of a dask cluster, which see the workspace and nothing else of ours.

They find it under the same path, or on the same object store, of which each machine keeps a copy.

A task carries the address of a graph and of a point, and the numbers of some blocks; it may run twice, or on another
worker when its own dies. What the blocks find does not depend on where they are searched.
"""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import read_array
from .graph import Graph, group_by, with_pairs
from .mirror import Mirror, is_url, local_copy
from .oracle import BLOCK_SOURCES, Found, Frozen, NumbaOracle, Places, SearchStopped, batches, count_blocks, cut
from .pages import Vector
from .parallel import run_tasks
from .workspace import EDGES, GRAPH, Workspace

TASK_BLOCKS = 4


class ClusterOracle:
    """Searches on the workers of ``client``; trees, which are few, with the oracle ``here``."""

    def __init__(self, here: NumbaOracle, workspace: Workspace, limit_rule: tuple[float, float], client: Any):
        self._home, self._rule, self._client = workspace.address, limit_rule, client
        self._root = workspace.path
        self.find_by_trees = here.find_by_trees

    def find(self, frozen: Frozen, places: Places, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool], stop: np.ndarray) -> Iterator[Found]:  # fmt: skip
        """Search from the sources at ``places``, a batch at a time; ``stop`` acts between batches."""
        group, name = frozen.address
        point = (self._home, str(group.relative_to(self._root)), name, (*self._rule, frozen.beyond))
        for batch in batches(places):
            if not all([tick() for _ in range(count_blocks(batch))]):
                raise SearchStopped
            parts = cut(batch, TASK_BLOCKS * BLOCK_SOURCES)
            calls = [(*point, part, hops, keep_paths, slack) for part in parts]
            yield Found.join(run_tasks(self._client, search_places, calls))


_ONE_TASK = threading.Lock()


def search_places(home: str, group: str, name: str, rule: tuple[float, float, float], places: Places, hops: int,
                  keep_paths: int, slack: float) -> Found:  # fmt: skip
    """Search from the sources at ``places``, given addresses alone; safe to run twice.

    The point is ``group/name`` in the workspace at ``home``.

    A process searches one point at a time, whatever threads it has: for speed, have processes of one thread.
    """
    rules = {"hops": hops, "keep_paths": keep_paths, "slack": slack, "stop": np.zeros(1, np.uint8)}
    with _ONE_TASK:
        root = local_copy(home)
        if is_url(home) and not (root / group).exists():
            Mirror(home).pull()
        graph, point = str(root / GRAPH), str(root / group)
        # The same path may hold something else later: the time of the directory tells.
        changed = os.stat(graph).st_mtime_ns
        oracle = _oracle_at(graph, changed)
        frozen = _point_at(graph, changed, point, os.stat(point).st_mtime_ns, name, rule)
        # Block by block, as threads do: it decides the order of what is found.
        return Found.join([oracle.search_block(frozen, block, **rules) for block in cut(places, BLOCK_SOURCES)])


@functools.lru_cache(maxsize=1)
def _graph_at(group: str, _: int) -> Graph:
    return Graph.read(Path(group))


@functools.lru_cache(maxsize=1)
def _oracle_at(group: str, changed: int) -> NumbaOracle:
    return NumbaOracle(_graph_at(group, changed), None, 1)


@functools.lru_cache(maxsize=1)
def _point_at(group: str, changed: int, place: str, _: int, name: str, rule: tuple[float, float, float]) -> Frozen:
    """The point at an address; the oracle's arcs get its lengths."""
    closing, rhs, beyond = rule
    graph, known, y = _graph_at(group, changed), None, read_array(Path(place), name)
    if beyond > -np.inf:
        pairs = read_array(Path(place), "pairs").reshape(-1, 2)
        edges = Path(group).parent / EDGES
        ends = np.concatenate((np.column_stack([read_array(edges, end) for end in ("u", "v")]), pairs))
        graph = with_pairs(graph, pairs, len(y))
        start, order = group_by(ends[:, 0], graph.nodes)
        known = (start, ends[order, 1])
    frozen = Frozen(graph, Vector.of(y), lambda x: closing * x - rhs, beyond, known)
    _oracle_at(group, changed).lay_out(frozen)
    return frozen
