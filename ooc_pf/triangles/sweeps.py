"""Sweeps over the remembered triangles, and, where they have become slow, extrapolation of their duals.

After a few sweeps the combination of the duals whose steps cancel best (Anderson's) is taken if it raises the dual
objective, as in `sweeping`; here the point that belongs to it is rebuilt tile by tile.
"""

from collections.abc import Callable

import numpy as np

from ..engine.problem import State
from ..engine.sweeps import best_mixture
from ..kernels.triangles import add_triangle_load, gram_of_steps, mix_trail, sweep_triples
from .program import Crew, DenseProgram, Iterate, close_block, open_block
from .tiles import Block, Tiles

SHORT = 20_000  # rows a round below which handing them to workers costs more than it brings
DEPTH = 5  # sweeps whose duals are combined
STRIDE = 8.0  # steps to go at once, at first, where they do not shrink


def sweep_once(program: DenseProgram, state: State, crew: Crew, step: int | None) -> float:
    """Project onto every remembered row; returns the largest correction.

    ``step`` counts the sweeps that will be extrapolated, from 0 on; their duals are kept as a trail.
    """
    x, shift = state.y.x, state.y.shift

    def task(at: int, block: Block) -> float:
        triples, (values, inverse, lower, upper, moved) = open_block(
            block, x, program.inverse, program.lower, program.upper, shift
        )
        rows = state.rows.get(at)
        if step == 0:
            rows = rows.with_trail(DEPTH + 1)
            rows.trail[0] = rows.dual
        largest = sweep_triples(values, inverse, moved, lower, upper, triples, rows.code, rows.dual, rows.start)
        if step is not None:
            rows.trail[step + 1] = rows.dual
        close_block(block, (x, values), (shift, moved))
        state.rows.put(at, rows)
        return largest

    return max(crew.visit(program.tiling, task, short=few_rows(state)), default=0.0)


def few_rows(state: State) -> Callable[[range], bool]:
    """Whether blocks are quicker visited than handed out."""
    return lambda own: sum(state.rows.size(at) for at in own) < SHORT


def extrapolate(program: DenseProgram, state: State, crew: Crew) -> bool:
    """Take a combination of the last duals if it raises the bound; returns whether one did.

    The first choice is the one whose steps cancel best. Steps that do not shrink, as of duals that drift until one of
    them is zero, have no such combination; then many times the last step is tried, more each time it helps.
    """
    grams = crew.visit(program.tiling, lambda at, _: gram_of_steps(state.rows.get(at).trail))
    best, stride = best_mixture(sum(grams, np.zeros((DEPTH, DEPTH)))), state.plan["stride"]
    taken = best is not None and _take(program, state, crew, best)
    if not taken:
        ahead = np.zeros(DEPTH)
        ahead[-2:] = -stride, 1.0 + stride
        taken = _take(program, state, crew, ahead)
        state.plan = {**state.plan, "stride": 4.0 * stride if taken else STRIDE}
    for at in range(len(program.tiling.blocks)):
        state.rows.put(at, state.rows.get(at).with_trail(0))
    return taken


def _take(program: DenseProgram, state: State, crew: Crew, mixture: np.ndarray) -> bool:
    """Go to the combined duals if they are worth more."""
    better = _rebuild(program, state, crew, mixture)
    if program.gain(better, state.y) <= 0.0:
        better.close()
        return False
    for at in range(len(program.tiling.blocks)):
        rows = state.rows.get(at)
        rows.dual[:] = rows.trail[0]
        state.rows.put(at, rows)
    state.y.close()
    state.y = better
    return True


def _rebuild(program: DenseProgram, state: State, crew: Crew, mixture: np.ndarray) -> Iterate:
    """The iterate that belongs to the combined duals, which are left in ``trail[0]``."""
    load = program.new_tiles()

    def task(at: int, block: Block) -> None:
        triples, (values,) = open_block(block, load)
        rows = state.rows.get(at)
        mix_trail(rows.trail, mixture)
        add_triangle_load(values, triples, rows.code, rows.trail[0], rows.start)
        close_block(block, (load, values))
        state.rows.put(at, rows)

    for _ in crew.visit(program.tiling, task):
        pass
    return iterate_of(program, load)


def iterate_of(program: DenseProgram, load: Tiles) -> Iterate:
    """The iterate that belongs to ``load = A'z``, whose tiles it takes over."""
    for span in load.passes():
        inverse = 1.0 if program.inverse is None else program.inverse.read(*span)
        load.write(span[0], program.target.read(*span) - inverse * load.read(*span))
    if program.lower is None:
        return Iterate(load, None)
    shift = program.new_tiles()
    for span in load.passes():
        y = load.read(*span).copy()
        x = program.clip(y, span)
        load.write(span[0], x)
        shift.write(span[0], y - x)
    return Iterate(load, shift)
