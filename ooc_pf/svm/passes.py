"""Passes over the rows: threads work on parts side by side, and what they bring is added in the order of the parts.

So the bits of a sum do not depend on the number of workers, nor on how many parts are in memory at once.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..engine.monitor import Monitor
from ..errors import SearchStopped
from ..kernels.svm import pull_sparse, score_sparse
from . import settings
from .inputs import Block, Load, Span, Table, release
from .program import Program, Sums, add_block, add_search, row_weights

Made = TypeVar("Made")


@dataclass(frozen=True)
class Passes:
    """What is computed over all rows, or over a sample of them.

    Attributes
    ----------
    program : Program
    threads : Executor
    monitor : Monitor
    ahead : int
        Parts in memory at once.
    """

    program: Program
    threads: Executor
    monitor: Monitor
    ahead: int

    def sums(
        self, w: np.ndarray, live: Sequence[int], active: np.ndarray, spans: list[list[Span]], scale: float, *,
        check: bool, hessian: bool,
    ) -> Sums:  # fmt: skip
        """F, gradient and change of the Hessian at w; sets ``active``."""

        def task(pieces: list[tuple[int, Load]]) -> Sums:
            found = Sums.zero(self.program)
            for at, block in _loaded(self.program.table, pieces):
                add_block(self.program, found, w, live, scale, at, block, active, check=check, hessian=hessian)
            return found

        total = Sums.zero(self.program)
        self._run(spans, task, total.add)
        return total

    def search(
        self, base: np.ndarray, w: np.ndarray, live: Sequence[int], spans: list[list[Span]], scale: float
    ) -> np.ndarray:
        """The derivatives along the steps from ``base`` to ``w``, for `best_part`."""
        shape = (len(w), 2, settings.BINS + 2)

        def task(pieces: list[tuple[int, Load]]) -> np.ndarray:
            found = np.zeros(shape)
            for at, block in _loaded(self.program.table, pieces):
                add_search(self.program, found, base, w, live, scale, at, block)
            return found

        total = np.zeros(shape)
        self._run(spans, task, lambda found: np.add(total, found, out=total))
        return total

    def multiply(
        self, v: np.ndarray, live: Sequence[int], active: np.ndarray, spans: list[list[Span]], scale: float
    ) -> np.ndarray:
        """The generalised Hessians times v, by class; those that are not ``live`` give zero."""
        program, d = self.program, self.program.table.columns

        def task(pieces: list[tuple[int, Load]]) -> np.ndarray:
            found = np.zeros_like(v)
            for at, block in _loaded(program.table, pieces):
                weights = row_weights(program, slice(at, at + len(block)), scale)
                for c in live:
                    _multiply(found[c], v[c], block, active[c, at : at + len(block)] * weights, d)
            return found

        total = np.zeros_like(v)
        self._run(spans, task, lambda found: np.add(total, found, out=total))
        for c in live:
            total[c, :d] += v[c, :d]
        return total

    def _run(self, spans: list[list[Span]], task: Callable[[Any], Made], take: Callable[[Made], Any]) -> None:
        """``take(task(part))`` for every part, in order; raises SearchStopped when asked to stop."""
        waiting: deque[Future[Made]] = deque()
        table = self.program.table
        total = sum(len(task) > 0 for task in spans)
        try:
            with self.monitor.timed("oracle"), self.monitor.bar("rows", total) as tick:
                for pieces in table.tasks(spans):
                    if len(waiting) == self.ahead:
                        take(waiting.popleft().result())
                        if not tick():
                            raise SearchStopped
                    waiting.append(self.threads.submit(task, pieces))
                while waiting:
                    take(waiting.popleft().result())
                    if not tick() and waiting:
                        raise SearchStopped
        finally:
            for future in waiting:
                future.cancel()
            wait(waiting)


def _loaded(table: Table, pieces: list[tuple[int, Load]]) -> Any:
    for at, load in pieces:
        block = load()
        yield at, block
        release(table, block)


def _multiply(found: np.ndarray, v: np.ndarray, block: Block, weights: np.ndarray, d: int) -> None:
    """Add X' diag(weights) X v, with a column of ones if v is longer than the rows."""
    shift = float(v[d]) if len(v) > d else 0.0
    if isinstance(block, np.ndarray):
        stride = max(settings.TILE_ENTRIES // d, 16)
        for first in range(0, len(block), stride):
            tile = block[first : first + stride]
            tile = tile if tile.dtype == np.float64 else tile.astype(np.float64)
            z = (tile @ v[:d] + shift) * weights[first : first + stride]
            found[:d] += z @ tile
            if len(v) > d:
                found[d] += z.sum()
        return
    z = score_sparse(*block.arrays, v[:d], shift) * weights
    pull_sparse(*block.arrays, z, found[:d])
    if len(v) > d:
        found[d] += z.sum()
