"""One call of transport."""

from dataclasses import replace

from ..engine.family import Given
from ..engine.limits import Limits
from ..engine.result import Held, Result
from ..engine.run import solve
from .family import TRANSPORT, TransportData
from .inputs import Task
from .plan import made_of, unpack


def solve_data(data: TransportData, tol: float, limits: Limits) -> Result:
    """Solve it; the x of the result has the potentials, then rows, columns and masses of the plan."""
    options = {"tol": tol, "marginals": data.marginals, "weight": data.weight}
    return solve(TRANSPORT, Given(data), options, limits)


def solve_transport(task: Task, marginals: str, weight: float, tol: float, limits: Limits) -> Result:
    """Solve a task; ``weight`` is gamma or reg. The answer has the same bits for any number of workers."""
    result = solve_data(TransportData(task, marginals, weight), tol, limits)
    nodes = sum(task.costs.shape)
    made = made_of(task, unpack(task, result.x[nodes:]), result.x[:nodes])
    return replace(result, made=made, read_x=Held(made["plan"]), blocks=Held(()))
