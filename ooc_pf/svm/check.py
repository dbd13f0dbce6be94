"""Recompute what a workspace of a support vector machine claims, from its arrays and, where it knows them, its rows."""

from typing import Any

import numpy as np

from ..engine.check import agree, check_certificate
from ..engine.check import require as demand
from ..errors import InputError
from ..storage.arrays import read_array
from ..storage.workspace import Workspace
from .files import holds_rows, open_program
from .labels import as_matrix
from .program import Program, Sums, bound_at, row_weights, value_at
from .schedule import SAMPLE


def verify_svm(workspace: Workspace) -> dict[str, Any]:
    """Check every array and that the claims agree with each other and with the rows."""
    manifest, group = workspace.manifest, workspace.generation
    size, options = manifest["graph"]["edges"], manifest["problem"]["options"]
    w, lower = read_array(group, "w", dtype=np.float64), read_array(group, "lower", dtype=np.float64)
    active = int(np.unpackbits(read_array(group / "rows", "active", dtype=np.uint8)).sum())
    demand(workspace, len(w) == size and bool(np.isfinite(w).all()), "the stored w is not a point")
    demand(workspace, active == manifest["n_active"], "the active rows are not as many as the manifest says")
    demand(workspace, len(lower) > 0 and size % len(lower) == 0, "the stored bounds are not those of classes")
    report: dict[str, Any] = {"rows": active, "lower_bound": float(lower.sum())}
    agree(workspace, report["lower_bound"], manifest["lower_bound"], "lower bound")
    if workspace.feasible:
        x = read_array(workspace.feasible, "x")
        demand(workspace, len(x) == size and bool(np.isfinite(x).all()), "the stored x is not a point")
        points = x.reshape(len(lower), -1)
        inner = points[:, : points.shape[1] - options["fit_intercept"]]
        with np.errstate(over="ignore"):
            least = max(0.5 * float(np.sum(inner**2)), manifest["lower_bound"]) * (1.0 - 1e-9)
        demand(workspace, manifest["objective"] >= least, "the objective is below what it cannot be below")
        if holds_rows(workspace):
            report |= _look_at_rows(workspace, points, lower, options)
    check_certificate(workspace, violation=None, scale=1.0, worth=0.0)
    return report


def _look_at_rows(
    workspace: Workspace, points: np.ndarray, lower: np.ndarray, options: dict[str, Any]
) -> dict[str, Any]:
    """Objective and bound at the stored point, by a look at all rows in the plainest way."""
    try:
        program = open_program(workspace, options["C"], options["fit_intercept"])
    except InputError as error:
        return {"rows_read": 0, "why": str(error)}
    demand(workspace, points.shape == (len(program.positive), program.width), "the stored x is not of these rows")
    sums = plain_sums(program, points)
    values = [value_at(w, program.border, sums.square[c]) for c, w in enumerate(points)]
    bounds = [bound_at(w, program.border, sums, c) for c, w in enumerate(points)]
    agree(workspace, sum(values), workspace.manifest["objective"], "objective")
    # Bounds of earlier points may be better than those of this one.
    above = [bound > value * (1.0 + 1e-9) for bound, value in zip(lower, values, strict=True)]
    demand(workspace, not any(above), "the lower bound of a class is above its F")
    _check_known(workspace, points, values)
    return {"rows_read": program.table.rows, "objective": sum(values), "lower_bound_of_x": sum(bounds)}


def _check_known(workspace: Workspace, points: np.ndarray, values: list[float]) -> None:
    """What the run goes on with as the F of a class must be that F, where it is of the point that was looked at."""
    base = read_array(workspace.generation, "base", dtype=np.float64)
    known = read_array(workspace.generation, "value", dtype=np.float64)
    demand(workspace, base.size == points.size and len(known) == len(points), "the stored base is not a point")
    if workspace.manifest["plan"]["stage"] == SAMPLE:
        return  # of some of the rows
    for at, point, value, found in zip(base.reshape(points.shape), points, known, values, strict=True):
        if np.isfinite(value) and np.array_equal(at, point):
            agree(workspace, found, float(value), "objective of a class")


def plain_sums(program: Program, points: np.ndarray) -> Sums:
    """What a pass adds up, but for the Hessian, in plain numpy."""
    table, sums = program.table, Sums.zero(program)
    d = table.columns
    for pieces in table.tasks([[span] for span in table.parts]):
        for first, load in pieces:
            block = as_matrix(load())
            span = slice(first, first + block.shape[0])
            price = row_weights(program, span, 1.0)
            for c, w in enumerate(points):
                above = program.code[span] == program.positive[c]
                sign = np.where(above, 1.0, -1.0)
                slack = np.maximum(1.0 - sign * (block @ w[:d] + (w[d] if program.border else 0.0)), 0.0)
                for side, there in enumerate((above, ~above)):
                    z = np.where(there, price * slack, 0.0)
                    sums.mass[c, side] += z.sum()
                    sums.square[c, side] += float(z @ slack)
                    if program.border:
                        sums.pull[c, side] += z @ block
                    else:
                        sums.pull[c, 0] += (1.0 - 2.0 * side) * (z @ block)
    return sums
