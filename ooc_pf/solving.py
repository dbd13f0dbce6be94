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

from .arrays import open_array, read_array, read_labels, write_array
from .certificate import Certificate, relative_gap
from .constraints import ConstraintStore, read_blocks
from .cycles import CERTIFY, cycle_problem, first_plan
from .engine import run
from .errors import BudgetError, InputError, WorkspaceError
from .graph import Graph
from .inputs import Edges, digest, is_path, read_edges, read_weights
from .monitor import Monitor
from .oracle import IgraphOracle, NumbaOracle, SearchStopped
from .parallel import count_workers, worker_pool
from .problem import Problem, State
from .program import CycleProgram
from .result import Result
from .workspace import Workspace, create_workspace, flush, parse_memory

MakeProgram = Callable[[Edges, np.ndarray | None, Graph | None], CycleProgram]
# What a problem makes of its point: (edges, state, options, in a hurry) -> parts of the result.
Finish = Callable[[Edges, State, dict[str, Any], bool], dict[str, Any]]


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

    def check(self) -> None:
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 0):
            raise InputError(f"max_iter must be a whole number from 0 on, found {self.max_iter!r}")
        if self.max_time is not None and not (isinstance(self.max_time, Real) and self.max_time >= 0):
            raise InputError(f"max_time must be a number of seconds, found {self.max_time!r}")


def solve_cycles(name: str, graph: Any, make: MakeProgram, *, kind: str, weights: Any, options: dict[str, Any],
                 limits: Limits, finish: Finish | None = None) -> Result:  # fmt: skip
    """Solve a program over cycles wherever its graph is.

    ``options`` are plain values that shape the answer; with the weights they must agree with what the workspace holds.
    """
    limits.check()
    _check_options(options)
    options = {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}
    if is_path(graph):
        if limits.workspace is not None and Path(limits.workspace) != Path(graph):
            raise InputError(f"the graph is the workspace {graph}, so workspace= cannot be {limits.workspace}")
        return _solve_on_disk(name, Workspace(graph), make, kind, weights, options, limits, None, finish)
    edges = read_edges(graph, kind)
    weights = read_weights(weights, edges)
    if limits.workspace is not None:
        return _solve_given_workspace(name, edges, make, kind, weights, options, limits, finish)
    if options["oracle"] == "igraph":
        # igraph works in processes, which read what they need from a workspace.
        with tempfile.TemporaryDirectory() as folder:
            aside = replace(limits, workspace=Path(folder) / "run.pf")
            result = _solve_given_workspace(name, edges, make, kind, weights, options, aside, finish)
            duals = list(result.blocks())
            return replace(result, workspace=None, blocks=lambda: duals)
    return _solve_in_memory(name, edges, make, weights, options, limits, finish)


def _check_options(options: dict[str, Any]) -> None:
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
    program = _checked(make(edges, weights, None))
    workers = count_workers(limits.workers)
    rows = ConstraintStore(_left_for_rows(program, options["settings"], workers, limits.memory))
    state = State(program, program.target.copy(), rows, first_plan(options["settings"]["stages"][0][0]))
    monitor = Monitor(progress=limits.progress, callback=limits.callback, max_time=limits.max_time)
    with worker_pool(workers, processes=False) as pool, monitor.signals():
        oracle = NumbaOracle(program.graph, pool, workers)
        problem = cycle_problem(name, program, oracle, monitor, options)
        status = run(problem, state, tol=options["tol"], max_iter=limits.max_iter, monitor=monitor,
                     commit=lambda *_: None)  # fmt: skip
        certificate = _close(problem, state, status)
    bound = problem.bound(state)
    made = {"x": state.feasible}
    if finish:
        made = finish(edges, state, options, status == "interrupted")
    return Result(
        **{**made, "x": edges.restore(made["x"])},
        objective=state.objective,
        lower_bound=bound,
        gap=relative_gap(state.objective, bound),
        violation=certificate.violation if certificate else math.inf,
        status=status,
        n_iter=state.iteration,
        n_active=len(state.rows),
        history=state.history,
        blocks=state.rows.blocks,
        zeros=edges.zeros,
    )


