"""From a request to a result: in memory, or on a workspace that may hold earlier progress."""

import contextlib
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate, relative_gap
from ..engine.loop import run
from ..engine.monitor import Monitor
from ..engine.parallel import cluster_client, count_workers, worker_pool
from ..engine.problem import Problem, State
from ..engine.result import CLUSTERING, Result
from ..engine.store import ConstraintStore
from ..errors import BudgetError, InputError, SearchStopped, WorkspaceError
from ..storage.arrays import digest, write_array
from ..storage.memory import Budget
from ..storage.vectors import Pool, Vector
from ..storage.workspace import Workspace, create_workspace, exists, is_path
from .budget import share_out
from .disk_layout import build_external_graph
from .graph import Graph
from .inputs import Edges, read_edges, read_weights
from .persist import (
    MakeProgram,
    Write,
    commit_answer,
    commit_start,
    commit_stop,
    committer,
    discard_run,
    load_edges,
    load_point,
    load_program,
    load_state,
    open_result,
    write_generation,
)
from .program import CycleProgram
from .schedule import CERTIFY, cycle_problem, first_plan
from .search import NumbaOracle
from .search_dask import ClusterOracle
from .search_igraph import IgraphOracle

EXTERNAL_EDGES = 4_000_000  # graphs with more are laid out for disk unless the caller says otherwise
# What a problem makes of its point: (edges, state, options, in a hurry) -> parts of the result.
Finish = Callable[[Edges, State, dict[str, Any], bool], dict[str, Any]]
Close = Callable[[Problem, State, str], Certificate | None]


@dataclass(frozen=True)
class Limits:
    """What may differ from call to call without changing the answer."""

    workspace: Any = None
    memory: int | str | None = None
    workers: int | None = None
    max_iter: int | None = None
    max_time: float | None = None
    callback: Callable[[dict[str, Any]], Any] | None = None
    progress: bool = False
    restart: bool = False
    client: Any = None

    def check(self) -> None:
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 0):
            raise InputError(f"max_iter must be a whole number from 0 on, found {self.max_iter!r}")
        if self.max_time is not None and not (isinstance(self.max_time, Real) and self.max_time >= 0):
            raise InputError(f"max_time must be a number of seconds, found {self.max_time!r}")

    def monitor(self) -> Monitor:
        return Monitor(progress=self.progress, callback=self.callback, max_time=self.max_time)


def solve_cycles(name: str, graph: Any, make: MakeProgram, *, kind: str, weights: Any, options: dict[str, Any],
                 limits: Limits, finish: Finish | None = None) -> Result:  # fmt: skip
    """Solve a program over cycles wherever its graph is.

    ``options`` are plain values that shape the answer; with the weights they must agree with what the workspace holds.
    Their "settings" are given as a function of whether the graph is laid out for disk; None: it cannot be.
    """
    limits.check()
    check_options(options)
    options = {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}
    if is_path(graph):
        if limits.workspace is not None and Path(limits.workspace) != Path(graph):
            raise InputError(f"the graph is the workspace {graph}, so workspace= cannot be {limits.workspace}")
        return _solve_on_disk(name, Workspace(graph), make, kind, weights, options, limits, finish)
    edges = read_edges(graph, kind)
    weights = read_weights(weights, edges)
    if limits.client is not None and (limits.workspace is None or options["oracle"] != "numba"):
        raise InputError("client= needs a workspace= that all workers see, and oracle='numba'")
    if limits.workspace is not None:
        return _solve_given_workspace(name, edges, make, kind, weights, options, limits, finish)
    if options["oracle"] == "igraph":
        # igraph works in processes, which read what they need from a workspace.
        with tempfile.TemporaryDirectory() as folder:
            aside = replace(limits, workspace=Path(folder) / "run.pf")
            result = _solve_given_workspace(name, edges, make, kind, weights, options, aside, finish)
            duals, x, nodes = list(result.blocks()), result.x, result.nodes
            return replace(result, workspace=None, blocks=lambda: duals, read_x=lambda: x, read_nodes=lambda: nodes)
    return _solve_in_memory(name, edges, make, weights, options, limits, finish)


