"""Transport with soft marginals: what is done next.

    primal  min <C, P> + g/2 |a - P1|^2 + g/2 |b - P'1|^2 over P >= 0
    dual    max <f, a> + <h, b> - (|f|^2 + |h|^2) / 2g with f_i + h_j <= C_ij

Everything is in the unit of costs: targets are d = g (a, b), multipliers p = g P, potentials z = (f, h) = d - B p. A
search brings the most violated pairs of every row and column. The problem restricted to the remembered pairs is solved
by an interior-point method, roughly while many rows are violated, then finely. From its answer a forest is grown, and
from then on violated pairs enter it by pivots, so that the answer is exact to rounding.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, State, Swept, Turn
from ..kernels.transport_nodes import Terms
from ..storage.arrays import read_array, write_array
from ..storage.records import require
from . import settings
from .costs import Found
from .crew import Crew
from .forest import finish, grow_forest, support_of
from .inputs import Task
from .nodes import Order, solve_restricted
from .plan import Transport
from .store import PairStore

ROUGH, FINE, PIVOT = "rough", "fine", "pivot"


def value_soft(plan: Transport, gamma: float) -> float:
    """The primal objective of a plan."""
    return plan.cost + 0.5 * gamma * float(np.sum(plan.row_rest**2) + np.sum(plan.column_rest**2))


def bound_soft(task: Task, gamma: float, z: np.ndarray) -> float:
    """The dual objective at potentials that violate no pair."""
    n = len(task.a)
    return float(z[:n] @ task.a + z[n:] @ task.b) - 0.5 * float(z @ z) / gamma


@dataclass(frozen=True)
class SoftPlan:
    """Where a run stands.

    Attributes
    ----------
    stage : str
    least, since : float or None, int
        The least gap so far, and how many iterations ago that was.
    """

    stage: str = ROUGH
    least: float | None = None
    since: int = 0

    def check(self, where: Any) -> None:
        """Refuse a plan that no run has."""
        require(self.stage in (ROUGH, FINE, PIVOT), where, f"plan.stage is {self.stage!r}")
        require(self.since >= 0, where, "the plan has counts below zero")


@dataclass
class SoftPoint:
    """Potentials, the best lower bound with its potentials, which violate no pair, and the order of the nodes."""

    z: np.ndarray
    lower: float
    best: np.ndarray
    order: Order = field(default_factory=Order)

    @classmethod
    def start(cls, task: Task, gamma: float) -> "SoftPoint":
        """Nothing is moved."""
        plain = np.full(sum(task.costs.shape), 0.5 * min(task.costs.ends[0], 0.0))
        return cls(gamma * np.concatenate([task.a, task.b]), bound_soft(task, gamma, plain), plain)

    def write(self, group: Path) -> None:
        for name in ("z", "best"):
            write_array(group, name, getattr(self, name))
        write_array(group, "lower", np.array([self.lower]))
        write_array(group, "order", np.append(self.order.nodes, self.order.added))

    @classmethod
    def read(cls, group: Path, task: Task) -> "SoftPoint":
        nodes = sum(task.costs.shape)
        z, best = (read_array(group, name, dtype=np.float64) for name in ("z", "best"))
        lower, order = read_array(group, "lower", dtype=np.float64), read_array(group, "order", dtype=np.int64)
        sound = len(z) == len(best) == nodes and len(lower) == 1 and np.isfinite([*z, *best, *lower]).all()
        require(bool(sound), group, "the potentials are not what a run writes")
        whole = len(order) == 1 or np.array_equal(np.sort(order[:-1]), np.arange(nodes))
        require(bool(whole), group, "order is not what a run writes")
        return cls(z, float(lower[0]), best, Order(order[:-1], int(order[-1])))

    def close(self) -> None:
        """Nothing is held."""


SoftState = State[SoftPoint, PairStore, SoftPlan]


@dataclass(frozen=True)
class SoftSchedule:
    """The steps of Algorithm 1."""

    task: Task
    gamma: float
    crew: Crew
    monitor: Monitor

    @cached_property
    def target(self) -> np.ndarray:
        return self.gamma * np.concatenate([self.task.a, self.task.b])

    @cached_property
    def size(self) -> float:
        return float(self.target.max())

    def scale(self, z: np.ndarray) -> float:
        """The size of the numbers that violations are judged by."""
        return max(self.size, float(np.abs(z).max()))

    # -- the steps ----------------------------------------------------------------------------------------------------

    def find(self, state: SoftState) -> Pass:
        """The most violated pairs, and what the search proves."""
        z, n = state.point.z, len(self.task.a)
        with self.monitor.timed("oracle"):
            limit = settings.ROUNDING * self.scale(z)
            found = self.task.costs.search(z[:n], z[n:], settings.BEST, limit, self.crew)
            fresh = state.rows.fresh(found.left, found.right)
            left, right = found.left[fresh], found.right[fresh]
            rows = left, right, self.task.costs.of_pairs(left, right)
        few = np.count_nonzero(np.diff(left, prepend=-1)) <= settings.FEW * n  # pairs are sorted by row
        if state.plan.stage == ROUGH and len(state.rows) and few:
            state.plan = replace(state.plan, stage=FINE)
        certificate, plan = self.certify(state, found)
        worst = max(found.worst, 0.0)
        return Pass(len(left), worst, rows, found.looked, certificate, plan.shown())  # type: ignore[arg-type]

    def certify(self, state: SoftState, found: Found) -> tuple[Certificate, Transport]:
        """The value of the plan, and of the dual where the potentials are lowered until no pair is violated."""
        task, gamma, point = self.task, self.gamma, state.point
        plan = Transport.of_store(task, state.rows, 1.0 / gamma)
        value, violation = value_soft(plan, gamma), max(found.worst, 0.0)
        z = point.z - 0.5 * violation
        bound = bound_soft(task, gamma, z)
        if bound > point.lower:
            point.lower, point.best, state.moved = bound, z, True
        point.lower = min(point.lower, value)  # rounding alone can put it above
        worth = 0.5 * gamma * float(task.a @ task.a + task.b @ task.b)
        return Certificate(value, point.lower, violation, self.scale(z), worth=worth), plan

    def sweep(self, state: SoftState, found: Pass) -> Swept:
        """Solve the restricted problem as well as the stage asks for."""
        if state.plan.stage == PIVOT:
            done, visited = self._pivot(state, np.flatnonzero(state.rows.member))
            if done:
                return Swept(1, visited)
        rough = state.plan.stage == ROUGH
        rows, tol = state.rows, settings.ROUGH if rough else settings.FINE
        terms = Terms(soft=1.0, reg=0.0, ridge=0.0, node_size=self.size, pair_size=self.size)
        solved = solve_restricted(rows, self.target, state.point.z, terms, tol, state.point.order, self.crew.stop)
        self.crew.check()
        state.point.z, rows.p, rows.member = solved.z, solved.p, np.zeros(len(rows), np.bool_)
        visited = 0
        if not rough:
            _, visited = self._pivot(state, support_of(solved.p, solved.slack))
        return Swept(solved.steps, visited, {"fill": solved.fill})

    def _pivot(self, state: SoftState, chosen: np.ndarray) -> tuple[bool, int]:
        """Finish on the forest of the chosen pairs; what does not end well changes nothing."""
        forest = grow_forest(state.rows, self.target, len(self.task.a), chosen)
        done, visited = finish(forest, self.scale(state.point.z), self.crew.stop)
        self.crew.check()
        if done:
            state.point.z, state.rows.p, state.rows.member = forest.z, np.maximum(forest.p, 0.0), forest.member
        return done, visited

    def forget(self, state: SoftState) -> int:
        """Pairs far from carrying mass."""
        rows = state.rows
        slack = rows.slack(state.point.z)
        idle = (rows.p <= settings.FORGET_PART * slack) & (slack >= settings.FORGET_SLACK * self.size)
        return rows.keep(~idle)

    def bound(self, state: SoftState) -> float:
        return state.point.lower

    def plan(self, state: SoftState, turn: Turn) -> SoftPlan:
        plan, certificate = state.plan, turn.found.certificate
        assert certificate is not None
        falls = plan.least is None or certificate.gap < plan.least
        least, since = (certificate.gap, 0) if falls else (plan.least, plan.since + 1)
        stage = PIVOT if plan.stage != ROUGH and state.rows.member.any() else plan.stage
        return SoftPlan(stage, least, since)

    def verdict(self, state: SoftState) -> str | None:
        return "stalled" if state.plan.since >= settings.PATIENCE else None

    def close(self, state: SoftState, status: str) -> Certificate | None:
        """A run that was stopped before its first search shows the plan that moves nothing."""
        if state.feasible is None:
            plan = Transport.of_store(self.task, PairStore(self.task.costs), 1.0)
            state.feasible, state.objective = plan.shown(), value_soft(plan, self.gamma)
        return state.certificate
