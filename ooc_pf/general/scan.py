"""Measure the rows an oracle hands out, in parallel, and keep those that are violated.

A scan stops early when it has found as much as a sweep should take at once; the next one goes on where it stopped.
Sizes are fixed, so that an answer does not depend on budget or workers.
"""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from ..engine.parallel import run_tasks
from ..engine.rows import Rows
from ..errors import InputError, SearchStopped
from ..kernels.ragged import find_repeated, keep_rows, measure_rows, row_norms
from . import settings


@dataclass(frozen=True)
class Scanned:
    """What a scan found.

    Attributes
    ----------
    rows : Rows
        Those to be taken.
    worst : float
        The largest violation: the distance from x to what satisfies the row.
    measured : int
        How many rows were looked at.
    pull : float
        The part of the way to the interior point after which none of them is violated.
    """

    rows: Rows
    worst: float
    measured: int
    pull: float

    @classmethod
    def join(cls, parts: list["Scanned"]) -> "Scanned":
        return cls(
            Rows.join([part.rows for part in parts]),
            max((part.worst for part in parts), default=0.0),
            sum(part.measured for part in parts),
            max((part.pull for part in parts), default=0.0),
        )


@dataclass(frozen=True)
class Scanner:
    """What rows are measured against.

    Attributes
    ----------
    domain : (float, float)
        Every variable is strictly between these.
    interior : float64 array or None
        A point that satisfies every row.
    """

    pool: Executor
    domain: tuple[float, float] = (-np.inf, np.inf)
    interior: np.ndarray | None = None

    def scan(
        self,
        tasks: Iterable[Callable[[], Rows]],
        first: int,
        x: np.ndarray,
        *,
        known: np.ndarray,
        keep: bool,
        tick: Callable[[], bool],
    ) -> tuple[Scanned, int]:
        """What is violated at x, from task ``first`` on, and the task to go on with: 0 after the last.

        Rows with a key in ``known``, which is sorted, are taken whether violated or not. Without ``keep`` all tasks are
        only measured.
        """
        rest = iter(tasks)
        for _ in itertools.islice(rest, first):
            pass
        parts: list[Scanned] = []
        at, entries, rows = first, 0, 0
        while batch := list(itertools.islice(rest, settings.SCAN_TASKS)):
            if not tick():
                raise SearchStopped
            calls = [(task, at + number, x, known, keep) for number, task in enumerate(batch)]
            fresh = run_tasks(self.pool, self.inspect, calls)
            parts += fresh
            at += len(batch)
            entries += sum(len(part.rows.edges) for part in fresh)
            rows += sum(len(part.rows) for part in fresh)
            if entries >= settings.FOUND_ENTRIES or rows >= settings.FOUND_ROWS:
                break
        else:
            at = 0
        return Scanned.join(parts), at

    def inspect(self, task: Callable[[], Rows], block: int, x: np.ndarray, known: np.ndarray, keep: bool) -> Scanned:
        """Measure one block of rows: how far x is from each of them."""
        rows = _checked(task(), len(x), block)
        excess, size = measure_rows(rows.start, rows.edges, rows.coefficient, rows.rhs, x)
        wrong = ~np.isfinite(excess) & ((excess != -np.inf) | rows.equality)
        if wrong.any():
            raise InputError(_not_finite(rows, int(np.argmax(wrong)), block))
        excess = np.where(rows.equality, np.abs(excess), excess)
        violated = excess > settings.ROUNDING * size
        pull = 0.0 if self.interior is None else self._pull(rows, excess, violated, block)
        taken = violated
        if len(known) and keep:
            key = rows.keys()
            taken = violated | (known[np.minimum(np.searchsorted(known, key), len(known) - 1)] == key)
        chosen = _without_zero_terms(rows.select(taken))
        self._check_chosen(chosen, excess[taken], block, len(x))
        worst = float(np.max(excess[taken] / row_norms(chosen.start, chosen.coefficient), initial=0.0))
        return Scanned(_in_units(chosen) if keep else Rows.empty(), worst, len(rows), pull)

    def _check_chosen(self, rows: Rows, excess: np.ndarray, block: int, variables: int) -> None:
        repeated = find_repeated(rows.start, rows.edges, np.full(variables, -1))
        if repeated >= 0:
            raise InputError(
                f"{name_row(rows, repeated, block)} has a variable twice; give the sum of its coefficients"
            )
        at, low, high = np.repeat(np.arange(len(rows)), np.diff(rows.start)), *self.domain
        # An empty row, or one the domain does not reach, can never hold.
        ends = np.stack((rows.coefficient * low, rows.coefficient * high))
        least = np.bincount(at, ends.min(axis=0), len(rows)) - rows.rhs
        most = np.bincount(at, ends.max(axis=0), len(rows)) - rows.rhs
        lost = (excess > 0) & ((least >= 0) | (rows.equality & (most <= 0)))
        if lost.any():
            row = int(np.argmax(lost))
            raise InputError(
                f"{name_row(rows, row, block)} cannot hold inside the domain of the objective: <a, x> is never below "
                f"{least[row] + rows.rhs[row]:g} there, and its right-hand side is {rows.rhs[row]:g}"
            )

    def _pull(self, rows: Rows, excess: np.ndarray, violated: np.ndarray, block: int) -> float:
        if rows.equality.any():
            row = int(np.argmax(rows.equality))
            raise InputError(f"{name_row(rows, row, block)} is an equation; interior= is for inequalities only")
        inner, size = measure_rows(rows.start, rows.edges, rows.coefficient, rows.rhs, self.interior)
        if (inner > settings.ROUNDING * size).any():
            row = int(np.argmax(inner - settings.ROUNDING * size))
            raise InputError(f"interior= does not satisfy {name_row(rows, row, block)}: it is off by {inner[row]:g}")
        return float(np.max(excess[violated] / (excess[violated] - np.minimum(inner[violated], 0.0)), initial=0.0))


