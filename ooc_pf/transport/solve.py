"""One call of transport, and going on from a workspace alone."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.family import Given, Options
from ..engine.limits import Limits
from ..engine.result import Held, Result
from ..engine.run import solve
from ..storage.workspace import Workspace
from .data import TransportData, holds_input, read_held, why_not_held
from .family import TRANSPORT
from .inputs import Task
from .plan import made_of, split_answer


def solve_data(data: TransportData, tol: float, limits: Limits) -> Result:
    """Solve it; the x of the result has the potentials, then rows, columns and masses of the plan."""
    options = {"tol": tol, "marginals": data.marginals, "weight": data.weight}
    return solve(TRANSPORT, Given(data), options, limits)


def solve_transport(task: Task, marginals: str, weight: float, tol: float, limits: Limits) -> Result:
    """Solve a task; ``weight`` is gamma or reg. The answer has the same bits for any number of workers."""
    return _with_plan(task, solve_data(TransportData(task, marginals, weight), tol, limits))


def _with_plan(task: Task, result: Result) -> Result:
    potentials, plan = split_answer(task, np.asarray(result.x), result.workspace or "the answer")
    made = made_of(task, plan, potentials)
    return replace(result, made=made, read_x=Held(made["plan"]), blocks=Held(()))


# -- workspaces -------------------------------------------------------------------------------------------------------


def knows_input(workspace: Workspace) -> bool:
    """Whether a workspace can be gone on with by itself."""
    return holds_input(workspace)


def why_not(workspace: Workspace) -> str:
    """What to do with one that cannot."""
    return f"{why_not_held(workspace)}; to go on call quadratic_transport again"


def resume_files(workspace: Workspace, options: Options, **limits: Any) -> Result:
    """Go on with a run whose masses and costs are in its workspace."""
    goals = options["marginals"], options["weight"], options["tol"]
    return solve_transport(read_held(workspace), *goals, Limits(workspace=workspace.name, **limits))


def dress(workspace: Workspace, result: Result) -> Result:
    """What a workspace has found so far, with its plan and potentials in the order of the input."""
    return _with_plan(read_held(workspace), result) if workspace.answer else result
