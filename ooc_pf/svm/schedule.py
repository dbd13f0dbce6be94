"""What is done next: Newton steps on samples of the rows, then on all of them, with line searches between if needed.

In the terms of Algorithm 1 a pass is the oracle, the remembered rows are the active ones, a Newton step is a sweep
that satisfies all of them at once, and a row whose dual falls to zero is forgotten.
"""

import contextlib
import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate, relative_gap
from ..engine.problem import Pass, State, Swept, Turn
from ..errors import SearchStopped
from ..storage.arrays import write_array
from ..storage.vectors import Vector
from . import settings
from .inputs import Span, sample
from .passes import Passes
from .program import Program, Sums, best_part, bound_at, gradient_at, newton_step, value_at

SAMPLE, NEWTON, SEARCH = "sample", "newton", "search"


@dataclass
class Iterate:
    """Where the steps of all classes stand.

    Attributes
    ----------
    w : (classes, width) array
    base, value, slope : (classes, width), (classes,), (classes,) arrays
        The point before the last step, F there (infinite: unknown), and its slope along the step.
    lower : (classes,) array
        The best lower bound of each optimum so far.
    gram : list of arrays
        Of each class the sum over the active rows, the upper triangle in Fortran order; empty without Hessians.
    """

    w: np.ndarray
    base: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    lower: np.ndarray
    gram: list[np.ndarray]

    @classmethod
    def start(cls, program: Program) -> "Iterate":
        k, p = len(program.positive), program.width
        grams = [np.zeros((p, p), order="F") for _ in range(k if program.dense else 0)]
        unknown = np.full(k, np.inf)
        return cls(np.zeros((k, p)), np.zeros((k, p)), unknown, np.zeros(k), np.zeros(k), grams)

    def close(self) -> None:
        """Nothing is held."""


class ActiveRows:
    """The rows with a positive dual: for each class a byte a row."""

    def __init__(self, active: np.ndarray):
        self.put(active)

    def __len__(self) -> int:
        return self._count

    def put(self, active: np.ndarray, left: int = 0) -> None:
        self.active, self._count, self._left = active, int(np.count_nonzero(active)), left

    def append(self, rows: Any) -> int:
        raise NotImplementedError("a pass brings its active rows itself")

    def forget(self) -> int:
        return self._left  # a pass has done so

    def blocks(self) -> Any:
        return iter(())

    def write(self, group: Path) -> None:
        write_array(group, "active", np.packbits(self.active))


@dataclass(frozen=True)
class SvmPlan:
    """Where a run stands.

    Attributes
    ----------
    stage : str
    level : int
        The sample; after the last one come all rows.
    least, since : float or None, int
        The least gap so far, and how many passes ago that was.
    careful : bool
        Whether steps are searched along before they are tried, since the last one went too far.
    verdict : str or None
        The status the run should end with.
    """

    stage: str
    level: int = 0
    careful: bool = False
    least: float | None = None
    since: int = 0
    verdict: str | None = None


Steps = tuple[np.ndarray, int]
SvmState = State[Iterate, ActiveRows, SvmPlan]


@dataclass(frozen=True)
class SvmPass(Pass):
    """Sums over rows; or of a line search the parts of the steps to take."""

    sums: Sums | None = None
    active: np.ndarray | None = None
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    gaps: np.ndarray = field(default_factory=lambda: np.empty(0))
    parts: dict[int, float] = field(default_factory=dict)
    left: int = 0


def levels_of(program: Program) -> tuple[float, ...]:
    """The samples worth taking."""
    table = program.table
    if table.read is None:
        return ()  # every look at such rows reads all of them
    least = settings.ROWS_OF_SAMPLE * program.width
    return tuple(part for part in settings.SAMPLES if part * table.rows >= least)


