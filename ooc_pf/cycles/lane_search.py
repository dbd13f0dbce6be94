"""Searches in lanes: from the sources of a block at once, and shortest-path trees from several roots at once."""

from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from ..engine.parallel import run_short_tasks
from ..engine.rows import Rows
from ..kernels import lanes, trees
from ..kernels.lanes import SCRAMBLE
from . import settings
from .arcs import Arcs, Scratch
from .contract import closing_edges
from .found import NO_PAIRS, Found
from .frozen import Frozen, SearchRules


def label_nodes(
    arcs: Arcs, made: lanes.Lanes, roots: np.ndarray, limit: np.ndarray, measure: lanes.Measure, stop: np.ndarray
) -> int | None:
    """Scan all arcs until no label changes; returns how many were looked at, or None if it was stopped.

    ``limit`` is, for each root, what labels stay below.
    """
    lanes.begin(arcs.start, roots, limit, made)
    relaxed, before = 0, -1
    while relaxed > before:
        before = relaxed
        for first, part in arcs.parts(made.state):
            if stop[0]:
                return None
            relaxed += lanes.relax_arcs(arcs.start, first, part, measure, made)
    return relaxed


def search_lanes(
    arcs: Arcs, scratch: Scratch, closers: lanes.Ends, sources: np.ndarray, rules: SearchRules, stop: np.ndarray
) -> tuple[Rows, np.ndarray, np.ndarray, int] | None:
    """Search from ``sources``, one in each lane, for paths shorter than the closing edges allow.

    Returns
    -------
    rows : Rows
        Those that ``rules`` keep of the shortest paths.
    violation : float64[rows]
    reach : float64[closing edges]
        ``min(limit, distance)``, up to a few units of the last digit below: of float64, or of labels of 32 bits where
        ``rules`` are coarse.
    relaxed : int
        None instead of all this if it was stopped.
    """
    kind = lanes.NARROW if rules.coarse else lanes.WIDE
    made, nodes = scratch.lanes(kind), len(arcs.start) - 1
    radius = np.zeros(len(sources))
    np.maximum.at(radius, closers.lane, closers.limit)
    measure = lanes.exact_measure(float(radius.max(initial=0.0)), nodes, kind)
    limit = np.array([lanes.limit_of(most, measure) for most in radius.tolist()], kind)
    relaxed = label_nodes(arcs, made, sources, limit, measure, stop)
    if relaxed is None:
        return None
    label, reach = made.label[closers.node, closers.lane], closers.limit.copy()
    short = (label != lanes.far(made.label)) & ((label >> measure.shift) / measure.per_unit < closers.limit)
    if rules.coarse and (label[short] & lanes.NARROW_HOPS == lanes.NARROW_HOPS).any():
        # Paths of so many arcs cannot be walked back.
        return search_lanes(arcs, scratch, closers, sources, replace(rules, coarse=False), stop)
    ends = lanes.Ends(*(part[short] for part in closers))
    ways = _ways(arcs, made, ends, rules.keep_paths, measure)
    best = (label[short] >> measure.shift) / measure.per_unit if rules.coarse else ways.length[:, 0]
    reach[short] = np.where(ways.label[:, 0] == lanes.NONE, ends.limit, best)
    rows, violation = _rows(made, ends, ways, rules.slack)
    return rows, violation, reach, relaxed


def _ways(arcs: Arcs, made: lanes.Lanes, ends: lanes.Ends, keep: int, measure: lanes.Measure) -> lanes.Ways:
    """The shortest ways into the far ends, and the parents of all nodes, in one more scan."""
    ways = lanes.make_ways(len(ends.node), keep)
    order = np.argsort(ends.node, kind="stable")
    targets = ends.node[order]
    for first, part in arcs.parts() if len(order) else ():
        lanes.find_parents(arcs.start, first, part, measure, made)
        nodes = np.searchsorted(arcs.start, (first, first + len(part)), side="right") - 1
        here = slice(*np.searchsorted(targets, (nodes[0], nodes[1] + 1)))
        lanes.find_ways(arcs.start, first, part, measure, made, ends, order[here], ways)
    return ways


def _rows(made: lanes.Lanes, ends: lanes.Ends, ways: lanes.Ways, slack: float) -> tuple[Rows, np.ndarray]:
    none = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    count, entries = lanes.write_rows(ends, ways, slack, made, *none)
    start, violation, edges = np.zeros(count + 1, np.int64), np.empty(count), np.empty(entries, np.int32)
    lanes.write_rows(ends, ways, slack, made, start, violation, edges)
    return Rows(start, edges), violation


MARK_BITS = 16  # shapes the bits: how finely closing edges are drawn
MARKS = 1 << MARK_BITS


# -- trees ------------------------------------------------------------------------------------------------------------


