"""The program over the complete graph from what it is given as, and where its parts go under a memory budget."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.certificate import check_worth
from ..errors import InputError
from ..storage.memory import Budget, parse_memory, refuse_below
from ..storage.vectors import Pool
from . import settings
from .inputs import Stripes
from .program import TableProgram, Workers, close_tiles
from .tiles import BLOCK_TRIPLES, Tiles, Tiling


def build_program(
    tiling: Tiling, pool: Pool, target: Stripes, extras: dict[str, Stripes | None], workers: Workers
) -> TableProgram:
    """The program from lines of its matrices."""
    filled = {name: stripes and Tiles(tiling, pool).fill_lines(stripes) for name, stripes in extras.items()}
    inverse, lower, upper = filled["weights"], filled["lower"], filled["upper"]
    program = TableProgram(Tiles(tiling, pool).fill_lines(target), inverse, lower, upper, None, 0.0, pool)
    for span in program.target.passes() if inverse else ():
        weight = inverse.read(*span)
        inverse.write(span[0], np.divide(1.0, weight, out=np.ones_like(weight), where=weight > 0))
    if lower or upper:
        program = _with_limits(program, workers)
    zero = program.new_tiles()
    with np.errstate(over="ignore"):
        worth = program.value(zero)
    zero.close()
    largest = _largest(program.target)
    check_worth(worth, 0.0 if lower or upper else largest)  # limits may make the answer larger than the values
    return replace(program, size=largest, worth=worth)


def _largest(tiles: Tiles) -> float:
    """Largest finite number by size."""
    parts = (np.abs(tiles.read(*span)) for span in tiles.passes())
    return max((float(part[np.isfinite(part)].max(initial=0.0)) for part in parts), default=0.0)


def _with_limits(program: TableProgram, workers: Workers) -> TableProgram:
    """The program with both limits, the upper ones as tight as they imply each other, and a point between them.

    Every metric below the upper limits is below their closure, which is one itself: it may take their place, and if it
    is not above the lower limits nothing is. Cut off at a constant it still is a metric.
    """
    below, new_tiles = program.lower is not None, program.new_tiles
    lower, upper = program.lower or new_tiles(), program.upper or new_tiles()
    for span in lower.passes():
        lower.write(span[0], np.maximum(lower.read(*span), 0.0))
        if program.upper is None:
            upper.write(span[0], np.full_like(upper.read(*span), np.inf))
        _require(lower.read(*span) <= upper.read(*span), span, lower, upper, "the limits leave nothing between them")
    if program.upper is not None:
        close_tiles(upper, workers)
    program = replace(program, lower=lower, upper=upper)
    if not below:
        return program
    most, far = new_tiles(), max(_largest(lower), _largest(upper))
    for span in lower.passes():
        high, low = upper.read(*span), lower.read(*span)
        enough = low <= high + settings.CLOSED_LIMITS * far
        _require(enough, span, lower, upper, "no metric lies within the limits: other upper limits imply")
        upper.write(span[0], np.maximum(high, low))  # rounding
        # Padding counts in no sum only while it is zero.
        most.write(span[0], np.where(lower.tiling.inside(*span), np.minimum(upper.read(*span), far), 0.0))
    return replace(program, most=most)


def _require(holds: np.ndarray, span: tuple[int, int], lower: Tiles, other: Tiles, problem: str) -> None:
    if not holds.all():
        tiling = lower.tiling
        tile, i, j = np.argwhere(~holds)[0]
        rows, columns = np.triu_indices(tiling.across)
        pair = (int(rows[span[0] + tile]) * tiling.side + int(i), int(columns[span[0] + tile]) * tiling.side + int(j))
        low, high = lower.read(*span)[tile, i, j], other.read(*span)[tile, i, j]
        raise InputError(f"pair {pair}: {problem}: lower {low}, upper {high} (distances are at least 0)")


def divide_memory(tiling: Tiling, extras: dict[str, Any], workers: int, memory: Any, *, disk: bool) -> Budget:
    """Decide what stays in memory; refuse a budget that cannot do.

    The matrices are there as a whole, or, with no bytes for vectors, in files but for the tiles at work.
    """
    if isinstance(memory, Budget):
        return memory
    budget = parse_memory(memory)
    if budget is None:
        return Budget()
    # x, target, feasible point, and a point under way; then 1 / w; then shift (also of the point under way), two limits
    # and a point between them.
    limited = extras["lower"] is not None or extras["upper"] is not None
    matrices = 4 + (extras["weights"] is not None) + 5 * limited
    tile = 8 * tiling.side**2
    shared = settings.FOR_ALL + settings.STRIPES * 8 * tiling.side * tiling.nodes
    resident = shared + matrices * tiling.nbytes + workers * settings.FOR_EACH_RESIDENT
    visiting = shared + workers * ((matrices - 2) * 3 * BLOCK_TRIPLES * tile + settings.FOR_EACH_VISITOR)
    least = (min(resident, visiting) if disk else resident) + settings.LEAST_ROWS
    refuse_below(least, budget, memory)
    # Rows that are being found are held twice for a moment.
    if budget >= resident + settings.LEAST_ROWS:
        return Budget(rows=(budget - resident) // 2)
    return Budget(rows=(budget - visiting) // 2, vectors=0)
