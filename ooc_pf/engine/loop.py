"""Project and forget: the loop of the paper's Algorithm 1, with a certificate and a commit in every turn."""

from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import SearchStopped
from .certificate import converged
from .monitor import Monitor
from .problem import Pass, PlanT, Point, Problem, Record, State, StoreT, Turn

Commit: TypeAlias = Callable[[State[Point, StoreT, PlanT], dict[str, Any], str], None]


def run(
    problem: Problem[Point, StoreT, PlanT],
    state: State[Point, StoreT, PlanT],
    *,
    tol: float,
    max_iter: int | None,
    monitor: Monitor,
    commit: Commit[Point, StoreT, PlanT],
) -> str:
    """Iterate until the certificate meets ``tol`` or a limit is reached; returns the status.

    ``commit(state, record, status)`` makes an iteration last. A run that is stopped in the middle of one leaves a state
    that belongs to no iteration: go on from the last commit.
    """
    bound = problem.bound(state)
    last = None if max_iter is None else state.iteration + max_iter
    while not converged(state.certificate, tol):
        if state.iteration == last:
            return "iteration_limit"
        reason = problem.verdict(state) or monitor.stop_reason
        if reason:
            return reason
        try:
            record = iterate(problem, state, bound, tol, monitor)
        except SearchStopped:
            state.whole = False
            return monitor.stop_reason or "interrupted"
        bound = record["lower_bound"]
        with monitor.timed("disk"):
            commit(state, record, "converged" if converged(state.certificate, tol) else "running")
        monitor.iteration(record)
    return "converged"


def iterate(
    problem: Problem[Point, StoreT, PlanT],
    state: State[Point, StoreT, PlanT],
    bound: float,
    tol: float,
    monitor: Monitor,
) -> dict[str, Any]:
    """One turn: find, certify if the search was complete, append, sweep, forget, plan; returns its record."""
    found = problem.find(state)
    record = Record(state.iteration + 1, state.plan.stage, found, bound)
    certify(state, found, tol)
    if found.certificate and converged(found.certificate, tol):
        record.lower_bound = found.certificate.lower_bound
    else:
        with monitor.timed("sweep"):
            record.added = found.found if found.rows is None else state.rows.append(found.rows)
            record.swept = problem.sweep(state, found)
            record.forgotten = problem.forget(state)
        record.lower_bound = problem.bound(state)
        state.moved = state.moved or bool(record.added or record.swept.sweeps)
        state.plan = problem.plan(state, Turn(found, record.swept, bound, record.lower_bound))
    record.kept = len(state.rows)
    record.cost = {"seconds": monitor.take_times(), **state.pool.take_counts()}
    state.iteration += 1
    state.history.append(record.as_dict())
    return state.history[-1]


def certify(state: State[Point, StoreT, PlanT], found: Pass, tol: float) -> None:
    """Take in what a complete search proves.

    The best feasible point is kept, or where there is none the last iterate, and at the end the last one: it depends
    on the duals alone, not on when the run was stopped and looked at.
    """
    if found.certificate is None:
        return
    state.certificate, unused = found.certificate, found.point
    better = not found.certificate.feasible or found.certificate.objective <= state.objective
    if better or converged(found.certificate, tol):
        unused, state.feasible, state.objective = state.feasible, found.point, found.certificate.objective
    if unused is not None:
        unused.close()
