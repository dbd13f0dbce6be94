"""What is done next on a table: scan all triangles, sweep the remembered ones, certify.

A scan looks at every triangle but takes up only violations above a fraction of the last ones: those below mostly vanish
by themselves, and would only have to be remembered and forgotten.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, State, Swept, Turn
from ..errors import SearchStopped
from ..kernels.triangles import scan_triples
from . import settings as numbers
from .program import (
    TableIterate,
    TableProgram,
    Workers,
    add_loads,
    close_block,
    close_tiles,
    open_block,
    raise_to_limits,
)
from .settings import Settings
from .store import TriangleRows, TriangleStore
from .sweeps import sweep_with_momentum
from .tiles import Block

SCAN, CERTIFY = "scan", "certify"


@dataclass(frozen=True)
class TablePlan:
    """What comes next.

    Attributes
    ----------
    slack : float
        Violations above it are taken up.
    strict : float
        Falls with every attempt to certify that came too early.
    """

    stage: str
    slack: float
    strict: float = 1.0


TableState = State[TableIterate, TriangleStore, TablePlan]


@dataclass(frozen=True)
class Scan(Pass):
    """A pass over all triangles. ``norm`` is that of the violations, of a pass that does not certify."""

    norm: float = math.inf


def first_plan(program: TableProgram, settings: Settings) -> TablePlan:
    """Begin with the large violations."""
    return TablePlan(SCAN, max(settings.first, numbers.ROUNDING) * program.size)


def norm_to_certify(program: TableProgram, tol: float) -> float:
    """Norm of the violations found at which a certificate is likely to meet ``tol``, where rounding lets it."""
    rounding = numbers.ROUNDING * math.sqrt(program.tiling.edges)
    return numbers.CERTIFY_AT * max(tol, rounding) * program.size


@dataclass(frozen=True)
class TableSchedule:
    """The steps of Algorithm 1 for metric nearness over the complete graph."""

    program: TableProgram
    monitor: Monitor
    settings: Settings
    tol: float
    workers: Workers

    @property
    def triangles(self) -> int:
        return math.comb(self.program.tiling.nodes, 3)

    @property
    def rounding(self) -> float:
        """Violations below this are rounding."""
        return numbers.ROUNDING * self.program.size

    def find(self, state: TableState) -> Scan:
        stage, rounds = state.plan.stage, len(self.program.tiling.rounds)
        with self.monitor.timed("oracle"), self.monitor.bar(stage, rounds) as tick:
            return self.certify(state, tick) if stage == CERTIFY else self.scan(state, tick)

    def certify(self, state: TableState, tick: Callable[[], Any]) -> Scan:
        """The shortest-path closure of the iterate: a feasible point, and how far that is."""
        program, iterate = self.program, state.point
        load = add_loads(state.rows, program.new_tiles())
        bound = program.exact_bound(load)
        load.close()
        point = program.new_tiles()
        for span in point.passes():
            point.write(span[0], program.clip(iterate.y(span), span))
        close_tiles(point, self.workers, tick)
        squares = []
        for span in point.passes():
            far = program.clip(iterate.y(span), span) - point.read(*span)
            squares.append(float(np.sum(far * far)))
        distance = math.sqrt(math.fsum(squares))
        raise_to_limits(program, point)
        certificate = Certificate(program.value(point), bound, distance, program.size, worth=program.worth)
        return Scan(0, 0.0, None, self.triangles, certificate, point)

    def scan(self, state: TableState, tick: Callable[[], Any]) -> Scan:
        """Project onto the violated triangles as they are found, and remember them."""
        program, x, shift = self.program, state.point.x, state.point.shift
        constants = program.inverse, program.lower, program.upper

        def task(at: int, block: Block) -> tuple[int, np.ndarray]:
            triples, (lines, inverse, lower, upper, moved) = open_block(block, x, *constants, shift)
            rows = state.rows.get(at)
            remembered = rows.code, rows.dual, rows.start
            *kept, found, totals = scan_triples(
                lines, inverse, moved, lower, upper, triples, *remembered, state.plan.slack
            )
            close_block(block, (x, lines), (shift, moved))
            state.rows.put(at, TriangleRows(*kept))
            return found, totals

        parts = list(self.workers.visit(program.tiling, task, tick))
        worst = max((float(totals[0]) for _, totals in parts), default=0.0)
        norm = math.sqrt(math.fsum(totals[1] for _, totals in parts))
        return Scan(sum(found for found, _ in parts), worst, None, self.triangles, norm=norm)

    def sweep(self, state: TableState, found: Scan) -> Swept:
        """Sweep until the remembered rows are violated by less than a scan found, or would not have found."""
        settled = max(numbers.SETTLED * max(found.worst, state.plan.slack), self.rounding)
        patient = state.iteration >= self.settings.patience
        most = self.settings.more_sweeps if patient else self.settings.sweeps
        done = sweep_with_momentum(self.program, state.point, state.rows, self.workers, most=most, settled=settled)
        more = {"restarts": done.restarts, "residual": done.residual}
        return Swept(done.sweeps, done.sweeps * len(state.rows), more, done.residual)

    def forget(self, state: TableState) -> int:
        return state.rows.forget()

    def bound(self, state: TableState) -> float:
        return self.program.bound(state.point)

    def plan(self, state: TableState, turn: Turn) -> TablePlan:
        now, found, residual = state.plan, turn.found, turn.swept.residual
        assert isinstance(found, Scan)
        if now.stage == CERTIFY:
            return replace(now, stage=SCAN, slack=self.rounding, strict=numbers.STRICTER * now.strict)
        slack = max(self.settings.fraction * max(found.worst, now.slack), self.rounding)
        aim = now.strict * norm_to_certify(self.program, self.tol)
        small = max(found.norm, residual, now.slack) <= aim
        quiet = not found.found and now.slack <= self.rounding
        return replace(now, stage=CERTIFY if small or quiet else SCAN, slack=slack)

    def verdict(self, state: TableState) -> None:
        """Limits that contradict each other were refused: there always is a solution."""

    def close(self, state: TableState, status: str) -> Certificate | None:
        """Look once more if there is time, so that there is a good feasible point; or take a plain one."""
        certificate = state.certificate
        if self.monitor.stop[0]:  # perhaps before the iteration came to that
            self.forget(state)
        if status == "iteration_limit" and not (state.history and "gap" in state.history[-1]):
            with contextlib.suppress(SearchStopped):
                seen = self.find(replace(state, plan=replace(state.plan, stage=CERTIFY)))
                certificate = seen.certificate
                if certificate and certificate.objective <= state.objective:
                    state.feasible, state.objective = seen.point, certificate.objective
        plain = self.program.plain_point()
        value = self.program.value(plain)
        if state.feasible is None or value < state.objective:
            state.feasible, state.objective = plain, value
        else:
            plain.close()
        return certificate
