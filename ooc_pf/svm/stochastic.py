"""The paper's truly stochastic projections: randomised dual coordinate ascent, with averaged iterates.

A projection onto the row y (w x) >= 1 - xi changes its dual z by -theta, theta = (y w x - 1 + xi) / (|x|^2 + 1 / C)
with xi = z / C, but not below zero. The mean of the later iterates classifies as well as the optimum. It is not the
optimum, and nothing is proven about it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..engine.monitor import Monitor
from ..errors import InputError
from ..kernels.svm import ascend_dense, ascend_sparse
from ..storage.memory import parse_memory, refuse_below
from . import settings
from .inputs import Block, Span, Sparse, Table, release, slice_block
from .program import NONE, Program, check_block

RUN = 256  # consecutive rows that are read together


@dataclass
class Ascent:
    """Where the projections stand.

    Attributes
    ----------
    w, late : (classes, width) arrays
        The iterate, and the sum of its changes since averaging began, each times the number of its projection.
    origin : (classes, width) array
        The iterate when averaging began.
    since, step : int
        The number of the projection then, and of the next one.
    """

    w: np.ndarray
    late: np.ndarray
    origin: np.ndarray
    since: int = 0
    step: int = 0

    @classmethod
    def start(cls, w: np.ndarray) -> "Ascent":
        return cls(w.copy(), np.zeros_like(w), w.copy())

    def begin_average(self) -> None:
        """Forget the iterates so far."""
        self.late[...] = 0.0
        self.origin, self.since = self.w.copy(), self.step

    def mean(self) -> np.ndarray:
        """Of the iterates since averaging began."""
        count = self.step - self.since
        if count == 0:
            return self.w.copy()
        return self.origin + (self.step * (self.w - self.origin) - self.late) / count


def epochs_for(rows: int) -> int:
    """Passes over so many rows that make enough projections."""
    return min(max(1, math.ceil(settings.PROJECTIONS / rows)), settings.MOST_EPOCHS)


def check_memory(program: Program, epochs: int, memory: int | str | None) -> None:
    """Refuse a budget that is too small."""
    budget, table = parse_memory(memory), program.table
    if budget is not None:
        duals = 8 * len(program.positive) * table.rows if epochs > 1 or not table.copies else 0
        parts = 2 * table.part_bytes if table.copies else 0
        refuse_below(settings.FIXED + program.code.nbytes + duals + parts, budget, memory)


def ascend(
    program: Program, start: np.ndarray, epochs: int, seed: int, monitor: Monitor,
    average_from: float = settings.AVERAGED_FROM,
) -> tuple[Ascent, str]:  # fmt: skip
    """So many projections for each row, in random order; returns the state and how it ended.

    Iterates are averaged after the part ``average_from`` of the projections.
    """
    state, rng, table = Ascent.start(start), np.random.default_rng(seed), program.table
    begins, total = int(average_from * epochs * table.rows), epochs * table.rows
    kept = np.zeros((len(start), table.rows)) if epochs > 1 or not table.copies else None
    with monitor.signals(), monitor.bar("rows", epochs * len(table.parts)) as tick:
        for _ in range(epochs):
            for block, rows in _visits(program, rng):
                order = rng.permutation(len(rows)) if table.copies else rows[rng.permutation(len(rows))]
                _project(program, state, block, rows, order, kept, begins)
                if not tick() and state.step < total:
                    return state, monitor.stop_reason or "interrupted"
    return state, "finished"


def _visits(program: Program, rng: np.random.Generator) -> Iterator[tuple[Block, np.ndarray]]:
    """Every row once: blocks with the numbers of the rows to visit.

    Rows are cut into short runs, which are dealt to tasks at random. Where blocks come in one order only, it is that.
    """
    table = program.table
    if table.read is None:
        for pieces in table.tasks([]):
            for first, load in pieces:
                block = load()
                yield block, np.arange(first, first + len(block))
        return
    width = min(RUN, max(1, table.rows // 64))
    runs = [(at, min(at + width, last)) for first, last in table.parts for at in range(first, last, width)]
    each = max(1, -(-len(runs) // len(table.parts)))
    dealt = rng.permutation(len(runs)).tolist()
    for first in range(0, len(runs), each):
        spans = [runs[i] for i in dealt[first : first + each]]
        rows = np.concatenate([np.arange(first, last) for first, last in spans])
        # Of a table in memory the whole table, which is not copied.
        yield _gathered(table, spans) if table.copies else table.read(0, table.rows), rows


def _gathered(table: Table, spans: list[Span]) -> Block:
    """Runs of rows as one block."""
    assert table.read is not None
    blocks = []
    for first, last in spans:
        block = table.read(first, last)
        blocks.append(block.copy() if isinstance(block, np.ndarray) else block)
        release(table, block)
    return _joined(blocks)


def _joined(blocks: list[Block]) -> Block:
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate([block for block in blocks if isinstance(block, np.ndarray)])
    parts = [block for block in blocks if isinstance(block, Sparse)]
    sizes = np.concatenate([[0], *(np.diff(part.start) for part in parts)])
    index, value = (np.concatenate(arrays) for arrays in list(zip(*(part.arrays for part in parts), strict=True))[1:])
    return Sparse(np.cumsum(sizes), index, value, parts[0].width)


def refuse_row(block: Block, at: int, row: int) -> None:
    """Say what is wrong with row ``at`` of a block, which is number ``row`` of all."""
    check_block(slice_block(block, at, at + 1), range(row, row + 1))
    raise InputError(f"X has numbers so large at row {row} that their squares overflow; scale it")


def _project(
    program: Program, state: Ascent, block: Block, rows: np.ndarray, order: np.ndarray, kept: np.ndarray | None,
    begins: int,
) -> None:  # fmt: skip
    """Project onto the rows of a block in the order given; averaging begins at the projection ``begins``."""
    whole = len(block) == program.table.rows and not program.table.copies
    code = program.code if whole else program.code[rows]
    weight = program.weight if whole or not len(program.weight) else program.weight[rows]
    duals = [np.zeros(len(rows)) if kept is None else kept[c] if whole else kept[c, rows] for c in range(len(state.w))]
    cut = min(max(begins - state.step, 0), len(order))
    for part in (order[:cut], order[cut:]):
        if state.step == begins and len(part):
            state.begin_average()
        for c, positive in enumerate(program.positive):
            shared = part, code, positive, weight if len(weight) else NONE, program.by_class, program.C, program.border
            target = state.w[c], state.late[c], duals[c], state.step
            if isinstance(block, np.ndarray):
                changed = ascend_dense(block, *shared, *target)
            else:
                changed = ascend_sparse(*block.arrays, *shared, *target)
            if changed < 0:
                refuse_row(block, -1 - changed, -1 - changed if whole else int(rows[-1 - changed]))
        state.step += len(part)
    if kept is not None and not whole:
        for c in range(len(state.w)):
            kept[c, rows] = duals[c]