def _checked(program: CycleProgram) -> CycleProgram:
    """Refuse numbers so large, or weights so far from one, that the objective overflows."""
    with np.errstate(over="ignore"):
        size = program.value(np.zeros(len(program.target)))
    if not math.isfinite(size):
        raise InputError("the values or weights are too large: their objective is not a finite number; rescale them")
    return program


def _close(problem: Problem, state: State, status: str) -> Certificate | None:
    """Make sure a run that stopped early has a feasible point: look once more if there is time, or take a plain one."""
    certificate = state.certificate
    if status == "iteration_limit" and not (state.history and "gap" in state.history[-1]):
        with contextlib.suppress(SearchStopped):
            look = replace(state, plan=first_plan(CERTIFY))
            certificate, point = problem.measure(look, problem.find(look))
            if certificate.objective <= state.objective:
                state.feasible, state.objective = point, certificate.objective
    if state.feasible is None:
        state.feasible = state.program.plain_point(state.x)
        state.objective = state.program.value(state.feasible)
    return certificate


def _left_for_rows(program: CycleProgram, settings: dict[str, Any], workers: int, memory: Any) -> int | None:
    """Bytes of the budget that the rows may take, after what the graph and the searches need."""
    budget = parse_memory(memory)
    if budget is None:
        return None
    graph = program.graph
    arcs, closers, edges = len(graph.arc_node), len(graph.closer_node), len(program.target)
    shared = 24 * arcs + 40 * closers + 112 * edges + (8 + 12 * settings.get("trees", 0)) * graph.nodes
    fixed = shared + workers * (48 * graph.nodes + (2 << 20))
    least = fixed + (16 << 20)
    if budget < least:
        raise BudgetError(f"memory={memory!r} is too small for this graph; the least that will do is {least:,} bytes")
    return budget - fixed


# -- on disk --------------------------------------------------------------------------------------------------------


def _solve_given_workspace(name, edges, make, kind, weights, options, limits, finish) -> Result:
    path = Path(limits.workspace)
    mark = digest(edges.u, edges.v, edges.value, np.array(edges.nodes))
    if not path.exists():
        source = {"file": None, "digest": mark}
        labels = np.arange(edges.nodes)
        create_workspace(path, edges.u, edges.v, edges.value, labels, kind=kind, source=source)
    workspace = Workspace(path)
    if workspace.manifest["graph"]["source"].get("digest") != mark:
        raise WorkspaceError(f"{path} holds another graph than the one given; name a new workspace, or pass its path")
    return _solve_on_disk(name, workspace, make, kind, weights, options, limits, edges, finish)


def _solve_on_disk(name, workspace, make, kind, weights, options, limits, edges, finish) -> Result:
    found = workspace.manifest["graph"]["kind"]
    if found != kind:
        raise WorkspaceError(f"{workspace.path} was converted with kind={found!r}; {name} needs kind={kind!r}")
    with workspace.locked():
        edges = edges or load_edges(workspace)
        weights = read_weights(weights, edges)
        monitor = Monitor(progress=limits.progress, callback=limits.callback, max_time=limits.max_time)
        options = {**options, "weights": None if weights is None else digest(weights)}
        program = _prepare(name, workspace, make, edges, weights, options, finish is not None, limits.restart)
        with _session(name, workspace, program, limits, monitor) as (problem, state):
            if state.iteration:
                monitor.note(f"continuing {workspace.path} at iteration {state.iteration}")
            status = run(problem, state, tol=options["tol"], max_iter=limits.max_iter, monitor=monitor,
                         commit=_committer(workspace, state))  # fmt: skip
            if status == "converged":
                if workspace.manifest["status"] != status:  # a looser tolerance, met without another iteration
                    workspace.commit(status=status, closing=None)
            else:
                certificate = _close(problem, state, status)
                _commit_stop(workspace, problem, state, status, certificate)
            if finish and not workspace.answer:
                _commit_answer(workspace, finish(edges, state, options, status == "interrupted"))
        shutil.rmtree(workspace.scratch, ignore_errors=True)
    return replace(open_result(workspace, edges.restore), zeros=edges.zeros)


