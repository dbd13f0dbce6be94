"""What a pass looks at, what it makes of what it finds, and where it looks first."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..storage.vectors import Vector
from . import settings as numbers
from .found import Found
from .frozen import Frozen
from .point import CyclePoint
from .program import CycleProgram
from .search import Places


def freeze(program: CycleProgram, y: Vector, address: Any = None) -> Frozen:
    """The point the oracle looks at."""
    graph = program.graph
    known = program.pairs.by_lower_end(graph.nodes) if program.pairs else None
    return Frozen(graph, y, program.limit, program.beyond, known, address)


class Looked(NamedTuple):
    """What was taken in of a search.

    ``worst`` is the largest violation. ``cut`` tells whether rows were left out, ``short`` whether some were because
    there is no room for their pairs. ``whole`` tells whether the reach of all new pairs is known, of those that were
    left out as well.
    """

    found: Found
    worst: float
    cut: bool
    short: bool
    whole: bool


def look(
    program: CycleProgram,
    y: Vector,
    batches: Iterable[Found],
    most_rows: int,
    point: Vector | None,
    room: int | None = None,
) -> Looked:
    """Take in what a search brings, batch by batch.

    Of more than ``most_rows`` those that are violated most are kept, and no new pairs but theirs; of these no more than
    ``room``.

    ``point``, which begins as max(y, 0), is made feasible on the way for all edges looked at; of pairs that are new,
    the reach stays with what was found, also of those left out if they are not too many.
    """
    parts: list[Found] = []
    held, seen, worst, whole = 0, 0, 0.0, point is not None
    for found in batches:
        old = found.edge >= 0
        edge, reach = found.edge[old], found.reach[old]
        worst = max(worst, float(found.violation.max(initial=0.0)))
        if point is not None:
            worst = max(worst, float((program.limit(np.maximum(y.take(edge), 0.0)) - reach).max(initial=0.0)))
            point.put(edge, program.within(reach))
        parts.append(replace(found, edge=found.edge[~old], reach=found.reach[~old]))
        held, seen = held + len(found.rows), seen + len(found.rows)
        if held > numbers.CROWDED * most_rows:
            parts = [Found.join(parts).worst_rows(most_rows)]
            held = len(parts[0].rows)
            whole = whole and len(parts[0].left) <= numbers.MOST_LEFT * most_rows
            parts = parts if whole else [parts[0].without_left()]
    taken = Found.join(parts).worst_rows(most_rows)
    short = room is not None and len(taken.pairs) > room
    if room is not None:
        taken = taken.fitting(room)
    return Looked(taken.numbered(y.size), worst, len(taken.rows) < seen, short, whole)


def draw_roots(iterate: CyclePoint, count: int, generator: np.random.Generator) -> np.ndarray:
    """Roots for trees: nodes drawn by the multipliers that pass through them, since that is where short paths meet."""
    program, graph = iterate.program, iterate.program.graph
    loads = (np.maximum(load, 0.0) for _, load in program.cost_and_load(iterate.y, 1.0))
    load, traffic, first = Vector.filled(loads, program.size, np.float64, iterate.pool), np.zeros(graph.nodes), 0
    for _, edge in graph.arc_edge.spans():
        tail = np.searchsorted(graph.arc_start, np.arange(first, first + len(edge)), side="right") - 1
        traffic[tail[0] : tail[-1] + 1] += np.bincount(tail - tail[0], load.take(edge))
        first += len(edge)
    load.close()
    busy = np.flatnonzero(traffic)
    if not len(busy):
        return graph.closer_node.take(generator.integers(0, graph.closers, count))
    return generator.choice(busy, min(count, len(busy)), replace=False, p=traffic[busy] / traffic.sum())


def hottest(heat: np.ndarray, cold: float, most: int) -> np.ndarray:
    """Positions of the at most ``most`` sources whose expected violation exceeds ``cold``, the largest ones."""
    hot = np.flatnonzero(heat > cold)
    return np.sort(hot[np.argsort(-heat[hot], kind="stable")[:most]])


def heated(heat: np.ndarray | None, sources: int, places: Places, peak: np.ndarray) -> np.ndarray:
    """The violation expected from each source after the sweeps that follow; infinite for one never searched."""
    heat = np.full(sources, np.inf) if heat is None else heat.copy()
    heat[places] = numbers.LEFT_BY_SWEEPS * peak
    return heat
