"""One call of metric learning: limits, threads and a method."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..engine.family import Given, Options
from ..engine.limits import Limits
from ..engine.parallel import count_workers
from ..engine.result import Held, Result
from ..engine.run import solve
from ..errors import InputError
from ..storage.memory import Budget, parse_memory, refuse_below
from ..storage.records import require
from ..storage.workspace import Workspace
from . import settings
from .data import ItmlData, check_pairs, holds_input, read_held, why_not_held
from .family import ITML, METHODS, row_bytes
from .inputs import Task
from .pairs import AllPairs
from .steps import NEWTON


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


class Draws(NamedTuple):
    """So many similar and so many dissimilar pairs a step, and the seed they are drawn with."""

    drawn: int
    seed: int


def learn(task: Task, method: str, tol: float, limits: Limits, draws: Draws | None = None) -> Learnt:
    """Solve a task; the answer has the same bits for any number of workers."""
    result = solve_task(task, method, tol, limits, draws)
    d = task.source.dimension
    root, records = result.x.reshape(d, d), result.history
    steps = result.n_iter if method != NEWTON else sum(record.get("sweeps", 0) for record in records)
    looks = sum(round(record["relaxed"] / task.source.size) + record.get("passes", 0) for record in records)
    projections = sum(record.get("projections", 0) for record in records)
    return Learnt(
        (task.root @ root).T, result.objective, result.lower_bound, result.gap, result.status, steps, looks,
        projections, records,
    )  # fmt: skip


def solve_task(task: Task, method: str, tol: float, limits: Limits, draws: Draws | None = None) -> Result:
    """Solve a task; the x of the result is the root of the matrix, with the prior as the identity."""
    limits.check()
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, found {method!r}")
    if draws is not None and method == NEWTON:
        raise InputError('n_sampled= is for method="project_and_forget"; Newton steps look at all pairs')
    limits = _within_memory(task, method, limits)
    options = {"tol": tol, "method": method, **({} if draws is None else draws._asdict())}
    with _one_thread_each():
        return solve(ITML, Given(ItmlData(task, method)), options, limits)


def _within_memory(task: Task, method: str, limits: Limits) -> Limits:
    """As many workers as fit the memory, and what is left for pairs that are remembered."""
    workers, budget = count_workers(limits.workers), parse_memory(limits.memory)
    if budget is None:
        return limits
    source, d = task.source, task.source.dimension
    points = 24 * len(source.points) * (d + 1) if isinstance(source, AllPairs) else 2 * len(source.sign)
    sample = min(settings.SAMPLE, source.size) * d * 24
    fixed = points + (2 * settings.MEMORY + settings.WAVE + 20) * 8 * d * d + (sample if method == NEWTON else 0)
    each = 8 * max(settings.TILE * (settings.TILE + 4 * d), 4 * settings.LIST * d)
    least = 1000 * row_bytes(d)
    refuse_below(fixed + each + least, budget, limits.memory)
    workers = min(workers, (budget - fixed - least) // each)
    return replace(limits, workers=workers, memory=Budget(rows=budget - fixed - workers * each))


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Inside, matrix products use one thread: workers share out the cores, and bits do not depend on how many."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"):
        yield


# -- workspaces -------------------------------------------------------------------------------------------------------


def knows_input(workspace: Workspace) -> bool:
    """Whether a workspace can be gone on with by itself."""
    return holds_input(workspace)


def why_not(workspace: Workspace) -> str:
    """What to do with one that cannot."""
    return f"{why_not_held(workspace)}; to go on call ITML.fit or ITML_Supervised.fit again"


def resume_files(workspace: Workspace, options: Options, **limits: Any) -> Result:
    """Go on with a fit whose pairs are in its workspace; the x of the result are the components of the metric."""
    task = read_held(workspace)
    require(check_pairs(workspace, task.source), workspace.name, "its pairs are not those that it was made with")
    limits = Limits(workspace=workspace.name, **limits)
    draws = Draws(options["drawn"], options["seed"]) if "drawn" in options else None
    return _with_components(task, solve_task(task, options["method"], options["tol"], limits, draws))


def dress(workspace: Workspace, result: Result) -> Result:
    """What a workspace has found so far, with the components of the metric."""
    if not workspace.feasible:
        return result
    task = read_held(workspace)
    require(np.size(result.x) == task.root.size, workspace.name, "the stored x is not the root of a matrix")
    return _with_components(task, result)


def _with_components(task: Task, result: Result) -> Result:
    components = (task.root @ np.asarray(result.x).reshape(task.root.shape)).T
    return replace(result, made={**result.made, "components": components}, read_x=Held(components))
