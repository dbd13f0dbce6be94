"""The life of a run, written once for every family of problems: from what a caller hands over to a result."""

import contextlib
import contextvars
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import BudgetError, InputError, Interrupted, WorkspaceError
from ..storage.machine import share_one_heap
from ..storage.memory import Budget
from ..storage.objectstore import local_copy
from ..storage.vectors import Pool
from ..storage.workspace import Workspace, exists, is_path
from .family import Data, Family, Given, Options, Session, Size, check_family, holds_run_of
from .limits import Limits
from .loop import run
from .parallel import cluster_client, count_workers, worker_pool
from .place import Memory, OnDisk
from .result import Result

_raises = contextvars.ContextVar("raises", default=True)  # whether an interrupted run raises


@contextlib.contextmanager
def interrupts_return() -> Iterator[None]:
    """Inside, a run that is stopped by Ctrl-C or SIGTERM returns its result, with the status "interrupted".

    Otherwise it raises a KeyboardInterrupt, after the commit, with the result as ``error.result``.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> with pf.interrupts_return():
    ...     result = pf.metric_nearness((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 5.0])))
    >>> result.status
    'converged'
    """
    before = _raises.set(False)
    try:
        yield
    finally:
        _raises.reset(before)


def solve(family: Family, given: Given, options: Options, limits: Limits) -> Result:
    """Solve a problem wherever its state is to be.

    ``options`` are plain values that shape the answer; with the extras they must agree with what a workspace holds.
    """
    result = _solve_within(family, given, options, limits)
    if result.status == "interrupted" and _raises.get():
        held = "" if result.workspace is None else f"; {result.workspace} holds it, and can be resumed"
        raise Interrupted(f"stopped at iteration {result.n_iter}: error.result is what was found{held}", result)
    return result


def _solve_within(family: Family, given: Given, options: Options, limits: Limits) -> Result:
    """Solve, and keep to the limits."""
    limits.check()
    options = family.check(options, limits)
    if family.needs_disk(options) and limits.workspace is None and not is_path(given.source):
        return _solve_aside(family, given, options, limits)
    try:
        return _solve(family, given, options, limits)
    except MemoryError as error:
        if isinstance(error, BudgetError):
            raise
        raise BudgetError(
            f"the machine had no memory left ({error}); a workspace is as it was after its last iteration: resume it "
            "with fewer workers=, or a smaller memory="
        ) from error


def _solve(family: Family, given: Given, options: Options, limits: Limits) -> Result:
    with place_for(family, given, options, limits) as place:
        program, monitor = place.prepare(), place.session.monitor
        problem = family.problem(program, place.options, place.session)
        with monitor.signals():
            state = place.load(program, problem)
            if state.iteration:
                monitor.note(f"continuing {limits.workspace or given.source} at iteration {state.iteration}")
            tol, max_iter = place.options["tol"], limits.max_iter
            monitor.aim(tol, getattr(problem, "ratio", None))
            status = run(problem, state, tol=tol, max_iter=max_iter, monitor=monitor, commit=place.commit)
            return place.conclude(program, problem, state, status)


def _solve_aside(family: Family, given: Given, options: Options, limits: Limits) -> Result:
    """Solve in a temporary workspace, for workers that can only read files."""
    with tempfile.TemporaryDirectory() as folder:
        result = _solve_within(family, given, options, replace(limits, workspace=Path(folder) / "run.pf"))
        blocks, x, nodes = list(result.blocks()), result.x, result.nodes
    return replace(result, workspace=None, blocks=lambda: blocks, read_x=lambda: x, read_nodes=lambda: nodes)


@contextlib.contextmanager
def place_for(family: Family, given: Given, options: Options, limits: Limits) -> Iterator[Memory | OnDisk]:
    """Where the run lives, with everything it works with."""
    data = None if is_path(given.source) else family.read(given)
    if data is not None and limits.workspace is None:
        if limits.client is not None:
            raise InputError("client= needs a workspace= that all workers see")
        options = family.settle(options, data.size, None, limits, disk=False)
        with _session(family, given, options, data.size, limits, None) as session:
            yield Memory(family, given, data, options, session)
        return
    workspace = _workspace_of(family, given.source, data, limits)
    with workspace.locked():
        graph, held = workspace.manifest["graph"], workspace.manifest["problem"]
        size = Size(graph["nodes"], graph["edges"])
        if held is not None and not limits.restart and holds_run_of(family, workspace):
            check_family(family, workspace)
        kept = None if held is None or limits.restart else held["options"]
        options = family.settle(options, size, kept, limits, disk=True)
        with _session(family, given, options, size, limits, workspace) as session:
            yield OnDisk(family, given, data, options, session, restart=limits.restart)


def _workspace_of(family: Family, source: Any, data: Data | None, limits: Limits) -> Workspace:
    """The workspace named or, of data that were handed over, made for them; refuses one that holds something else."""
    if data is None and limits.workspace is not None and local_copy(limits.workspace) != local_copy(source):
        raise InputError(f"the graph is the workspace {source}, so workspace= cannot be {limits.workspace}")
    path = source if data is None else limits.workspace
    if data is not None and not exists(path):
        family.create(path, data)
    workspace = Workspace(path)
    graph = workspace.manifest["graph"]
    if graph["kind"] != family.kind:
        if family.resumable:
            raise WorkspaceError(
                f"{workspace.name} was converted with kind={graph['kind']!r}; {family.name} needs kind={family.kind!r}"
            )
        raise WorkspaceError(
            f"{path} holds a problem of kind {graph['kind']!r}, not {family.kind!r}; name a new workspace"
        )
    same = data is None or graph["source"].get("digest") == data.fingerprint
    if data is not None and not family.resumable:
        same = same and graph["edges"] == data.size.edges  # other variables of the same input
    if not same:
        hint = ", or pass its path" if family.resumable else ""
        raise WorkspaceError(f"{path} holds another {family.noun} than the one given; name a new workspace{hint}")
    return workspace


@contextlib.contextmanager
def _session(
    family: Family, given: Given, options: Options, size: Size, limits: Limits, workspace: Workspace | None
) -> Iterator[Session]:
    """Workers, memory and a monitor."""
    workers, monitor = count_workers(limits.workers), limits.monitor()
    budget = family.budget(given, size, options, limits, workers, disk=workspace is not None)
    if budget != Budget():
        share_one_heap()
    with (
        _pool(workspace, budget) as pool,
        worker_pool(workers, processes=family.processes(options)) as threads,
        cluster_client(limits.client) as client,
    ):
        yield Session(monitor, workers, budget, pool, threads, client, workspace)


@contextlib.contextmanager
def _pool(workspace: Workspace | None, budget: Budget) -> Iterator[Pool]:
    """Vectors in memory, or with files in a workspace, which keeps none of them."""
    if workspace is None:
        yield Pool()
        return
    shutil.rmtree(workspace.scratch, ignore_errors=True)
    pool = Pool(budget.vectors, workspace.scratch)
    try:
        yield pool
    finally:
        pool.close()
        shutil.rmtree(workspace.scratch, ignore_errors=True)
