"""One call of metric learning: limits, threads and a method."""

import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.limits import Limits, check_tol
from ..engine.loop import run
from ..engine.monitor import Monitor
from ..engine.parallel import count_workers
from ..engine.problem import State
from ..errors import InputError, SearchStopped
from ..storage.memory import parse_memory, refuse_below
from ..storage.vectors import Pool
from . import settings
from .inputs import Task
from .newton import Place, Solved, solve_pairs
from .pairs import AllPairs, Crew
from .schedule import PairPlan, PairSchedule, PairStore

METHODS = ("newton", "project_and_forget")


@dataclass(frozen=True)
class Learnt:
    """A metric and its certificate.

    Attributes
    ----------
    components : float64[d, d]
        Distances are Euclidean ones between points times its transpose.
    """

    components: np.ndarray
    objective: float
    lower_bound: float
    gap: float
    status: str
    steps: int
    looks: int
    projections: int
    history: list[dict[str, Any]]


def learn(task: Task, method: str, tol: float, limits: Limits) -> Learnt:
    """Solve a task; the answer has the same bits for any number of workers."""
    limits.check()
    check_tol(tol)
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, found {method!r}")
    workers, most = _shares(task, method, limits)
    monitor = limits.monitor()
    with _one_thread_each(), ThreadPoolExecutor(workers) as threads, monitor.signals():
        crew = Crew(threads if workers > 1 else None, monitor.stop)
        if method == "newton":
            return _newton(task, crew, monitor, tol, limits)
        return _project_and_forget(task, crew, monitor, tol, limits, most)


def _shares(task: Task, method: str, limits: Limits) -> tuple[int, int | None]:
    """Workers, and pairs that may be remembered, within the memory."""
    workers, budget = count_workers(limits.workers), parse_memory(limits.memory)
    if budget is None:
        return workers, None
    source, d = task.source, task.source.dimension
    points = 24 * len(source.points) * (d + 1) if isinstance(source, AllPairs) else 2 * len(source.sign)
    sample = min(settings.SAMPLE, source.size) * d * 24
    fixed = points + (2 * settings.MEMORY + settings.WAVE + 20) * 8 * d * d + (sample if method == "newton" else 0)
    each = 8 * max(settings.TILE * (settings.TILE + 4 * d), 4 * settings.LIST * d)
    row = 16 * d + 64
    refuse_below(fixed + each + 1000 * row, budget, limits.memory)
    workers = min(workers, (budget - fixed - 1000 * row) // each)
    return workers, (budget - fixed - workers * each) // row


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Inside, matrix products use one thread: workers share out the cores, and bits do not depend on how many."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"):
        yield


def _record(now: Solved) -> dict[str, Any]:
    return {
        "iteration": now.steps,
        "stage": "newton",
        "objective": now.place.value,
        "lower_bound": now.bound.value,
        "gap": now.gap,
        "passes": now.looks,
        "found": 0,
        "kept": 0,
        "worst": 0.0,
    }


def _newton(task: Task, crew: Crew, monitor: Monitor, tol: float, limits: Limits) -> Learnt:
    history: list[dict[str, Any]] = []

    def watch(now: Solved) -> str | None:
        history.append(_record(now))
        monitor.iteration(history[-1])
        return monitor.stop_reason

    most = math.inf if limits.max_iter is None else limits.max_iter
    now = solve_pairs(task.source, crew, tol=tol, max_iter=most, watch=watch, stop_reason=lambda: monitor.stop_reason)
    bound = min(now.bound.value, now.place.value)
    components = (task.root @ now.place.root).T
    return Learnt(components, now.place.value, bound, now.gap, now.status, now.steps, now.looks, 0, history)


def _project_and_forget(
    task: Task, crew: Crew, monitor: Monitor, tol: float, limits: Limits, most: int | None
) -> Learnt:
    d = task.source.dimension
    schedule = PairSchedule(task.source, crew, monitor)
    state = State(np.eye(d), PairStore(d, most), PairPlan(), Pool())
    status = run(
        schedule, state, tol=tol, max_iter=limits.max_iter, monitor=monitor, commit=lambda state, record, status: None
    )
    if status != "converged" and not monitor.stop[0]:
        with contextlib.suppress(SearchStopped):
            schedule.find(state)
    place = schedule.place
    if place is None:  # stopped before the first look: the prior
        place = Place(np.eye(d), math.inf, np.eye(d), 0.0)
    bound = min(schedule.bound(state), place.value)
    gap = abs(place.value - bound) / max(abs(bound), settings.LEAST_VALUE * d)
    projections = sum(record.get("projections", 0) for record in state.history)
    looks = len(state.history) + (status != "converged")
    components = (task.root @ place.root).T
    return Learnt(
        components, place.value, bound, gap, status, state.iteration, looks, projections, state.history
    )  # fmt: skip
