"""Support vector machines from files: a workspace is made of them, and a fit goes on from it."""

from typing import Any

import numpy as np

from ..engine.limits import Limits
from ..engine.result import Result
from ..errors import InputError
from ..storage.memory import parse_memory, refuse_below
from ..storage.workspace import Workspace, exists
from ..svm import settings, stochastic
from ..svm.files import Files, holds_rows, make_program, make_workspace, open_program, require_files
from .svm import check_cost, fit_newton, one_thread_a_call


def fit_files(
    files: Files, workspace: Any, *, C: float = 1.0, fit_intercept: bool = False, tol: float = 1e-8, seed: int = 0,
    **limits: Any,
) -> Result:  # fmt: skip
    """Fit by Newton steps, in a workspace; goes on with the fit that it holds."""
    check_cost(C)
    if exists(workspace):
        require_files(Workspace(workspace), files)
    else:
        make_workspace(workspace, files, fit_intercept)
    return _fit(Workspace(workspace), C=C, fit_intercept=fit_intercept, tol=tol, seed=seed, **limits)


def resume_files(workspace: Workspace, options: dict[str, Any], **limits: Any) -> Result:
    """Go on with the fit in a workspace that knows its rows."""
    return _fit(workspace, **{name: options[name] for name in ("C", "fit_intercept", "tol", "seed")}, **limits)


def knows_input(workspace: Workspace) -> bool:
    """Whether a workspace can be gone on with by itself."""
    return holds_rows(workspace)


def _fit(workspace: Workspace, *, C: float, fit_intercept: bool, tol: float, seed: int, **limits: Any) -> Result:
    program = open_program(workspace, C, fit_intercept)
    with one_thread_a_call():
        return fit_newton(program, tol=tol, seed=seed, workspace=workspace.name, **limits)


def fit_stochastic(
    files: Files, *, C: float = 1.0, fit_intercept: bool = False, seed: int = 0, max_iter: int | None = None,
    max_time: float | str | None = None, memory: int | str | None = None, progress: bool = False,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """Fit by random projections; returns weights (by class), the classes, and how it ended. Nothing is proven."""
    check_cost(C)
    limits = Limits(max_iter=max_iter, max_time=max_time, progress=progress)
    limits.check()
    source, columns = files.opened()
    classes, code = files.classes(source.rows)
    program = make_program(source.table(columns), code, len(classes), C, fit_intercept)
    epochs = stochastic.epochs_for(source.rows) if max_iter is None else max_iter
    if epochs == 0:
        raise InputError("max_iter is 0: nothing is projected onto; leave it out, or give 1 or more")
    stochastic.check_memory(program, epochs, memory)
    budget = parse_memory(memory)
    if budget is not None and program.table.stream is not None:
        refuse_below(settings.FIXED + settings.PAGE_BYTES * len(columns), budget, memory)
    start = np.zeros((len(program.positive), program.width))
    with one_thread_a_call():
        state, status = stochastic.ascend(program, start, epochs, seed, limits.monitor())
    return state.mean(), classes, status
