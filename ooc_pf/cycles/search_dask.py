"""Find violated cycles on the workers of a dask cluster, which see the workspace and nothing else of ours.

They find it under the same path, or on the same object store, of which each machine keeps a copy.

A task carries the address of a graph and of a point, and the numbers of some blocks; it may run twice, or on another
worker when its own dies. What the blocks find does not depend on where they are searched. A graph laid out for disk
stays there: a worker holds what its budget allows, the same as that of the process that solves.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.parallel import run_tasks, worker_folder
from ..errors import SearchStopped
from ..storage.arrays import open_array, read_array
from ..storage.memory import Budget
from ..storage.objectstore import Mirror, is_url, local_copy
from ..storage.vectors import Pool, read_vector
from ..storage.workspace import EDGES, GRAPH, Workspace
from . import settings
from .graph import Graph, group_by, with_pairs
from .search import Found, Frozen, NumbaOracle, Places, SearchRules, batches, count_blocks, cut


@dataclass(frozen=True)
class Address:
    """All that a worker needs to know to find a point: plain values.

    Attributes
    ----------
    home : str
        Of the workspace.
    group, name : str
        Of the point, within it.
    rule : (float, float, float)
        ``closing`` and ``rhs`` of the limit, and the limit of pairs not known.
    vectors, slots : int or None; lanes, held : int
        What a worker may hold, as in `Budget`.
    """

    home: str
    group: str
    name: str
    rule: tuple[float, float, float]
    vectors: int | None
    slots: int | None
    lanes: int
    held: int


class ClusterOracle:
    """Searches on the workers of ``client``; what is little work is done by the oracle ``here``."""

    def __init__(
        self, here: NumbaOracle, workspace: Workspace, limit_rule: tuple[float, float], client: Any, budget: Budget
    ):
        self._workspace, self._rule, self._client, self._budget = workspace, limit_rule, client, budget
        self._here = here
        self.find_by_trees, self.find_disjoint = here.find_by_trees, here.find_disjoint
        self.survey, self.release = here.survey, here.release

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``, a batch at a time; ``stop`` acts between batches."""
        self._here.lay_out(frozen)
        rules = replace(rules, together=self._here.looks_far(frozen, places, rules, stop))
        group, name = frozen.address
        point = Address(
            self._workspace.address,
            str(group.relative_to(self._workspace.path)),
            name,
            (*self._rule, frozen.beyond),
            self._budget.vectors,
            self._budget.slots,
            self._budget.lanes,
            self._budget.held,
        )
        for batch in batches(frozen, places):
            if not all([tick() for _ in range(count_blocks(batch))]):
                raise SearchStopped
            parts = cut(batch, settings.CLUSTER_TASK_BLOCKS * settings.BLOCK_SOURCES)
            calls = [(point, part, rules) for part in parts]
            yield Found.join(run_tasks(self._client, search_places, calls))


# -- on the workers -------------------------------------------------------------------------------------------------


class WorkerCache:
    """What a worker keeps from task to task: a graph, and the last point with its arcs laid out."""

    def __init__(self, group: Path, vectors: int | None, slots: int | None, lanes: int, held: int):
        self._folder = tempfile.TemporaryDirectory(dir=worker_folder())
        self.pool = Pool(vectors, Path(self._folder.name))
        self._edges = group.parent / EDGES
        self.graph = Graph.read(group, self.pool).check(open_array(self._edges, "u").shape[0], group)
        self.oracle = NumbaOracle(self.graph, None, 1, slots, self.pool, lanes, held)
        self._mark: Any = None
        self._frozen: Frozen | None = None

    def look_at(self, mark: Any, place: Path, name: str, rule: tuple[float, float, float]) -> Frozen:
        """The point ``place/name``, laid out; ``mark`` tells one point from another."""
        if mark != self._mark:
            self._mark = None  # until the new point is there
            if self._frozen is not None:
                self._frozen.y.close()
            self._frozen = self._freeze(place, name, *rule)
            self.oracle.lay_out(self._frozen)
            self._mark = mark
        return self._frozen

    def _freeze(self, place: Path, name: str, closing: float, rhs: float, beyond: float) -> Frozen:
        graph, known, y = self.graph, None, read_vector(place, name, self.pool)
        if beyond > -np.inf:
            pairs = read_array(place, "pairs").reshape(-1, 2)
            ends = np.concatenate((np.column_stack([read_array(self._edges, end) for end in ("u", "v")]), pairs))
            graph = with_pairs(graph, pairs, y.size)
            start, order = group_by(ends[:, 0], graph.nodes)
            known = (start, ends[order, 1])
        return Frozen(graph, y, lambda x: closing * x - rhs, beyond, known)

    def close(self) -> None:
        """Give up what is held."""
        self.pool.close()
        self._folder.cleanup()


_ONE_TASK = threading.Lock()
_cache: tuple[Any, WorkerCache] | None = None


def search_places(at: Address, places: Places, rules: SearchRules) -> Found:
    """Search from the sources at ``places``, given addresses alone; safe to run twice.

    A process searches one point at a time, whatever threads it has: for speed, have processes of one thread.
    """
    stop = np.zeros(1, np.uint8)
    with _ONE_TASK:
        root = local_copy(at.home)
        if is_url(at.home) and not (root / at.group).exists():
            Mirror(at.home).pull()
        cache, point = _cache_for(root / GRAPH, at.vectors, at.slots, at.lanes, at.held), root / at.group
        frozen = cache.look_at((_mark(point), at.name, at.rule), point, at.name, at.rule)
        # Block by block, as threads do: it decides the order of what is found.
        blocks = cut(places, settings.BLOCK_SOURCES)
        return Found.join([cache.oracle.search_block(frozen, block, rules=rules, stop=stop) for block in blocks])


def _cache_for(group: Path, vectors: int | None, slots: int | None, lanes: int, held: int) -> WorkerCache:
    """The cache for this graph: the present one, or a new one in its place."""
    global _cache
    mark = (_mark(group), vectors, slots, lanes, held)
    if _cache is None or _cache[0] != mark:
        if _cache is not None:
            _cache[1].close()
            _cache = None
        _cache = (mark, WorkerCache(group, vectors, slots, lanes, held))
    return _cache[1]


def _mark(group: Path) -> tuple[str, int]:
    """The same path may hold something else later: the time of the directory tells."""
    return str(group), os.stat(group).st_mtime_ns
