"""General convex sets: minimise a Bregman function over their intersection, by projections onto them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..engine.family import Given, Session
from ..engine.limits import Limits
from ..engine.result import Result
from ..engine.run import solve
from ..errors import InputError
from ..general.family import SETS, Request, check_objective
from ..general.program import RowProgram
from ..general.schedule import SCAN
from ..general.set_schedule import Member, SetSchedule, are_of
from ..objectives import Objective
from ..sets import ConvexSet, from_function


def project_onto_sets(
    objective: Objective,
    sets: Sequence[ConvexSet | Callable[[np.ndarray], np.ndarray]],
    *,
    oracle: Callable[[np.ndarray], Any] | None = None,
    tol: float = 1e-6,
    workspace: Any = None,
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | str | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
    restart: bool = False,
) -> Result:
    """Minimise a Bregman function over an intersection of convex sets given by projections.

    Parameters
    ----------
    objective : Objective
        A smooth one from `ooc_pf.objectives`; with ``quadratic(point)`` the answer is the nearest point.
    sets : sequence
        From `ooc_pf.sets`: halfspace, slab, ball, box, second_order_cone, psd_cone, simplex; or functions that project.
    oracle : function, optional
        Of x, returns the numbers of the sets to look at; all sets are looked at from time to time, and at the end.
    tol : float
        Stop when the relative gap and the distance of x from every set, relative to the largest entry of x, or of the
        point that would be best without sets if that is larger, are both at most this.
    workspace, memory, workers, max_iter, max_time, seed, callback, progress, restart
        As for `project_and_forget`; there is no random choice.

    Returns
    -------
    Result
        ``duals`` maps the number of a set to its increment, over the variables the set is about. ``lower_bound`` is
        proven if the projections are exact; ``x`` is in every set up to ``violation``.

    Examples
    --------
    >>> import ooc_pf as pf
    >>> sets = [pf.sets.ball([0.0, 0.0], 1.0), pf.sets.halfspace([1.0, 0.0], 0.6)]
    >>> pf.project_onto_sets(pf.objectives.quadratic([3.0, 1.0]), sets, tol=1e-9).x.round(6).tolist()
    [0.6, 0.8]
    """
    check_objective(objective)
    if not objective.smooth:
        raise InputError(f"{objective.name} is not differentiable, which general sets need; use another objective")
    members = read_sets(objective, sets)
    options = {"tol": tol, "objective": objective.name, "sets": len(members), "seed": seed}

    def make(session: Session) -> SetSchedule:
        return SetSchedule(objective, members, oracle, session.threads, session.monitor, tol)

    store = {"changing": ("dual", "coefficient", "rhs")}
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
    request = Request(RowProgram.of(objective), make, SCAN, store, owns=lambda block: are_of(block, members))
    return solve(SETS, Given(request), options, limits)


def read_sets(objective: Objective, sets: Sequence[Any]) -> list[Member]:
    """The sets, each with the part of the objective it is about."""
    if not hasattr(sets, "__len__") or not len(sets):
        raise InputError("sets must be a sequence with at least one set")
    return [_member(objective, number, given) for number, given in enumerate(sets)]


def _member(objective: Objective, number: int, given: Any) -> Member:
    chosen = given if isinstance(given, ConvexSet) else from_function(given)
    at = chosen.variables(objective.size)
    if len(at) == 0 or at.min() < 0 or at.max() >= objective.size:
        raise InputError(f"set {number} is about variables that do not exist; there are {objective.size}")
    if chosen.on is not None and objective.matrix is not None:
        raise InputError(f"set {number} is about some variables only, which an objective with Q does not allow")
    part = objective if chosen.on is None else objective.over(at)
    try:
        return Member(at.astype(np.int32), part, chosen.bind(part))
    except InputError as error:
        raise InputError(f"set {number}: {error}") from None
