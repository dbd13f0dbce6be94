"""Find violated cycles: one frozen point, blocks of sources, bounded searches in threads.

`search_igraph` is the second, independent engine. Both say the same of every edge; where shortest paths tie they may
name different ones.
"""

import itertools
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from ..engine.parallel import run_tasks
from ..engine.rows import Rows
from ..errors import SearchStopped
from ..kernels import lanes, pairs, paths, wedges
from ..storage.vectors import Pool, Vector
from . import settings
from .arcs import Arcs, Scratch
from .contract import Contracted, closing_edges, contract
from .disjoint_search import DisjointSearch
from .found import NO_PAIRS, Found, pair_number
from .frozen import Frozen, SearchRules, TreeRules
from .graph import Graph
from .lane_search import search_lanes
from .tree_search import Forest, TreeRows

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

    def part(self, first: int, last: int) -> "Block":
        """The sources ``first:last`` of the block."""
        start = self.start[first : last + 1]
        span = slice(start[0], start[-1])
        return Block(self.sources[first:last], start - start[0], self.edge[span], self.node[span])

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


class Survey:
    """What a complete search says of every closing edge, by way of the contracted graph; without rows.

    ``peak`` (float64[sources]) is the largest violation from each source, once all batches were taken.
    """

    def __init__(self, frozen: Frozen, small: Contracted, distance: np.ndarray, relaxed: int):
        self._frozen, self._small, self._distance, self.relaxed = frozen, small, distance, relaxed
        self.peak = np.zeros(len(frozen.graph.sources))

    def batches(self) -> Iterator[Found]:
        """The closing edges in parts, with the reach of each."""
        none = np.empty(0)
        for place, near, far, edge, limit in closing_edges(self._frozen):
            reach = self._small.reach(near, far, limit, self._distance)
            np.maximum.at(self.peak, place, limit - reach)
            yield Found(Rows.empty(), none, none, edge, reach, NO_PAIRS, 0)


