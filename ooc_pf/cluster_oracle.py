"""Find violated cycles on the workers of a dask cluster, which see the workspace and nothing else of ours.

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
from .oracle import Found, Frozen, NumbaOracle, SearchStopped, batches
from .pages import Vector
from .parallel import run_tasks

TASK_BLOCKS = 4


class ClusterOracle:
    """Searches on the workers of ``client``; trees, which are few, with the oracle ``here``."""

    def __init__(self, here: NumbaOracle, group: Path, limit_rule: tuple[float, float], client: Any):
        self._group, self._rule, self._client = group.resolve(), limit_rule, client
        self.find_by_trees = here.find_by_trees

    def find(self, frozen: Frozen, blocks: range, *, hops: int, keep_paths: int, slack: float,
             tick: Callable[[], bool], stop: np.ndarray) -> Iterator[Found]:  # fmt: skip
        """Search ``blocks``, a batch at a time; ``stop`` acts between batches."""
        place, name = frozen.address
        point = (str(self._group), str(place.resolve()), name, (*self._rule, frozen.beyond))
        for batch in batches(blocks):
            if not all([tick() for _ in batch]):
                raise SearchStopped
            parts = [batch[at : at + TASK_BLOCKS] for at in range(0, len(batch), TASK_BLOCKS)]
            calls = [(*point, part.start, part.stop, hops, keep_paths, slack) for part in parts]
            yield Found.join(run_tasks(self._client, search_blocks, calls))


_ONE_TASK = threading.Lock()


def search_blocks(group: str, place: str, name: str, rule: tuple[float, float, float], first: int, last: int, hops: int,
                  keep_paths: int, slack: float) -> Found:  # fmt: skip
    """Search the blocks ``first:last`` from addresses alone; safe to run twice.

    A process searches one point at a time, whatever threads it has: for speed, have processes of one thread.
    """
    rules = {"hops": hops, "keep_paths": keep_paths, "slack": slack, "stop": np.zeros(1, np.uint8)}
    with _ONE_TASK:
        # The same path may hold something else later: the time of the directory tells.
        oracle = _oracle_at(group, os.stat(group).st_mtime_ns)
        frozen = _point_at(group, os.stat(group).st_mtime_ns, place, os.stat(place).st_mtime_ns, name, rule)
        return Found.join([oracle.search_block(frozen, block, **rules) for block in range(first, last)])


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
        edges = Path(group).parent / "edges.zarr"
        ends = np.concatenate((np.column_stack([read_array(edges, end) for end in ("u", "v")]), pairs))
        graph = with_pairs(graph, pairs, len(y))
        start, order = group_by(ends[:, 0], graph.nodes)
        known = (start, ends[order, 1])
    frozen = Frozen(graph, Vector.of(y), lambda x: closing * x - rhs, beyond, known)
    _oracle_at(group, changed).lay_out(frozen)
    return frozen