def _settled(options: dict[str, Any], edges: int) -> dict[str, Any]:
    """The options with the layout decided, and the settings that belong to it."""
    external = options["external"]
    if external is None:
        external = edges > EXTERNAL_EDGES and options["oracle"] == "numba" and options["settings"](True) is not None
    settings = options["settings"](bool(external))
    if settings is None or (external and options["oracle"] != "numba"):
        raise InputError(
            "external=True is for explicit graphs and the numba oracle; complete graphs (base), the linear program "
            "(gamma=None) and igraph work in memory"
        )
    return {**options, "external": bool(external), "settings": settings}


def check_options(options: dict[str, Any]) -> None:
    """Refuse options that no problem over cycles or triangles can use."""
    check_tol(options["tol"])
    if options["oracle"] not in ("numba", "igraph"):
        raise InputError(f"oracle must be 'numba' or 'igraph', found {options['oracle']!r}")
    if not isinstance(options["seed"], Integral):
        raise InputError(f"seed must be a whole number, found {options['seed']!r}")


def check_tol(tol: Any) -> None:
    """Refuse a tolerance that is not a positive number."""
    if not (isinstance(tol, Real) and 0 < tol < math.inf):
        raise InputError(f"tol must be a positive number, found {tol!r}")


# -- in memory ------------------------------------------------------------------------------------------------------


def _solve_in_memory(name, edges, make, weights, options, limits, finish) -> Result:
    if options["external"]:
        raise InputError("external=True lays the graph out on disk; name a workspace= for it")
    options = _settled({**options, "external": False}, len(edges.u))
    workers = count_workers(limits.workers)
    budget = share_out(limits.memory, nodes=edges.nodes, edges=len(edges.u), workers=workers, options=options)
    pool = Pool()
    program = _checked(make(edges, weights, None, pool))
    state = _first_state(program, ConstraintStore(budget.rows), options, pool)
    monitor = limits.monitor()
    with worker_pool(workers, processes=False) as threads, monitor.signals():
        oracle = NumbaOracle(program.graph, threads, workers)
        problem = cycle_problem(name, program, oracle, monitor, options, threads=threads, workers=workers,
                                most_pairs=budget.pairs)  # fmt: skip
        status = run(problem, state, tol=options["tol"], max_iter=limits.max_iter, monitor=monitor,
                     commit=lambda *_: None)  # fmt: skip
        certificate = settle(problem, state, status)
    made = {"x": state.feasible}
    if finish:
        made = finish(edges, state, options, status == "interrupted")
    x = made.pop("x")
    added = {**CLUSTERING, **made, "zeros": edges.zeros} if finish else None
    return make_result(problem, state, status, certificate, read_x=lambda: edges.restore(x.whole), made=added)


def make_result(problem: Problem, state: State, status: str, certificate: Certificate | None, **parts: Any) -> Result:
    """What a run in memory has to show; ``parts`` are those of the result that its family knows."""
    bound = problem.bound(state)
    return Result(
        problem=problem.name,
        **parts,
        objective=state.objective,
        lower_bound=bound,
        gap=relative_gap(state.objective, bound),
        violation=certificate.violation if certificate else math.inf,
        status=status,
        n_iter=state.iteration,
        n_active=len(state.rows),
        history=state.history,
        blocks=state.rows.blocks,
    )


def _first_state(program: CycleProgram, rows: ConstraintStore, options: dict[str, Any], pool: Pool) -> State:
    y = Vector.filled((part for _, part in program.target.spans()), program.size, np.float64, pool)
    return State(program, y, rows, first_plan(options["settings"]["stages"][0][0]), pool)


def _checked(program: CycleProgram) -> CycleProgram:
    """Refuse numbers so large, or weights so far from one, that the objective overflows."""
    with np.errstate(over="ignore"):
        size = program.value(Vector.constant(program.size, 0.0))
    if not math.isfinite(size):
        raise InputError("the values or weights are too large: their objective is not a finite number; rescale them")
    return program


