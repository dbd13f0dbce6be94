"""Find violated cycles: one frozen point, blocks of sources, bounded searches in threads.

`search_igraph` is the second, independent engine. Both say the same of every edge; where shortest paths tie they may
name different ones.
"""

import itertools
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..engine.parallel import run_tasks
from ..engine.rows import Rows
from ..errors import SearchStopped
from ..kernels import pairs, paths, trees
from ..storage.vectors import Pool, Vector
from . import settings
from .arcs import Arcs, Scratch
from .found import NO_PAIRS, Found, pair_number
from .graph import Graph


@dataclass(frozen=True)
class Frozen:
    """The point a pass looks at.

    Attributes
    ----------
    graph : Graph
    y : Vector
        By edge; lengths are max(y, 0).
    limit : x -> limit
        The length below which a path violates its row, from the x of its closing edge.
    beyond : float
        The same for a pair of a complete graph that is not ``known``; -inf for other graphs.
    known : (int64[nodes + 1], int32[pairs]) or None
        Upper ends of the known pairs, in CSR by lower end.
    address : (Path, str) or None
        Where workers in other processes find the point: a group and the name of an array in it.
    """

    graph: Graph
    y: Vector
    limit: Callable[[np.ndarray], np.ndarray]
    beyond: float = -np.inf
    known: tuple[np.ndarray, np.ndarray] | None = None
    address: tuple[Path, str] | None = None

    def x(self, edge: np.ndarray) -> np.ndarray:
        """Values at some edges."""
        return np.maximum(self.y.take(edge), 0.0)


@dataclass(frozen=True)
class SearchRules:
    """How far a search goes, and what it keeps.

    Attributes
    ----------
    hops : int
        Paths have at most one arc more than this; `kernels.paths.UNLIMITED`: a complete search.
    keep_paths : int
        Rows for each closing edge at most, those of the shortest paths.
    slack : float
        Rows violated by no more than this are left out.
    """

    hops: int
    keep_paths: int
    slack: float


# Which sources to search from: their places in ``graph.sources``.
Places = range | np.ndarray


def all_sources(graph: Graph) -> Places:
    """The places of all sources."""
    return range(len(graph.sources))


def cut(places: Places, size: int) -> list[Places]:
    """The places in parts of ``size``."""
    return [places[at : at + size] for at in range(0, len(places), size)]


