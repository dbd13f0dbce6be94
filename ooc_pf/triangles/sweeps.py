"""Sweeps over the remembered triangles, and, where they have become slow, Anderson acceleration of their duals.

It is that of `engine.sweeps`; here the point that belongs to the combined duals is rebuilt tile by tile.
"""

from collections.abc import Callable

import numpy as np

from ..engine.sweeps import best_mixture
from ..kernels.triangles import add_triangle_load, gram_of_steps, mix_trail, sweep_triples
from . import settings
from .program import TableIterate, TableProgram, Workers, close_block, open_block
from .store import TriangleStore
from .tiles import Block, Tiles


def sweep_once(
    program: TableProgram, point: TableIterate, store: TriangleStore, workers: Workers, step: int | None
) -> float:
    """Project onto every remembered row; returns the largest correction.

    ``step`` counts the sweeps that will be extrapolated, from 0 on; their duals are kept as a trail.
    """
    x, shift = point.x, point.shift

    def task(at: int, block: Block) -> float:
        triples, (values, inverse, lower, upper, moved) = open_block(
            block, x, program.inverse, program.lower, program.upper, shift
        )
        rows = store.get(at)
        if step == 0:
            rows = rows.with_trail(settings.TRAIL + 1)
            rows.trail[0] = rows.dual
        largest = sweep_triples(values, inverse, moved, lower, upper, triples, rows.code, rows.dual, rows.start)
        if step is not None:
            rows.trail[step + 1] = rows.dual
        close_block(block, (x, values), (shift, moved))
        store.put(at, rows)
        return largest

    return max(workers.visit(program.tiling, task, short=few_rows(store)), default=0.0)


def few_rows(store: TriangleStore) -> Callable[[range], bool]:
    """Whether blocks are quicker visited than handed out."""
    return lambda own: sum(store.size(at) for at in own) < settings.FEW_ROWS


def extrapolate(
    program: TableProgram, point: TableIterate, store: TriangleStore, workers: Workers, stride: float
) -> tuple[TableIterate | None, float]:
    """Take a combination of the last duals if it raises the bound; returns the point there, and the next stride.

    The first choice is the one whose steps cancel best. Steps that do not shrink, as of duals that drift until one of
    them is zero, have no such combination. Then ``stride`` times the last step is tried, more each time it helps.
    """
    depth = settings.TRAIL
    grams = workers.visit(program.tiling, lambda at, _: gram_of_steps(store.get(at).trail))
    best = best_mixture(sum(grams, np.zeros((depth, depth))))
    taken = None if best is None else _take(program, point, store, workers, best)
    if taken is None:
        ahead = np.zeros(depth)
        ahead[-2:] = -stride, 1.0 + stride
        taken = _take(program, point, store, workers, ahead)
        stride = settings.STRIDE if taken is None else settings.STRIDE_GROWTH * stride
    for at in range(len(program.tiling.blocks)):
        store.put(at, store.get(at).with_trail(0))
    return taken, stride


def _take(
    program: TableProgram, point: TableIterate, store: TriangleStore, workers: Workers, mixture: np.ndarray
) -> TableIterate | None:
    """Go to the combined duals if they are worth more; None if they are not."""
    better = _rebuild(program, store, workers, mixture)
    if program.gain(better, point) <= 0.0:
        better.close()
        return None
    for at in range(len(program.tiling.blocks)):
        rows = store.get(at)
        rows.dual[:] = rows.trail[0]
        store.put(at, rows)
    point.close()
    return better


def _rebuild(program: TableProgram, store: TriangleStore, workers: Workers, mixture: np.ndarray) -> TableIterate:
    """The iterate that belongs to the combined duals, which are left in ``trail[0]``."""
    load = program.new_tiles()

    def task(at: int, block: Block) -> None:
        triples, (values,) = open_block(block, load)
        rows = store.get(at)
        mix_trail(rows.trail, mixture)
        add_triangle_load(values, triples, rows.code, rows.trail[0], rows.start)
        close_block(block, (load, values))
        store.put(at, rows)

    for _ in workers.visit(program.tiling, task):
        pass
    return iterate_of(program, load)


def iterate_of(program: TableProgram, load: Tiles) -> TableIterate:
    """The iterate that belongs to ``load = A'z``, whose tiles it takes over."""
    for span in load.passes():
        inverse = 1.0 if program.inverse is None else program.inverse.read(*span)
        load.write(span[0], program.target.read(*span) - inverse * load.read(*span))
    if program.lower is None:
        return TableIterate(load, None)
    shift = program.new_tiles()
    for span in load.passes():
        y = load.read(*span).copy()
        x = program.clip(y, span)
        load.write(span[0], x)
        shift.write(span[0], y - x)
    return TableIterate(load, shift)