def settle(problem: Problem, state: State, status: str) -> Certificate | None:
    """Make sure a run that stopped early has a feasible point: look once more if there is time, or take a plain one."""
    certificate = state.certificate
    if status == "iteration_limit" and not (state.history and "gap" in state.history[-1]):
        with contextlib.suppress(SearchStopped, BudgetError):
            seen = problem.find(replace(state, plan=first_plan(CERTIFY)))
            certificate = seen.certificate
            if certificate and certificate.objective <= state.objective:
                state.feasible, state.objective = seen.point, certificate.objective
    if state.feasible is None:
        state.feasible = state.program.plain_point(state.y, state.pool)
        state.objective = state.program.value(state.feasible)
    return certificate


# -- on disk --------------------------------------------------------------------------------------------------------


def _solve_given_workspace(name, edges, make, kind, weights, options, limits, finish) -> Result:
    path = limits.workspace
    u, v, value = edges.u.whole, edges.v.whole, edges.value.whole
    mark = digest(u, v, value, np.array(edges.nodes))
    if not exists(path):
        source = {"file": None, "digest": mark}
        labels = np.arange(edges.nodes)
        create_workspace(path, u, v, value, labels, kind=kind, source=source)
    workspace = Workspace(path)
    if workspace.manifest["graph"]["source"].get("digest") != mark:
        raise WorkspaceError(f"{path} holds another graph than the one given; name a new workspace, or pass its path")
    result = _solve_on_disk(name, workspace, make, kind, weights, options, limits, finish)
    added = {**result.made, "zeros": edges.zeros} if finish else None
    return replace(result, read_x=lambda: edges.restore(result.read_x()), made=added)


def _solve_on_disk(name, workspace, make, kind, weights, options, limits, finish) -> Result:
    facts = workspace.manifest["graph"]
    if facts["kind"] != kind:
        raise WorkspaceError(f"{workspace.name} was converted with kind={facts['kind']!r}; {name} needs kind={kind!r}")
    with workspace.locked():
        options = _settled(_as_held(workspace, options, limits), facts["edges"])
        workers = count_workers(limits.workers)
        budget = share_out(limits.memory, nodes=facts["nodes"], edges=facts["edges"], workers=workers, options=options)
        with scratch_pool(workspace, budget.vectors) as pool:
            run_of = _Run(name, workspace, options, limits, finish, workers, budget, pool, limits.monitor())
            run_of.solve(make, weights)
    return open_result(workspace)


@contextlib.contextmanager
def scratch_pool(workspace: Workspace, memory: int | None = None) -> Iterator[Pool]:
    """A pool whose files are in a workspace, which keeps none of them."""
    shutil.rmtree(workspace.scratch, ignore_errors=True)
    pool = Pool(memory, workspace.scratch)
    try:
        yield pool
    finally:
        pool.close()
        shutil.rmtree(workspace.scratch, ignore_errors=True)


def run_committed(workspace: Workspace, problem: Problem, load: Callable[[], State], close: Close, *, tol: float,
                  max_iter: int | None, monitor: Monitor,
                  write: Write = write_generation) -> tuple[str, State]:  # fmt: skip
    """Run from the committed state on, and commit how it ended; returns the status and the state then.

    ``close`` brings a run that was stopped to a point it can show; ``write(group, state)`` fills a generation.
    """
    state = load()
    if state.iteration:
        monitor.note(f"continuing {workspace.name} at iteration {state.iteration}")
    status = run(problem, state, tol=tol, max_iter=max_iter, monitor=monitor, commit=committer(workspace, state, write))
    if status == "converged":
        if workspace.manifest["status"] != status:  # a looser tolerance, met without another iteration
            workspace.commit(status=status, closing=None)
        return status, state
    if monitor.stop[0]:  # perhaps in the middle of an iteration
        state = load()
    commit_stop(workspace, problem, state, status, close(problem, state, status))
    return status, state


