"""A transport problem as the input of a run, and how a workspace holds it.

Points are held, and a matrix of costs that is not too large. A function of the caller is not, nor a larger matrix: then
a run goes on when it is called again with the same masses and costs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Size
from ..engine.handed import HandedData
from ..storage.arrays import digest, read_array, write_array
from ..storage.manifest import EDGES
from ..storage.matrices import open_matrix, write_matrix
from ..storage.records import check_fields, require
from ..storage.workspace import Workspace
from . import settings
from .blocks import BlockCosts
from .costs import PointCosts
from .inputs import Costs, Task, read_blocks
from .levels import Level, levels_of

POINTS, MATRIX = "points", "matrix"
COSTS = "costs.npy"  # of a workspace: a matrix of costs
HELD = {"held": str | None, "shape": list, "digest": str}


@dataclass(frozen=True)
class TransportData(HandedData):
    """A task, which marginals, and gamma or reg."""

    task: Task
    marginals: str
    weight: float

    @property
    def size(self) -> Size:
        return Size(0, sum(self.task.costs.shape))

    @property
    def fingerprint(self) -> str:
        costs = np.frombuffer(self.task.costs.fingerprint().encode(), np.uint8)
        return digest(self.task.a, self.task.b, self.task.rows, self.task.columns, costs)

    @cached_property
    def levels(self) -> list[Level]:
        return levels_of(self.task)

    def hold(self, directory: Path) -> dict[str, Any]:
        """Write what a run needs into a workspace that is being made; returns what its manifest says of it."""
        return hold_task(self.task, directory)


def hold_task(task: Task, directory: Path) -> dict[str, Any]:
    """Write a task; returns what it is and, where it is not held, why."""
    n, m = task.costs.shape
    why = _why_not(task.costs)
    if why is not None:
        return {"held": None, "shape": [n, m], "why": why}
    group = directory / EDGES
    for name in ("a", "b", "rows", "columns"):
        write_array(group, name, getattr(task, name))
    if isinstance(task.costs, PointCosts):
        write_array(group, "x", task.costs.x.ravel())
        write_array(group, "y", task.costs.y.ravel())
        return {"held": POINTS, "shape": [n, m], "root": task.costs.root}
    write_matrix(directory / COSTS, _stripes(task.costs), (n, m))
    return {"held": MATRIX, "shape": [n, m], "sides": list(task.costs.sides)}


def _why_not(costs: Costs) -> str | None:
    if isinstance(costs, PointCosts):
        return None
    if costs.function:
        return "its costs are a function of the caller"
    size = 8 * costs.shape[0] * costs.shape[1]
    return None if size <= settings.HELD else f"its matrix of costs has {size:,} bytes, more than {settings.HELD:,}"


def _stripes(costs: BlockCosts) -> Iterator[np.ndarray]:
    """The rows of a matrix, a few at a time."""
    for part in costs.slabs(costs.shape[0], costs.shape[1]):
        yield costs.block(part, slice(0, costs.shape[1]))


def holds_input(workspace: Workspace) -> bool:
    """Whether a workspace has its masses and costs."""
    return workspace.manifest["graph"]["source"].get("held") is not None


def why_not_held(workspace: Workspace) -> str:
    """What to say of a workspace without its masses and costs."""
    found = workspace.manifest["graph"]["source"].get("why")
    return found if isinstance(found, str) else "it was made by a release that did not keep them"


def read_held(workspace: Workspace) -> Task:
    """The task that a workspace holds; refuses what no run wrote."""
    source, group, record = workspace.manifest["graph"]["source"], workspace.edges, workspace.record
    check_fields(source, HELD, record, "graph.source.")
    shape = source["shape"]
    require(len(shape) == 2 and all(type(side) is int and side > 0 for side in shape), record, "graph.source.shape")
    a, b = (read_array(group, name, dtype=np.float64) for name in ("a", "b"))
    rows, columns = (read_array(group, name, dtype=np.int64) for name in ("rows", "columns"))
    for side, masses, order in zip(shape, (a, b), (rows, columns), strict=True):
        sound = len(masses) == side and bool(np.isfinite(masses).all() and (masses >= 0.0).all())
        sound = sound and np.array_equal(np.sort(order), np.arange(side))
        require(sound, group, "the masses are not what a run writes")
    return Task(a, b, _held_costs(workspace, source, (shape[0], shape[1])), rows, columns)


def _held_costs(workspace: Workspace, source: dict[str, Any], shape: tuple[int, int]) -> Costs:
    record, group = workspace.record, workspace.edges
    if source["held"] == POINTS:
        check_fields(source, {"root": bool}, record, "graph.source.")
        x, y = (read_array(group, name, dtype=np.float64) for name in ("x", "y"))
        d = len(x) // shape[0]
        sound = d > 0 and (len(x), len(y)) == (d * shape[0], d * shape[1])
        require(
            sound and bool(np.isfinite(x).all() and np.isfinite(y).all()), group, "the points are not what a run writes"
        )
        return PointCosts(x.reshape(-1, d), y.reshape(-1, d), source["root"])
    require(source["held"] == MATRIX, record, f"graph.source.held is {source['held']!r}")
    check_fields(source, {"sides": list}, record, "graph.source.")
    sides = source["sides"]
    sound = len(sides) == 2 and all(type(side) is int and 1 <= side <= settings.LARGEST_BLOCK for side in sides)
    require(sound, record, "graph.source.sides")
    matrix = open_matrix(workspace.path / COSTS, shape)
    return BlockCosts.of(read_blocks(matrix, shape), (sides[0], sides[1]), shape)
