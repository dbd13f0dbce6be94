"""Quadratically regularised optimal transport."""

from collections.abc import Callable
from typing import Any

from ..engine.limits import Limits
from ..engine.result import Result
from ..transport.inputs import read_task, read_weight
from ..transport.solve import solve_soft

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
    gamma = read_weight("gamma", gamma, "what a unit of squared marginal error costs, twice")
    return solve_soft(read_task(a, b, cost, metric), gamma, tol, limits)
