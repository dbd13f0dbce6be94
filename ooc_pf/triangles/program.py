"""Metric nearness on the complete graph: the program over triangles, and how the engine works on it.

    min 1/2 sum_e w_e (x_e - d_e)^2   with   x_ij <= x_ik + x_kj   and   lower <= x <= upper

Triangles suffice on a complete graph, and imply x >= 0 from three nodes on. For duals z >= 0 of the triangles, and
``y = d - A'z / w``, the minimiser is y brought within the limits. The iterate is kept as x and, where there are limits,
the ``shift`` y - x, which carries the duals of the limits.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.parallel import run_short_tasks
from ..errors import SearchStopped
from ..kernels.triangles import add_triangle_load, close_triples
from ..storage.vectors import Pool
from . import settings
from .store import TriangleStore
from .tiles import Block, Tiles, Tiling

_NONE = np.ones((1, 1, 1))


@dataclass(frozen=True)
class TableProgram:
    """The data; tiles are like x.

    Attributes
    ----------
    inverse : Tiles or None
        1 / w; None: all ones.
    lower, upper : Tiles or None
        Limits, both or none; lower is at least 0.
    most : Tiles or None
        A point within the limits that satisfies every triangle; there where the closure may fall below ``lower``.
    size : float
        Largest of the numbers: what violations are judged by, and rounding.
    worth : float
        The objective at x = 0: the size of what it is a sum of.
    pool : Pool
        Where tiles are: in memory or in its files.
    """

    target: Tiles
    inverse: Tiles | None
    lower: Tiles | None
    upper: Tiles | None
    most: Tiles | None
    size: float
    pool: Pool
    worth: float = 0.0

    @property
    def tiling(self) -> Tiling:
        return self.target.tiling

    def new_tiles(self) -> Tiles:
        """Tiles of zeros."""
        return Tiles(self.tiling, self.pool)

    def plain_point(self) -> Tiles:
        """A feasible point that needs no search: equal lengths, the nearest ones, or one within the limits."""
        if self.lower is not None:
            return self.new_tiles().copy_from(self.most) if self.most is not None else self.new_tiles()
        weights = self._sum(lambda span: self.target.tiling.inside(*span).astype(np.float64))
        total = self._sum(lambda span: self.target.read(*span))
        point, mean = self.new_tiles(), max(total / weights, 0.0) if weights > 0.0 else 0.0
        for span in point.passes():
            point.write(span[0], np.where(self.target.tiling.inside(*span), mean, 0.0))
        return point

    def start(self) -> "TableIterate":
        """The targets, within the limits."""
        if self.lower is None:
            return TableIterate(self.new_tiles().copy_from(self.target), None)
        x, shift = self.new_tiles(), self.new_tiles()
        for span in x.passes():
            target = self.target.read(*span)
            x.write(span[0], np.clip(target, self.lower.read(*span), self.upper.read(*span)))
            shift.write(span[0], target - x.read(*span))
        return TableIterate(x, shift)

    def clip(self, y: np.ndarray, span: tuple[int, int]) -> np.ndarray:
        """y brought within the limits."""
        if self.lower is None:
            return np.maximum(y, 0.0)
        return np.clip(y, self.lower.read(*span), self.upper.read(*span))

    def _sum(self, term: Callable[[tuple[int, int]], np.ndarray]) -> float:
        """Sum of ``w * term`` over all edges."""
        parts = []
        for span in self.target.passes():
            values = term(span)
            parts.append(float(np.sum(values if self.inverse is None else values / self.inverse.read(*span))))
        return math.fsum(parts)

    def value(self, point: Tiles) -> float:
        """The objective."""
        return self._sum(lambda span: 0.5 * (point.read(*span) - self.target.read(*span)) ** 2)

    def bound(self, iterate: "TableIterate") -> float:
        """Value of the dual: a lower bound of the optimum for every z >= 0."""

        def term(span: tuple[int, int]) -> np.ndarray:
            y, target = iterate.y(span), self.target.read(*span)
            x = self.clip(y, span)
            return 0.5 * (x - target) ** 2 + (target - y) * x

        return self._sum(term)

    def exact_bound(self, load: Tiles) -> float:
        """The same from ``load = A'z`` itself, which keeps the digits that y loses where weights are large."""

        def term(span: tuple[int, int]) -> np.ndarray:
            loads, target = load.read(*span), self.target.read(*span)
            inverse = 1.0 if self.inverse is None else self.inverse.read(*span)
            x = self.clip(target - inverse * loads, span)
            return 0.5 * (x - target) ** 2 + inverse * loads * x

        return self._sum(term)

    def gain(self, new: "TableIterate", old: "TableIterate") -> float:
        """How much more the dual is worth at ``new``, far more exactly than as a difference of two bounds.

        The derivative of its term by y is -w x: each edge gains -w times the integral of x from the old y to the new.
        """

        def term(span: tuple[int, int]) -> np.ndarray:
            before, after = old.x.read(*span), new.x.read(*span)
            area = 0.5 * (after - before) * (after + before)
            if old.shift is not None:
                over, now = old.shift.read(*span), new.shift.read(*span)
                area += (now - over) * after + over * (after - before)
            return -area

        return self._sum(term)


