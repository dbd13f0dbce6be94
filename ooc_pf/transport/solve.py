"""One call of transport: limits, threads, a schedule, and what comes of it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..engine.certificate import relative_gap
from ..engine.limits import Limits, check_tol
from ..engine.loop import run
from ..engine.monitor import Monitor
from ..engine.parallel import count_workers
from ..engine.problem import State
from ..engine.result import Held, Result
from ..storage.memory import parse_memory, refuse_below
from ..storage.vectors import Pool
from . import settings
from .crew import Crew
from .exact import ExactSchedule, SupportCount
from .inputs import Task
from .plan import Transport, made_of
from .soft import SoftPlan, SoftSchedule
from .store import PairStore


def solve_transport(task: Task, marginals: str, weight: float, tol: float, limits: Limits) -> Result:
    """Solve a task; the answer has the same bits for any number of workers. ``weight`` is gamma or reg."""
    limits.check()
    check_tol(tol)
    workers, most = _shares(task, limits)
    monitor = limits.monitor()
    with ThreadPoolExecutor(workers) as threads, monitor.signals():
        crew = Crew(threads if workers > 1 else None, monitor.stop)
        if marginals == "soft":
            soft = SoftSchedule(task, weight, tol, crew, monitor)
            state = State(soft.start(), PairStore(task.costs.shape, most), SoftPlan(), Pool())
            return _run(task, soft, state, tol, limits, monitor)
        exact = ExactSchedule(task, weight, tol, crew, monitor)
        point, plan = exact.start()
        return _run(task, exact, State(point, SupportCount(), plan, Pool()), tol, limits, monitor)


def _run(task: Task, schedule: Any, state: Any, tol: float, limits: Limits, monitor: Monitor) -> Result:
    keep_nothing = lambda state, record, status: None  # noqa: E731
    status = run(schedule, state, tol=tol, max_iter=limits.max_iter, monitor=monitor, commit=keep_nothing)
    schedule.close(state, status)
    return _result(task, state, status)


def _shares(task: Task, limits: Limits) -> tuple[int, int | None]:
    """Workers, and pairs that may be remembered, within the memory."""
    workers, budget = count_workers(limits.workers), parse_memory(limits.memory)
    if budget is None:
        return workers, None
    nodes = sum(task.costs.shape)
    fixed = nodes * settings.NODE_BYTES + settings.STRIPES * task.costs.shape[1] * settings.BEST * 16
    refuse_below(fixed + 2 * nodes * settings.BEST * settings.PAIR_BYTES, budget, limits.memory)
    return workers, (budget - fixed) // settings.PAIR_BYTES


def _result(task: Task, state: State[Any, Any, Any], status: str) -> Result:
    plan, certificate = state.feasible, state.certificate
    assert isinstance(plan, Transport)
    made = made_of(task, plan, state.point.best)
    bound = state.point.lower
    return Result(
        problem="transport",
        read_x=Held(made["plan"]),
        objective=state.objective,
        lower_bound=bound,
        gap=relative_gap(state.objective, bound, certificate.worth if certificate else 0.0),
        violation=certificate.violation if certificate else np.inf,
        status=status,
        n_iter=state.iteration,
        n_active=len(state.rows),
        history=state.history,
        blocks=Held(()),
        made=made,
        keyed="rows",
    )
