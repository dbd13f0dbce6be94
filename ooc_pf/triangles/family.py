"""From a square matrix, or a workspace that lists every pair, to a result over the complete graph."""

import contextlib
import hashlib
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..cycles.family import Limits, check_options, difference, make_result, run_committed, scratch_pool, settle
from ..cycles.persist import commit_start, discard_run, open_result
from ..engine.certificate import Certificate
from ..engine.loop import run
from ..engine.monitor import Monitor
from ..engine.parallel import count_workers, worker_pool
from ..engine.problem import State
from ..engine.result import Result
from ..engine.rows import RowBlock
from ..errors import InputError, WorkspaceError
from ..storage.arrays import write_parts
from ..storage.memory import Budget
from ..storage.vectors import Pool, write_vector
from ..storage.workspace import Workspace, exists, is_path
from .build import build_program, divide_memory
from .inputs import (
    Stripes,
    check_ends,
    create_dense_workspace,
    digest_square,
    read_distances,
    read_option,
    read_stored,
)
from .program import Crew, DenseProgram, Iterate
from .schedule import dense_problem, first_plan
from .store import TriangleStore, as_row_block, read_rows
from .tiles import Tiling

ENGINE = "dense"
OPTIONS = {"weights": "weight", "lower": "lower limit", "upper": "upper limit"}
_FILES = {"weights": "weight", "lower": "lower", "upper": "upper"}


def choose_side(nodes: int) -> int:
    """Lines of a tile: small tiles stay in cache, large ones need fewer visits."""
    if nodes <= 128:
        return 128
    return 64 if nodes <= 2048 else 128 if nodes <= 16384 else 256


def holds_dense(workspace: Workspace) -> bool:
    """Whether there is a run in a workspace, and over the complete graph."""
    held = workspace.manifest["problem"]
    return held is not None and (held["options"].get("settings") or {}).get("engine") == ENGINE


def lists_all_pairs(workspace: Workspace) -> bool:
    """Whether a workspace has a distance for every pair."""
    graph = workspace.manifest["graph"]
    return graph["kind"] == "distance" and 2 * graph["edges"] == graph["nodes"] * (graph["nodes"] - 1) > 0


def solve_dense(graph: Any, extras: dict[str, Any], options: dict[str, Any], limits: Limits) -> Result:
    """Solve over the complete graph; ``extras`` are weights and limits, ``options`` plain values."""
    _check_limits(limits)
    check_options(options)
    options = {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}
    if is_path(graph):
        if limits.workspace is not None and Path(limits.workspace) != Path(graph):
            raise InputError(f"the graph is the workspace {graph}, so workspace= cannot be {limits.workspace}")
        return _solve_on_disk(Workspace(graph), extras, options, limits)
    options["settings"] = {**options["settings"], "side": choose_side(len(graph))}
    tiling = Tiling(len(graph), options["settings"]["side"])
    if limits.workspace is None:
        return _solve_in_memory(graph, tiling, extras, options, limits)
    path, mark = limits.workspace, digest_square(graph, tiling)
    if not exists(path):
        create_dense_workspace(path, graph, tiling, mark)
    workspace = Workspace(path)
    if workspace.manifest["graph"]["source"].get("digest") != mark:
        raise WorkspaceError(f"{path} holds another graph than the one given; name a new workspace, or pass its path")
    result = _solve_on_disk(workspace, extras, options, limits)
    return replace(result, read_x=lambda: unfold(result.read_x(), tiling.nodes))


def resume_dense(workspace: Workspace, limits: Limits) -> Result:
    """Go on with the run a workspace holds."""
    _check_limits(limits)
    return _solve_on_disk(workspace, None, workspace.manifest["problem"]["options"], limits)


def _check_limits(limits: Limits) -> None:
    limits.check()
    if limits.client is not None:
        raise InputError("client= is for searches over cycles; a run over the complete graph works on one machine")


def unfold(vector: np.ndarray, nodes: int) -> np.ndarray:
    """A vector over edges as a symmetric matrix."""
    matrix = np.zeros((nodes, nodes))
    start = 0
    for i in range(nodes - 1):
        matrix[i, i + 1 :] = matrix[i + 1 :, i] = vector[start : start + nodes - 1 - i]
        start += nodes - 1 - i
    return matrix


# -- in memory --------------------------------------------------------------------------------------------------------


