"""A run that begins with what another one left: ``warm_start=`` of metric nearness and of clustering."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cycles.family import CycleData, CycleFamily
from ..cycles.plan import CycleState
from ..cycles.settings import DISJOINT
from ..cycles.warm import FARTHEST, OtherRun, take_over
from ..engine.family import Family, Options, Session, check_family, holds_run_of
from ..errors import InputError, WorkspaceError
from ..storage.arrays import read_labels
from ..storage.objectstore import local_copy
from ..storage.workspace import Workspace, is_path, read_steadily
from ..triangles.family import TableData, TableFamily
from ..triangles.program import TableProgram, add_loads
from ..triangles.schedule import TableState
from ..triangles.store import TriangleStore
from ..triangles.sweeps import iterate_of
from ..triangles.tiles import Tiles


@dataclass(frozen=True)
class WarmStart:
    """How a run of ``family`` begins with the workspace ``other``, as `engine.family.Given` has it."""

    other: Any
    family: CycleFamily | TableFamily

    def check(self) -> None:
        """Refuse what such a run cannot begin with, while nothing is lost yet."""
        read_steadily(self.other, lambda place: _check(place, self.family))

    def __call__(self, state: Any, program: Any, data: Any, options: Options, session: Session) -> None:
        begin: Callable[..., None] = _begin_cycles if isinstance(self.family, CycleFamily) else _begin_table
        begin(self.other, self.family, state, program, data, options, session)


def warm_start_from(other: Any, family: CycleFamily | TableFamily, *places: Any) -> WarmStart | None:
    """How a run of this family begins if ``other`` names a workspace; None if it begins from nothing.

    ``places`` are what the run is about and where it is kept: no run is its own past.
    """
    if other is None:
        return None
    if not is_path(other):
        raise InputError(f"warm_start must be the path of a workspace, found {type(other).__name__}")
    if local_copy(other).resolve() in [local_copy(place).resolve() for place in places if is_path(place)]:
        raise InputError(f"warm_start={str(other)!r} is the workspace itself; `ooc-pf resume` goes on with its run")
    return WarmStart(other, family)


def _begin_cycles(
    other: Any,
    family: CycleFamily,
    state: CycleState,
    program: Any,
    data: CycleData,
    options: Options,
    session: Session,
) -> None:
    if options["external"]:
        raise InputError("warm_start= is for graphs in memory; this one is laid out for disk (external=False)")

    def read(place: Workspace) -> OtherRun:
        _check(place, family)
        return OtherRun.read(place, family.program(place.manifest["problem"]["options"]))

    run = read_steadily(other, read)
    take_over(state, data.edges, _labels(data, data.edges.nodes, session), run)
    # What changed shows in short cycles, of which the longest kind includes the others, and in trees. Disjoint cycles
    # are for a run that has no rows yet.
    stages = [(name, hops) for name, hops, *_ in options["settings"]["stages"]]
    begin = next(name for name, hops in stages if hops != 1 and name != DISJOINT)
    passed_over = {name: 0.0 for name, hops in stages if hops == 1}
    state.plan = replace(state.plan, stage=begin, rates=passed_over)
    session.monitor.note(f"begins with {len(state.rows)} of the {len(run.rows)} rows of {other}")


def _begin_table(
    other: Any,
    family: TableFamily,
    state: TableState,
    program: TableProgram,
    data: TableData,
    options: Options,
    session: Session,
) -> None:
    labels, store = _labels(data, data.nodes, session), state.rows

    def read(place: Workspace) -> None:
        _check(place, family)
        held = place.manifest["problem"]["options"]["settings"]
        same = held["side"] == options["settings"]["side"] and np.array_equal(read_labels(place.edges), labels)
        if not same:
            raise InputError(f"warm_start={str(other)!r} is a table of other nodes, or in another order")
        store.read(place.generation / "rows")
        place.check_groups()

    read_steadily(other, read)
    state.point.close()
    state.point = iterate_of(program, _cut_down(store, program, add_loads(store, program.new_tiles())))
    session.monitor.note(f"begins with the {len(store)} rows of {other}")


def _cut_down(store: TriangleStore, program: TableProgram, load: Tiles) -> Tiles:
    """The load of the multipliers, all of them made smaller if they are of other units; see `cycles.warm`."""
    moved, allowed = 0.0, program.size
    for span in load.passes():
        inverse = 1.0 if program.inverse is None else program.inverse.read(*span)
        moved = max(moved, float(np.abs(inverse * load.read(*span)).max(initial=0.0)))
        if program.lower is not None:  # which x may have to rise to
            allowed = max(allowed, float(program.lower.read(*span).max(initial=0.0)))
    if moved <= FARTHEST * allowed:
        return load
    part = FARTHEST * allowed / moved
    for at in range(len(store.tiling.blocks)):
        rows = store.get(at)
        store.put(at, replace(rows, dual=part * rows.dual))
    for span in load.passes():
        load.write(span[0], part * load.read(*span))
    return load


def _check(place: Workspace, family: Family) -> None:
    held = place.manifest["problem"]
    if held is None:
        raise WorkspaceError(f"warm_start={str(place.name)!r} has not been solved: there is nothing to begin with")
    if not holds_run_of(family, place):
        what = "a table of all pairs" if family.engine else "edges"
        raise InputError(f"warm_start={str(place.name)!r} holds a run of {held['name']}, not {family.name} of {what}")
    check_family(family, place)


def _labels(data: CycleData | TableData, nodes: int, session: Session) -> np.ndarray:
    """What the nodes are called."""
    if session.workspace is not None:
        return read_labels(session.workspace.edges)
    return np.arange(nodes) if data.labels is None else data.labels
