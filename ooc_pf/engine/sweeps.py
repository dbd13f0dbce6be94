"""Sweeps over the remembered rows (Hildreth's method), with Anderson acceleration.

Blocks of rows that have no edge in common are swept side by side. What one does the others do not see, so that the
answer is the same however many workers there are.

Sweeps are a fixed-point iteration that converges linearly. After a few of them Anderson's method combines the duals
seen so that their last steps cancel best. The combination is kept only if it raises the dual objective, as every sweep
does.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..errors import SearchStopped
from ..storage.vectors import Pool, Vector
from .parallel import run_short_tasks
from .rows import TRAIL, RowBlock
from .store import ConstraintStore

SWEEPS_EACH_ROUND = TRAIL - 1  # shapes the bits: as many duals as the trail of a block has room for
MOST_ABREAST = 4  # costs memory only: blocks swept side by side are in memory together
REGULARISATION = 1e-10  # rounding: of the Gram matrix of the steps, relative to its trace


class Program(Protocol):
    """How y and the dual objective follow from duals.

    ``charge`` is b'z, the linear term of the dual objective; it adds up over the blocks.
    """

    def project(self, block: RowBlock, y: Vector) -> float: ...
    def charge(self, block: RowBlock, dual: np.ndarray) -> float: ...
    def clipped(self, block: RowBlock, dual: np.ndarray) -> np.ndarray: ...
    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]], out: Vector) -> None: ...
    def dual(self, y: Vector, charge: float) -> float: ...
    def bound(self, y: Vector, charge: float) -> float: ...


@dataclass
class Iterate:
    """The iterate of a program: y, which x follows from, at the present duals.

    Attributes
    ----------
    program : Program
        May change during a run, as y does.
    y : Vector
    pool : Pool
        Where vectors are made.
    """

    program: Any
    y: Vector
    pool: Pool
    _spare: Vector | None = field(default=None, init=False, repr=False)

    def rebuilt(self, duals: Iterable[tuple[RowBlock, np.ndarray]]) -> Vector:
        """y for other duals, in a vector that lasts until the next call; `adopt` makes it the present one."""
        if self._spare is None or self._spare.size != self.y.size:
            self._spare = Vector(self.y.size, pool=self.pool)
        self.program.rebuild(duals, self._spare)
        return self._spare

    def adopt(self, y: Vector) -> None:
        """Go on from what `rebuilt` gave."""
        self.y, self._spare = y, self.y

    def close(self) -> None:
        """Give up y."""
        self.y.close()

    def bound(self, rows: ConstraintStore) -> float:
        """Value of the dual at the duals of ``rows``, which y belongs to."""
        return float(self.program.bound(self.y, total_charge(self.program, rows)))


def total_charge(program: Program, rows: ConstraintStore) -> float:
    """b'z over all rows."""
    return sum(program.charge(block, block.dual) for block in rows.blocks())


def sweep_round(
    point: Iterate, rows: ConstraintStore, stop: np.ndarray, threads: Executor | None = None, workers: int = 1
) -> float:
    """A few sweeps over all rows and an extrapolation; returns the largest correction made by the last sweep.

    ``threads`` serve as many ``workers``; without them blocks come one after the other.

    ``stop`` (uint8[1]), once set, ends it with SearchStopped: y and the duals then belong together, but to no
    iteration.
    """
    for block in rows.blocks():
        block.trail[0] = block.dual

    def project(block: RowBlock, step: int) -> float:
        moved = point.program.project(block, point.y)
        block.trail[step] = block.dual
        return float(moved)

    groups = _abreast(rows.layers, min(workers, MOST_ABREAST))
    residual = 0.0
    for step in range(1, SWEEPS_EACH_ROUND + 1):
        residual = 0.0
        for group, following in zip(groups, [*groups[1:], *groups[:1]], strict=True):
            if stop[0]:
                raise SearchStopped
            with rows.visit(group, then=following) as blocks:
                calls = [(block, step) for block in blocks]
                moved = run_short_tasks(threads if len(blocks) > 1 else None, project, calls)
            residual = max(residual, *moved)
    _extrapolate(point, rows)
    return residual


def _abreast(layers: list[list[int]], most: int) -> list[list[int]]:
    """The numbers of blocks that share no edge, in groups that are swept side by side."""
    return [layer[at : at + most] for layer in layers for at in range(0, len(layer), most)]


def _extrapolate(point: Iterate, rows: ConstraintStore) -> None:
    """One step of Anderson acceleration on the duals, kept if it raises the dual objective."""
    program: Program = point.program
    gram = np.zeros((SWEEPS_EACH_ROUND, SWEEPS_EACH_ROUND))
    with np.errstate(over="ignore", invalid="ignore"):
        for block in rows.blocks():
            steps = np.diff(block.trail, axis=0)
            gram += steps @ steps.T
    mixture = best_mixture(gram)
    if mixture is None:
        return
    charges: list[float] = []

    def duals() -> Iterator[tuple[RowBlock, np.ndarray]]:
        for block in rows.blocks():
            dual = program.clipped(block, mixture @ block.trail[1:])
            charges.append(program.charge(block, dual))
            yield block, dual

    y = point.rebuilt(duals())
    if program.dual(y, sum(charges)) > program.dual(point.y, total_charge(program, rows)):
        for block in rows.blocks():
            block.dual[:] = program.clipped(block, mixture @ block.trail[1:])
        point.adopt(y)


def best_mixture(gram: np.ndarray) -> np.ndarray | None:
    """Weights, with sum one, for which the combined step is shortest; None where the steps say nothing."""
    size = float(np.trace(gram))
    if not (np.isfinite(size) and REGULARISATION * size >= np.finfo(np.float64).tiny):
        return None
    regular = gram + REGULARISATION * size / len(gram) * np.eye(len(gram))
    weights: np.ndarray = np.linalg.solve(regular, np.ones(len(gram)))
    total = float(weights.sum())
    return weights / total if np.isfinite(total) and total > 0.0 else None