@dataclass(frozen=True)
class TableIterate:
    """The point of the run; y = x + shift follows from the duals of the triangles."""

    x: Tiles
    shift: Tiles | None

    def y(self, span: tuple[int, int]) -> np.ndarray:
        return self.x.read(*span) if self.shift is None else self.x.read(*span) + self.shift.read(*span)

    def close(self) -> None:
        self.x.close()
        if self.shift is not None:
            self.shift.close()


# -- visiting blocks --------------------------------------------------------------------------------------------------


def open_block(block: Block, *tiles: Tiles | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """The triples of a block, and arrays in which their numbers count: whole matrices if those are in memory."""
    if tiles[0].array is not None:
        return block.triples, [_NONE if held is None else held.array for held in tiles]
    return block.local, [_NONE if held is None else held.take(block.tiles) for held in tiles]


def close_block(block: Block, *changed: tuple[Tiles | None, np.ndarray]) -> None:
    """Put back what `open_block` gave."""
    for held, values in changed:
        if held is not None and held.array is None:
            held.put(block.tiles, values)


@dataclass(frozen=True)
class Workers:
    """Who visits blocks: the threads of a pool, or without one the caller. ``stop`` (uint8[1]), once set, ends it."""

    pool: Executor | None = None
    stop: np.ndarray = field(default_factory=lambda: np.zeros(1, np.uint8))

    def visit(
        self,
        tiling: Tiling,
        task: Callable[[int, Block], Any],
        tick: Callable[[], Any] = lambda: None,
        short: Callable[[range], bool] = lambda own: False,
    ) -> Iterator[Any]:
        """Results of ``task(number, block)``, the blocks of a round side by side, the rounds one after the other.

        A block is visited or not, so whatever the tasks keep together stays together when SearchStopped is raised.
        """

        def unless_stopped(at: int, block: Block) -> Any:
            return None if self.stop[0] else task(at, block)

        first = 0
        for blocks in tiling.rounds:
            own = range(first, first + len(blocks))
            pool = None if short(own) else self.pool
            results = run_short_tasks(pool, unless_stopped, zip(own, blocks, strict=True))
            if self.stop[0]:
                raise SearchStopped
            yield from results
            first = own.stop
            tick()


def close_tiles(point: Tiles, workers: Workers, tick: Callable[[], Any] = lambda: None) -> Tiles:
    """Shorten sides until every triangle holds: what is left is the largest metric below ``point``."""

    def task(at: int, block: Block) -> int:
        triples, (x,) = open_block(block, point)
        shortened = close_triples(x, triples)
        if shortened:
            close_block(block, (point, x))
        return shortened

    while sum(workers.visit(point.tiling, task, tick)):
        pass
    return point


def add_loads(store: TriangleStore, load: Tiles) -> Tiles:
    """``A'z`` of the remembered rows."""
    for at, block in enumerate(store.tiling.blocks):
        rows = store.get(at)
        triples, (values,) = open_block(block, load)
        add_triangle_load(values, triples, rows.code, rows.dual, rows.start)
        close_block(block, (load, values))
    return load


def raise_to_limits(program: TableProgram, closure: Tiles) -> Tiles:
    """The closure, mixed with a feasible point as far as its lower limits need it: metrics form a convex set."""
    if program.most is None:
        return closure
    allowed, share = settings.LIMIT_ROUNDING * program.size, 0.0
    for span in closure.passes():
        low, here, most = program.lower.read(*span) - allowed, closure.read(*span), program.most.read(*span)
        short = here < low
        if short.any():
            share = max(share, float(((low - here)[short] / (most - here)[short]).max()))
    if share > 0.0:
        share = min(share, 1.0)
        for span in closure.passes():
            here = closure.read(*span)
            closure.write(span[0], here + share * (program.most.read(*span) - here))
    return closure
