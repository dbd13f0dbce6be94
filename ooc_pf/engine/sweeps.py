"""Sweeps over the remembered rows, accelerated.

Blocks of rows that have no edge in common are swept side by side. What one does the others do not see, so that the
answer is the same however many workers there are.

Sweeps converge like a fixed-point iteration whose slow modes die out one factor at a time. After a few of them the best
combination of the duals seen (Anderson's, the one whose steps cancel best) is usually close to where they were heading;
it is taken when it raises the dual objective, which every sweep and every taken step therefore does.
"""

from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np

from ..errors import SearchStopped
from .parallel import run_short_tasks
from .problem import State, total_charge
from .rows import TRAIL, RowBlock

MOST_ABREAST = 4  # blocks: they have to be in memory together


def sweep_round(state: State, stop: np.ndarray, threads: Executor | None = None, workers: int = 1) -> float:
    """A few sweeps over all rows and an extrapolation; returns the largest correction made by the last sweep.

    ``threads`` are for as many ``workers``; without them blocks come one after the other.

    ``stop`` (uint8[1]), once set, ends it with SearchStopped: y and the duals then belong together, but to no
    iteration.
    """
    for block in state.rows.blocks():
        block.trail[0] = block.dual

    def project(block: RowBlock, step: int) -> float:
        moved = state.program.project(block, state.y)
        block.trail[step] = block.dual
        return moved

    residual, groups = 0.0, _abreast(state.rows.layers, min(workers, MOST_ABREAST))
    for step in range(1, TRAIL):
        residual = 0.0
        for group, following in zip(groups, [*groups[1:], *groups[:1]]):
            if stop[0]:
                raise SearchStopped
            with state.rows.visit(group, then=following) as blocks:
                calls = [(block, step) for block in blocks]
                moved = run_short_tasks(threads if len(blocks) > 1 else None, project, calls)
            residual = max(residual, *moved)
    _extrapolate(state)
    return residual


def _abreast(layers: list[list[int]], most: int) -> list[list[int]]:
    """The numbers of blocks that share nothing, in groups that go side by side."""
    return [layer[at : at + most] for layer in layers for at in range(0, len(layer), most)]


def _extrapolate(state: State) -> None:
    program = state.program
    gram = np.zeros((TRAIL - 1, TRAIL - 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for block in state.rows.blocks():
            steps = np.diff(block.trail, axis=0)
            gram += steps @ steps.T
    mixture = best_mixture(gram)
    if mixture is None:
        return

    total = 0.0

    def duals() -> Iterator[tuple[RowBlock, np.ndarray]]:
        nonlocal total
        for block in state.rows.blocks():
            dual = program.clipped(block, mixture @ block.trail[1:])
            total += program.charge(block, dual)
            yield block, dual

    y = state.rebuilt(duals())
    if program.dual(y, total) > program.dual(state.y, total_charge(program, state.rows)):
        for block in state.rows.blocks():
            block.dual[:] = program.clipped(block, mixture @ block.trail[1:])
        state.adopt(y)


def best_mixture(gram: np.ndarray) -> np.ndarray | None:
    """Weights, with sum one, for which the combined step is shortest; None where the steps say nothing."""
    size = np.trace(gram)
    if not (np.isfinite(size) and size > 0.0):
        return None
    weights = np.linalg.solve(gram + 1e-10 * size / len(gram) * np.eye(len(gram)), np.ones(len(gram)))
    total = weights.sum()
    return weights / total if np.isfinite(total) and total > 0.0 else None
