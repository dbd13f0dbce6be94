"""What is done next on general rows: scan the oracle's rows, sweep the remembered ones, certify.

What rows and sets have in common is here too.
"""

import contextlib
import math
from dataclasses import dataclass, replace

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, Problem, State, Swept, Turn
from ..engine.store import ConstraintStore
from ..engine.sweeps import SWEEPS_EACH_ROUND, Iterate, sweep_round, total_charge
from ..errors import InputError, SearchStopped
from ..oracles import Oracle
from ..storage.vectors import Vector
from . import settings
from .newton import newton_steps
from .program import RowProgram
from .scan import Scanner

SCAN, SAMPLE = "scan", "sample"
CHECK = "check"  # the stage that looks at everything and keeps nothing


@dataclass(frozen=True)
class RowPlan:
    """Where a run of general rows or sets stands.

    Attributes
    ----------
    task : int
        The task of the oracle to go on with.
    draws : int
        Draws of an incomplete oracle since the last complete look.
    worst : float
        The largest violation of the pass so far.
    least, high, since : float or None, float or None, int
        The least of these over all passes, the lower bound then, and how many passes ago that was.
    verdict : str or None
        The status the run should end with.
    """

    stage: str
    task: int = 0
    draws: int = 0
    worst: float = 0.0
    least: float | None = None
    since: int = 0
    verdict: str | None = None
    high: float | None = None

    def judged(self, bound: float) -> "RowPlan":
        """The plan after a pass: whether its largest violation is smaller than those before, or the bound higher."""
        falls = self.least is None or self.worst < settings.FALLS * self.least
        rises = self.high is not None and bound - self.high > (1.0 - settings.FALLS) * abs(bound)
        since = 0 if falls or rises else self.since + 1
        verdict = self.verdict or ("stalled" if since >= settings.PATIENCE else None)
        least = self.worst if self.least is None else min(self.worst, self.least)
        high = bound if falls or rises else self.high
        return replace(self, worst=0.0, least=least if falls else self.least, since=since, verdict=verdict, high=high)


RowState = State[Iterate, ConstraintStore, RowPlan]


@dataclass(frozen=True)
class RowPass(Pass):
    """A scan of some tasks; ``task`` is the one to go on with, 0 after the last."""

    task: int = 0


# -- what rows and sets have in common --------------------------------------------------------------------------------


def certify(state: RowState, violation: float, pull: float = 0.0) -> tuple[Certificate, Vector]:
    """What a complete look at the present point proves, and the point to show.

    ``violation`` is the largest one found, ``pull`` the part of the way to the interior point after which there is
    none.
    """
    program: RowProgram = state.point.program
    x = np.array(program.objective.point(state.point.y.whole))
    scale, feasible = program.scale(x), program.interior is not None
    if feasible:
        # A little further than computed, against rounding.
        x += min(1.0, pull * (1.0 + settings.PULL) + settings.PULL_MORE) * (program.interior - x)
    charge, y = total_charge(program, state.rows), state.point.y
    bound, worth = program.bound(y, charge), program.worth(y.whole, charge)
    return Certificate(program.objective.value(x), bound, violation, scale, feasible, worth), Vector.of(x)


def show_iterate(problem: Problem[Iterate, ConstraintStore, RowPlan], state: RowState, status: str) -> Certificate:
    """A run that was stopped shows its last iterate, measured if there is time."""
    certificate = None
    if status not in ("interrupted", "time_limit", "callback"):
        with contextlib.suppress(SearchStopped):
            seen = problem.find(replace(state, plan=replace(state.plan, stage=CHECK, task=0)))
            certificate, point = seen.certificate, seen.point
    if certificate is None:
        # What is known without looking: that all the way to an interior point is far enough.
        certificate, point = certify(state, math.inf, 1.0)
    if not certificate.feasible or certificate.objective <= state.objective:
        state.feasible, state.objective = point, certificate.objective
    return certificate