def name_row(rows: Rows, row: int, block: int) -> str:
    """How an error calls a row: by its name or number, or by where the oracle gave it."""
    name = "" if rows.names is None else next(iter(rows.names.span(row, row + 1)))
    if name:
        return f"row {name!r}"
    if rows.key is not None:
        return f"row {int(rows.key[row])}"
    return f"row {row} of block {block} of the oracle"


def _checked(rows: Rows, variables: int, block: int) -> Rows:
    """Refuse rows whose indices a kernel could not follow."""
    start, edges = np.ascontiguousarray(rows.start, np.int64), np.asarray(rows.edges)
    if len(start) == 0 or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] != len(edges):
        raise InputError(f"block {block} of the oracle: the row starts do not fit its {len(edges)} entries")
    if not len(edges) == len(rows.coefficient) or not len(rows.rhs) == len(rows.equality) == len(rows):
        raise InputError(f"block {block} of the oracle: its arrays have different lengths")
    wrong = (edges < 0) | (edges >= variables)
    if wrong.any():
        at = int(np.argmax(wrong))
        row = int(np.searchsorted(start, at, side="right")) - 1
        raise InputError(f"{name_row(rows, row, block)} has index {edges[at]}; there are {variables} variables")
    return replace(rows, start=start, edges=edges.astype(np.int32, copy=False))


def _not_finite(rows: Rows, row: int, block: int) -> str:
    terms = rows.coefficient[rows.start[row] : rows.start[row + 1]]
    bad = terms[~np.isfinite(terms)]
    what = f"the coefficient {bad[0]}" if len(bad) else f"the right-hand side {rows.rhs[row]}"
    return f"{name_row(rows, row, block)} has {what}; it must be a finite number"


def _without_zero_terms(rows: Rows) -> Rows:
    used = rows.coefficient != 0.0
    if used.all():
        return rows
    start = np.concatenate(([0], np.cumsum(used)))[rows.start]
    single = np.arange(len(used) + 1)
    edges, coefficient = (keep_rows(single, values, used)[1] for values in (rows.edges, rows.coefficient))
    return replace(rows, start=start, edges=edges, coefficient=coefficient)


def _in_units(rows: Rows) -> Rows:
    """The rows brought to norms near one, each multiplied by a power of two, which changes no digit.

    Multipliers of rows of one size can be compared and combined, however the caller scaled them.
    """
    key, norm = rows.keys(), row_norms(rows.start, rows.coefficient)
    unit = np.ldexp(1.0, -np.round(np.log2(norm)).astype(np.int64))
    coefficient = rows.coefficient * np.repeat(unit, np.diff(rows.start))
    return replace(rows, coefficient=coefficient, rhs=rows.rhs * unit, key=key, unit=unit)
