"""General linear inequalities and equations: any objective of `objectives`, any oracle of rows."""

from collections.abc import Callable
from typing import Any

from ..engine.family import Given, Session
from ..engine.limits import Limits
from ..engine.result import Result
from ..engine.run import solve
from ..errors import InputError
from ..general.family import ROWS, Request, check_objective, read_point
from ..general.program import RowProgram
from ..general.scan import Scanner
from ..general.schedule import SAMPLE, SCAN, RowSchedule
from ..objectives import Objective
from ..oracles import read_oracle
from ..storage.arrays import digest

FORGETS = ("inactive", "all", "never")


def project_and_forget(
    objective: Objective,
    oracle: Any,
    *,
    tol: float = 1e-6,
    forget: str = "inactive",
    interior: Any = None,
    seed: int = 0,
    workspace: Any = None,
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | str | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
    restart: bool = False,
) -> Result:
    """Minimise a Bregman function over linear inequalities and equations that an oracle finds.

    Parameters
    ----------
    objective : Objective
        From `ooc_pf.objectives`: quadratic, entropy, p_norm, fermi_dirac, hellinger, l1, linf, or your own separable.
    oracle : Oracle, (A, b), function or iterable
        From `ooc_pf.oracles`, or what they are made of: a table ``A x <= b``, a function of x that returns rows, or an
        iterable of blocks of rows.
    tol : float
        Stop when a complete pass finds the relative gap and the largest violation both at most this. A violation is
        the distance of x from what satisfies the row, relative to the largest entry of x, or of the point that would
        be best without rows if that is larger. So rows may be scaled as one likes.
    forget : {"inactive", "all", "never"}
        After an iteration, forget the rows whose multiplier is zero (the paper's method); all rows, keeping only the
        multipliers (its truly stochastic variant, for a random oracle); or none.
    interior : array, optional
        A point that satisfies every row. With it ``x`` is feasible and ``objective`` a proven upper bound.
    seed : int
        Of the random choices of an oracle.
    workspace : path, optional
        Keep the state here, on disk, and continue from it when called again with the same arguments.
    memory : int or str, optional
        Budget in bytes, or like "500MB", for what is held beyond the interpreter and what the caller holds.
    workers : int, optional
        Threads that look for violated rows; the answer does not depend on it. None: one a core.
    max_iter, max_time : optional
        Stop after so many iterations, or after so many seconds, or a time like "90s" or "6h", of this call.
    callback : callable, optional
        Called with a dict after each iteration; a true answer stops the run.
    progress : bool
        Show progress on stderr.
    restart : bool
        Discard the progress in the workspace.

    Returns
    -------
    Result
        ``duals`` maps the key of a row, its number in a table, to its multiplier. ``lower_bound`` is the value of the
        dual there, a proven bound. Without ``interior`` the point is feasible only up to ``violation``, so that
        ``objective`` is close to the optimum and no bound of it. Status "infeasible" means that the multipliers prove
        that there is no feasible point with entries up to a million times those of x; "stalled" that the violation
        stopped falling without such a proof.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> result = pf.project_and_forget(pf.objectives.quadratic([2.0, 1.0]), (np.array([[1.0, 1.0]]), [1.0]))
    >>> result.x.round(6).tolist(), result.duals
    ([1.0, 0.0], {0: 1.0})
    """
    check_objective(objective)
    if forget not in FORGETS:
        raise InputError(f"forget must be one of {', '.join(FORGETS)}, found {forget!r}")
    source = read_oracle(oracle)
    if source.variables not in (None, objective.size):
        raise InputError(f"the rows are over {source.variables} variables, the objective over {objective.size}")
    if not source.complete and source.check is None and max_iter is None and max_time is None:
        raise InputError(
            "an oracle that may miss violated rows cannot tell when the answer is reached; give it check=, an oracle "
            "that is complete, or give max_iter= or max_time="
        )
    inner = None if interior is None else read_point("interior", interior, objective)
    options = {"tol": tol, "forget": forget, "oracle": source.name, "objective": objective.name}
    options |= {"seed": seed, "interior": None if inner is None else digest(inner)}

    def make(session: Session) -> RowSchedule:
        scanner = Scanner(session.threads, objective.domain, inner)
        return RowSchedule(source, scanner, session.monitor, tol, seed, stochastic=forget == "all")

    program, stage = RowProgram.of(objective, inner), SCAN if source.complete else SAMPLE
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
    return solve(ROWS, Given(Request(program, make, stage, {"forgets": forget}, source.fingerprint)), options, limits)