def _solve_in_memory(graph: Any, tiling: Tiling, extras: dict[str, Any], options: dict[str, Any],
                     limits: Limits) -> Result:  # fmt: skip
    workers, pool = count_workers(limits.workers), Pool()
    budget = divide_memory(tiling, extras, workers, limits.memory, disk=False)
    monitor = Monitor(progress=limits.progress, callback=limits.callback, max_time=limits.max_time)
    with _crew(workers, monitor) as crew:
        stripes = {name: read_option(extras[name], tiling, what) for name, what in OPTIONS.items()}
        program = build_program(tiling, pool, read_distances(graph, tiling), stripes, Crew(crew.pool))
        state = _first_state(program, TriangleStore(tiling, budget.rows), options)
        problem = dense_problem(program, monitor, options, crew)
        status = run(problem, state, tol=options["tol"], max_iter=limits.max_iter, monitor=monitor,
                     commit=lambda *_: None)  # fmt: skip
        if monitor.stop[0]:  # perhaps before its iteration came to that
            problem.forget(state)
        certificate = settle(problem, state, status)
    made = {"closure_distance": certificate.violation if certificate else math.inf}
    return make_result(problem, state, status, certificate, read_x=state.feasible.square, made=made)


def _first_state(program: DenseProgram, rows: TriangleStore, options: dict[str, Any]) -> State:
    return State(program, program.start(), rows, first_plan(program, options), program.pool)


@contextlib.contextmanager
def _crew(workers: int, monitor: Monitor) -> Iterator[Crew]:
    """Workers that stop when the monitor says so; one worker is the caller."""
    several = worker_pool(workers, processes=False) if workers > 1 else contextlib.nullcontext()
    with several as pool, monitor.signals():
        yield Crew(pool, monitor.stop)


# -- on disk ----------------------------------------------------------------------------------------------------------


def _solve_on_disk(workspace: Workspace, extras: dict[str, Any] | None, options: dict[str, Any],
                   limits: Limits) -> Result:  # fmt: skip
    """``extras`` None: those of the run the workspace holds."""
    graph = workspace.manifest["graph"]
    if graph["kind"] != "distance":
        raise WorkspaceError(f"{workspace.name} was converted with kind={graph['kind']!r}; nearness needs 'distance'")
    workers = count_workers(limits.workers)
    monitor = Monitor(progress=limits.progress, callback=limits.callback, max_time=limits.max_time)
    with workspace.locked():
        if extras is not None:
            options = _wanted(workspace, extras, options, limits.restart)
        tiling = Tiling(graph["nodes"], options["settings"]["side"])
        budget = divide_memory(tiling, options, workers, limits.memory, disk=True)
        with scratch_pool(workspace, budget.vectors) as pool, _crew(workers, monitor) as crew:
            _Run(workspace, tiling, options, limits, budget, pool, monitor, crew).solve(extras)
    return open_dense(workspace)


@dataclass(frozen=True)
class _Run:
    """One call on a workspace, from what it holds to what it holds then."""

    workspace: Workspace
    tiling: Tiling
    options: dict[str, Any]
    limits: Limits
    budget: Budget
    pool: Pool
    monitor: Monitor
    crew: Crew

    def solve(self, extras: dict[str, Any] | None) -> None:
        workspace, options = self.workspace, self.options
        program = self._prepare(extras)
        problem = dense_problem(program, self.monitor, options, self.crew)
        run_committed(workspace, problem, lambda: self._load_state(program), settle, tol=options["tol"],
                      max_iter=self.limits.max_iter, monitor=self.monitor, write=write_generation)  # fmt: skip

    def _prepare(self, extras: dict[str, Any] | None) -> DenseProgram:
        """Load the program, or write down what it is made of on the first solve."""
        workspace, tiling, options = self.workspace, self.tiling, self.options
        crew = Crew(self.crew.pool)  # nothing to stop with yet
        if workspace.manifest["problem"] is not None and not (extras and self.limits.restart):
            return load_dense(workspace, tiling, self.pool, crew)
        discard_run(workspace)
        check_ends(workspace, tiling)
        workspace.graph.mkdir(exist_ok=True)
        for name, what in OPTIONS.items():
            stripes = read_option(extras[name], tiling, what)
            if stripes is not None:
                write_parts(workspace.graph, _FILES[name], _upper_parts(stripes), np.float64)
        program = load_dense(workspace, tiling, self.pool, crew)
        if extras["upper"] is not None:
            # Closed once: closing it again when it is loaded changes nothing and is quick.
            shutil.rmtree(workspace.graph / "upper")
            write_vector(workspace.graph, "upper", program.upper)
        state = _first_state(program, TriangleStore(tiling), options)
        commit_start(workspace, _problem(options), state, program.bound(state.y), write_generation)
        state.y.close()
        return program

    def _load_state(self, program: DenseProgram) -> State:
        workspace, tiling = self.workspace, self.tiling
        manifest, certificate = workspace.manifest, workspace.manifest["certificate"]
        feasible = None
        if workspace.feasible:
            feasible = program.new_tiles().fill_lines(read_stored(workspace.feasible, "x", tiling))
        return State(
            program=program,
            y=load_iterate(workspace, program),
            rows=TriangleStore(tiling, self.budget.rows, self.pool).read(workspace.generation / "rows"),
            plan=manifest["plan"],
            pool=self.pool,
            iteration=manifest["iteration"],
            feasible=feasible,
            objective=math.inf if manifest["objective"] is None else manifest["objective"],
            certificate=Certificate(**certificate) if certificate else None,
        )


