"""Quadratically regularised optimal transport."""

from collections.abc import Callable
from typing import Any

from ..engine.limits import Limits, check_tol
from ..engine.result import Result
from ..errors import InputError
from ..objectives import quadratic
from ..transport.inputs import Task, check_equal_masses, read_task, read_weight
from ..transport.reference import exact_problem, exact_result, soft_problem, soft_result
from ..transport.solve import solve_transport
from .project_and_forget import project_and_forget

MARGINALS = ("soft", "exact")
METHODS = ("nodes", "project_and_forget")


def quadratic_transport(
    a: Any,
    b: Any,
    cost: Any,
    *,
    metric: str = "sqeuclidean",
    marginals: str = "soft",
    gamma: float | None = None,
    reg: float | None = None,
    tol: float = 1e-10,
    method: str = "nodes",
    workspace: Any = None,
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
    restart: bool = False,
) -> Result:
    """Move mass ``a`` to ``b`` at least cost, with a quadratic regulariser; certified.

    With ``marginals="soft"`` it minimises ``<C, P> + gamma/2 |a - P1|^2 + gamma/2 |b - P'1|^2`` over P >= 0: mass may
    stay where it is, at a price. With ``marginals="exact"`` it minimises ``<C, P> + reg/2 |P|^2`` over P >= 0 with
    P1 = a and P'1 = b. Either way most entries of P are zero.

    Parameters
    ----------
    a, b : arrays
        Masses of the rows and of the columns, not negative. For exact marginals their sums must agree.
    cost : (X, Y), array or function
        Two arrays of points, [points, coordinates], of which most pairs are never looked at. Or a matrix that can be
        sliced: an array, a memory map, a zarr array. Or a function of two arrays of numbers, of rows and of columns,
        that returns the costs of all their pairs. Nothing of the size of the matrix is held.
    metric : {"sqeuclidean", "euclidean"}
        What the cost of a pair of points is.
    marginals : {"soft", "exact"}
        Which of the two problems.
    gamma : float
        For soft marginals: how dear what is missing of them is.
    reg : float
        For exact marginals: the weight of the regulariser.
    tol : float
        Stop when the relative gap is at most this; for soft marginals also the largest violation of
        ``f_i + h_j <= C_ij``, relative to gamma times the largest mass, or to the largest potential if that is larger.
    method : {"nodes", "project_and_forget"}
        "nodes": pairs that searches bring, and equations over the rows and columns. "project_and_forget": the paper's
        projections on the general engine, for small problems, to compare with.
    workspace : path, optional
        Keep the state here after every iteration, and continue from it when called again with the same masses, costs
        and options.
    memory : int or str, optional
        Budget in bytes, or like "500MB". What is held grows with the points and the support of the plan.
    workers : int, optional
        Threads that search; the answer does not depend on it. None: one a core.
    max_iter, max_time : optional
        Stop after so many iterations, or seconds.
    callback : callable, optional
        Called with a dict after each iteration; a true answer stops the run.
    progress : bool
        Show progress on stderr.
    restart : bool
        Discard the progress in the workspace.

    Returns
    -------
    Result
        ``plan``, a scipy.sparse array; ``potentials`` (f, h); ``objective``, the value of the plan; ``lower_bound``,
        that of the dual at the potentials, a proven bound; ``gap``; ``row_error`` and ``column_error``, the parts of
        the mass that the plan does not have where a and b want it; ``violation``. With soft marginals the potentials
        violate no pair. With exact ones the plan is mended until it has the marginals up to rounding, ``violation`` is
        what is left of those errors, as a mass, and ``reg/2 |P - P*|^2`` is at most ``objective - lower_bound``, with
        P* the best plan. So both values are proven bounds. Status "stalled": the gap stopped falling before ``tol``.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> x = np.linspace(0, 1, 50)
    >>> a, b = np.exp(-50 * (x - 0.3) ** 2), np.exp(-50 * (x - 0.6) ** 2)
    >>> result = pf.quadratic_transport(a / a.sum(), b / b.sum(), (x, x), gamma=100.0)
    >>> result.gap <= 1e-10, result.plan.shape, result.plan.nnz < 150
    (True, (50, 50), True)
    >>> result = pf.quadratic_transport(a / a.sum(), b / b.sum(), (x, x), marginals="exact", reg=0.1)
    >>> bool(abs(result.plan.sum(axis=1) - a / a.sum()).max() < 1e-10)
    True
    """
    check_tol(tol)
    _check_choices(marginals, method, gamma, reg)
    limits = Limits(
        workspace=workspace,
        memory=memory,
        workers=workers,
        max_iter=max_iter,
        max_time=max_time,
        callback=callback,
        progress=progress,
        restart=restart,
    )
    limits.check()
    if marginals == "soft":
        weight = read_weight("gamma", gamma, "gamma= is how dear what is missing of the marginals is")
    else:
        weight = read_weight("reg", reg, "reg= is the weight of |P|^2 / 2")
    task = read_task(a, b, cost, metric)
    if marginals == "exact":
        check_equal_masses(task)
    if method == "nodes":
        return solve_transport(task, marginals, weight, tol, limits)
    return _project_and_forget(task, marginals, weight, tol, limits)


def _check_choices(marginals: str, method: str, gamma: Any, reg: Any) -> None:
    if marginals not in MARGINALS:
        raise InputError(f"marginals must be one of {', '.join(MARGINALS)}, found {marginals!r}")
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, found {method!r}")
    if marginals == "soft" and reg is not None:
        raise InputError('reg= is for marginals="exact"; soft marginals take gamma=')
    if marginals == "exact" and gamma is not None:
        raise InputError('gamma= is for marginals="soft"; exact marginals take reg=')


def _project_and_forget(task: Task, marginals: str, weight: float, tol: float, limits: Limits) -> Result:
    build, read = (soft_problem, soft_result) if marginals == "soft" else (exact_problem, exact_result)
    center, weights, oracle = build(task, weight)
    found = project_and_forget(
        quadratic(center, weights),
        oracle,
        tol=tol,
        workspace=limits.workspace,
        memory=limits.memory,
        workers=limits.workers,
        max_iter=limits.max_iter,
        max_time=limits.max_time,
        callback=limits.callback,
        progress=limits.progress,
        restart=limits.restart,
    )
    return read(task, weight, found)