@dataclass(frozen=True)
class SvmSchedule:
    """The steps of Algorithm 1."""

    program: Program
    passes: Passes
    tol: float
    seed: int
    levels: tuple[float, ...]

    def _rows(self, level: int) -> tuple[list[list[Span]], int]:
        """The rows of a level as tasks, and how many they are."""
        table = self.program.table
        if level >= len(self.levels):
            return [[span] for span in table.parts], table.rows
        spans = sample(table, self.levels[level], self.seed, level)
        return spans, sum(last - first for task in spans for first, last in task)

    # -- the steps ----------------------------------------------------------------------------------------------------

    def find(self, state: SvmState) -> SvmPass:
        return self._search(state) if state.plan.stage == SEARCH else self._look(state)

    def _look(self, state: SvmState, *, hessian: bool = True) -> SvmPass:
        """F, gradient and bounds at w, of the classes that are not done."""
        program, point, plan = self.program, state.point, state.plan
        spans, rows = self._rows(plan.level)
        scale, complete = program.table.rows / rows, plan.level >= len(self.levels)
        active, live = state.rows.active.copy(), [c for c in range(len(point.w)) if not self._done(point, c)]
        check = len(state.rows) == 0
        sums = self.passes.sums(point.w, live, active, spans, scale, check=check, hessian=hessian)
        values, bounds = point.value.copy(), point.lower.copy() if complete else np.zeros(len(point.w))
        for c in live:
            values[c] = value_at(point.w[c], program.border, sums.square[c])
            bounds[c] = max(bounds[c], bound_at(point.w[c], program.border, sums, c))
        gaps = np.array([relative_gap(F, D) for F, D in zip(values, bounds, strict=True)])
        entered, left = (int(count) for count in sums.changes.sum(axis=0))
        certificate = shown = None
        if complete:
            certificate = Certificate(float(values.sum()), float(bounds.sum()), float(gaps.max()))
            shown = Vector.of(point.w.ravel().copy())
            point.lower = bounds
            if certificate.gap <= self.tol and certificate.violation <= self.tol:
                state.rows.put(active)
                state.moved = True
        worst = float(gaps.max())
        return SvmPass(entered, worst, None, rows, certificate, shown, sums, active, values, gaps, left=left)

    def _done(self, point: Iterate, c: int) -> bool:
        """Whether F was looked at where w is, and is close enough to the bound."""
        known = np.isfinite(point.value[c]) and np.array_equal(point.w[c], point.base[c])
        return bool(known) and relative_gap(point.value[c], point.lower[c]) <= self.tol

    def _search(self, state: SvmState) -> SvmPass:
        """The best part of each step that went too far."""
        point = state.point
        spans, rows = self._rows(state.plan.level)
        far = [c for c in range(len(point.w)) if np.any(point.w[c] != point.base[c])]
        found = self.passes.search(point.base, point.w, far, spans, self.program.table.rows / rows)
        parts = {c: best_part(point.base[c], point.w[c], self.program.border, found[c]) for c in far}
        return SvmPass(0, state.plan.least or 0.0, None, rows, parts=parts)

    def sweep(self, state: SvmState, found: SvmPass) -> Swept:
        point = state.point
        if found.sums is None:
            for c, part in found.parts.items():
                point.w[c] = point.base[c] + part * (point.w[c] - point.base[c])
                # Where not even the best part is better, w is as good as rounding lets it be.
                point.value[c] = np.inf
            return Swept(1, len(found.parts), {"parts": list(found.parts.values())})
        assert found.active is not None
        self._take(state, found)
        far = [c for c in range(len(point.w)) if self._too_far(point, found, c)]
        if far:
            for c in range(len(point.w)):
                if c not in far:
                    # A step that was good is kept; the next one waits until the others are done.
                    point.base[c], point.value[c] = point.w[c], found.values[c]
            return Swept(1, 0, {"rejected": len(far)})
        wide = [c for c in range(len(point.w)) if found.gaps[c] > self.tol or state.plan.stage == SAMPLE]
        gradients = [gradient_at(point.w[c], self.program.border, found.sums, c) for c in range(len(point.w))]
        steps, read = self._steps(state, found, wide, gradients)
        for c in range(len(point.w)):
            point.base[c], point.value[c] = point.w[c], found.values[c]
            if c in wide:
                point.slope[c] = float(gradients[c] @ steps[c])
                point.w[c] = point.w[c] + steps[c]
        return Swept(1, len(wide), {"read": read})

    def _take(self, state: SvmState, found: SvmPass) -> None:
        """Take in what a pass found about the active rows."""
        assert found.active is not None and found.sums is not None
        state.rows.put(found.active, found.left)
        for c, change in enumerate(found.sums.gram):
            if change is not None:
                state.point.gram[c] += change

    def _too_far(self, point: Iterate, found: SvmPass, c: int) -> bool:
        """Whether the last step did not lower F as much as its slope promised."""
        enough = point.value[c] + settings.ARMIJO * point.slope[c] + settings.ROUNDING * abs(point.value[c])
        return bool(found.values[c] > enough) and bool(np.any(point.w[c] != point.base[c]))

    def _steps(self, state: SvmState, found: SvmPass, wide: list[int], gradients: list[np.ndarray]) -> Steps:
        """The Newton steps of the classes that need one, and the rows that were read for them."""
        steps = np.zeros_like(state.point.w)
        if self.program.dense:
            for c in wide:
                steps[c] = newton_step(state.point.gram[c], gradients[c], self.program.border)
            return steps, 0
        return self._conjugate_gradients(state, found, wide, gradients)

    def _conjugate_gradients(
        self, state: SvmState, found: SvmPass, wide: list[int], gradients: list[np.ndarray]
    ) -> Steps:
        """Truncated Newton steps of all classes at once, preconditioned by the diagonals; each step is a pass."""
        assert found.sums is not None
        spans, rows = self._rows(state.plan.level)
        scale, g = self.program.table.rows / rows, np.array(gradients)
        diagonal = 1.0 + found.sums.diagonal
        steps, residual = np.zeros_like(g), -g
        solved = residual / diagonal
        direction = solved.copy()
        rho = np.einsum("cj,cj->c", residual, solved)
        forcing = np.minimum(settings.CG_ACCURACY, np.sqrt(np.maximum(found.gaps, self.tol)))
        goal, live = forcing**2 * rho, [c for c in wide if rho[c] > 0.0]
        read = 0
        while live and read < settings.CG_STEPS * rows:
            read += rows
            image = self.passes.multiply(direction, live, state.rows.active, spans, scale)
            for c in list(live):
                length = rho[c] / float(direction[c] @ image[c])
                steps[c] += length * direction[c]
                residual[c] -= length * image[c]
                solved[c] = residual[c] / diagonal[c]
                fresh = float(residual[c] @ solved[c])
                direction[c] = solved[c] + fresh / rho[c] * direction[c]
                rho[c] = fresh
                if fresh <= goal[c]:
                    live.remove(c)
        return steps, read

    def forget(self, state: SvmState) -> int:
        return state.rows.forget() if state.plan.stage != SEARCH else 0

    def bound(self, state: SvmState) -> float:
        return float(state.point.lower.sum())

    def plan(self, state: SvmState, turn: Turn) -> SvmPlan:
        plan, found = state.plan, turn.found
        assert isinstance(found, SvmPass)
        rest = SAMPLE if plan.level < len(self.levels) else NEWTON
        if plan.stage == SEARCH:
            return replace(plan, stage=rest, careful=min(found.parts.values(), default=1.0) < 1.0)
        worst = found.worst
        falls = bool(np.isfinite(worst)) if plan.least is None else worst < plan.least
        since, least = (0, worst) if falls else (plan.since + 1, plan.least)
        plan = replace(plan, least=least, since=since)
        if "rejected" in turn.swept.more:
            return replace(plan, stage=SEARCH, careful=True)
        if plan.stage == SAMPLE:
            # The step just taken finds most of what is left; a sample is no better than that.
            calm = found.found + found.left <= settings.CALM * len(state.rows)
            if calm or since >= settings.PATIENCE:
                self._leave(state)
                level = plan.level + 1
                return SvmPlan(SAMPLE if level < len(self.levels) else NEWTON, level)
        elif since >= settings.PATIENCE:
            return replace(plan, verdict="stalled")
        return replace(plan, stage=SEARCH) if plan.careful else plan

    def _leave(self, state: SvmState) -> None:
        """Go on to other rows from the present w: nothing is known of them."""
        point = state.point
        state.rows.put(np.zeros_like(state.rows.active))
        for gram in point.gram:
            gram[...] = 0.0
        point.value[:] = np.inf
        point.base[:] = point.w

    def verdict(self, state: SvmState) -> str | None:
        return state.plan.verdict

    def close(self, state: SvmState, status: str) -> Certificate | None:
        """Before the first complete pass: look at the iterate if there is time, else w = 0 is what is known."""
        if state.feasible is not None:
            return state.certificate
        state.feasible = Vector.of(np.zeros(state.point.w.size))
        state.objective = self.program.at_zero() * len(state.point.w)
        if status in ("interrupted", "time_limit", "callback"):
            return None
        plan, point = replace(state.plan, stage=NEWTON, level=len(self.levels)), copy.deepcopy(state.point)
        other = replace(state, plan=plan, point=point, rows=ActiveRows(np.zeros_like(state.rows.active)))
        with contextlib.suppress(SearchStopped):
            seen = self._look(other, hessian=False)
            if seen.certificate is not None and seen.certificate.objective <= state.objective:
                state.feasible, state.objective = seen.point, seen.certificate.objective
        return None