def _wanted(workspace: Workspace, extras: dict[str, Any], options: dict[str, Any], restart: bool) -> dict[str, Any]:
    """The options in full, with fingerprints of what is large; settings are those a run began with, not the user's."""
    nodes, held = workspace.manifest["graph"]["nodes"], workspace.manifest["problem"]
    settings = {**options["settings"], "side": choose_side(nodes)}
    if held is not None and not restart:
        settings = held["options"].get("settings") or settings
    tiling = Tiling(nodes, settings.get("side") or choose_side(nodes))
    marks = {name: _mark(read_option(extras[name], tiling, what)) for name, what in OPTIONS.items()}
    wanted = {**options, **marks, "settings": settings}
    if held is not None and not restart and held != _problem(wanted):
        raise WorkspaceError(difference(workspace, held, _problem(wanted)))
    return wanted


def _problem(options: dict[str, Any]) -> dict[str, Any]:
    return {"name": "nearness", "options": options, "answers": False}


def _upper_parts(stripes: Stripes) -> Iterator[np.ndarray]:
    """The entries above the diagonal, as parts of a vector over edges."""
    first = 0
    for stripe in stripes:
        yield stripe[np.arange(stripe.shape[1]) > first + np.arange(len(stripe))[:, None]]
        first += len(stripe)


def _mark(stripes: Stripes | None) -> str | None:
    if stripes is None:
        return None
    total = hashlib.blake2b(digest_size=16)
    for part in _upper_parts(stripes):
        total.update(part.tobytes())
    return total.hexdigest()


def load_dense(workspace: Workspace, tiling: Tiling, pool: Pool, crew: Crew) -> DenseProgram:
    """The program a workspace was prepared for."""
    extras = {
        name: read_stored(workspace.graph, file, tiling) if (workspace.graph / file).exists() else None
        for name, file in _FILES.items()
    }
    target = read_stored(workspace.edges, "value", tiling)
    return build_program(tiling, pool, target, extras, crew)


def load_iterate(workspace: Workspace, program: DenseProgram) -> Iterate:
    """The committed point."""
    x = program.new_tiles().read_tiles(workspace.generation, "x")
    shift = None if program.lower is None else program.new_tiles().read_tiles(workspace.generation, "shift")
    return Iterate(x, shift)


def write_generation(group: Path, state: State) -> None:
    """Write what a run goes on from."""
    state.y.x.write_tiles(group, "x")
    if state.y.shift is not None:
        state.y.shift.write_tiles(group, "shift")
    state.rows.write(group / "rows")


def held_tiling(workspace: Workspace) -> Tiling:
    """How the run in a workspace cuts its matrices."""
    return Tiling(workspace.manifest["graph"]["nodes"], workspace.manifest["problem"]["options"]["settings"]["side"])


def open_dense(workspace: Workspace) -> Result:
    """What the workspace has to show so far."""
    tiling = held_tiling(workspace)

    def blocks() -> Iterator[RowBlock]:
        for block, rows in zip(tiling.blocks, read_rows(workspace.generation / "rows", tiling), strict=True):
            if len(rows.code):
                yield as_row_block(tiling, block, rows)

    result = open_result(workspace)
    return replace(result, blocks=blocks, made={"closure_distance": result.violation})
