"""Check a workspace against itself: every chunk, every row, the invariant, and the certificate by a second engine."""

import contextlib
from typing import Any

import numpy as np

from .arrays import read_array
from .constraints import ConstraintStore, RowBlock
from .cycles import freeze
from .errors import WorkspaceError
from .kernels.paths import UNLIMITED
from .oracle import IgraphOracle, NumbaOracle, count_blocks
from .parallel import count_workers, worker_pool
from .program import CycleProgram, sum_duals
from .solving import MakeProgram, load_edges, load_point, load_program
from .workspace import Workspace

TOLERANCE = 1e-9  # relative; rounding in a long run stays far below


def verify_cycles(workspace: Workspace, make: MakeProgram, *, oracle: str, workers: int | None) -> dict[str, Any]:
    """Recompute all that the manifest claims; raises WorkspaceError at the first thing that does not hold.

    Reading a chunk checks its checksum. The rows must be cycles of the graph, y must follow from the targets and the
    duals, the stored point must be feasible with the stored objective, and the lower bound must be the dual value.
    """
    manifest = workspace.manifest
    edges = load_edges(workspace)
    program = load_program(workspace, make, edges)
    _require(_same_graph(program, make(edges, None, None)), workspace, "graph.zarr does not belong to edges.zarr")
    listed = program
    program, y = load_point(workspace, program)
    rows = ConstraintStore().read(workspace.generation / "rows", len(y))
    ends = program.pairs.ends if program.pairs else np.column_stack((edges.u, edges.v))
    for block in rows.blocks():
        _require(_are_cycles(block, ends), workspace, "a stored row is not a cycle of the graph")
    scale = 1.0 + float(np.abs(program.target).max(initial=0.0))
    drift = float(np.abs(y - program.rebuild((block, block.dual) for block in rows.blocks())).max(initial=0.0))
    _require(drift <= TOLERANCE * scale, workspace, f"x does not follow from the duals: they differ by {drift:.2e}")
    report = {"drift": drift, "rows": len(rows), "lower_bound": program.bound(y, sum_duals(rows.blocks()))}
    _agree(report["lower_bound"], manifest["lower_bound"], workspace, "lower bound")
    if workspace.feasible:
        point = read_array(workspace.feasible, "x")
        more = np.zeros((len(point) - len(edges.u), 2), np.int32)  # what unlisted pairs pay depends on their x alone
        report["objective"] = (listed.with_pairs(more) if len(more) else listed).value(point)
        _agree(report["objective"], manifest["objective"], workspace, "objective")
        least, report["violation_of_x"] = _measure(workspace, listed, point[: len(edges.u)], oracle, workers)
        _require(
            least <= report["objective"] + TOLERANCE * (1.0 + abs(least)), workspace,
            f"the pairs that are not listed bring the objective to {least!r}",
        )  # fmt: skip
        _require(
            report["violation_of_x"] <= TOLERANCE * scale, workspace, "the stored point is not feasible: a row is "
            f"violated by {report['violation_of_x']:.2e}",
        )  # fmt: skip
    return report


def _require(holds: bool, workspace: Workspace, problem: str) -> None:
    if not holds:
        raise WorkspaceError(
            f"{workspace.path}: {problem}; the workspace is damaged, `ooc-pf solve --restart` starts again"
        )


def _agree(found: float, claimed: float, workspace: Workspace, what: str) -> None:
    near = abs(found - claimed) <= TOLERANCE * (1.0 + abs(claimed))
    _require(near, workspace, f"the manifest claims {what} {claimed!r}, the arrays give {found!r}")


def _same_graph(stored: CycleProgram, built: CycleProgram) -> bool:
    one, other = vars(stored.graph), vars(built.graph)
    return all(np.array_equal(one[field], other[field]) for field in one)


def _are_cycles(block: RowBlock, ends: np.ndarray) -> bool:
    """Whether every node of every row has exactly two of its edges.

    That makes a row a cycle, or several, of which one holds the closing edge; as x >= 0 its inequality is valid.
    """
    edge = block.table[block.index]
    row = np.repeat(np.arange(len(block.dual)), np.diff(block.start))
    visited = np.concatenate((ends[edge, 0], ends[edge, 1])).astype(np.int64)
    _, uses = np.unique(np.tile(row, 2) * (np.int64(ends.max(initial=0)) + 1) + visited, return_counts=True)
    return bool((uses == 2).all())


def _measure(workspace: Workspace, program: CycleProgram, point: np.ndarray, oracle: str,
             workers: int | None) -> tuple[float, float]:  # fmt: skip
    """Objective and largest violation of a row at ``point``, by a complete search.

    In a complete graph the unlisted pairs follow from the listed ones: each pays what its distance asks for.
    """
    below = float(np.maximum(-point, 0.0).max(initial=0.0))
    rule = (program.closing, program.rhs)
    frozen = freeze(program, point, (workspace.feasible, "x"))
    # One igraph worker is this process itself: no script needs a guard for that.
    alone = oracle == "igraph" and workers in (None, 1)
    workers = count_workers(workers)
    with contextlib.nullcontext() if alone else worker_pool(workers, processes=oracle == "igraph") as pool:
        engine: Any = (
            IgraphOracle(workspace.graph, rule, pool)
            if oracle == "igraph"
            else NumbaOracle(program.graph, pool, workers)
        )
        blocks = range(count_blocks(program.graph))
        found = engine.find(frozen, blocks, hops=UNLIMITED, keep_paths=1, slack=program.slack, tick=lambda: True)
    old = found.edge < len(point)
    violation = (program.limit(point, found.edge[old]) - found.reach[old]).max(initial=0.0)
    if len(found.pairs):
        program = program.with_pairs(found.pairs)
        point = program.feasible(np.append(point, np.zeros(len(found.pairs))), found.edge[~old], found.reach[~old])
    return program.value(point), max(below, float(violation))