class NumbaOracle:
    """The bounded search, in threads over shared arrays.

    Parameters
    ----------
    pool : Executor
    workers : int or list of Scratch
        How many, or what they have already, of a larger graph.
    slots : int or None
        Pages of arcs that each worker may hold, which then come from the files of ``pages``; None: arcs are whole.
    width : int
        Sources that a worker searches from at once; costs time and memory only.
    held : int
        Pages of arcs that stay in memory for all workers.
    """

    def __init__(
        self,
        graph: Graph,
        pool: Executor | None,
        workers: int | list[Scratch],
        slots: int | None = None,
        pages: Pool | None = None,
        width: int = settings.BLOCK_SOURCES,
        held: int = 0,
    ):
        self._pool, self._width, self._held = pool, width, held
        self._pages, self._slots = (None, 0) if slots is None else (pages, slots)
        self._arcs: Arcs | None = None
        self._scratch: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
        if isinstance(workers, int):
            workers = [Scratch(graph.nodes, slots, width) for _ in range(workers)]
        self._all_scratch = workers
        for scratch in self._all_scratch:
            self._scratch.put(scratch)

    def lay_out(self, frozen: Frozen) -> None:
        """Give the arcs the lengths of a point; its blocks can be searched then."""
        if self._arcs is None:
            spare = 0 if self._pages is None else self._slots * len(self._all_scratch)
            self._arcs = Arcs(frozen.graph, self._pages, self._held, spare)
        self._arcs.set_lengths(frozen.x)
        for number, scratch in enumerate(self._all_scratch):
            scratch.hold(self._arcs, number)

    def release(self) -> None:
        """Give up what only searches need, until the next one."""
        for scratch in self._all_scratch:
            scratch.release()

    def find(
        self, frozen: Frozen, places: Places, *, rules: SearchRules, tick: Callable[[], bool], stop: np.ndarray
    ) -> Iterator[Found]:
        """Search from the sources at ``places``, a batch at a time.

        ``tick`` is called before each block and says whether to go on; ``stop`` (uint8[1]) ends one under way.
        """
        self.lay_out(frozen)
        rules = replace(rules, together=self.looks_far(frozen, places, rules, stop))

        def search(*blocks: Places) -> list[Found | None]:
            return [self.search_block(frozen, block, rules=rules, stop=stop) if tick() else None for block in blocks]

        for part in batches(frozen, places):
            blocks = cut(part, settings.BLOCK_SOURCES)
            # A task for each block would keep dask busy where searches are short; a few for each worker balance well.
            several = -(-len(blocks) // (settings.TASKS_EACH * len(self._all_scratch)))
            tasks = [tuple(blocks[at : at + several]) for at in range(0, len(blocks), several)]
            yield join_or_stop([found for task in run_tasks(self._pool, search, tasks) for found in task])

    def survey(self, frozen: Frozen, most_joins: int, *, tick: Callable[[], bool], stop: np.ndarray) -> Survey | None:
        """A complete search over the contracted graph; None if that has more joins than this."""
        small = contract(frozen, most_joins)
        return None if small is None else self._survey_of(frozen, small, tick, stop)

    def _survey_of(self, frozen: Frozen, small: Contracted, tick: Callable[[], bool], stop: np.ndarray) -> Survey:
        """Search from all sources of the contracted graph."""
        joins = len(small.length) - len(small.pair)
        distance, relaxed = np.empty(len(small.pair)), 0
        view = Frozen(small.graph, Vector.of(small.length), lambda limit: limit)
        oracle = NumbaOracle(small.graph, self._pool, self._all_scratch, width=self._width)
        rules = SearchRules(paths.UNLIMITED, keep_paths=1, slack=np.inf)
        for found in oracle.find(view, all_sources(small.graph), rules=rules, tick=tick, stop=stop):
            distance[found.edge - joins] = found.reach
            relaxed += found.relaxed
        return Survey(frozen, small, distance, relaxed)

    def search_block(self, frozen: Frozen, places: Places, *, rules: SearchRules, stop: np.ndarray) -> Found | None:
        """What one block finds at the point laid out; None if it was stopped."""
        block = Block.read(frozen.graph, places)
        scratch = self._scratch.get()
        try:
            search = self._search_lanes if rules.together else self._search_each
            found = search(scratch, frozen, block, rules, stop)
            if found is None or frozen.known is None:
                return found
            more = self._discover(scratch, frozen, block, rules)
            return replace(Found.join([found, more]), peak=np.maximum(found.peak, more.peak))
        finally:
            self._scratch.put(scratch)

    def find_by_trees(
        self, frozen: Frozen, roots: np.ndarray, *, penalty: float, slack: float, most: int, tick: Callable[[], bool]
    ) -> Found:
        """Violated cycles through a shortest-path tree from each root, the best one for each closing edge.

        There is room for ``most`` of them: of more closing edges so many are looked at.
        """
        self.lay_out(frozen)
        forest, stop = self.plant(frozen, TreeRules(penalty, slack, most, int(roots[0]))), np.zeros(1, np.uint8)
        width = min(settings.TREE_LANES, self._width)

        def grow(scratch: Scratch, some: np.ndarray) -> int | None:
            return forest.grow(scratch.lanes(lanes.NARROW, width), some, stop) if tick() else None

        groups = cut(roots, width)
        for at in range(0, len(groups), len(self._all_scratch)):
            calls = list(zip(self._all_scratch, groups[at:], strict=False))
            relaxed = run_tasks(self._pool, grow, calls)
            if None in relaxed:
                raise SearchStopped
            forest.best.relaxed += sum(relaxed)
            for k, (scratch, _) in enumerate(calls):
                forest.climb(scratch.lanes(lanes.NARROW, width), (at + k) * width, self._pool)
        return forest.best.rows().found

    def plant(self, frozen: Frozen, rules: TreeRules) -> Forest:
        """A forest without trees yet, over the arcs that are laid out."""
        return Forest(frozen, self._arcs, rules)

    def grow_alone(self, forest: Forest, roots: np.ndarray, tree: int) -> TreeRows:
        """The best rows through trees from these roots alone, of which the first is number ``tree``."""
        made = self._all_scratch[0].lanes(lanes.NARROW, len(roots))
        try:
            forest.best.relaxed = forest.grow(made, roots, np.zeros(1, np.uint8))
            forest.climb(made, tree, None)
            return forest.best.rows()
        finally:
            forest.begin_anew()

    def find_disjoint(
        self,
        frozen: Frozen,
        *,
        hops: int,
        slack: float,
        most: int,
        seed: tuple[int, ...],
        tick: Callable[[], bool],
        stop: np.ndarray,
    ) -> Found:
        """Violated cycles without common edges, with at most ``hops`` arcs beside the closing edge; ``most`` of them.

        ``tick`` is called for each part of the closing edges, in each round; see `disjoint_search`. Of a complete graph
        they are open wedges.
        """
        self.lay_out(frozen)
        if frozen.known is not None:
            return self._pack_wedges(frozen, slack, most)
        search = DisjointSearch(frozen, self._all_scratch, self._pool, slack, seed, stop)
        return search.find(hops, most, tick)

    def _pack_wedges(self, frozen: Frozen, slack: float, most: int) -> Found:
        """The same of a complete graph, with two arcs each, and only around pairs without a variable."""
        arcs, (start, upper) = self._arcs, frozen.known
        order = np.lexsort((upper, np.repeat(np.arange(len(start) - 1), np.diff(start))))
        room = min(most, frozen.graph.arcs // 4 + 1)  # each edge is two arcs, and a wedge has two edges
        pair, entries, reach = np.empty((room, 2), np.int32), np.empty((room, 2), np.int32), np.empty(room)
        count, looked = wedges.pack_wedges(
            arcs.start, arcs.whole, start, upper[order], frozen.y.size, frozen.beyond - slack, settings.WEDGE_TRIES,
            pair, reach, entries
        )  # fmt: skip
        closing = pair_number(np.arange(count, dtype=np.int32))
        rows = Rows(3 * np.arange(count + 1), np.column_stack((closing, entries[:count])).ravel())
        gap, none = frozen.beyond - reach[:count], np.empty(0)
        return Found(rows, gap, none, closing, reach[:count], pair[:count], looked)

    def looks_far(self, frozen: Frozen, places: Places, rules: SearchRules, stop: np.ndarray) -> bool:
        """Whether complete searches from these places go over so many arcs that they are better made together.

        A few of them, tried one by one at the point laid out, tell.
        """
        if rules.hops < paths.UNLIMITED or frozen.known is not None or len(places) <= settings.SCOUTS:
            return False
        scouts = Block.read(frozen.graph, np.asarray(places)[:: -(-len(places) // settings.SCOUTS)])
        found = self._search_each(self._all_scratch[0], frozen, scouts, replace(rules, slack=np.inf), stop)
        if found is None:
            raise SearchStopped
        return settings.FAR_SHARE * found.relaxed > len(scouts.sources) * frozen.graph.arcs

    def _search_each(
        self, scratch: Scratch, frozen: Frozen, block: Block, rules: SearchRules, stop: np.ndarray
    ) -> Found | None:
        """The violated cycles of a block, by a search from each source; None if it was stopped."""
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

    def _search_lanes(
        self, scratch: Scratch, frozen: Frozen, block: Block, rules: SearchRules, stop: np.ndarray
    ) -> Found | None:
        """The same by searches from as many sources at once as there are lanes."""
        parts = []
        for at in range(0, len(block.sources), self._width):
            part = block.part(at, min(at + self._width, len(block.sources)))
            limit = frozen.limit(frozen.x(part.edge))
            closers = lanes.Ends(part.owner.astype(np.int32), part.node, part.edge, limit)
            found = search_lanes(self._arcs, scratch, closers, part.sources, rules, stop)
            if found is None:
                return None
            rows, violation, reach, relaxed = found
            peak = part.peak(part.owner, limit - reach)
            parts.append(Found(rows, violation, peak, part.edge, reach, NO_PAIRS, relaxed))
        return Found.join(parts)

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
