"""What a search walks over: all arcs, whole or in pages, and what each worker keeps for its searches."""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from ..kernels import disjoint, lanes, paths, queue
from ..kernels.lengths import set_lengths
from ..storage.vectors import Pool
from . import settings
from .graph import Graph


class Arcs:
    """All arcs with their lengths beside them, in pages: one array in memory, or a scratch file.

    Of those in a file the first ``held`` pages stay in memory. ``room`` has the pages in memory, and behind them as
    many ``spare`` ones for workers. ``whole`` is the array of all arcs, None if there is a file; ``shortest`` is the
    length of the shortest arc of each node, inf where there is none.
    """

    def __init__(self, graph: Graph, pool: Pool | None = None, held: int = 0, spare: int = 0):
        self.start, self._count = graph.arc_start, graph.arcs
        self.pages = (self._count >> paths.PAGE_SHIFT) + 1
        self.shortest = np.empty(graph.nodes)
        self._pool = pool
        self.held = self.pages if pool is None else min(held, self.pages)
        self.room = np.empty((self.held + spare) << paths.PAGE_SHIFT, paths.ARC)
        self._held = self.room[: min(self.held << paths.PAGE_SHIFT, self._count)]
        self.whole = self._held if pool is None else None
        self._file = None if pool is None else pool.open_file()
        for page in range(self.pages):
            first, last = self._span(page)
            arcs = np.zeros(last - first, paths.ARC)
            arcs["node"], arcs["edge"] = graph.arc_node.read(first, last), graph.arc_edge.read(first, last)
            self._store(page, arcs)

    def _span(self, page: int) -> tuple[int, int]:
        return page << paths.PAGE_SHIFT, min((page + 1) << paths.PAGE_SHIFT, self._count)

    def page(self, page: int) -> np.ndarray:
        """The arcs of a page: a view of those in memory, or what the file has."""
        first, last = self._span(page)
        if last <= len(self._held):
            return self._held[first:last]
        return self._pool.read(self._file, first * paths.ARC.itemsize, last - first, paths.ARC)

    def parts(self, state: np.ndarray | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """(First number, arcs) of consecutive large parts; with the ``state`` of lanes only those with fresh nodes."""
        if len(self._held) and self._has_fresh(state, 0, len(self._held)):
            yield 0, self._held
        size = settings.SCAN_PAGES << paths.PAGE_SHIFT
        for first in range(len(self._held), self._count, size):
            last = min(first + size, self._count)
            if self._has_fresh(state, first, last):
                yield first, self._pool.read(self._file, first * paths.ARC.itemsize, last - first, paths.ARC)

    def _has_fresh(self, state: np.ndarray | None, first: int, last: int) -> bool:
        nodes = np.searchsorted(self.start, (first, last), side="right") - 1
        return state is None or lanes.is_fresh(state, nodes[0], min(nodes[1] + 1, len(state)))

    def load(self, page: int, slot: int) -> None:
        """Read a page of the file into a place of ``room``."""
        first, last = self._span(page)
        begin = slot << paths.PAGE_SHIFT
        self._pool.read_into(self._file, first * paths.ARC.itemsize, self.room[begin : begin + last - first])

    def _expect(self, page: int) -> None:
        first, last = self._span(page)
        if last > len(self._held) and first < last:
            size = paths.ARC.itemsize
            self._pool.expect(self._file, first * size, (last - first) * size)

    def _store(self, page: int, arcs: np.ndarray) -> None:
        first, last = self._span(page)
        if last <= len(self._held):
            self._held[first:last] = arcs
        else:
            self._pool.write(self._file, first * paths.ARC.itemsize, arcs)

    def set_lengths(self, x: Callable[[np.ndarray], np.ndarray]) -> None:
        """Bring lengths and order up to date with a point, given as its values at some edges."""
        self.shortest[:] = np.inf
        for first in range(0, self.pages, settings.GATHERED_PAGES):
            numbers = range(first, min(first + settings.GATHERED_PAGES, self.pages))
            group = [self.page(page) for page in numbers]
            for page in range(numbers.stop, min(numbers.stop + settings.GATHERED_PAGES, self.pages)):
                self._expect(page)
            # The fewer calls, the less often each page of a point that is itself in pages is looked up.
            lengths = np.split(x(np.concatenate([arcs["edge"] for arcs in group])), np.cumsum([*map(len, group)])[:-1])
            for page, arcs, length in zip(numbers, group, lengths, strict=True):
                set_lengths(self.start, page, length, arcs, self.shortest)
                if self._span(page)[1] > len(self._held):
                    self._store(page, arcs)


class Scratch:
    """What one worker needs for its searches: labels by node, buffers for the rows found, and pages of arcs.

    With ``slots`` it has that many pages of its own, which are replaced by the CLOCK algorithm (approximate LRU).
    ``width`` is how many sources it searches from at once.

    Attributes
    ----------
    labels : queue.Labels
    visits : disjoint.Visits
    rows : paths.RowBuffer
    pages : paths.Pages
        What is resident of the arcs last given to `hold`.
    """

    def __init__(self, nodes: int, slots: int | None = None, width: int = settings.BLOCK_SOURCES):
        self._nodes, self.width = nodes, width
        self._labels: queue.Labels | None = None
        self._lanes: lanes.Lanes | None = None
        self._visits: disjoint.Visits | None = None
        self._order = np.empty(0, np.int64)
        self._make_rows(settings.ROW_BUFFER, settings.ENTRY_BUFFER)
        self._slots = slots

    def hold(self, arcs: Arcs, number: int) -> None:
        """Search over these arcs from now on, as the worker of this number."""
        self._source, self._hand = arcs, 0
        slot_of_page = np.full(arcs.pages, -1, np.int32)
        slot_of_page[: arcs.held] = np.arange(arcs.held)
        recent = np.zeros(len(arcs.room) >> paths.PAGE_SHIFT, np.uint8)
        self.pages = paths.Pages(arcs.start, slot_of_page, recent, arcs.room, arcs.shortest)
        self._first = arcs.held + number * (self._slots or 0)
        self._page_of_slot = np.full(self._slots or 0, -1, np.int64)

    def load(self, page: int) -> None:
        """Make a page resident; it takes the slot of the next page that was not used since the hand last passed."""
        slot_of_page = self.pages.slot_of_page
        recent = self.pages.recent[self._first : self._first + self._slots]
        while recent[self._hand]:
            recent[self._hand] = 0
            self._hand = (self._hand + 1) % self._slots
        slot = self._hand
        self._hand = (self._hand + 1) % self._slots
        if self._page_of_slot[slot] >= 0:
            slot_of_page[self._page_of_slot[slot]] = -1
        slot_of_page[page], self._page_of_slot[slot] = self._first + slot, page
        self._source.load(page, self._first + slot)

    @property
    def labels(self) -> queue.Labels:
        """For searches from one source."""
        if self._labels is None:
            self._make_room()
            self._labels = queue.make_labels(self._nodes)
        return self._labels

    def lanes(self, kind: type, width: int | None = None) -> lanes.Lanes:
        """For searches from many sources, or from no more than ``width`` of them, with labels of this kind."""
        width = self.width if width is None else width
        if self._lanes is None or self._lanes.label.dtype != kind or self._lanes.label.shape[1] != width:
            self._lanes = None
            self._make_room()
            self._lanes = lanes.make_lanes(self._nodes, width, kind)
        return self._lanes

    @property
    def visits(self) -> disjoint.Visits:
        """For searches from both ends."""
        if self._visits is None:
            self._make_room()
            self._visits = disjoint.make_visits(self._nodes, settings.MOST_VISITED)
        return self._visits

    def _make_room(self) -> None:
        """Where memory is short, give up what the last searches needed: the next may need other things."""
        if self._slots is not None:
            self.release()

    def release(self) -> None:
        """Give up what searches need, until the next one."""
        self._labels = self._lanes = self._visits = None

    @functools.cached_property
    def mark(self) -> np.ndarray:
        """A mark by node, for complete graphs; see `pairs.Known`."""
        return np.full(self._nodes, -1, np.int32)

    def order(self, closers: int) -> np.ndarray:
        """Room for the order of as many closing edges."""
        if len(self._order) < closers:
            self._order = np.empty(closers, np.int64)
        return self._order

    def _make_rows(self, rows: int, entries: int) -> None:
        self.rows = paths.RowBuffer(np.empty(rows, np.int64), np.empty(rows), np.empty(entries, np.int32))

    def grow_rows(self) -> None:
        """Make room for rows too long for the buffers as they are."""
        self._make_rows(2 * len(self.rows.end), 2 * len(self.rows.entries))