def count_blocks(places: Places) -> int:
    """How many blocks, the tasks of workers, the places make."""
    return -(-len(places) // settings.BLOCK_SOURCES)


def batches(frozen: Frozen, places: Places) -> list[Places]:
    """Places whose results are handed over together: some blocks, fewer where they may find many rows."""
    if frozen.known is not None:
        blocks = min(
            max(2, settings.BATCH_PAIRS // (settings.BLOCK_SOURCES * frozen.graph.nodes)), settings.BATCH_BLOCKS
        )
        return cut(places, blocks * settings.BLOCK_SOURCES)
    at = np.asarray(places, np.int64)
    before = np.cumsum(frozen.graph.closer_start[at + 1] - frozen.graph.closer_start[at])
    ends, end = [0], 0
    while end < len(at):
        most = (before[end - 1] if end else 0) + settings.BATCH_CLOSERS
        blocks = (int(np.searchsorted(before, most, side="right")) - end) // settings.BLOCK_SOURCES
        end += min(max(1, blocks), settings.BATCH_BLOCKS) * settings.BLOCK_SOURCES
        ends.append(end)
    return [places[a:b] for a, b in itertools.pairwise(ends)]


@dataclass(frozen=True)
class Block:
    """Some sources and their closing edges: those of source i are ``start[i]:start[i + 1]``."""

    sources: np.ndarray
    start: np.ndarray
    edge: np.ndarray
    node: np.ndarray

    @classmethod
    def read(cls, graph: Graph, places: Places) -> "Block":
        """The sources at ``places``."""
        at = np.asarray(places)
        first, last = graph.closer_start[at], graph.closer_start[at + 1]
        start = np.concatenate(([0], np.cumsum(last - first)))
        together = len(at) > 0 and at[-1] - at[0] == len(at) - 1
        spans = [(first[0], last[-1])] if together else list(zip(first, last, strict=True))
        edge, node = (_joined(vector, spans) for vector in (graph.closer_edge, graph.closer_node))
        return cls(graph.sources[at], start, edge, node)

    @property
    def owner(self) -> np.ndarray:
        """Which source each closing edge belongs to."""
        return np.repeat(np.arange(len(self.sources)), np.diff(self.start))

    def peak(self, owner: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """The largest gap of each source, at least zero."""
        largest = np.zeros(len(self.sources))
        np.maximum.at(largest, owner, gap)
        return largest


def _joined(vector: Vector, spans: list[tuple[int, int]]) -> np.ndarray:
    """The values of some spans of a vector, one behind the other."""
    return np.concatenate([np.empty(0, vector.dtype), *(vector.read(int(a), int(b)) for a, b in spans)])


def join_or_stop(parts: list[Found | None]) -> Found:
    """What some blocks found together; a block that found the run stopped has None."""
    if any(part is None for part in parts):
        raise SearchStopped
    return Found.join(parts)


class NumbaOracle:
    """The bounded search, in threads over shared arrays.

    Parameters
    ----------
    pool : Executor
    workers : int
    slots : int or None
        Pages of arcs that each worker may hold, which then come from the files of ``pages``; None: arcs are whole.
    """

    def __init__(
        self,
        graph: Graph,
        pool: Executor | None,
        workers: int,
        slots: int | None = None,
        pages: Pool | None = None,
    ):
        self._pool = pool
        self._pages = None if slots is None else pages
        self._arcs: Arcs | None = None
        self._scratch: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
        self._all_scratch = [Scratch(graph.nodes, slots) for _ in range(workers)]
        for scratch in self._all_scratch:
            self._scratch.put(scratch)

    def lay_out(self, frozen: Frozen) -> None:
        """Give the arcs the lengths of a point; its blocks can be searched then."""
        if self._arcs is None:
            self._arcs = Arcs(frozen.graph, self._pages)
        self._arcs.set_lengths(frozen.x)
        for scratch in self._all_scratch:
            scratch.hold(self._arcs)

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``, a batch at a time.

        ``tick`` is called before each block and says whether to go on; ``stop`` (uint8[1]) ends one under way.
        """
        self.lay_out(frozen)

        def search(*blocks: Places) -> list[Found | None]:
            return [self.search_block(frozen, block, rules=rules, stop=stop) if tick() else None for block in blocks]

        for part in batches(frozen, places):
            blocks = cut(part, settings.BLOCK_SOURCES)
            # A task for each block would keep dask busy where searches are short; a few for each worker balance well.
            several = -(-len(blocks) // (settings.TASKS_EACH * len(self._all_scratch)))
            tasks = [tuple(blocks[at : at + several]) for at in range(0, len(blocks), several)]
            yield join_or_stop([found for task in run_tasks(self._pool, search, tasks) for found in task])

    def search_block(self, frozen: Frozen, places: Places, *, rules: SearchRules, stop: np.ndarray) -> Found | None:
        """What one block finds at the point laid out; None if it was stopped."""
        block = Block.read(frozen.graph, places)
        scratch = self._scratch.get()
        try:
            found = self._search(scratch, frozen, block, rules, stop)
            if found is None or frozen.known is None:
                return found
            more = self._discover(scratch, frozen, block, rules)
            return replace(Found.join([found, more]), peak=np.maximum(found.peak, more.peak))
        finally:
            self._scratch.put(scratch)

    def find_by_trees(
        self, frozen: Frozen, roots: np.ndarray, *, penalty: float, slack: float, tick: Callable[[], bool]
    ) -> Found:
        """Violated cycles through a shortest-path tree from each root, the best one for each closing edge."""
        graph = frozen.graph
        self.lay_out(frozen)
        limit = frozen.limit(frozen.x(graph.closer_edge.whole))
        forest = np.empty((len(roots), graph.nodes, 3), np.int32)
        radius = 2.0 * float(limit.max(initial=0.0)) + 1e-300

        def grow(number: int, root: int) -> int | None:
            if not tick():
                return None
            scratch = self._scratch.get()
            try:
                return trees.grow_tree(
                    root, radius, penalty, root, self._arcs.start, self._arcs.whole, scratch.labels, forest[number]
                )
            finally:
                self._scratch.put(scratch)

        relaxed = run_tasks(self._pool, grow, enumerate(roots.tolist()))
        if None in relaxed:
            raise SearchStopped
        x = np.maximum(frozen.y.whole, 0.0)
        spans = np.array_split(np.arange(graph.closers), settings.TREE_PARTS)
        near = np.repeat(graph.sources, np.diff(graph.closer_start))
        calls = [(graph, x, limit, near, forest, slack, span[0], span[-1] + 1) for span in spans if len(span)]
        found = Found.join(run_tasks(self._pool, _climb, calls))
        return replace(found, relaxed=sum(relaxed))

    def _search(
        self, scratch: Scratch, frozen: Frozen, block: Block, rules: SearchRules, stop: np.ndarray
    ) -> Found | None:
        """The violated cycles of a block; None if it was stopped."""
        limit = frozen.limit(frozen.x(block.edge))
        need, reach = limit - self._arcs.shortest[block.node], np.empty(len(block.edge))
        closers = paths.Closers(block.sources, block.start, block.node, block.edge, limit, need, reach)
        best = paths.make_best(rules.keep_paths)
        order = scratch.order(int(np.diff(block.start).max(initial=0)))
        state = scratch.labels.state
        state[:] = 0
        parts: list[tuple[np.ndarray, ...]] = []
        code = paths.FULL
        while code != paths.DONE:
            code = paths.advance(
                closers, rules.hops, rules.slack, scratch.pages, scratch.labels, order, best, scratch.rows, stop
            )
            if code == paths.STOPPED:
                return None
            if code >= 0:
                scratch.load(code)
                continue
            count, used = state[paths.ROWS], state[paths.ENTRIES]
            if code == paths.FULL and count == 0:
                scratch.grow_rows()
            rows = scratch.rows
            lengths = np.diff(rows.end[:count], prepend=0)
            parts.append((lengths, rows.violation[:count].copy(), rows.entries[:used].copy()))
            state[paths.ROWS] = state[paths.ENTRIES] = 0
        lengths, violation, entries = (np.concatenate(part) for part in zip(*parts, strict=True))
        start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        peak = block.peak(block.owner, limit - reach)
        return Found(Rows(start, entries), violation, peak, block.edge, reach, NO_PAIRS, int(state[paths.RELAXED]))

    def _discover(self, scratch: Scratch, frozen: Frozen, block: Block, rules: SearchRules) -> Found:
        """The pairs without a variable that are closer than they may be."""
        parts, done, most = [], 0, min(rules.hops, paths.UNLIMITED - 1) + 1
        order = np.argsort(block.sources)
        known = pairs.Known(*frozen.known, scratch.mark)
        while done < len(block.sources):
            room = len(scratch.rows.end)
            ends, reach = np.empty((room, 2), np.int32), np.empty(room)
            found = pairs.PairRows(ends, reach, scratch.rows.end, scratch.rows.entries)
            arcs = self._arcs.start, self._arcs.whole
            radius = frozen.beyond - rules.slack
            done, count, used, relaxed = pairs.discover(
                block.sources, done, radius, most, known, *arcs, scratch.labels, found
            )
            if done < len(block.sources) and count == 0:
                scratch.grow_rows()
            start = np.concatenate(([0], found.end[:count]))
            rows = Rows(start, found.entries[:used].copy())
            edge = pair_number(np.arange(count, dtype=np.int32))
            gap = frozen.beyond - reach[:count]
            owner = order[np.searchsorted(block.sources, ends[:count, 0], sorter=order)]
            parts.append(Found(rows, gap, block.peak(owner, gap), edge, reach[:count], ends[:count], relaxed))
        return replace(Found.join(parts), peak=np.max([part.peak for part in parts], axis=0))


def _climb(graph: Graph, x, limit, near, forest, slack, first, last) -> Found:
    """Rows through the best tree for each of the closing edges ``first:last``."""
    span = slice(first, last)
    near, far, closing = near[span], graph.closer_node.whole[span], graph.closer_edge.whole[span]
    best, length = np.empty(last - first, np.int32), np.empty(last - first)
    trees.best_trees(near, far, limit[span], slack, x, forest, best, length)
    hit = best >= 0
    start, edges = np.empty(int(hit.sum()) + 1, np.int64), np.empty(0, np.int32)
    trees.tree_rows(near, far, closing, best, forest, start, edges)
    edges = np.empty(int(start[-1]), np.int32)
    trees.tree_rows(near, far, closing, best, forest, start, edges)
    gap = (limit[span] - length)[hit]
    return Found(Rows(start, edges), gap, np.empty(0), np.empty(0, np.int32), np.empty(0), NO_PAIRS, 0)
