"""Sweeps over the remembered rows, accelerated.

Sweeps converge like a fixed-point iteration whose slow modes die out one factor at a time. After a few of them the best
combination of the duals seen (Anderson's, the one whose steps cancel best) is usually close to where they were heading;
it is taken when it raises the dual objective, which every sweep and every taken step therefore does.
"""

from collections.abc import Iterator

import numpy as np

from .oracle import SearchStopped
from .problem import State, total_charge
from .rows import TRAIL, RowBlock


def sweep_round(state: State, stop: np.ndarray) -> float:
    """A few sweeps over all rows and an extrapolation; returns the largest correction made by the last sweep.

    ``stop`` (uint8[1]), once set, ends it with SearchStopped: y and the duals then belong together, but to no
    iteration.
    """
    for block in state.rows.blocks():
        block.trail[0] = block.dual
    residual = 0.0
    for step in range(1, TRAIL):
        residual = 0.0
        for block in state.rows.blocks():
            if stop[0]:
                raise SearchStopped
            residual = max(residual, state.program.project(block, state.y))
            block.trail[step] = block.dual
    _extrapolate(state)
    return residual


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
