"""Transport with exact marginals: what is done next.

    primal  min <C, P> + r/2 |P|^2 over P >= 0 with P1 = a, P'1 = b
    dual    max <f, a> + <h, b> - 1/(2r) sum max(0, f_i + h_j - C_ij)^2

The dual is smooth, its gradient what is missing of the marginals of P = max(0, f + h - C) / r. A look collects the
support, all pairs with an excess, so that value and gradient are those of the whole problem. Newton steps follow, with
equations over the nodes of the support. They need a good start. It comes from the same problem on few rows and
columns, where r may be so large that all pairs take part; from there r falls and the problems grow, always with a
support of a few pairs a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, State, Swept, Turn
from ..errors import BudgetError
from ..kernels.factor import factorise, solve_factored
from ..kernels.transport_newton import balance_support, conjugate_gradients, count_pairs
from ..storage.arrays import read_array, write_array
from ..storage.records import require
from . import settings
from .costs import Support
from .crew import Crew
from .inputs import Task
from .interior import solve_interior
from .islands import find_lonely, shift_islands
from .levels import Level
from .marginals import meet_marginals
from .nodes import minimum_degree, prepare
from .plan import Transport, northwest_corner, unpack
from .store import PairStore

COARSE, INTERIOR, NEWTON = "coarse", "interior", "newton"


def value_exact(plan: Transport, reg: float) -> float:
    """The primal objective of a plan."""
    return plan.cost + 0.5 * reg * float(plan.mass @ plan.mass)


def lower_lines(line: np.ndarray, excess: np.ndarray, need: np.ndarray) -> np.ndarray:
    """What to add, none of it positive, to the potentials of lines with more excess than they need."""
    order = np.argsort(line, kind="stable")
    start = np.searchsorted(line[order], np.arange(len(need) + 1))
    return np.minimum(balance_support(start, excess[order], need), 0.0)


@dataclass(frozen=True)
class Look:
    """The dual at some potentials.

    Attributes
    ----------
    value : float
    gradient : float64[nodes]
        a - P1 and b - P'1.
    support : Support
    """

    value: float
    gradient: np.ndarray
    support: Support

    @classmethod
    def at(cls, level: Level, z: np.ndarray, reg: float, crew: Crew) -> "Look":
        n = len(level.a)
        support = level.costs.support(z[:n], z[n:], crew)
        rows = np.bincount(support.left, support.excess, n) / reg
        columns = np.bincount(support.right, support.excess, len(level.b)) / reg
        linear = float(z[:n] @ level.a + z[n:] @ level.b)
        value = linear - 0.5 / reg * float(support.excess @ support.excess)
        return cls(value, np.concatenate([level.a - rows, level.b - columns]), support)

    @property
    def missing(self) -> float:
        """Mass that is not where it should be, in rows and columns."""
        return float(np.abs(self.gradient).sum())


@dataclass(frozen=True)
class ExactPlan:
    """Where a run stands.

    Attributes
    ----------
    stage : str
    level : int
        How many times the problem was made coarser.
    reg : float
        The weight of the regulariser at this level.
    ridge : float
        Added to the diagonal of Newton's equations: more after a short step, less after a whole one (Levenberg and
        Marquardt).
    least, turns : float or None, int
        The least marginal error so far, and Newton steps since it was last halved.
    helped : bool
        Whether the interior-point method has given what help it can.
    """

    stage: str
    level: int
    reg: float
    ridge: float = 1.0
    least: float | None = None
    turns: int = 0
    helped: bool = False

    def check(self, where: Any) -> None:
        """Refuse a plan that no run has."""
        sound = self.stage in (COARSE, INTERIOR, NEWTON) and self.level >= 0 and self.reg > 0.0 and self.ridge >= 0.0
        require(sound and self.turns >= 0, where, "plan is not what a run writes")

    def check_at(self, levels: list[Level], reg: float, z: np.ndarray, where: Any) -> None:
        """Refuse a plan that is not of these problems, or not of these potentials.

        What is proven at the problem itself is proven for the weight that was asked for.
        """
        known = self.level < len(levels) and len(z) == sum(levels[self.level].costs.shape)
        itself = self.stage == COARSE or (self.level == 0 and self.reg == reg)
        require(known and itself, where, "plan does not fit the potentials")


@dataclass
class ExactPoint:
    """Potentials, what a look at them saw, the best bound with its potentials, and the best plan."""

    z: np.ndarray
    lower: float
    best: np.ndarray
    look: Look | None = None
    plan: Transport | None = None

    @classmethod
    def start(cls, levels: list[Level], reg: float) -> tuple["ExactPoint", ExactPlan]:
        """The coarsest problem, with a weight at which all pairs take part."""
        fine, coarse, mass = levels[0], levels[-1], float(levels[0].a.sum())
        (least, most), nodes = coarse.costs.ends, sum(coarse.costs.shape)
        all_least = fine.costs.ends[0]
        final = final_reg(levels, len(levels) - 1, reg)
        first = max(final, (most - least) * coarse.pairs / mass)
        best = np.full(sum(fine.costs.shape), 0.5 * all_least)
        point = cls(np.full(nodes, 0.5 * least), all_least * mass, best)
        return point, ExactPlan(COARSE if len(levels) > 1 or first > reg else NEWTON, len(levels) - 1, first)

    def write(self, group: Path) -> None:
        for name in ("z", "best"):
            write_array(group, name, getattr(self, name))
        write_array(group, "lower", np.array([self.lower]))
        write_array(group, "plan", self.plan.pack() if self.plan else np.empty(0))

    @classmethod
    def read(cls, group: Path, task: Task) -> "ExactPoint":
        z, best, lower, plan = (read_array(group, name, dtype=np.float64) for name in ("z", "best", "lower", "plan"))
        sound = len(best) == sum(task.costs.shape) and len(lower) == 1 and np.isfinite([*z, *best, *lower]).all()
        require(bool(sound), group, "the potentials are not what a run writes")
        return cls(z, float(lower[0]), best, plan=unpack(task, plan, group) if len(plan) else None)

    def close(self) -> None:
        """Nothing is held."""


class SupportCount:
    """How many pairs are in the support; the pairs themselves come with every look.

    Parameters
    ----------
    most : int or None
        How many fit the memory.
    """

    def __init__(self, most: int | None = None):
        self.count, self.most = 0, most

    def __len__(self) -> int:
        return self.count

    def put(self, count: int) -> None:
        if self.most is not None and count > self.most:
            raise BudgetError(
                f"{count:,} pairs are in the support and {self.most:,} fit memory=; allow {settings.SUPPORT_BYTES:,} "
                "bytes a pair, or use a smaller reg"
            )
        self.count = count

    def append(self, rows: Any) -> int:
        raise NotImplementedError("a look brings the support itself")

    def forget(self) -> int:
        return 0

    def blocks(self) -> Iterator[Any]:
        return iter(())

    def write(self, group: Path) -> None:
        write_array(group, "count", np.array([self.count]))

    def read(self, group: Path) -> None:
        count = read_array(group, "count", dtype=np.int64)
        require(len(count) == 1 and count[0] >= 0, group, "count is not what a run writes")
        self.count = int(count[0])


def final_reg(levels: list[Level], level: int, reg: float) -> float:
    """The weight of a level that stands for the one asked for: so that potentials stay as they are."""
    return reg * (levels[level].pairs / levels[0].pairs)


ExactState = State[ExactPoint, SupportCount, ExactPlan]


@dataclass
class ExactSchedule:
    """The steps of Algorithm 1."""

    task: Task
    reg: float
    crew: Crew
    monitor: Monitor
    levels: list[Level]

    def final_reg(self, level: int) -> float:
        return final_reg(self.levels, level, self.reg)

    @property
    def mass(self) -> float:
        return float(self.task.a.sum())

    # -- the steps ----------------------------------------------------------------------------------------------------

    def find(self, state: ExactState) -> Pass:
        """The support, and at the problem itself what it proves."""
        point, plan = state.point, state.plan
        with self.monitor.timed("oracle"):
            if point.look is None:
                point.look = Look.at(self.levels[plan.level], point.z, plan.reg, self.crew)
        look, certificate, shown = point.look, None, None
        if plan.stage == NEWTON:
            certificate, best = self.certify(state, look)
            shown = best.shown()
        support = look.support
        state.rows.put(len(support.left))
        worst = look.missing / self.mass
        return Pass(len(support.left), worst, None, support.looked, certificate, shown)  # type: ignore[arg-type]

    def certify(self, state: ExactState, look: Look) -> tuple[Certificate, Transport]:
        """The value of the best plan at hand, and of the dual."""
        point = state.point
        if look.value > point.lower:
            point.lower, point.best, state.moved = look.value, point.z, True
        plans = [self._plan_of(point, look), *([point.plan] if point.plan else [])]
        best = point.plan = min(plans, key=self._value)
        point.lower = min(point.lower, self._value(best))  # rounding alone can put it above
        return self._certificate(best, point.lower), best

    def _value(self, plan: Transport) -> float:
        return value_exact(plan, self.reg)

    def _certificate(self, plan: Transport, bound: float) -> Certificate:
        value = self._value(plan)
        worth = abs(plan.cost) + (value - plan.cost)
        return Certificate(value, bound, plan.missing, self.mass, worth=worth)

    def _plan_of(self, point: ExactPoint, look: Look) -> Transport:
        n, support = len(self.task.a), look.support
        cost = point.z[support.left] + point.z[n + support.right] - support.excess
        close = look.missing <= settings.CLOSE * self.mass
        return meet_marginals(self.task, support.left, support.right, support.excess / self.reg, cost, route=close)

    def sweep(self, state: ExactState, found: Pass) -> Swept:
        """A Newton step, shortened until the dual grows as its slope promises."""
        point, plan = state.point, state.plan
        if plan.stage == INTERIOR:
            found = solve_interior(self.task, self.reg, point.z, state.rows.most, self.crew)
            point.z, point.look = found.z, Look.at(self.levels[0], found.z, self.reg, self.crew)
            point.plan = self._plan_of_store(found.store)
            return Swept(found.steps, 0, {"reg": self.reg})
        look = self._wake(point, plan)
        step, steps = self._newton_step(look, plan)
        slope, part = float(look.gradient @ step), 1.0
        for _ in range(settings.TRIALS):
            z = point.z + part * step
            seen = Look.at(self.levels[plan.level], z, plan.reg, self.crew)
            now = float(seen.gradient @ step)
            enough = look.value + settings.ARMIJO * part * slope - settings.ROUNDING * abs(look.value)
            if seen.value >= enough and now >= -settings.OVERSHOOT * slope:
                point.z, point.look = z, seen
                break
            part *= settings.SHORTEN
        return Swept(steps, len(look.support.left), {"part": part, "reg": plan.reg})

    def _plan_of_store(self, store: PairStore) -> Transport:
        used = store.p > 0.0
        left, right = store.left[used], store.right[used] - len(self.task.a)
        return meet_marginals(self.task, left, right, store.p[used], store.cost[used], route=True)

    def _wake(self, point: ExactPoint, plan: ExactPlan) -> Look:
        """Move what no Newton step can move far: nodes without a pair, and where steps are slow, islands.

        Nodes get the best potentials there are for them alone, rows first, then columns. Each is an exact step of
        coordinate ascent, so the dual does not fall.
        """
        level, look = self.levels[plan.level], point.look
        assert look is not None
        for side, masses in enumerate((level.a, level.b)):
            lonely = find_lonely(look.support, side, masses, look.missing, len(point.z))
            n, z = len(level.a), point.z.copy()
            own, others = (z[:n], z[n:]) if side == 0 else (z[n:], z[:n])
            own[lonely] = level.costs.balance_lines(side, lonely, others, plan.reg * masses[lonely])
            if not np.array_equal(z, point.z):  # what is too little to be seen beside the potentials stays without
                point.z, look = z, Look.at(level, z, plan.reg, self.crew)
                point.look = look
        if plan.turns >= settings.SLOW:
            z = shift_islands(level, point.z, plan.reg, look.support, look.gradient, self.crew)
            seen = None if z is None else Look.at(level, z, plan.reg, self.crew)
            if z is not None and seen is not None and seen.value > look.value:
                point.z, look = z, seen
                point.look = seen
        return look

    def _newton_step(self, look: Look, plan: ExactPlan) -> tuple[np.ndarray, int]:
        """By conjugate gradients, or a factor where they take too long; and how many steps they took."""
        rows, nodes, error = len(self.levels[plan.level].a), len(look.gradient), look.missing / self.mass
        left, right = look.support.left.astype(np.int64), look.support.right.astype(np.int64) + rows
        diagonal = count_pairs(left, right, nodes) + plan.ridge
        rhs, accuracy = plan.reg * look.gradient, min(settings.CG_ACCURACY, max(error, 1e-6))
        step, steps, done = conjugate_gradients(left, right, diagonal, rhs, accuracy, settings.CG_STEPS)
        if not done:
            pattern, factor = prepare(left, right, minimum_degree(left, right, nodes))
            if factorise(pattern.start, pattern.index, np.ones(len(left)), diagonal[pattern.order], factor):
                work = rhs[pattern.order]
                solve_factored(factor, work)
                step[pattern.order] = work
        return step, steps

    def forget(self, state: ExactState) -> int:
        return 0  # a look has done so

    def bound(self, state: ExactState) -> float:
        return state.point.lower

    def plan(self, state: ExactState, turn: Turn) -> ExactPlan:
        plan, look = state.plan, state.point.look
        assert look is not None
        error = look.missing / self.mass
        part = turn.swept.more.get("part", 1.0)
        if part < settings.SHORT:
            ridge = max(plan.ridge * settings.STIFFER, settings.STIFF)
        else:
            ridge = min(plan.ridge * (settings.SOFTER if part == 1.0 else 1.0), error)
        falls = plan.least is None or error < 0.5 * plan.least
        plan = replace(plan, ridge=ridge, least=error if falls else plan.least, turns=0 if falls else plan.turns + 1)
        if plan.stage == INTERIOR:
            return ExactPlan(NEWTON, 0, self.reg, ridge=min(1.0, error), helped=True)
        stuck = plan.turns >= settings.TURNS
        if stuck and plan.level == 0 and not plan.helped:
            return ExactPlan(INTERIOR, 0, self.reg)
        if plan.stage == NEWTON or (error > settings.LOOSE and not stuck):
            return plan
        few = len(look.support.left) < settings.SUPPORT * max(self.levels[plan.level].costs.shape)
        if plan.reg > self.final_reg(plan.level) and (plan.level == 0 or not few):
            return self._shrink(state.point, look, plan)
        return self._refine(state.point, plan)

    def _shrink(self, point: ExactPoint, look: Look, plan: ExactPlan) -> ExactPlan:
        """A smaller weight; rows are balanced again, for which the present support suffices."""
        reg = max(plan.reg / settings.SHRINK, self.final_reg(plan.level))
        a, support = self.levels[plan.level].a, look.support
        point.z = point.z.copy()
        point.z[: len(a)] += lower_lines(support.left, support.excess, reg * a)
        point.look = None
        return self._at(plan.level, reg)

    def _refine(self, point: ExactPoint, plan: ExactPlan) -> ExactPlan:
        """The next finer problem; its potentials balance every row and column against the coarse ones."""
        coarse, fine = self.levels[plan.level], self.levels[plan.level - 1]
        reg = plan.reg * fine.pairs / coarse.pairs
        (n, m), (many, more) = coarse.costs.shape, fine.costs.shape
        rows, columns = reg * fine.a * (m / more), reg * fine.b * (n / many)
        f, h = fine.costs.balance(settings.COARSEN, point.z[:n], point.z[n:], rows, columns)
        point.z, point.look = np.concatenate([f, h]), None
        return self._at(plan.level - 1, reg)

    def _at(self, level: int, reg: float) -> ExactPlan:
        if level == 0 and reg <= self.reg:
            return ExactPlan(NEWTON, 0, self.reg)
        return ExactPlan(COARSE, level, reg)

    def verdict(self, state: ExactState) -> str | None:
        return "stalled" if state.plan.helped and state.plan.turns >= settings.TURNS else None

    def close(self, state: ExactState, status: str) -> Certificate | None:
        """A run that was stopped before it came to the problem itself shows the plan of the northwest corner."""
        if state.feasible is None:
            plan = northwest_corner(self.task)
            state.feasible, state.objective = plan.shown(), self._certificate(plan, 0.0).objective
        return state.certificate
