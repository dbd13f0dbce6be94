"""Quadratically regularised optimal transport."""

from collections.abc import Callable
from typing import Any

from ..engine.limits import Limits
from ..engine.result import Result
from ..transport.inputs import read_task, read_weight
from ..transport.solve import solve_transport

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
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
) -> Result:
    limits = Limits(
        memory=memory, workers=workers, max_iter=max_iter, max_time=max_time, callback=callback, progress=progress
    )
    task = read_task(a, b, cost, metric)
    if marginals == "soft":
        weight = read_weight("gamma", gamma, "what a unit of squared marginal error costs, twice")
    else:
        weight = read_weight("reg", reg, "the weight of |P|^2 / 2")
    return solve_transport(task, marginals, weight, tol, limits)
