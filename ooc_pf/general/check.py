"""Check a workspace of general rows or sets, as far as that goes without its functions."""

from typing import Any

import numpy as np

from ..engine.check import TOLERANCE, agree, check_history, require
from ..engine.store import ConstraintStore
from ..storage.arrays import read_array
from ..storage.workspace import Workspace
from .program import add_loads


def verify_general(workspace: Workspace) -> dict[str, Any]:
    """Check every chunk, every row, and that y follows from the start and the duals.

    Of a run that keeps only the duals of its rows the last cannot be checked.
    """
    if workspace.manifest["problem"] is None:
        return {}
    check_history(workspace)
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
    return report
