"""Project and forget: the loop of the paper's Algorithm 1, with a certificate and a commit in every turn."""

from collections.abc import Callable
from typing import Any

from ..errors import SearchStopped
from .certificate import converged
from .monitor import Monitor
from .problem import Pass, Problem, State

Commit = Callable[[State, dict[str, Any], str], None]


def run(problem: Problem, state: State, *, tol: float, max_iter: int | None, monitor: Monitor, commit: Commit) -> str:
    """Iterate until the certificate meets ``tol`` or a limit is reached; returns the status.

    ``commit(state, record, status)`` makes an iteration last. A run that is stopped in the middle of one leaves a state
    that belongs to no iteration: go on from the last commit.
    """
    bound = problem.bound(state)
    last = None if max_iter is None else state.iteration + max_iter
    while not converged(state.certificate, tol):
        if state.iteration == last:
            return "iteration_limit"
        reason = problem.hopeless(state) or monitor.stop_reason
        if reason:
            return reason
        try:
            record = iterate(problem, state, bound, tol, monitor)
        except SearchStopped:
            return monitor.stop_reason
        bound = record["lower_bound"]
        with monitor.timed("disk"):
            commit(state, record, "converged" if converged(state.certificate, tol) else "running")
        monitor.iteration(record)
    return "converged"


def iterate(problem: Problem, state: State, bound: float, tol: float, monitor: Monitor) -> dict[str, Any]:
    """One turn: find, certify if the search was complete, append, sweep, forget, plan; returns its record."""
    found = problem.find(state)
    record = {"iteration": state.iteration + 1, "stage": state.plan["stage"], "found": len(found.rows)}
    record |= {"worst": found.worst, "relaxed": found.relaxed}
    if found.certificate:
        record |= certify(state, found, tol)
    if converged(state.certificate, tol):
        record |= {"added": 0, "forgotten": 0, "lower_bound": bound, "kept": len(state.rows)}
    else:
        with monitor.timed("sweep"):
            record["added"] = state.rows.append(found.rows)
            record |= problem.sweep(state, found)
            record["forgotten"] = problem.forget(state)
        record |= {"lower_bound": problem.bound(state), "kept": len(state.rows)}
        state.plan = problem.plan(state, found, bound, record["lower_bound"])
    state.iteration += 1
    record |= {"seconds": monitor.take_times(), **state.pool.take_counts()}
    state.history.append(record)
    return record


def certify(state: State, found: Pass, tol: float) -> dict[str, float]:
    """Take in what a complete search proves.

    The best feasible point is kept, or where there is none the last iterate, and at the end the last one: it depends
    on the duals alone, not on when the run was stopped and looked at.
    """
    state.certificate, idle = found.certificate, found.point
    better = not state.certificate.feasible or state.certificate.objective <= state.objective
    if better or converged(state.certificate, tol):
        idle, state.feasible, state.objective = state.feasible, found.point, state.certificate.objective
    if idle is not None:
        idle.close()
    return state.certificate.as_dict()
