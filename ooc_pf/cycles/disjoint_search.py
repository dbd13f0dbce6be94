"""Violated cycles without common edges, over all closing edges: the searches of `kernels.disjoint` in threads."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from ..engine.parallel import run_short_tasks
from ..engine.rows import Rows
from ..errors import SearchStopped
from ..kernels.disjoint import (
    DONE,
    IN_THE_WAY,
    LOOKED,
    TAKEN,
    Closing,
    are_set,
    make_bits,
    make_closing,
    search_both_ends,
    take_disjoint,
)
from ..storage.vectors import PAGE
from . import settings
from .arcs import Scratch
from .found import NO_PAIRS, Found
from .frozen import Frozen


@dataclass
class DisjointSearch:
    """Cycles that share no edge, found for all closing edges in several rounds of longer and longer paths.

    Attributes
    ----------
    frozen : Frozen
        A point whose lengths the arcs have.
    workers : list of Scratch
        One for each thread.
    slack : float
        By how much at least a row must be violated.
    seed : tuple of int
        Decides the order of the closing edges.
    """

    frozen: Frozen
    workers: list[Scratch]
    threads: Executor | None
    slack: float
    seed: tuple[int, ...]
    stop: np.ndarray
    relaxed: int = field(default=0, init=False)

    def find(self, most_hops: int, most_rows: int, tick: Callable[[], bool]) -> Found:
        """Cycles with at most so many arcs, and so many of them, as far as they are found."""
        used, parts, count = make_bits(self.frozen.y.size), [(Rows.empty(), np.empty(0))], 0
        for hops, arcs in settings.rounds_of(most_hops):
            for number in np.random.default_rng((*self.seed, hops)).permutation(self.spans):
                if not tick():
                    raise SearchStopped
                parts.append(self._search_span(int(number), used, hops, arcs, most_rows - count))
                count += len(parts[-1][0])
        rows, violation = Rows.join([part for part, _ in parts]), np.concatenate([part for _, part in parts])
        none = np.empty(0)
        return Found(rows, violation, none, np.empty(0, np.int32), none, NO_PAIRS, self.relaxed)

    @property
    def spans(self) -> int:
        """How many parts the closing edges come in."""
        return -(-self.frozen.graph.closers // PAGE)

    def _search_span(self, number: int, used: np.ndarray, hops: int, arcs: int, most: int) -> tuple[Rows, np.ndarray]:
        """The rows of one part of the closing edges, and by how much they are violated."""
        waiting, rows = self._waiting(number, used, hops), []
        while len(waiting[0]) and most > 0:
            if self.stop[0]:
                raise SearchStopped
            now = make_closing(*(part[: settings.BATCH_DISJOINT] for part in waiting), hops)
            self._search(now, used, hops, arcs)
            taken = np.empty(len(now.edge), np.uint8)
            take_disjoint(now, used, taken)
            rows.append(_rows(now, np.flatnonzero(taken == TAKEN)[:most]))
            most -= len(rows[-1])
            again = taken == IN_THE_WAY
            waiting = tuple(np.concatenate((part[: len(again)][again], part[len(again) :])) for part in waiting)
        return self._violated(Rows.join([Rows.empty(), *rows]))

    def _waiting(self, number: int, used: np.ndarray, hops: int) -> tuple[np.ndarray, ...]:
        """Ends, number and limit of the closing edges of one part that have no row yet, in an order of their own."""
        graph, first = self.frozen.graph, number * PAGE
        last = min(first + PAGE, graph.closers)
        near = graph.sources[np.searchsorted(graph.closer_start, np.arange(first, last), side="right") - 1]
        far, edge = graph.closer_node.read(first, last), graph.closer_edge.read(first, last)
        limit = self.frozen.limit(self.frozen.x(edge)) - self.slack
        live = np.flatnonzero((limit > 0.0) & ~are_set(used, edge))
        order = live[np.random.default_rng((*self.seed, hops, number)).permutation(len(live))]
        return near[order], far[order], edge[order], limit[order]

    def _search(self, closing: Closing, used: np.ndarray, hops: int, arcs: int) -> None:
        """Search for paths, a share for each worker; nothing depends on who has which."""
        share = -(-len(closing.edge) // len(self.workers))
        calls = [
            (scratch, Closing(*(part[at : at + share] for part in closing)), used, hops, arcs)
            for scratch, at in zip(self.workers, range(0, len(closing.edge), share), strict=False)
        ]
        threads = self.threads if len(calls) > 1 else None
        self.relaxed += sum(run_short_tasks(threads, _search_share, calls))

    def _violated(self, rows: Rows) -> tuple[Rows, np.ndarray]:
        """The rows that are violated by more than the slack also in double precision."""
        if not len(rows):
            return rows, np.empty(0)
        x = self.frozen.x(rows.edges)
        closing = x[rows.start[:-1]]
        violation = self.frozen.limit(closing) - (np.add.reduceat(x, rows.start[:-1]) - closing)
        keep = violation > self.slack
        return rows.select(keep), violation[keep]


def _search_share(scratch: Scratch, closing: Closing, used: np.ndarray, hops: int, arcs: int) -> int:
    """Search for one share, reading the pages that are missing; returns how many arcs were looked at."""
    visits = scratch.visits
    visits.state[:] = 0
    page = search_both_ends(closing, used, hops, arcs, scratch.pages, visits)
    while page != DONE:
        scratch.load(page)
        page = search_both_ends(closing, used, hops, arcs, scratch.pages, visits)
    return int(visits.state[LOOKED])


def _rows(closing: Closing, which: np.ndarray) -> Rows:
    """Some of the cycles as rows, the closing edge first."""
    hops = closing.hops[which].astype(np.int64)
    entries = np.column_stack((closing.edge[which], closing.path[which]))
    inside = np.arange(entries.shape[1]) <= hops[:, None]
    return Rows(np.concatenate(([0], np.cumsum(hops + 1))), entries[inside])