def load_edges(workspace: Workspace) -> Edges:
    """The edges of a workspace; vectors over them are given back as they are."""
    u, v, value = (read_array(workspace.edges, field) for field in ("u", "v", "value"))
    nodes, edges = workspace.manifest["graph"]["nodes"], workspace.manifest["graph"]["edges"]
    sound = len(u) == len(v) == len(value) == edges and bool(np.all((u >= 0) & (u < v) & (v < nodes)))
    if not (sound and np.isfinite(value).all()):
        raise WorkspaceError(f"{workspace.edges} does not hold the edges it should; convert them again")
    return Edges(u, v, value, nodes, lambda x: x)


def load_program(workspace: Workspace, make: MakeProgram, edges: Edges) -> CycleProgram:
    """The program a workspace was prepared for."""
    stored = workspace.graph / "weight"
    weights = read_array(workspace.graph, "weight") if stored.exists() else None
    return make(edges, weights, Graph.read(workspace.graph))


def _prepare(name, workspace, make, edges, weights, options, answers, restart) -> CycleProgram:
    """Load the program, or build it on the first solve; refuse a workspace that holds another one."""
    wanted = {"name": name, "options": options, "answers": answers}
    held = workspace.manifest["problem"]
    if held is not None and not restart:
        # The settings are not the user's: a run keeps those it began with, whatever this release would choose.
        wanted["options"] = {**options, "settings": held["options"].get("settings")}
    if held == wanted and not restart:
        return load_program(workspace, make, edges)
    if held is not None and not restart:
        raise WorkspaceError(_difference(workspace, held, wanted))
    # From here until the program is complete there is nothing to resume.
    workspace.commit(problem=None, status="converted", feasible=0, answer=0, iteration=0, history_bytes=0)
    shutil.rmtree(workspace.graph, ignore_errors=True)
    program = _checked(make(edges, weights, None))
    program.graph.write(workspace.graph)
    if weights is not None:
        write_array(workspace.graph, "weight", weights)
    flush(workspace.graph)
    rows = ConstraintStore()
    state = State(program, program.target.copy(), rows, first_plan(options["settings"]["stages"][0][0]))
    workspace.commit(
        write_generation=lambda group: _write_generation(group, state),
        problem=wanted,
        status="running",
        plan=state.plan,
        certificate=None,
        objective=None,
        closing=None,
        lower_bound=program.bound(state.y, 0.0),
        n_active=0,
    )
    return program


def _difference(workspace: Workspace, held: dict[str, Any], wanted: dict[str, Any]) -> str:
    then = {"problem": held["name"], **held["options"]}
    now = {"problem": wanted["name"], **wanted["options"]}
    changed = [f"{k}: {then.get(k)!r} then, {now.get(k)!r} now" for k in now if then.get(k) != now[k]]
    return (
        f"{workspace.path} holds progress made with other options ({'; '.join(changed)}). Ways out: `ooc-pf resume "
        f"{workspace.path}` goes on with the options it has (`--tol` may change there), `solve --restart` discards its "
        "progress (restart=True in Python), or convert into a new workspace"
    )


@contextlib.contextmanager
def _session(name, workspace, program, limits, monitor) -> Iterator[tuple[Problem, State]]:
    """The problem and the state to go on from, with workers to serve them."""
    options = workspace.manifest["problem"]["options"]
    workers = count_workers(limits.workers)
    state = _load_state(workspace, program, _left_for_rows(program, options["settings"], workers, limits.memory))
    processes = options["oracle"] == "igraph"
    with worker_pool(workers, processes=processes) as pool, monitor.signals():
        if processes:
            oracle: Any = IgraphOracle(workspace.graph, (program.closing, program.rhs), pool)
        else:
            oracle = NumbaOracle(program.graph, pool, workers)
        problem = cycle_problem(name, program, oracle, monitor, options, lambda: workspace.generation)  # fmt: skip
        yield problem, state


def _load_state(workspace: Workspace, program: CycleProgram, memory: int | None) -> State:
    manifest = workspace.manifest
    program, y = load_point(workspace, program)
    rows = ConstraintStore(memory, workspace.scratch).read(workspace.generation / "rows", len(y))
    certificate = manifest["certificate"]
    return State(
        program=program,
        y=y,
        rows=rows,
        plan=manifest["plan"],
        iteration=manifest["iteration"],
        feasible=read_array(workspace.feasible, "x") if workspace.feasible else None,
        objective=math.inf if manifest["objective"] is None else manifest["objective"],
        certificate=Certificate(**certificate) if certificate else None,
    )


