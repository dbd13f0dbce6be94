"""General linear inequalities and equations: any objective of `objectives`, any oracle of rows."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from ..cycles.family import Limits
from ..engine.monitor import Monitor
from ..engine.problem import Pass, Problem, State
from ..engine.result import Result
from ..engine.rows import TRAIL
from ..engine.sweeps import sweep_round
from ..errors import InputError
from ..general.family import (
    CHECK,
    Request,
    certify,
    check_objective,
    first_plan,
    judge,
    make_problem,
    read_point,
    solve_general,
)
from ..general.newton import newton_steps
from ..general.program import RowProgram
from ..general.scan import Scanner
from ..objectives import Objective
from ..oracles import Oracle, read_oracle
from ..storage.arrays import digest

ROUNDS, MOST_ROUNDS = 3, 100  # of sweeps between two looks at the oracle
REACH = 1e6  # infeasibility is proven for points up to so many times the size of the present one
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
    max_time: float | None = None,
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
        Stop when a complete pass finds the largest violation (relative to the largest entry of x, if that is above 1)
        and the relative gap both at most this.
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
        Stop after so many iterations, or seconds, of this call.
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
    options = {"tol": float(tol), "forget": forget, "oracle": source.name, "objective": objective.name}
    options |= {"seed": int(seed), "interior": None if inner is None else digest(inner)}

    def make(pool: Executor, monitor: Monitor) -> Problem:
        return row_problem(objective, source, Scanner(pool, objective.domain, inner), monitor, options)

    plan = first_plan("scan" if source.complete else "sample")
    limits = Limits(workspace, memory, workers, max_iter, max_time, callback, progress, restart)
    program = RowProgram.of(objective, inner)
    return solve_general(Request("rows", program, make, plan, options, limits, store={"forgets": forget}))


def row_problem(objective: Objective, oracle: Oracle, scanner: Scanner, monitor: Monitor,
                options: dict[str, Any]) -> Problem:  # fmt: skip
    """The engine's record for general rows."""
    tol, stochastic = options["tol"], options["forget"] == "all"
    ahead = {"task": 0, "verdict": None}  # from one step of an iteration to its plan

    def find(state: State) -> Pass:
        x, stage = objective.point(state.y.whole), state.plan["stage"]
        tasks = oracle.check if stage == CHECK and not oracle.complete else oracle.tasks
        known = state.rows.keys() if stochastic else np.empty(0, np.uint64)
        with monitor.timed("oracle"), monitor.bar(stage, 0) as tick:
            dice = np.random.default_rng([options["seed"], state.iteration])
            rows = tasks(x, dice) if tasks else ()
            found, ahead["task"] = scanner.scan(
                rows, state.plan["task"], x, known=known, keep=stage != CHECK, tick=tick
            )
        whole = oracle.complete or (stage == CHECK and tasks is not None)
        complete = whole and state.plan["task"] == 0 and ahead["task"] == 0
        proven = certify(state, found.worst, found.pull) if complete else ()
        return Pass(found.rows, found.worst, found.measured, *proven)

    def sweep(state: State, found: Pass) -> dict[str, Any]:
        counts = {"sweeps": 0, "projections": 0}
        if state.plan["stage"] == CHECK or not (len(found.rows) or len(state.rows)):
            return counts
        if stochastic:
            state.program = state.program.around(state.y, state.rows.blocks())
        enough = max(0.02 * found.worst, 0.01 * tol)
        # Where a look costs more than sweeps do, sweep for as long.
        for _ in range(min(max(ROUNDS, found.relaxed // (8 * max(len(state.rows), 1))), MOST_ROUNDS)):
            residual = sweep_round(state, monitor.stop)
            counts["sweeps"] += TRAIL - 1
            counts["projections"] += (TRAIL - 1) * len(state.rows)
            if residual <= enough:
                break
        counts["newton"] = newton_steps(state, 0.1 * enough, monitor.stop)
        ahead["verdict"] = "infeasible" if proves_infeasible(state) else None
        return counts

    def plan(state: State, found: Pass, before: float, after: float) -> dict[str, Any]:
        now = {**state.plan, "task": ahead["task"], "verdict": ahead["verdict"]}
        now["worst"] = max(now["worst"], found.worst)
        if not oracle.complete:
            now["draws"] = 0 if now["stage"] == CHECK else now["draws"] + 1
            due = oracle.check is not None and now["draws"] >= oracle.draws
            now["stage"] = CHECK if due else "sample"
        if not abs(after) < np.inf:
            raise InputError(
                "the multipliers left the range of the numbers: the rows contradict each other, or are far out of "
                "proportion to the objective; rescale them"
            )
        return judge(now) if ahead["task"] == 0 and now["draws"] == 0 else now

    return make_problem("rows", find, sweep, plan)


def proves_infeasible(state: State) -> bool:
    """Whether the multipliers prove that no point of the domain within reach is feasible.

    Where there is none they grow along a direction that proves it: their last growth is tried, and they themselves.
    """
    program, y = state.program, state.y.whole
    grown = (
        program.load((block, program.growth(block)) for block in state.rows.blocks()),
        [program.charge(block, program.growth(block)) for block in state.rows.blocks()],
    )
    whole = program.objective.start - y, [program.charge(b, b.dual) for b in state.rows.blocks()]
    return any(program.excludes(load, charges, REACH, y) for load, charges in (grown, whole))
