"""Check a workspace over the complete graph against itself."""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import TOLERANCE, agree, check_certificate, claimed_now, require
from ..engine.parallel import count_workers
from ..errors import InputError
from ..storage.memory import Budget
from ..storage.vectors import Pool
from ..storage.workspace import Workspace
from .build import divide_memory
from .inputs import check_ends, read_stored
from .program import TableIterate, TableProgram, Workers, add_loads, close_tiles
from .store import TriangleStore
from .stored import held_tiling, load_iterate, load_program
from .tiles import Tiles


def verify_table(workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
    """Recompute all that the manifest claims; raises WorkspaceError at the first thing that does not hold.

    ``oracle`` other than "numba" looks for violated triangles with plain array arithmetic, independent of the kernels
    but on the whole matrix in memory.
    """
    if oracle not in ("numba", "igraph"):
        raise InputError(f"oracle must be 'numba' or 'igraph', found {oracle!r}")
    budget = Budget()
    if oracle == "numba":
        options = workspace.manifest["problem"]["options"]
        budget = divide_memory(held_tiling(workspace), options, count_workers(workers), memory, disk=True)
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(budget.vectors, Path(folder))
        try:
            return _report(workspace, budget, pool, oracle)
        finally:
            pool.close()


def _report(workspace: Workspace, budget: Budget, pool: Pool, oracle: str) -> dict[str, Any]:
    manifest, tiling = workspace.manifest, held_tiling(workspace)
    check_ends(workspace, tiling)
    program = load_program(workspace, tiling, pool, Workers())
    iterate = load_iterate(workspace, program)
    rows = TriangleStore(tiling, budget.rows, pool).read(workspace.generation / "rows")
    load = add_loads(rows, program.new_tiles())
    drift = _drift(program, iterate, load)
    require(
        workspace, drift <= TOLERANCE * program.size, f"x does not follow from the duals: they differ by {drift:.2e}"
    )
    exact = claimed_now(manifest) is not None and "worth" in (claimed_now(manifest) or {})
    bound = program.exact_bound(load) if exact and manifest["status"] == "converged" else program.bound(iterate)
    load.close()
    report = {"drift": drift, "rows": len(rows), "lower_bound": bound}
    agree(workspace, bound, manifest["lower_bound"], "lower bound", program.worth)
    agree(workspace, len(rows), manifest["n_active"], "rows remembered")
    distance = _closure_distance(program, iterate) if claimed_now(manifest) is not None else None
    check_certificate(workspace, violation=distance, scale=program.size, worth=program.worth)
    if workspace.feasible:
        point = program.new_tiles().fill_lines(read_stored(workspace.feasible, "x", tiling))
        report["objective"] = program.value(point)
        agree(workspace, report["objective"], manifest["objective"], "objective", program.worth)
        report["violation_of_x"] = _violation(program, point, oracle)
        require(
            workspace,
            report["violation_of_x"] <= TOLERANCE * program.size,
            f"the stored point is not feasible: a row is violated by {report['violation_of_x']:.2e}",
        )
    return report


def _drift(program: TableProgram, iterate: TableIterate, load: Tiles) -> float:
    """How far the stored point is from the one that follows from the duals."""
    drift = 0.0
    for span in load.passes():
        inverse = 1.0 if program.inverse is None else program.inverse.read(*span)
        y = program.target.read(*span) - inverse * load.read(*span)
        drift = max(drift, float(np.abs(y - iterate.y(span)).max(initial=0.0)))
    return drift


def _closure_distance(program: TableProgram, iterate: TableIterate) -> float:
    """Euclidean distance between the iterate and its shortest-path closure."""
    closed, squares = program.new_tiles(), []
    for span in closed.passes():
        closed.write(span[0], program.clip(iterate.y(span), span))
    close_tiles(closed, Workers())
    for span in closed.passes():
        far = program.clip(iterate.y(span), span) - closed.read(*span)
        squares.append(float(np.sum(far * far)))
    closed.close()
    return math.sqrt(math.fsum(squares))


def _violation(program: TableProgram, point: Tiles, oracle: str) -> float:
    """Largest violation of a triangle or a limit."""
    worst = 0.0
    for span in point.passes():
        x = point.read(*span)
        worst = max(worst, float(np.abs(program.clip(x, span) - x).max(initial=0.0)))
    if oracle == "numba":
        closure = close_tiles(program.new_tiles().copy_from(point), Workers())
        return max(worst, *(float((point.read(*s) - closure.read(*s)).max(initial=0.0)) for s in point.passes()), 0.0)
    x = point.square()
    for line in x:
        worst = max(worst, float((np.abs(line[:, None] - line) - x).max(initial=0.0)))
    return worst
