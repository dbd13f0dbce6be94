"""From a request with functions in it to a result: in memory, or on a workspace that holds all but the functions."""

import contextlib
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..cycles.family import Limits, changes, check_tol, make_result, run_committed, scratch_pool
from ..cycles.persist import commit_start, discard_run, load_state, open_result
from ..engine.certificate import Certificate
from ..engine.loop import run
from ..engine.monitor import Monitor
from ..engine.parallel import count_workers, worker_pool
from ..engine.problem import Problem, State, total_charge
from ..engine.result import Result
from ..engine.store import ConstraintStore
from ..errors import InputError, SearchStopped, WorkspaceError
from ..objectives import Objective
from ..storage.arrays import write_array
from ..storage.memory import Budget
from ..storage.vectors import Pool, Vector, check_vector, read_vector
from ..storage.workspace import Workspace, building, create_manifest, exists
from .budget import share_out_rows
from .program import RowProgram

CHECK = "check"  # the stage that looks at everything and keeps nothing
PATIENCE = 200  # passes without a smaller violation before a run is given up


@dataclass(frozen=True)
class Request:
    """A problem of general rows or sets, and how it is to be solved.

    Attributes
    ----------
    kind : {"rows", "sets"}
    make : (workers, monitor) -> Problem
    plan : dict
        The first plan.
    options : dict
        Plain values that shape the answer and must agree with those a workspace holds, except ``tol``.
    store : dict
        What the store of rows forgets, and what changes in it.
    """

    kind: str
    program: RowProgram
    make: Callable[[Executor, Monitor], Problem]
    plan: dict[str, Any]
    options: dict[str, Any]
    limits: Limits
    store: dict[str, Any] = field(default_factory=dict)

    @property
    def objective(self) -> Objective:
        return self.program.objective

    def first_state(self, rows: ConstraintStore, pool: Pool) -> State:
        return State(self.program, Vector.of(self.objective.start.copy()), rows, self.plan, pool)


def solve_general(request: Request) -> Result:
    """Run a problem of general rows or sets wherever its state is to be."""
    limits, options, objective = request.limits, request.options, request.objective
    limits.check()
    check_tol(options["tol"])
    workers = count_workers(limits.workers)
    dense = 0 if objective.matrix is None else objective.matrix.nbytes * 2
    budget = share_out_rows(limits.memory, variables=objective.size, dense=dense)
    if limits.workspace is not None:
        return _solve_on_disk(request, workers, budget)
    pool, monitor = Pool(), limits.monitor()
    state = request.first_state(ConstraintStore(budget.rows, pool, **request.store), pool)
    with worker_pool(workers, processes=False) as threads, monitor.signals():
        problem = request.make(threads, monitor)
        status = run(problem, state, tol=options["tol"], max_iter=limits.max_iter, monitor=monitor,
                     commit=lambda *_: None)  # fmt: skip
        certificate = _close(problem, state, status)
    return make_result(problem, state, status, certificate, read_x=lambda: state.feasible.whole, keyed=request.kind)


def _solve_on_disk(request: Request, workers: int, budget: Budget) -> Result:
    limits, monitor = request.limits, request.limits.monitor()
    workspace = _workspace_for(request, limits.workspace)
    with workspace.locked(), scratch_pool(workspace) as pool:
        _prepare(workspace, request, pool)

        def load() -> State:
            rows = ConstraintStore(budget.rows, pool, **request.store)
            y = read_vector(workspace.generation, "y", pool)
            check_vector(workspace.generation, "y", y, request.objective.size)
            state = load_state(workspace, request.program, y, rows, pool)
            if state.plan["verdict"] == "stalled":  # asked again, so tried again
                state.plan = {**state.plan, "verdict": None, "since": 0}
            return state

        with worker_pool(workers, processes=False) as threads, monitor.signals():
            problem = request.make(threads, monitor)
            run_committed(workspace, problem, load, _close, tol=request.options["tol"], max_iter=limits.max_iter,
                          monitor=monitor)  # fmt: skip
    return open_result(workspace)


def _workspace_for(request: Request, path: Any) -> Workspace:
    kind, fingerprint = request.kind, request.objective.fingerprint
    if not exists(path):
        with building(path) as directory:
            source = {"file": None, "digest": fingerprint}
            create_manifest(directory, kind=kind, nodes=0, edges=request.objective.size, source=source)
    workspace = Workspace(path)
    held = workspace.manifest["graph"]
    if held["kind"] != kind:
        raise WorkspaceError(f"{path} holds a problem of kind {held['kind']!r}, not {kind!r}; name a new workspace")
    if held["source"].get("digest") != fingerprint:
        raise WorkspaceError(f"{path} holds a run with another objective than the one given; name a new workspace")
    return workspace


