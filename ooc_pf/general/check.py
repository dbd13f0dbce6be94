"""Check a workspace of general rows or sets, as far as that goes without the functions of the caller."""

from typing import Any

import numpy as np

from ..engine.check import TOLERANCE, agree, check_certificate, claimed_now, require
from ..engine.rows import RowBlock
from ..engine.store import ConstraintStore
from ..engine.sweeps import total_charge
from ..kernels.ragged import measure_rows, row_norms
from ..objectives import Objective
from ..storage.arrays import read_array
from ..storage.vectors import Vector
from ..storage.workspace import Workspace
from .program import RowProgram, add_loads
from .stored import stored_objective


def verify_general(workspace: Workspace) -> dict[str, Any]:
    """Check every chunk and every row, that y follows from the duals, and bound and objective at y.

    Whether rows that are not remembered hold cannot be checked, as the oracle is not in the workspace. Of a run that
    keeps only the duals of its rows y cannot be checked, and nothing of an objective that is a function of the caller.
    """
    start, y = read_array(workspace.graph, "start"), read_array(workspace.generation, "y")
    require(workspace, len(y) == len(start), "y does not have an entry for each variable")
    rows = ConstraintStore().read(workspace.generation / "rows", len(start))
    report: dict[str, Any] = {"rows": len(rows)}
    agree(workspace, len(rows), workspace.manifest["n_active"], "rows remembered")
    if workspace.manifest["problem"]["options"].get("forget") != "all":
        load = add_loads(((block, block.dual) for block in rows.blocks()), len(start))
        report["drift"] = float(np.abs(y - start + load).max(initial=0.0))
        scale = float(np.abs(start).max(initial=0.0)) + float(np.abs(load).max(initial=0.0))
        drifted = f"y does not follow from the duals: they differ by {report['drift']:.2e}"
        require(workspace, report["drift"] <= TOLERANCE * scale, drifted)
    if workspace.feasible:
        x = read_array(workspace.feasible, "x")
        require(workspace, len(x) == len(start) and bool(np.isfinite(x).all()), "the stored x is not a point")
    objective = stored_objective(workspace.graph)
    return report if objective is None else report | _check_objective(workspace, objective, y, rows)


def _check_objective(workspace: Workspace, objective: Objective, y: np.ndarray, rows: ConstraintStore) -> dict:
    """Recompute bound, objective and certificate."""
    manifest, program = workspace.manifest, RowProgram.of(objective)
    digest = manifest["graph"]["source"].get("digest")
    require(workspace, objective.fingerprint == digest, "the objective is not the one the run was started with")
    charge, iterate = total_charge(program, rows), objective.point(y)
    scale, worth = program.scale(iterate), program.worth(y, charge)
    report = {"lower_bound": program.bound(Vector.of(y), charge)}
    agree(workspace, report["lower_bound"], manifest["lower_bound"], "lower bound", worth)
    claimed = claimed_now(manifest)
    if workspace.feasible:
        x = read_array(workspace.feasible, "x")
        report["objective"] = objective.value(x)
        agree(workspace, report["objective"], manifest["objective"], "objective", worth)
        if claimed is not None and not claimed.get("feasible", True):
            far = float(np.abs(x - iterate).max(initial=0.0))
            require(workspace, far <= TOLERANCE * scale, f"x is not the point of the multipliers: off by {far:.2e}")
    least = max((_violation(block, iterate) for block in rows.blocks()), default=0.0)
    if claimed is not None and claimed["violation"] is not None and manifest["problem"]["name"] == "rows":
        hidden = f"a remembered row is violated by {least:.2e}, the manifest claims {claimed['violation']:.2e} at most"
        require(workspace, least <= claimed["violation"] + TOLERANCE * scale, hidden)
    check_certificate(workspace, violation=None, scale=scale, worth=worth)
    return report


def _violation(block: RowBlock, x: np.ndarray) -> float:
    """The largest distance of x from what satisfies a row of the block."""
    general = block.general
    assert general is not None
    entries = block.table[block.index]
    excess, _ = measure_rows(block.start, entries, general.coefficient, general.rhs, x)
    excess = np.where(general.equality, np.abs(excess), excess)
    norm = row_norms(block.start, general.coefficient)
    at_hand = norm > 0.0
    return float(np.max(excess[at_hand] / norm[at_hand], initial=0.0))
