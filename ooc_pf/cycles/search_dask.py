"""Find violated cycles on the workers of a dask cluster, which see the workspace and nothing else of ours.

They find it under the same path, or on the same object store, of which each machine keeps a copy.

A task carries the address of a graph and of a point, and the numbers of some blocks, or the roots of some trees; it may
run twice, or on another worker when its own dies. What it finds does not depend on where it runs. A graph laid out for
disk stays there: a worker holds what its budget allows, the same as that of the process that solves.

Two kinds of search stay in the process that solves. Cycles without common edges are found one batch after the other,
each around the edges that the ones before have used. And a contracted graph is so small that its search is little work.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.parallel import cluster_size, run_on_cluster_in_turn, run_tasks, worker_folder
from ..errors import SearchStopped
from ..storage.arrays import open_array, read_array
from ..storage.memory import Budget
from ..storage.objectstore import Mirror, is_url, local_copy
from ..storage.vectors import Pool, read_vector
from ..storage.workspace import EDGES, GRAPH, Workspace
from . import settings
from .graph import Graph, group_by, with_pairs
from .search import Found, Frozen, NumbaOracle, Places, SearchRules, TreeRules, batches, count_blocks, cut
from .tree_search import BestRows, Forest, TreeRows


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
    """Searches and trees on the workers of ``client``; what is little work is done by the oracle ``here``."""

    def __init__(
        self, here: NumbaOracle, workspace: Workspace, limit_rule: tuple[float, float], client: Any, budget: Budget
    ):
        self._workspace, self._rule, self._client, self._budget = workspace, limit_rule, client, budget
        self._here = here
        self.find_disjoint, self.survey, self.release = here.find_disjoint, here.survey, here.release

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``, a batch at a time; ``stop`` acts between batches."""
        self._here.lay_out(frozen)
        rules = replace(rules, together=self._here.looks_far(frozen, places, rules, stop))
        point = self._address(frozen)
        for batch in batches(frozen, places):
            if not all([tick() for _ in range(count_blocks(batch))]):
                raise SearchStopped
            parts = cut(batch, settings.CLUSTER_TASK_BLOCKS * settings.BLOCK_SOURCES)
            calls = [(point, part, rules) for part in parts]
            yield Found.join(run_tasks(self._client, search_places, calls))

    def find_by_trees(
        self, frozen: Frozen, roots: np.ndarray, *, penalty: float, slack: float, most: int, tick: Callable[[], bool]
    ) -> Found:
        """Violated cycles through trees, the same as `NumbaOracle.find_by_trees`; stops before a task is sent."""
        point, rules = self._address(frozen), TreeRules(penalty, slack, most, int(roots[0]))
        width = self._trees_together(len(roots))

        def calls() -> Iterator[tuple]:
            for first in range(0, len(roots), width):
                if not tick():
                    raise SearchStopped
                yield point, rules, roots[first : first + width], first

        best = BestRows(min(most, frozen.graph.closers), most)
        for rows in run_on_cluster_in_turn(self._client, grow_trees, calls()):
            best.merge(rows)
        return best.rows().found

    def _trees_together(self, trees: int) -> int:
        """How many trees a task grows: as many as fit at most, fewer where other workers would have none."""
        share = -(-trees // cluster_size(self._client))
        return min(max(share, settings.LEAST_TREE_LANES), settings.TREE_LANES, self._budget.lanes)

    def _address(self, frozen: Frozen) -> Address:
        """Where workers find a point, and what they may hold."""
        assert frozen.address is not None
        group, name = frozen.address
        return Address(
            self._workspace.address,
            str(group.relative_to(self._workspace.path)),
            name,
            (*self._rule, frozen.beyond),
            self._budget.vectors,
            self._budget.slots,
            self._budget.lanes,
            self._budget.held,
        )


# -- on the workers -------------------------------------------------------------------------------------------------


class WorkerCache:
    """What a worker keeps from task to task: a graph, the last point with its arcs laid out, and its closing edges."""

    def __init__(self, group: Path, vectors: int | None, slots: int | None, lanes: int, held: int):
        self._folder = tempfile.TemporaryDirectory(dir=worker_folder())
        self.pool = Pool(vectors, Path(self._folder.name))
        self._edges = group.parent / EDGES
        self.graph = Graph.read(group, self.pool).check(open_array(self._edges, "u").shape[0], group)
        self.oracle = NumbaOracle(self.graph, None, 1, slots, self.pool, lanes, held)
        self._mark: Any = None
        self._frozen: Frozen | None = None
        self._forest: tuple[TreeRules, Forest] | None = None

    def look_at(self, mark: Any, place: Path, name: str, rule: tuple[float, float, float]) -> Frozen:
        """The point ``place/name``, laid out; ``mark`` tells one point from another."""
        if mark != self._mark:
            self._mark = None  # until the new point is there
            self.clear()
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

    def forest(self, frozen: Frozen, rules: TreeRules) -> Forest:
        """A forest without trees at the point laid out: its closing edges are drawn once for all tasks of a pass."""
        if self._forest is None or self._forest[0] != rules:
            self.clear()
            self._forest = rules, self.oracle.plant(frozen, rules)
        return self._forest[1]

    def clear(self) -> None:
        """Give up what only trees need."""
        self._forest = None

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
        cache, frozen = _look_at(at)
        cache.clear()
        # Block by block, as threads do: it decides the order of what is found.
        blocks = cut(places, settings.BLOCK_SOURCES)
        return Found.join([cache.oracle.search_block(frozen, block, rules=rules, stop=stop) for block in blocks])


def grow_trees(at: Address, rules: TreeRules, roots: np.ndarray, first: int) -> TreeRows:
    """The best row of each closing edge through trees from ``roots``, of which the first is number ``first``.

    Given addresses alone; safe to run twice. There are no more rows than ``rules`` have room for, since so many closing
    edges are looked at.
    """
    with _ONE_TASK:
        cache, frozen = _look_at(at)
        return cache.oracle.grow_alone(cache.forest(frozen, rules), roots, first)


def _look_at(at: Address) -> tuple[WorkerCache, Frozen]:
    """What this worker holds of the graph, and the point laid out."""
    root = local_copy(at.home)
    if is_url(at.home) and not (root / at.group).exists():
        Mirror(at.home).pull()
    cache, point = _cache_for(root / GRAPH, at.vectors, at.slots, at.lanes, at.held), root / at.group
    return cache, cache.look_at((_mark(point), at.name, at.rule), point, at.name, at.rule)


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