def load_point(workspace: Workspace, program: CycleProgram) -> tuple[CycleProgram, np.ndarray]:
    """The committed y, and the program as it was: with the pairs that have a variable, around the same centre."""
    group = workspace.generation
    y = read_array(group, "y")
    if program.pairs:
        pairs = read_array(group, "pairs").reshape(-1, 2)
        nodes = program.graph.nodes
        if not np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < nodes)):
            raise WorkspaceError(f"{group}: the pairs are damaged; `ooc-pf solve --restart` starts again")
        program = program.with_pairs(pairs)
    if program.step is not None:
        program = replace(program, target=read_array(group, "target"))
    for name, vector in (("y", y), ("target", program.target)):
        if vector.shape != program.inverse.shape or not np.isfinite(vector).all():
            raise WorkspaceError(f"{group}: {name} is damaged; `ooc-pf solve --restart` starts again")
    return program, y


def _write_generation(group: Path, state: State) -> None:
    write_array(group, "y", state.y)
    if state.program.pairs:
        write_array(group, "pairs", state.program.pairs.unlisted.ravel())
    if state.program.step is not None:
        write_array(group, "target", state.program.target)
    state.rows.write(group / "rows")


def _committer(workspace: Workspace, state: State) -> Callable[[State, dict[str, Any], str], None]:
    written = state.feasible

    def commit(state: State, record: dict[str, Any], status: str) -> None:
        nonlocal written
        fresh = state.feasible if state.feasible is not written else None
        # Without a sweep neither y nor the duals moved: the generation still says it all.
        moved = record.get("sweeps") or record["added"]
        workspace.commit(
            record,
            write_generation=(lambda group: _write_generation(group, state)) if moved else None,
            feasible_point=fresh,
            status=status,
            iteration=state.iteration,
            plan=state.plan,
            certificate=_plain(state.certificate),
            objective=state.objective if math.isfinite(state.objective) else None,
            closing=None,
            answer=0,
            lower_bound=record["lower_bound"],
            n_active=len(state.rows),
        )
        written = state.feasible

    return commit


def _commit_stop(workspace, problem, state, status, certificate) -> None:
    """Record why the run stopped and the feasible point it stopped with; the state to resume from stays as it was."""
    workspace.commit(
        feasible_point=state.feasible,
        status=status,
        objective=state.objective,
        lower_bound=problem.bound(state),
        closing=_plain(certificate),
    )


def _commit_answer(workspace: Workspace, made: dict[str, Any]) -> None:
    arrays = {name: value for name, value in made.items() if isinstance(value, np.ndarray)}
    facts = {name: value for name, value in made.items() if name not in arrays}
    workspace.commit(answer_arrays=arrays, facts=facts)


def _plain(certificate: Certificate | None) -> dict[str, float] | None:
    if certificate is None:
        return None
    return {k: v for k, v in certificate.as_dict().items() if k != "gap"}


def open_result(workspace: Workspace, restore: Callable[[np.ndarray], Any] = lambda x: x) -> Result:
    """What the workspace has to show so far."""
    manifest, outcome = workspace.manifest, workspace.outcome
    checked = manifest["closing"] or manifest["certificate"]
    made = {"x": read_array(outcome, "x"), **(manifest["facts"] if workspace.answer else {})}
    if (outcome / "labels").exists():
        made["labels"] = read_array(outcome, "labels")
    return Result(
        **{**made, "x": restore(made["x"])},
        nodes=read_labels(workspace.edges),
        objective=manifest["objective"],
        lower_bound=manifest["lower_bound"],
        gap=relative_gap(manifest["objective"], manifest["lower_bound"]),
        violation=checked["violation"] if checked else math.inf,
        status=manifest["status"],
        n_iter=manifest["iteration"],
        n_active=manifest["n_active"],
        history=workspace.history(),
        blocks=lambda: read_blocks(workspace.generation / "rows", open_array(workspace.generation, "y").shape[0]),
        workspace=workspace.path,
    )
