"""Sweeps over the remembered triangles: Hildreth's method, with Nesterov's momentum and adaptive restart.

A sweep is a step of coordinate ascent on the dual. With momentum every dual first goes on as it went in the sweep
before, times a factor that grows towards 1. The factor starts again from zero where corrections begin to point back,
and where the dual is worth less than it was (O'Donoghue and Candes). A plain sweep always makes it worth more, so that
momentum can delay the way to the optimum but not lead away from it.

The point goes ahead as a whole, for it is linear in the duals; a dual follows when its row has its turn, so that rows
are visited once a sweep.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import SearchStopped
from ..kernels.triangles import sweep_triples
from . import settings
from .program import TableIterate, TableProgram, Workers, add_loads, close_block, open_block
from .store import TriangleStore
from .tiles import Block, Tiles


@dataclass(frozen=True)
class Done:
    """Sweeps: how many, the largest correction of the last, and how often momentum started again."""

    sweeps: int
    residual: float
    restarts: int


def sweep_with_momentum(
    program: TableProgram, point: TableIterate, store: TriangleStore, workers: Workers, *, most: int, settled: float
) -> Done:
    """Sweep until nothing is corrected by more than ``settled``, ``most`` times at most.

    When SearchStopped is raised in between, the point follows from the duals as they are.
    """
    before, inertia, momentum, restarts, done, residual = copy_of(program, point), 1.0, 0.0, 0, 0, math.inf
    worth = best = 0.0  # of the dual, beyond what it was worth at first
    try:
        while done < most and residual > settled:
            go_ahead(program, point, before, momentum)
            residual, course = sweep_once(program, point, store, workers, momentum)
            done += 1
            worth += program.gain(point, before)
            restart = course < 0.0 or worth < best
            best = max(best, worth)
            restarts += restart
            momentum, inertia = (0.0, 1.0) if restart else next_momentum(inertia)
    except SearchStopped:
        before.close()  # makes room
        follow_duals(program, point, store)
        raise
    finally:
        before.close()
    return Done(done, residual, restarts)


def copy_of(program: TableProgram, point: TableIterate) -> TableIterate:
    """The same iterate in tiles of its own."""
    shift = None if point.shift is None else program.new_tiles().copy_from(point.shift)
    return TableIterate(program.new_tiles().copy_from(point.x), shift)


def next_momentum(inertia: float) -> tuple[float, float]:
    """Nesterov's sequence: the momentum of the next sweep, and what the one after it follows from."""
    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * inertia**2))
    return (inertia - 1.0) / following, following


def sweep_once(
    program: TableProgram, point: TableIterate, store: TriangleStore, workers: Workers, momentum: float
) -> tuple[float, float]:
    """Project onto every remembered row; returns the largest correction, and the course (see `sweep_triples`)."""
    x, shift = point.x, point.shift

    def task(at: int, block: Block) -> tuple[float, float]:
        triples, (values, inverse, lower, upper, moved) = open_block(
            block, x, program.inverse, program.lower, program.upper, shift
        )
        rows = store.get(at)
        rows = rows if momentum else rows.at_rest()
        arrays = rows.code, rows.dual, rows.speed, rows.start
        done = sweep_triples(values, inverse, moved, lower, upper, triples, *arrays, momentum)
        close_block(block, (x, values), (shift, moved))
        store.put(at, rows, same_rows=True)
        return done

    parts = list(workers.visit(program.tiling, task, short=few_rows(store)))
    return max((largest for largest, _ in parts), default=0.0), math.fsum(course for _, course in parts)


def few_rows(store: TriangleStore) -> Callable[[range], bool]:
    """Whether blocks are quicker visited than handed out."""
    return lambda own: sum(store.size(at) for at in own) < settings.FEW_ROWS


def go_ahead(program: TableProgram, point: TableIterate, before: TableIterate, momentum: float) -> None:
    """Let y go on from ``before`` by ``momentum`` times its last step; ``before`` becomes where it was."""
    for span in point.x.passes():
        y, last = point.y(span), before.y(span)
        ahead = y + momentum * (y - last)
        set_y(program, before, span, y)
        set_y(program, point, span, ahead)


def set_y(program: TableProgram, point: TableIterate, span: tuple[int, int], y: np.ndarray) -> None:
    """Put y, and x that follows from it."""
    if point.shift is None:
        point.x.write(span[0], y)
        return
    x = program.clip(y, span)
    point.x.write(span[0], x)
    point.shift.write(span[0], y - x)


def follow_duals(program: TableProgram, point: TableIterate, store: TriangleStore) -> None:
    """Set the point to the one that follows from the duals."""
    load = add_loads(store, program.new_tiles())
    _follow(program, point, load)
    load.close()


def iterate_of(program: TableProgram, load: Tiles) -> TableIterate:
    """The iterate that belongs to ``load = A'z``, whose tiles it takes over."""
    point = TableIterate(load, None if program.lower is None else program.new_tiles())
    _follow(program, point, load)
    return point


def _follow(program: TableProgram, point: TableIterate, load: Tiles) -> None:
    for span in load.passes():
        inverse = 1.0 if program.inverse is None else program.inverse.read(*span)
        set_y(program, point, span, program.target.read(*span) - inverse * load.read(*span))