def _as_held(workspace: Workspace, options: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """A run keeps the layout it began with unless the caller names one."""
    held = workspace.manifest["problem"]
    if held is None or limits.restart or options["external"] is not None:
        return options
    return {**options, "external": held["options"].get("external")}


@dataclass(frozen=True)
class _Run:
    """One call on a workspace, from what it holds to what it holds then."""

    name: str
    workspace: Workspace
    options: dict[str, Any]
    limits: Limits
    finish: Finish | None
    workers: int
    budget: Budget
    pool: Pool
    monitor: Monitor

    def solve(self, make: MakeProgram, weights: Any) -> None:
        workspace = self.workspace
        edges = load_edges(workspace, self.pool)
        weights = read_weights(weights, edges)
        options = {**self.options, "weights": None if weights is None else digest(weights)}
        program = self._prepare(make, edges, weights, options)
        with self._session(program) as problem:
            status, state = run_committed(workspace, problem, lambda: self._load(program), settle, tol=options["tol"],
                                          max_iter=self.limits.max_iter, monitor=self.monitor)  # fmt: skip
            if self.finish and not workspace.answer:
                commit_answer(workspace, self.finish(edges, state, options, status == "interrupted"))

    def _load(self, program: CycleProgram) -> State:
        program, y = load_point(self.workspace, program, self.pool)
        rows = ConstraintStore(self.budget.rows, self.pool)
        return load_state(self.workspace, program, y, rows, self.pool)

    def _prepare(self, make: MakeProgram, edges: Edges, weights: Any, options: dict[str, Any]) -> CycleProgram:
        """Load the program, or build it on the first solve; refuse a workspace that holds another one."""
        workspace, restart = self.workspace, self.limits.restart
        wanted = {"name": self.name, "options": options, "answers": self.finish is not None}
        held = workspace.manifest["problem"]
        if held is not None and not restart:
            # The settings are not the user's: a run keeps those it began with, whatever this release would choose.
            wanted["options"] = {**options, "settings": held["options"].get("settings")}
        if held == wanted and not restart:
            return load_program(workspace, make, edges, self.pool)
        if held is not None and not restart:
            raise WorkspaceError(difference(workspace, held, wanted))
        discard_run(workspace)
        program = _checked(self._lay_out(make, edges, weights))
        if weights is not None:
            write_array(workspace.graph, "weight", weights)
        state = _first_state(program, ConstraintStore(), options, self.pool)
        commit_start(workspace, wanted, state, program.bound(state.y, 0.0))
        state.y.close()
        return program

    def _lay_out(self, make: MakeProgram, edges: Edges, weights: Any) -> CycleProgram:
        group = self.workspace.graph
        if not self.options["external"]:
            program = make(edges, weights, None, self.pool)
            program.graph.write(group)
            return program
        signed = self.workspace.manifest["graph"]["kind"] == "signed"
        build_external_graph(group, edges.u, edges.v, edges.value, edges.nodes, signed=signed, memory=self.budget.build)
        return make(edges, weights, Graph.read(group, self.pool), self.pool)

    @contextlib.contextmanager
    def _session(self, program: CycleProgram) -> Iterator[Problem]:
        """The problem, with workers to serve it."""
        workspace = self.workspace
        options = workspace.manifest["problem"]["options"]
        processes = options["oracle"] == "igraph"
        with (
            worker_pool(self.workers, processes=processes) as workers,
            cluster_client(self.limits.client) as client,
            self.monitor.signals(),
        ):
            if processes:
                oracle: Any = IgraphOracle(workspace.graph, (program.closing, program.rhs), workers)
            else:
                oracle = NumbaOracle(program.graph, workers, self.workers, self.budget.slots, self.pool)
            if client is not None:
                oracle = ClusterOracle(oracle, workspace, (program.closing, program.rhs), client, self.budget)
            threads = None if processes else workers
            yield cycle_problem(self.name, program, oracle, self.monitor, options, lambda: workspace.generation,
                                threads, self.workers, self.budget.pairs)  # fmt: skip


def changes(then: dict[str, Any], now: dict[str, Any]) -> str:
    """What differs between the options of two calls, for an error message."""
    return "; ".join(f"{k}: {then.get(k)!r} then, {now[k]!r} now" for k in now if then.get(k) != now[k])


def difference(workspace: Workspace, held: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What to tell someone whose workspace holds a run with other options."""
    then = {"problem": held["name"], **held["options"]}
    now = {"problem": wanted["name"], **wanted["options"]}
    return (
        f"{workspace.name} holds progress made with other options ({changes(then, now)}). Ways out: `ooc-pf resume "
        f"{workspace.name}` goes on with the options it has (`--tol` may change there), `solve --restart` discards its "
        "progress (restart=True in Python), or convert into a new workspace"
    )
