"""The table that a workspace holds, and its iterate."""

from ..storage.vectors import Pool
from ..storage.workspace import Workspace
from .build import build_program
from .inputs import read_stored
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


def held_tiling(workspace: Workspace) -> Tiling:
    """How the run in a workspace cuts its matrices."""
    return Tiling(workspace.manifest["graph"]["nodes"], workspace.manifest["problem"]["options"]["settings"]["side"])


def load_program(workspace: Workspace, tiling: Tiling, pool: Pool, workers: Workers) -> TableProgram:
    """The program a workspace was prepared for."""
    extras = {
        name: read_stored(workspace.graph, file, tiling) if (workspace.graph / file).exists() else None
        for name, file in FILES.items()
    }
    return build_program(tiling, pool, read_stored(workspace.edges, "value", tiling), extras, workers)


def load_iterate(workspace: Workspace, program: TableProgram) -> TableIterate:
    """The committed point."""
    x = program.new_tiles().read_tiles(workspace.generation, "x")
    shift = None if program.lower is None else program.new_tiles().read_tiles(workspace.generation, "shift")
    return TableIterate(x, shift)
