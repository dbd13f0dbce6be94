"""Recompute what a workspace of transport claims, where it has masses and costs: all pairs, in plain numpy."""

from typing import Any

import numpy as np

from ..engine.check import agree, check_certificate, claimed_now
from ..engine.check import require as demand
from ..storage.arrays import read_array
from ..storage.workspace import Workspace
from . import settings
from .costs import PointCosts
from .data import TransportData, holds_input, read_held, why_not_held
from .exact import ExactPlan, ExactPoint, SupportCount
from .inputs import Task
from .levels import levels_of
from .plan import Transport, split_answer
from .soft import SoftPlan, SoftPoint
from .store import PairStore

SOFT, EXACT = "soft", "exact"
ROUNDING = 1e-12  # of the largest potential or mass: what a violation or an error of the marginals may be


def verify_transport(workspace: Workspace, plan: SoftPlan | ExactPlan) -> dict[str, Any]:
    """Check every array, that the claims agree with each other and, where they are held, with masses and costs."""
    manifest, group = workspace.manifest, workspace.generation
    soft, nodes = manifest["problem"]["options"]["marginals"] == SOFT, manifest["graph"]["edges"]
    z = read_array(group, "z", dtype=np.float64)
    whole = soft or not manifest["plan"].get("level")  # else as many as a coarser problem has
    demand(workspace, bool(np.isfinite(z).all()) and (len(z) == nodes or not whole), "the stored z is not a point")
    rows = manifest["n_active"]
    if soft:
        p = read_array(group / "rows", "p", dtype=np.float64)
        added = read_array(group / "rows", "added", dtype=np.int64)
        demand(workspace, bool((p >= 0.0).all()), "a stored multiplier is negative")
        demand(workspace, len(added) == 1, "it is not known how many pairs were taken up")
        demand(workspace, len(p) == rows, "the pairs are not as many as the manifest says")
    else:
        support = SupportCount()
        support.read(group / "rows")
        demand(workspace, len(support) == rows, "the support is not as large as the manifest says")
    bounds = manifest["lower_bound"], manifest["objective"]
    below = None in bounds or bounds[0] <= bounds[1] + ROUNDING * abs(bounds[1])
    demand(workspace, below, "the lower bound is above the objective")
    claimed = claimed_now(manifest) or {}
    scale, worth = claimed.get("scale") or 1.0, claimed.get("worth") or 0.0
    check_certificate(workspace, violation=None, scale=scale, worth=worth)
    report = {"rows": rows, "lower_bound": manifest["lower_bound"]}
    if not holds_input(workspace):
        return {**report, "pairs_read": 0, "why": why_not_held(workspace)}
    task, options = read_held(workspace), manifest["problem"]["options"]
    same = manifest["graph"]["source"]["digest"] == TransportData(task, options["marginals"], 1.0).fingerprint
    demand(workspace, same, "masses and costs are not those that it was made with")
    best = _check_state(workspace, task, plan)
    found = _look_at_pairs(workspace, task, best, worth)
    if workspace.answer:
        found["objective"] = _look_at_answer(workspace, task, best, worth)
    return {**report, **found}


def _check_state(workspace: Workspace, task: Task, plan: SoftPlan | ExactPlan) -> np.ndarray:
    """Refuse a state that a run could not go on from; returns its best potentials."""
    group, weight = workspace.generation, workspace.manifest["problem"]["options"]["weight"]
    if isinstance(plan, SoftPlan):
        PairStore(task.costs).read(group / "rows")
        return SoftPoint.read(group, task).best
    point = ExactPoint.read(group, task)
    plan.check_at(levels_of(task), weight, point.z, workspace.record)
    if point.plan is not None:
        _check_plan(workspace, task, point.plan)
    return point.best


def _check_plan(workspace: Workspace, task: Task, plan: Transport) -> None:
    """A plan has each pair once and, where marginals are exact, all of them."""
    keys = plan.left * task.costs.shape[1] + plan.right
    demand(workspace, len(np.unique(keys)) == len(keys), "a pair is twice in the plan")
    if workspace.manifest["problem"]["options"]["marginals"] == EXACT:
        lack = plan.missing / float(task.a.sum())
        demand(workspace, lack <= ROUNDING, f"the plan lacks {lack:.3g} of its marginals")


def _look_at_pairs(workspace: Workspace, task: Task, z: np.ndarray, worth: float) -> dict[str, Any]:
    """The bound of the stored potentials, of which every pair is looked at."""
    options, n = workspace.manifest["problem"]["options"], len(task.a)
    worst, squares = look_at_all(task, z)
    linear, weight = float(z[:n] @ task.a + z[n:] @ task.b), options["weight"]
    if options["marginals"] == SOFT:
        size = max(float(np.abs(z).max()), weight * float(max(task.a.max(), task.b.max())))
        demand(workspace, worst <= ROUNDING * size, f"the potentials violate a pair by {worst:.3g}")
        bound = linear - 0.5 * float(z @ z) / weight
    else:
        bound = linear - 0.5 * squares / weight
    size = max(worth, abs(linear))
    agree(workspace, bound, workspace.manifest["lower_bound"], "lower bound", size=size)
    lower = float(read_array(workspace.generation, "lower", dtype=np.float64)[0])
    agree(workspace, bound, lower, "lower bound to go on with", size=size)
    read = task.costs.shape[0] * task.costs.shape[1]
    return {"lower_bound": bound, "largest_excess": worst, "pairs_read": read}


def _look_at_answer(workspace: Workspace, task: Task, best: np.ndarray, worth: float) -> float:
    """The objective of the plan shown, which must come with the best potentials."""
    manifest, weight = workspace.manifest, workspace.manifest["problem"]["options"]["weight"]
    answer = read_array(workspace.outcome, "x", dtype=np.float64)
    potentials, plan = split_answer(task, answer, workspace.outcome)
    demand(workspace, np.array_equal(potentials, best), "the potentials shown are not the best ones known")
    _check_plan(workspace, task, plan)
    if manifest["problem"]["options"]["marginals"] == SOFT:
        squares = float(np.sum(plan.row_rest**2) + np.sum(plan.column_rest**2))
    else:
        squares = float(plan.mass @ plan.mass)
    value = plan.cost + 0.5 * weight * squares
    agree(workspace, value, manifest["objective"], "objective", size=max(worth, abs(value)))
    return value


def look_at_all(task: Task, z: np.ndarray) -> tuple[float, float]:
    """The largest excess f_i + h_j - C_ij of all pairs, none skipped, and the sum of squares of those above zero."""
    (n, m), side, worst, squares = task.costs.shape, settings.BLOCK, -np.inf, 0.0
    f, h = z[:n], z[n:]
    for i in range(0, n, side):
        for j in range(0, m, side):
            rows, columns = slice(i, min(i + side, n)), slice(j, min(j + side, m))
            excess = f[rows, None] + h[columns] - plain_costs(task, rows, columns)
            worst = max(worst, float(excess.max()))
            squares += float(np.sum(np.maximum(excess, 0.0) ** 2))
    return worst, squares


def plain_costs(task: Task, rows: slice, columns: slice) -> np.ndarray:
    """A block of costs, in the plainest way."""
    costs = task.costs
    if not isinstance(costs, PointCosts):
        return costs.block(rows, columns)
    squares = np.sum((costs.x[rows, None] - costs.y[columns]) ** 2, axis=2)
    return np.sqrt(squares) if costs.root else squares
