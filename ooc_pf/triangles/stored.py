"""The table that a workspace holds, and its iterate."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import WorkspaceError
from ..storage.arrays import count_labels, open_array
from ..storage.vectors import Pool
from ..storage.workspace import Workspace
from .build import build_program
from .inputs import Stripes, is_weight, read_stored
from .program import TableIterate, TableProgram, Workers
from .settings import ENGINE
from .tiles import Tiling

FILES = {"weights": "weight", "lower": "lower", "upper": "upper"}  # of the extras, in graph.zarr


def holds_table(workspace: Workspace) -> bool:
    """Whether there is a run in a workspace, and over the complete graph."""
    held = workspace.manifest["problem"]
    return held is not None and (held["options"].get("settings") or {}).get("engine") == ENGINE


def lists_all_pairs(workspace: Workspace) -> bool:
    """Whether a workspace has a distance for every pair."""
    graph = workspace.manifest["graph"]
    return graph["kind"] == "distance" and 2 * graph["edges"] == graph["nodes"] * (graph["nodes"] - 1) > 0


def check_table(workspace: Workspace) -> None:
    """Refuse a workspace without a number for every pair of its nodes, before anything of that size is made."""
    graph, listed = workspace.manifest["graph"], open_array(workspace.edges, "value", np.float64).shape[0]
    nodes, known = graph["nodes"], count_labels(workspace.edges)
    if not (nodes == known and 2 * graph["edges"] == nodes * (nodes - 1) and listed == graph["edges"]):
        raise WorkspaceError(
            f"{workspace.name} is damaged: it has {listed} numbers and {known} labels for {nodes} nodes and "
            f"{graph['edges']} pairs; convert the edges again"
        )


def held_tiling(workspace: Workspace) -> Tiling:
    """How the run in a workspace cuts its matrices."""
    check_table(workspace)
    return Tiling(workspace.manifest["graph"]["nodes"], workspace.manifest["problem"]["options"]["settings"]["side"])


def load_program(workspace: Workspace, tiling: Tiling, pool: Pool, workers: Workers) -> TableProgram:
    """The program a workspace was prepared for."""
    extras = {
        name: _checked(workspace.graph, file, tiling) if (workspace.graph / file).exists() else None
        for name, file in FILES.items()
    }
    return build_program(tiling, pool, _checked(workspace.edges, "value", tiling), extras, workers)


SOUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "value": np.isfinite,
    "weight": lambda weights: is_weight(weights) | (weights == 0.0),  # zero left of the diagonal
    "lower": lambda limits: ~np.isnan(limits),
    "upper": lambda limits: ~np.isnan(limits),
}


def _checked(group: Path, name: str, tiling: Tiling) -> Stripes:
    """The lines of a stored vector; refuses numbers that no caller may give."""
    for stripe in read_stored(group, name, tiling):
        if not SOUND[name](stripe).all():
            raise WorkspaceError(f"{group / name} is damaged: it holds numbers that no table can have")
        yield stripe


def load_iterate(workspace: Workspace, program: TableProgram) -> TableIterate:
    """The committed point."""
    x = program.new_tiles().read_tiles(workspace.generation, "x")
    shift = None if program.lower is None else program.new_tiles().read_tiles(workspace.generation, "shift")
    return TableIterate(x, shift)
