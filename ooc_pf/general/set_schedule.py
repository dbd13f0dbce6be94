"""What is done next on general convex sets: the paper's second algorithm, Dykstra's method for remembered sets only.

With increments q_i in the normal cones of the sets, ``y = t - sum q_i`` plays the part of ``t - A'z``, and the lower
bound is that of rows ``<q_i, x> <= support of set i in the direction q_i``. So a remembered set is stored as a row: its
increment as the coefficients, the support value as the right-hand side, and 1 as the dual while the increment is not
zero.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.parallel import run_tasks
from ..engine.problem import Pass, Swept, Turn
from ..engine.rows import RowBlock, Rows
from ..errors import InputError, SearchStopped
from ..objectives import Objective
from . import settings
from .schedule import CHECK, SCAN, RowPlan, RowState, certify, settled, show_iterate


@dataclass(frozen=True)
class Member:
    """A set: the variables it is about, the part of the objective over them, and its projection."""

    variables: np.ndarray
    part: Objective
    nearest: Callable[[np.ndarray], Any]

    def project(self, x: np.ndarray, number: int) -> np.ndarray | None:
        """The nearest point of the set, or None where x is in it already; ``number`` names the set in errors."""
        try:
            near = np.asarray(self.nearest(x.copy()), np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"set {number}: its projection failed: {error}") from error
        if near.shape != x.shape or not np.isfinite(near).all():
            what = "numbers that are not finite" if near.shape == x.shape else f"shape {near.shape} for {x.shape}"
            raise InputError(f"set {number}: its projection returned {what}")
        moved = float(np.linalg.norm(near - x))
        size = max(float(np.linalg.norm(x)), float(np.linalg.norm(near)))
        return None if moved <= settings.ROUNDING * size else near


def are_of(block: RowBlock, members: list[Member]) -> bool:
    """Whether every row of a block is an increment of one of the sets, over the variables it is about."""
    return all(
        number < len(members) and np.array_equal(block.table[block.index[first:last]], members[number].variables)
        for number, first, last in zip(block.key.tolist(), block.start[:-1], block.start[1:], strict=True)
    )


@dataclass(frozen=True)
class SetSchedule:
    """The steps of Algorithm 1 for general sets.

    Attributes
    ----------
    objective : Objective
    members : list of Member
    oracle : x -> numbers of sets, or None
        Which sets are worth looking at; all are looked at from time to time.
    pool : Executor
        Who looks at them.
    """

    objective: Objective
    members: list[Member]
    oracle: Callable[[np.ndarray], Any] | None
    pool: Executor
    monitor: Monitor
    tol: float

    def find(self, state: RowState) -> Pass:
        x = self.objective.point(state.point.y.whole)
        everything = self.oracle is None or state.plan.stage == CHECK
        count = len(self.members)
        numbers = np.arange(count) if everything else read_numbers(self.oracle(x.copy()), count)
        parts = np.array_split(numbers, min(settings.SET_PARTS, max(len(numbers), 1)))
        with self.monitor.timed("oracle"), self.monitor.bar("sets", len(parts)) as tick:
            measured = run_tasks(self.pool, self.distances, [(part, x, tick) for part in parts])
        if any(part is None for part in measured):
            raise SearchStopped
        distance = np.concatenate(measured)
        rows, worst = self.empty_rows(numbers[distance > 0.0]), float(distance.max(initial=0.0))
        proven = certify(state, worst) if everything else (None, None)
        return Pass(len(rows), worst, rows, len(numbers), *proven)

    def distances(self, numbers: np.ndarray, x: np.ndarray, tick: Callable[[], bool]) -> np.ndarray | None:
        """How far x is from each of these sets; None if the run was stopped."""
        if not tick():
            return None
        distance = np.zeros(len(numbers))
        for k, number in enumerate(numbers.tolist()):
            member = self.members[number]
            part = x[member.variables]
            near = member.project(part, number)
            distance[k] = 0.0 if near is None else float(np.linalg.norm(near - part))
        return distance

    def empty_rows(self, numbers: np.ndarray) -> Rows:
        """Rows for sets without an increment yet."""
        index = [self.members[number].variables for number in numbers.tolist()]
        start = np.cumsum([0, *map(len, index)], dtype=np.int64)
        entries = np.concatenate(index) if index else np.empty(0, np.int32)
        zeros = np.zeros(len(numbers))
        rows = Rows(start, entries, np.zeros(len(entries)), zeros, np.ones(len(numbers), bool))
        return replace(rows, key=numbers.astype(np.uint64))

    def sweep(self, state: RowState, found: Pass) -> Swept:
        enough, sweeps, residual = settled(state, found.worst, self.tol), 0, math.inf
        while sweeps < settings.SET_SWEEPS and residual > enough:
            residual = 0.0
            for block in state.rows.blocks():
                for row in range(len(block.dual)):
                    if self.monitor.stop[0]:
                        raise SearchStopped
                    residual = max(residual, self.step(block, row, state.point.y.whole))
            sweeps += 1
        return Swept(sweeps, sweeps * len(state.rows), residual=residual)

    def step(self, block: RowBlock, row: int, y: np.ndarray) -> float:
        """Project onto one set with its increment taken back (the paper's lines 4 and 5); returns how far x moved."""
        number, span = int(block.key[row]), slice(block.start[row], block.start[row + 1])
        at, member = block.table[block.index[span]], self.members[number]
        before = y[at]
        lifted = before + block.coefficient[span]
        x = member.part.point(lifted)
        near = member.project(x, number)
        if near is None:
            y[at] = lifted
            block.coefficient[span], block.dual[row], block.rhs[row] = 0.0, 0.0, 0.0
            near = x
        else:
            y[at] = member.part.gradient(near)
            block.coefficient[span] = lifted - y[at]
            block.dual[row], block.rhs[row] = 1.0, float(block.coefficient[span] @ near)
        return float(np.abs(near - member.part.point(before)).max(initial=0.0))

    def forget(self, state: RowState) -> int:
        return state.rows.forget()

    def bound(self, state: RowState) -> float:
        return state.point.bound(state.rows)

    def plan(self, state: RowState, turn: Turn) -> RowPlan:
        now = replace(state.plan, worst=max(state.plan.worst, turn.found.worst))
        program, y = state.point.program, state.point.y.whole
        charges = [program.charge(block, block.dual) for block in state.rows.blocks()]
        if program.excludes(self.objective.start - y, charges, settings.SET_REACH, y):
            now = replace(now, verdict="infeasible")
        if turn.found.certificate is not None:
            return replace(now, stage=SCAN, draws=0).judged(turn.after)
        due = now.draws + 1 >= settings.SET_DRAWS or not turn.found.found
        return replace(now, draws=now.draws + 1, stage=CHECK if due else SCAN)

    def verdict(self, state: RowState) -> str | None:
        return state.plan.verdict

    def close(self, state: RowState, status: str) -> Certificate | None:
        return state.certificate if status == "converged" else show_iterate(self, state, status)


def read_numbers(numbers: Any, count: int) -> np.ndarray:
    """The numbers of sets that an oracle returned, checked."""
    found = np.unique(np.asarray(numbers if hasattr(numbers, "__len__") else list(numbers)))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InputError("the oracle must return numbers of sets")
    if len(found) and (found[0] < 0 or found[-1] >= count):
        wrong = found[0] if found[0] < 0 else found[-1]
        raise InputError(f"the oracle returned set {wrong}; there are sets 0 to {count - 1}")
    return found.astype(np.int64)