def settled(state: RowState, worst: float, tol: float) -> float:
    """The size of corrections at which sweeps end."""
    program = state.point.program
    scale = program.scale(program.objective.point(state.point.y.whole))
    return max(settings.SETTLED_OF_WORST * worst, settings.SETTLED_OF_TOLERANCE * tol * scale)


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowSchedule:
    """The steps of Algorithm 1 for general rows.

    Attributes
    ----------
    stochastic : bool
        Whether all rows are forgotten after an iteration, but for their duals.
    """

    oracle: Oracle
    scanner: Scanner
    monitor: Monitor
    tol: float
    seed: int = 0
    stochastic: bool = False

    def find(self, state: RowState) -> RowPass:
        stage, oracle = state.plan.stage, self.oracle
        x = state.point.program.objective.point(state.point.y.whole)
        tasks = oracle.check if stage == CHECK and not oracle.complete else oracle.tasks
        known = state.rows.keys() if self.stochastic else np.empty(0, np.uint64)
        with self.monitor.timed("oracle"), self.monitor.bar(stage, 0) as tick:
            rows = tasks(x, np.random.default_rng([self.seed, state.iteration])) if tasks else ()
            found, task = self.scanner.scan(rows, state.plan.task, x, known=known, keep=stage != CHECK, tick=tick)
        everything = oracle.complete or (stage == CHECK and tasks is not None)
        complete = everything and state.plan.task == 0 and task == 0
        proven = certify(state, found.worst, found.pull) if complete else (None, None)
        return RowPass(len(found.rows), found.worst, found.rows, found.measured, *proven, task)

    def sweep(self, state: RowState, found: RowPass) -> Swept:
        point, rows = state.point, state.rows
        if state.plan.stage == CHECK or not (found.found or len(rows)):
            return Swept()
        if self.stochastic:
            point.program = point.program.around(point.y, rows.blocks())
        enough, sweeps, residual = settled(state, found.worst, self.tol), 0, math.inf
        while sweeps < self._rounds(found, len(rows)) * SWEEPS_EACH_ROUND and residual > enough:
            residual = sweep_round(point, rows, self.monitor.stop)
            sweeps += SWEEPS_EACH_ROUND
        steps = newton_steps(point, rows, settings.NEWTON_OF_SETTLED * enough, self.monitor.stop)
        verdict = "infeasible" if proves_infeasible(point, rows) else None
        return Swept(sweeps, sweeps * len(rows), {"newton": steps}, residual, verdict)

    def _rounds(self, found: RowPass, remembered: int) -> int:
        """Rounds of sweeps: where a look costs more than sweeps do, sweep for as long."""
        as_long = found.relaxed // (settings.LOOKS_PER_SWEEP * max(remembered, 1))
        return min(max(settings.ROUNDS, as_long), settings.MOST_ROUNDS)

    def forget(self, state: RowState) -> int:
        return state.rows.forget()

    def bound(self, state: RowState) -> float:
        return state.point.bound(state.rows)

    def plan(self, state: RowState, turn: Turn) -> RowPlan:
        now, found, oracle = state.plan, turn.found, self.oracle
        assert isinstance(found, RowPass)
        if not abs(turn.after) < np.inf:
            raise InputError(
                "the multipliers left the range of the numbers: the rows contradict each other, or are far out of "
                "proportion to the objective; rescale them"
            )
        now = replace(now, task=found.task, verdict=turn.swept.verdict, worst=max(now.worst, found.worst))
        if not oracle.complete:
            draws = 0 if now.stage == CHECK else now.draws + 1
            due = oracle.check is not None and draws >= oracle.draws
            now = replace(now, draws=draws, stage=CHECK if due else SAMPLE)
        return now.judged(turn.after) if found.task == 0 and now.draws == 0 else now

    def verdict(self, state: RowState) -> str | None:
        return state.plan.verdict

    def close(self, state: RowState, status: str) -> Certificate | None:
        return state.certificate if status == "converged" else show_iterate(self, state, status)


def proves_infeasible(point: Iterate, rows: ConstraintStore) -> bool:
    """Whether the multipliers prove that no point of the domain within reach is feasible.

    Where there is none they grow along a direction that proves it: their last growth is tried, and they themselves.
    """
    program: RowProgram = point.program
    y = point.y.whole
    grown = (
        program.load((block, program.growth(block)) for block in rows.blocks()),
        [program.charge(block, program.growth(block)) for block in rows.blocks()],
    )
    whole = program.objective.start - y, [program.charge(block, block.dual) for block in rows.blocks()]
    return any(program.excludes(load, charges, settings.ROW_REACH, y) for load, charges in (grown, whole))
