"""What a search brings back: violated rows, and new pairs of a complete graph by provisional edge numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..engine.rows import Rows

NO_PAIRS = np.empty((0, 2), np.int32)


@dataclass(frozen=True)
class Found:
    """What a search from some sources found.

    Attributes
    ----------
    rows : Rows
        Violated rows; ``violation`` tells by how much.
    peak : float64[sources]
        The largest violation from each source, in the order they were searched.
    edge, reach : int32 array, float64 array
        The closing edges that were looked at, and ``min(limit, distance)`` of each.
    pairs : int32[new, 2]
        Pairs of a complete graph that need a variable. Until they have one, pair k goes by the edge number -1 - k.
    relaxed : int
        Arcs looked at.
    left : float64 array
        The reach of further new pairs, whose rows were left out.
    """

    rows: Rows
    violation: np.ndarray
    peak: np.ndarray
    edge: np.ndarray
    reach: np.ndarray
    pairs: np.ndarray
    relaxed: int
    left: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def join(cls, parts: Sequence["Found"]) -> "Found":
        if not parts:
            return cls(Rows.empty(), np.empty(0), np.empty(0), np.empty(0, np.int32), np.empty(0), NO_PAIRS, 0)
        before = np.cumsum([0, *(len(part.pairs) for part in parts)])
        rows = [Rows(part.rows.start, _behind(part.rows.edges, k)) for part, k in zip(parts, before)]
        return cls(
            Rows.join(rows),
            np.concatenate([part.violation for part in parts]),
            np.concatenate([part.peak for part in parts]),
            np.concatenate([_behind(part.edge, k) for part, k in zip(parts, before)]),
            np.concatenate([part.reach for part in parts]),
            np.concatenate([part.pairs for part in parts]),
            sum(part.relaxed for part in parts),
            np.concatenate([part.left for part in parts]),
        )

    def worst_rows(self, count: int) -> "Found":
        """The same with so many of its rows at most, the most violated ones, and of the new pairs those in them.

        Nothing must be here about closing edges but the new pairs.
        """
        if len(self.rows) <= count:
            return self
        keep = np.zeros(len(self.rows), bool)
        keep[np.argsort(-self.violation, kind="stable")[:count]] = True
        return self._only(keep)

    def fitting(self, room: int) -> "Found":
        """The same with so many new pairs at most, those of the most violated rows, and without the rows of others.

        Of rows that are violated equally, as all are at first, those come first that share no edge with another: so
        the bound gains most from few pairs. Nothing must be here about closing edges but the new pairs.
        """
        if len(self.pairs) <= room:
            return self
        closer = self.rows.edges[self.rows.start[:-1]]
        new = closer < 0
        pair = pair_number(closer[new])
        order = np.lexsort((_turns(self.rows)[new], -self.violation[new]))
        wanted, first = np.unique(pair[order], return_index=True)
        fits = np.zeros(len(self.pairs), bool)
        fits[wanted[np.argsort(first)[:room]]] = True
        keep = ~new
        keep[new] = fits[pair]
        return self._only(keep)

    def _only(self, keep: np.ndarray) -> "Found":
        """The same with the rows marked in ``keep``, bool[rows], and of the new pairs those in them."""
        rows = self.rows.select(keep)
        used = _used_pairs(rows.edges, len(self.pairs))
        return replace(
            self,
            rows=Rows(rows.start, _without_unused(rows.edges, used)),
            violation=self.violation[keep],
            edge=pair_number(np.arange(used.sum(), dtype=np.int32)),
            reach=self.reach[used],
            pairs=self.pairs[used],
            left=np.concatenate((self.left, self.reach[~used])),
        )

    def without_left(self) -> "Found":
        """The same without what is known of pairs whose rows were left out."""
        return replace(self, left=np.empty(0))

    def numbered(self, edges: int) -> "Found":
        """The same, with the new pairs numbered as edges from ``edges`` on."""
        rows = Rows(self.rows.start, _numbered(self.rows.edges, edges))
        return replace(self, rows=rows, edge=_numbered(self.edge, edges))


def pair_number(pair: np.ndarray) -> np.ndarray:
    """The edge number -1, -2, ... of new pair 0, 1, ... until it has a variable; and back, by the same formula.

    >>> pair_number(np.array([0, 1, 2])).tolist(), pair_number(np.array([-1, -2, -3])).tolist()
    ([-1, -2, -3], [0, 1, 2])
    """
    return -1 - pair


def _turns(rows: Rows) -> np.ndarray:
    """How many earlier rows there are, at most, that share one edge with each row, int64[rows].

    >>> _turns(Rows(np.array([0, 2, 4, 6]), np.array([7, 5, 8, 5, 9, 6]))).tolist()
    [0, 1, 0]
    """
    if not len(rows):
        return np.empty(0, np.int64)
    order = np.argsort(rows.edges, kind="stable")
    edges = rows.edges[order]
    earlier = np.empty(len(edges), np.int64)
    earlier[order] = np.arange(len(edges)) - np.searchsorted(edges, edges)
    return np.maximum.reduceat(earlier, rows.start[:-1])


def _used_pairs(edges: np.ndarray, pairs: int) -> np.ndarray:
    """Which of the new pairs occur among the edge numbers, bool[pairs].

    >>> _used_pairs(np.array([7, -2, -3, 4]), 3).tolist()
    [False, True, True]
    """
    used = np.zeros(pairs, bool)
    used[pair_number(edges[edges < 0])] = True
    return used


def _without_unused(edges: np.ndarray, used: np.ndarray) -> np.ndarray:
    """The edge numbers once the new pairs that are not ``used`` are gone: the others close ranks.

    >>> _without_unused(np.array([7, -2, -3, 4]), np.array([False, True, True])).tolist()
    [7, -1, -2, 4]
    """
    new, edges = edges < 0, edges.copy()
    position = np.cumsum(used) - 1
    edges[new] = pair_number(position[pair_number(edges[new])])
    return edges


def _behind(edges: np.ndarray, before: int) -> np.ndarray:
    """The edge numbers once ``before`` other new pairs come first.

    >>> _behind(np.array([7, -1, -2]), 3).tolist()
    [7, -4, -5]
    """
    return edges if before == 0 else np.where(edges < 0, edges - np.int32(before), edges)


def _numbered(edges: np.ndarray, first: int) -> np.ndarray:
    """The edge numbers once the new pairs are the edges ``first``, ``first + 1``, ...

    >>> _numbered(np.array([7, -1, -2]), 20).tolist()
    [7, 20, 21]
    """
    return np.where(edges < 0, np.int32(first - 1) - edges, edges)
