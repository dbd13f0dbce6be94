"""Cycles through shortest-path trees, grown in lanes from several roots at once: the best one for each closing edge.

Of the ways through all trees each closing edge takes the one of least price, and of equal prices the one in the tree
that comes first. That is decided for some trees alone as well, and then between them: so it does not matter how many
are grown together, nor by whom.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from ..engine.parallel import run_short_tasks
from ..engine.rows import Rows
from ..kernels import lanes, trees
from ..kernels.lanes import SCRAMBLE
from . import settings
from .arcs import Arcs
from .contract import closing_edges
from .found import NO_PAIRS, Found
from .frozen import Frozen, TreeRules
from .lane_search import label_nodes

MARK_BITS = 16  # shapes the bits: how finely closing edges are drawn
MARKS = 1 << MARK_BITS


@dataclass(frozen=True)
class TreeRows:
    """The best rows through some trees, no more than one for each closing edge.

    Attributes
    ----------
    place : int64[rows]
        Which of the closing edges that are looked at each row is for, in their order.
    price, gap : float64[rows]
        What the way costs, and by how much the row is violated.
    rows : Rows
    relaxed : int
        Arcs looked at.
    """

    place: np.ndarray
    price: np.ndarray
    gap: np.ndarray
    rows: Rows
    relaxed: int

    @property
    def found(self) -> Found:
        """The same as what a search brings."""
        none = np.empty(0)
        return Found(self.rows, self.gap, none, np.empty(0, np.int32), none, NO_PAIRS, self.relaxed)


class BestRows:
    """The best row so far of each closing edge, from trees in their order.

    Parameters
    ----------
    count : int
        Closing edges that are looked at, at most.
    most : int
        Rows that there is room for.

    Attributes
    ----------
    price : float64[closing edges]
        What the way costs that a better one must beat; inf where none is known.
    relaxed : int
        Arcs looked at.
    """

    def __init__(self, count: int, most: int):
        self._most, self.relaxed = most, 0
        self.price, self._gap = np.full(count, np.inf), np.zeros(count)
        # The best row of each closing edge, among the rows that are held.
        self._held, self._row, self._rows = [Rows.empty()], np.full(count, -1), 0

    def hold(self, place: np.ndarray, gap: np.ndarray, rows: Rows, which: np.ndarray) -> None:
        """Rows ``which`` are now the best ones of the closing edges at ``place``."""
        self._gap[place], self._row[place] = gap, self._rows + which
        self._held.append(rows)
        self._rows += len(rows)

    def merge(self, later: TreeRows) -> None:
        """Take up those of the rows through later trees that are better."""
        better = np.flatnonzero(later.price < self.price[later.place])
        place = later.place[better]
        self.price[place] = later.price[better]
        self.hold(place, later.gap[better], later.rows, better)
        self.relaxed += later.relaxed
        self.cut_down()

    def cut_down(self) -> None:
        """Let go of rows that others have beaten, once they are many."""
        if self._rows > settings.CROWDED_TREES * self._most:
            self._let_go()

    def _let_go(self) -> None:
        """Hold the best rows only, in the order of their closing edges."""
        found, rows = np.flatnonzero(self._row >= 0), Rows.join(self._held)
        self._held = []  # makes room
        self._held = [rows.take(self._row[found])]
        self._row[found], self._rows = np.arange(len(found)), len(found)

    def rows(self) -> TreeRows:
        """The best row of each closing edge that has any."""
        self._let_go()
        place = np.flatnonzero(self._row >= 0)
        return TreeRows(place, self.price[place], self._gap[place], self._held[0], self.relaxed)


class Forest:
    """Shortest-path trees from some roots, and the best way through them for each closing edge.

    As many trees are grown at a time as the workers have lanes for. Where there are more closing edges than rows to be
    kept, so many of them are looked at, drawn before the first tree.

    Attributes
    ----------
    best : BestRows
        Through the trees that were climbed.
    """

    def __init__(self, frozen: Frozen, arcs: Arcs, rules: TreeRules):
        self._arcs, self._rules = arcs, rules
        self._radius, drawn = self._draw(frozen)
        self._near, self._far, self._closing, self._limit = drawn
        self.best = BestRows(len(self._limit), rules.most)

    def _draw(self, frozen: Frozen) -> tuple[float, list[np.ndarray]]:
        """How far trees reach; and ends, numbers and limits of the closing edges that are looked at."""
        widest, marked, slack = 0.0, np.zeros(MARKS, np.int64), self._rules.slack
        for _, _, _, edge, limit in closing_edges(frozen):
            widest = max(widest, float(limit.max()))
            marked += np.bincount(self._marks(edge[limit > slack]), minlength=MARKS)
        least = int(np.searchsorted(np.cumsum(marked), self._rules.most, side="right"))
        parts = [(*(np.empty(0, np.int32) for _ in range(3)), np.empty(0))]
        for _, near, far, edge, limit in closing_edges(frozen):
            drawn = (self._marks(edge) < least) & (limit > slack)
            parts.append((near[drawn], far[drawn], edge[drawn], limit[drawn]))
        return 2.0 * widest, [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _marks(self, closing: np.ndarray) -> np.ndarray:
        """A mark for each closing edge, by a hash of its number and the seed: those with low marks are looked at."""
        mixed = np.array([self._rules.seed], np.uint64) * SCRAMBLE
        mixed = (closing.astype(np.uint64) ^ (mixed ^ (mixed >> np.uint64(29)))) * SCRAMBLE
        return ((mixed ^ (mixed >> np.uint64(32))) * SCRAMBLE >> np.uint64(64 - MARK_BITS)).astype(np.int64)

    def begin_anew(self) -> None:
        """Forget the rows of trees that were climbed before."""
        self.best = BestRows(len(self._limit), self._rules.most)

    def grow(self, made: lanes.Lanes, roots: np.ndarray, stop: np.ndarray) -> int | None:
        """A tree from each root, in a lane each; returns how many arcs were looked at, or None if it was stopped."""
        measure = lanes.tree_measure(self._radius, self._rules.penalty, self._rules.seed)
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
        for place, gap, rows in run_short_tasks(pool, self._climb_span, spans):
            self.best.hold(place, gap, rows, np.arange(len(rows)))
        self.best.cut_down()

    def _climb_span(self, made: lanes.Lanes, tree: int, span: slice) -> tuple[np.ndarray, np.ndarray, Rows]:
        """The closing edges of a span that have a better way, and the rows these make with their violation."""
        near, far, closing, limit = self._near[span], self._far[span], self._closing[span], self._limit[span]
        best, shortest, bar = np.empty(len(near), np.int32), np.empty(len(near)), limit - self._rules.slack
        price = self.best.price[span]
        trees.best_trees(near, far, closing, bar, made, tree, self._rules.penalty, best, price, shortest)
        hit = np.flatnonzero(best >= 0)
        start, edges = np.empty(len(hit) + 1, np.int64), np.empty(0, np.int32)
        trees.tree_rows(near, far, closing, best, made, start, edges)
        edges = np.empty(int(start[-1]), np.int32)
        trees.tree_rows(near, far, closing, best, made, start, edges)
        return span.start + hit, limit[hit] - shortest[hit], Rows(start, edges)
