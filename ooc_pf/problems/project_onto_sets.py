"""General convex sets: the paper's second algorithm, a method of Dykstra's with increments for remembered sets only.

With increments q_i in the normal cones of the sets, ``y = t - sum q_i`` plays the part of ``t - A'z``, and the lower
bound is that of rows ``<q_i, x> <= support of set i in the direction q_i``. So a remembered set is stored as a row: its
increment as the coefficients, the support value as the right-hand side, and 1 as the dual while the increment is not
zero.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from ..cycles.family import Limits
from ..engine.monitor import Monitor
from ..engine.parallel import run_tasks
from ..engine.problem import Pass, Problem, State
from ..engine.result import Result
from ..engine.rows import RowBlock, Rows
from ..errors import InputError, SearchStopped
from ..general.family import CHECK, Request, certify, check_objective, first_plan, judge, make_problem, solve_general
from ..general.program import RowProgram
from ..objectives import Objective
from ..sets import ConvexSet, from_function

SWEEPS = 30  # between two looks at all sets, at most
EVERY = 10  # iterations between two complete looks, where an oracle says which sets to look at
REACH = 100.0  # infeasibility is proven for points up to so many times the size of the present one
ROUNDING = 1e-14


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
    max_time: float | None = None,
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
        Stop when the distance of x to every set (relative to the largest entry of x, if that is above 1) and the
        relative gap are both at most this.
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
    family = _Family(objective, sets)
    options = {"tol": float(tol), "objective": objective.name, "sets": len(sets), "seed": int(seed)}

    def make(pool: Executor, monitor: Monitor) -> Problem:
        return set_problem(family, oracle, pool, monitor, options)

    limits = Limits(workspace, memory, workers, max_iter, max_time, callback, progress, restart)
    store = {"changing": ("dual", "coefficient", "rhs")}
    return solve_general(
        Request("sets", RowProgram.of(objective), make, first_plan("scan"), options, limits, store=store)
    )


class _Family:
    """The sets, with the part of the objective each is about and its projection."""

    def __init__(self, objective: Objective, sets: Sequence[Any]):
        self.objective = objective
        if not hasattr(sets, "__len__") or not len(sets):
            raise InputError("sets must be a sequence with at least one set")
        self._members = [self._bound(number, member) for number, member in enumerate(sets)]

    def __len__(self) -> int:
        return len(self._members)

    def _bound(self, number: int, member: Any):
        member = member if isinstance(member, ConvexSet) else from_function(member)
        at = member.variables(self.objective.size)
        if len(at) == 0 or at.min() < 0 or at.max() >= self.objective.size:
            raise InputError(f"set {number} is about variables that do not exist; there are {self.objective.size}")
        if member.on is not None and self.objective.matrix is not None:
            raise InputError(f"set {number} is about some variables only, which an objective with Q does not allow")
        part = self.objective if member.on is None else self.objective.over(at)
        try:
            return at.astype(np.int32), part, member.bind(part)
        except InputError as error:
            raise InputError(f"set {number}: {error}") from None

    def variables(self, number: int) -> np.ndarray:
        return self._members[number][0]

    def part(self, number: int) -> Objective:
        return self._members[number][1]

    def project(self, number: int, x: np.ndarray) -> np.ndarray | None:
        """The nearest point of a set, or None where x is in it already."""
        try:
            near = np.asarray(self._members[number][2](x.copy()), np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"set {number}: its projection failed: {error}") from error
        if near.shape != x.shape or not np.isfinite(near).all():
            what = "numbers that are not finite" if near.shape == x.shape else f"shape {near.shape} for {x.shape}"
            raise InputError(f"set {number}: its projection returned {what}")
        moved = float(np.linalg.norm(near - x))
        return None if moved <= ROUNDING * (1.0 + float(np.linalg.norm(x))) else near

    def step(self, block: RowBlock, row: int, y: np.ndarray) -> float:
        """Project onto one set with its increment taken back (the paper's lines 4 and 5); returns how far x moved."""
        number, span = int(block.key[row]), slice(block.start[row], block.start[row + 1])
        at, part = block.table[block.index[span]], self.part(number)
        before = y[at]
        lifted = before + block.coefficient[span]
        x = part.point(lifted)
        near = self.project(number, x)
        if near is None:
            y[at], block.dual[row], block.rhs[row] = lifted, 0.0, 0.0
            block.coefficient[span] = 0.0
            near = x
        else:
            y[at] = part.gradient(near)
            block.coefficient[span] = lifted - y[at]
            block.dual[row], block.rhs[row] = 1.0, float(block.coefficient[span] @ near)
        return float(np.abs(near - part.point(before)).max(initial=0.0))


def set_problem(family: _Family, oracle: Callable[[np.ndarray], Any] | None, pool: Executor, monitor: Monitor,
                options: dict[str, Any]) -> Problem:  # fmt: skip
    """The engine's record for general sets."""
    objective = family.objective

    def find(state: State) -> Pass:
        x = objective.point(state.y.whole)
        everything = oracle is None or state.plan["stage"] == CHECK
        numbers = np.arange(len(family)) if everything else _read_numbers(oracle(x.copy()), len(family))
        parts = np.array_split(numbers, min(64, max(len(numbers), 1)))
        with monitor.timed("oracle"), monitor.bar("sets", len(parts)) as tick:
            measured = run_tasks(pool, _distances, [(family, part, x, tick) for part in parts])
        if any(part is None for part in measured):
            raise SearchStopped
        distance = np.concatenate(measured)
        rows, worst = _empty_rows(family, numbers[distance > 0.0]), float(distance.max(initial=0.0))
        return Pass(rows, worst, len(numbers), *(certify(state, worst) if everything else ()))

    def sweep(state: State, found: Pass) -> dict[str, Any]:
        counts = {"sweeps": 0, "projections": 0}
        enough = max(0.02 * found.worst, 0.01 * options["tol"])
        for _ in range(SWEEPS):
            residual = 0.0
            for block in state.rows.blocks():
                for row in range(len(block.dual)):
                    if monitor.stop[0]:
                        raise SearchStopped
                    residual = max(residual, family.step(block, row, state.y.whole))
            counts["sweeps"] += 1
            counts["projections"] += len(state.rows)
            if residual <= enough:
                break
        return counts

    def plan(state: State, found: Pass, before: float, after: float) -> dict[str, Any]:
        now = {**state.plan, "worst": max(state.plan["worst"], found.worst)}
        program, y = state.program, state.y.whole
        charges = [program.charge(block, block.dual) for block in state.rows.blocks()]
        if program.excludes(objective.start - y, charges, REACH, y):
            now["verdict"] = "infeasible"
        if found.certificate is not None:
            return judge({**now, "stage": "scan", "draws": 0})
        due = now["draws"] + 1 >= EVERY or not len(found.rows)
        return {**now, "draws": now["draws"] + 1, "stage": CHECK if due else "scan"}

    return make_problem("sets", find, sweep, plan)


def _read_numbers(numbers: Any, count: int) -> np.ndarray:
    found = np.unique(np.asarray(numbers if hasattr(numbers, "__len__") else list(numbers)))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InputError("the oracle must return numbers of sets")
    if len(found) and (found[0] < 0 or found[-1] >= count):
        wrong = found[0] if found[0] < 0 else found[-1]
        raise InputError(f"the oracle returned set {wrong}; there are sets 0 to {count - 1}")
    return found.astype(np.int64)


def _distances(family: _Family, numbers: np.ndarray, x: np.ndarray, tick: Callable[[], bool]) -> np.ndarray | None:
    if not tick():
        return None
    distance = np.zeros(len(numbers))
    for k, number in enumerate(numbers.tolist()):
        part = x[family.variables(number)]
        near = family.project(number, part)
        distance[k] = 0.0 if near is None else float(np.linalg.norm(near - part))
    return distance


def _empty_rows(family: _Family, numbers: np.ndarray) -> Rows:
    """Rows for sets without an increment yet."""
    index = [family.variables(number) for number in numbers.tolist()]
    start = np.cumsum([0, *map(len, index)], dtype=np.int64)
    entries = np.concatenate(index) if index else np.empty(0, np.int32)
    zeros = np.zeros(len(numbers))
    rows = Rows(start, entries, np.zeros(len(entries)), zeros, np.ones(len(numbers), bool))
    return replace(rows, key=numbers.astype(np.uint64))