def _prepare(workspace: Workspace, request: Request, pool: Pool) -> None:
    """Start a run, or make sure that the one in the workspace is this one."""
    options = request.options
    wanted = {"name": request.kind, "options": options, "answers": False}
    held = workspace.manifest["problem"]
    if held is not None and not request.limits.restart:
        # The tolerance may change from call to call: the state is as good for one as for another.
        if {**held, "options": {**held["options"], "tol": options["tol"]}} != wanted:
            changed = changes({**held["options"], "tol": options["tol"]}, options)
            raise WorkspaceError(
                f"{workspace.name} holds progress made with other options ({changed}). Ways out: give those again, or "
                "restart=True, which discards it, or another workspace"
            )
        if held != wanted:
            workspace.commit(problem=wanted)
        return
    discard_run(workspace)
    write_array(workspace.graph, "start", request.objective.start)
    state = request.first_state(ConstraintStore(), pool)
    commit_start(workspace, wanted, state, bound(state))


def _close(problem: Problem, state: State, status: str) -> Certificate | None:
    """The certificate of a run that ends: one that was stopped shows its last iterate, measured if there is time."""
    if status == "converged":
        return state.certificate
    certificate = None
    if status not in ("interrupted", "time_limit", "callback"):
        with contextlib.suppress(SearchStopped):
            seen = problem.find(replace(state, plan={**state.plan, "stage": CHECK, "task": 0}))
            certificate, point = seen.certificate, seen.point
    if certificate is None:
        # What is known without looking: that all the way to an interior point is far enough.
        certificate, point = certify(state, math.inf, 1.0)
    if not certificate.feasible or certificate.objective <= state.objective:
        state.feasible, state.objective = point, certificate.objective
    return certificate


def certify(state: State, violation: float, pull: float = 0.0) -> tuple[Certificate, Vector]:
    """What a complete look at the present point proves, and the point to show.

    ``violation`` is the largest one found, ``pull`` the part of the way to the interior point after which there is
    none.
    """
    program = state.program
    x = np.array(program.objective.point(state.y.whole))
    scale, feasible = max(1.0, float(np.abs(x).max(initial=0.0))), program.interior is not None
    if feasible:
        # A hair further than computed, against rounding.
        x += min(1.0, pull * (1.0 + 1e-9) + 1e-15) * (program.interior - x)
    return Certificate(program.objective.value(x), bound(state), violation, scale, feasible), Vector.of(x)


def bound(state: State) -> float:
    """Value of the dual at the present duals."""
    return state.program.bound(state.y, total_charge(state.program, state.rows))


def make_problem(kind: str, find: Callable, sweep: Callable, plan: Callable) -> Problem:
    """The engine's record, with what rows and sets have in common."""
    return Problem(
        kind, find, sweep, lambda state: state.rows.forget(), bound, plan, lambda state: state.plan["verdict"]
    )


def judge(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan after a pass: whether its largest violation is smaller than those before, and how long ago one was."""
    worst, least = plan["worst"], plan["least"]
    falls = least is None or worst < 0.99 * least
    since = 0 if falls else plan["since"] + 1
    verdict = plan["verdict"] or ("stalled" if since >= PATIENCE else None)
    return {**plan, "worst": 0.0, "least": worst if falls else least, "since": since, "verdict": verdict}


def first_plan(stage: str) -> dict[str, Any]:
    """Where a run of general rows or sets begins."""
    return {"stage": stage, "task": 0, "draws": 0, "worst": 0.0, "least": None, "since": 0, "verdict": None}


def check_objective(objective: Any) -> None:
    """Refuse what is no objective."""
    if not isinstance(objective, Objective):
        raise InputError(f"the objective must be made by ooc_pf.objectives, found {type(objective).__name__}")


def read_point(name: str, point: Any, objective: Objective) -> np.ndarray:
    """A point inside the domain, given by the user."""
    found = np.asarray(point, np.float64)
    if found.shape != (objective.size,):
        raise InputError(f"{name} must have {objective.size} entries, found shape {found.shape}")
    low, high = objective.domain
    wrong = ~(np.isfinite(found) & (found > low) & (found < high))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name}[{at}] is {found[at]}, outside the domain of the objective")
    return found