class Forest:
    """Shortest-path trees from some roots, and the best way through them for each closing edge.

    As many trees are grown at a time as the workers have lanes for. What is found does not depend on that: where there
    are more closing edges than rows to be kept, so many of them are looked at, drawn before the first tree.

    Parameters
    ----------
    penalty : float
        What each arc of a way costs beside its length.
    slack : float
        By how much at least a row must be violated.
    most : int
        Rows that there is room for.
    seed : int
    """

    def __init__(self, frozen: Frozen, arcs: Arcs, penalty: float, slack: float, most: int, seed: int):
        self._arcs, self._penalty, self._slack, self._most, self._seed = arcs, penalty, slack, most, seed
        self._radius, drawn = self._draw(frozen)
        self._near, self._far, self._closing, self._limit = drawn
        self._price, self._gap = np.full(len(self._limit), np.inf), np.zeros(len(self._limit))
        # The best row so far of each closing edge, among the rows that were held.
        self._held, self._row, self._rows = [Rows.empty()], np.full(len(self._limit), -1), 0
        self.relaxed = 0

    def _draw(self, frozen: Frozen) -> tuple[float, list[np.ndarray]]:
        """How far trees reach; and ends, numbers and limits of the closing edges that are looked at."""
        widest, marked = 0.0, np.zeros(MARKS, np.int64)
        for _, _, _, edge, limit in closing_edges(frozen):
            widest = max(widest, float(limit.max()))
            marked += np.bincount(self._marks(edge[limit > self._slack]), minlength=MARKS)
        least = int(np.searchsorted(np.cumsum(marked), self._most, side="right"))
        parts = [(*(np.empty(0, np.int32) for _ in range(3)), np.empty(0))]
        for _, near, far, edge, limit in closing_edges(frozen):
            drawn = (self._marks(edge) < least) & (limit > self._slack)
            parts.append((near[drawn], far[drawn], edge[drawn], limit[drawn]))
        return 2.0 * widest, [np.concatenate(part) for part in zip(*parts, strict=True)]

    def grow(self, made: lanes.Lanes, roots: np.ndarray, stop: np.ndarray) -> int | None:
        """A tree from each root, in a lane each; returns how many arcs were looked at, or None if it was stopped."""
        measure = lanes.tree_measure(self._radius, self._penalty, self._seed)
        limit = np.full(len(roots), lanes.limit_of(self._radius, measure), made.label.dtype)
        relaxed = label_nodes(self._arcs, made, roots, limit, measure, stop)
        for first, part in self._arcs.parts() if relaxed is not None else ():
            lanes.find_parents(self._arcs.start, first, part, measure, made)
        return relaxed

    def climb(self, made: lanes.Lanes, tree: int, pool: Executor | None) -> None:
        """Take up the ways through these trees, of which the first is number ``tree``, that beat those known."""
        count = len(self._limit)
        size = max(1, -(-count // settings.TREE_PARTS))
        spans = [(made, tree, slice(at, min(at + size, count))) for at in range(0, count, size)]
        for better, rows in run_short_tasks(pool, self._climb_span, spans):
            self._row[better] = self._rows + np.arange(len(rows))
            self._held.append(rows)
            self._rows += len(rows)
        if self._rows > settings.CROWDED_TREES * self._most:
            self._let_go()

    def _climb_span(self, made: lanes.Lanes, tree: int, span: slice) -> tuple[np.ndarray, Rows]:
        """The closing edges of a span that have a better way, and the rows these make."""
        near, far, closing = self._near[span], self._far[span], self._closing[span]
        best, shortest, bar = np.empty(len(near), np.int32), np.empty(len(near)), self._limit[span] - self._slack
        trees.best_trees(near, far, closing, bar, made, tree, self._penalty, best, self._price[span], shortest)
        hit = np.flatnonzero(best >= 0)
        self._gap[span][hit] = self._limit[span][hit] - shortest[hit]
        start, edges = np.empty(len(hit) + 1, np.int64), np.empty(0, np.int32)
        trees.tree_rows(near, far, closing, best, made, start, edges)
        edges = np.empty(int(start[-1]), np.int32)
        trees.tree_rows(near, far, closing, best, made, start, edges)
        return span.start + hit, Rows(start, edges)

    def _let_go(self) -> None:
        """Hold the best rows only, in the order of their closing edges."""
        found, rows = np.flatnonzero(self._row >= 0), Rows.join(self._held)
        self._held = []  # makes room
        self._held = [rows.take(self._row[found])]
        self._row[found], self._rows = np.arange(len(found)), len(found)

    def _marks(self, closing: np.ndarray) -> np.ndarray:
        """A mark for each closing edge, by a hash of its number and the seed: those with low marks are looked at."""
        mixed = np.array([self._seed], np.uint64) * SCRAMBLE
        mixed = (closing.astype(np.uint64) ^ (mixed ^ (mixed >> np.uint64(29)))) * SCRAMBLE
        return ((mixed ^ (mixed >> np.uint64(32))) * SCRAMBLE >> np.uint64(64 - MARK_BITS)).astype(np.int64)

    def found(self) -> Found:
        """The best row of each closing edge."""
        self._let_go()
        gap, none = self._gap[self._row >= 0], np.empty(0)
        return Found(self._held[0], gap, none, np.empty(0, np.int32), none, NO_PAIRS, self.relaxed)
