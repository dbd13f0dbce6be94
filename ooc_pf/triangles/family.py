"""Metric nearness on a table of all pairs: how a run is built, stored, loaded and verified."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Given, Options, Session, Size
from ..engine.limits import Limits, check_seed, check_tol
from ..engine.problem import FeasiblePoint
from ..engine.rows import RowBlock
from ..errors import InputError
from ..storage.arrays import label_marks, make_group, write_parts
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, write_vector
from ..storage.workspace import Workspace
from . import settings as numbers
from .build import build_program, divide_memory
from .check import verify_table
from .inputs import (
    Stripes,
    check_ends,
    create_table_workspace,
    digest_square,
    read_distances,
    read_option,
    read_stored,
    unfold,
)
from .program import TableIterate, TableProgram, Workers
from .schedule import CERTIFY, SCAN, TablePlan, TableSchedule, TableState, first_plan
from .settings import Settings, without_retired
from .store import TriangleStore, as_row_block, read_rows
from .stored import FILES, check_table, held_tiling, load_iterate, load_program
from .tiles import Tiles, Tiling

EXTRAS = {"weights": "weight", "lower": "lower limit", "upper": "upper limit"}
# Options that every run has, as the manifest keeps them; of the seed only that it is there.
STORED = {"tol": float, "seed": object, "settings": dict, **dict.fromkeys(EXTRAS, str | None)}


@dataclass(frozen=True)
class TableData:
    """A table, or None where a workspace holds it, with weights and limits, and labels that a caller gave, or None."""

    table: Any
    nodes: int
    extras: dict[str, Any]
    labels: np.ndarray | None = None

    @property
    def size(self) -> Size:
        return Size(self.nodes, self.nodes * (self.nodes - 1) // 2)

    @cached_property
    def fingerprint(self) -> str:
        tiling = Tiling(self.nodes, numbers.choose_side(self.nodes))
        return digest_square(self.table, tiling, *label_marks(self.labels))

    def restore(self, point: FeasiblePoint) -> np.ndarray:
        return unfold(point, self.nodes)

    def notes(self) -> dict[str, Any]:
        return {}

    def stripes(self, tiling: Tiling) -> dict[str, Stripes | None]:
        """Weights and limits, a few lines at a time."""
        return {name: read_option(self.extras[name], tiling, what) for name, what in EXTRAS.items()}


@dataclass(frozen=True)
class TableFamily:
    """A problem over the triangles of a table."""

    name: str
    kind: str
    finish: Callable[..., dict[str, Any]] | None = None
    fields: dict[str, Any] = field(default_factory=lambda: {"closure_distance": None})

    engine = numbers.ENGINE
    keyed = None
    free = ()
    resumable = True
    noun = "graph"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        if limits.client is not None:
            raise InputError("client= is for searches over cycles; a run over the complete graph works on one machine")
        check_tol(options["tol"])
        check_seed(options["seed"])
        return {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}

    def check_held(self, workspace: Workspace) -> None:
        options = workspace.manifest["problem"]["options"]
        check_fields(options, STORED, workspace.record, "problem.options.")
        Settings.read(options["settings"], workspace.record)

    def settle(self, options: Options, size: Size, held: Options | None, limits: Limits, *, disk: bool) -> Options:
        # Settings are not the user's: a run keeps those it began with, whatever this release would choose.
        kept = held and held.get("settings")
        return {**options, "settings": kept or Settings(numbers.choose_side(size.nodes)).stored()}

    def needs_disk(self, options: Options) -> bool:
        return False

    def processes(self, options: Options) -> bool:
        return False

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        extras = options if given.extras is None else given.extras
        return divide_memory(_tiling(size.nodes, options), extras, workers, limits.memory, disk=disk)

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> TableData:
        assert given.extras is not None
        return TableData(given.source, given.source.shape[0], given.extras, given.labels)  # zarr arrays have no length

    def create(self, path: Any, data: TableData) -> None:
        tiling = Tiling(data.nodes, numbers.choose_side(data.nodes))
        labels = np.arange(data.nodes) if data.labels is None else data.labels
        create_table_workspace(path, data.table, tiling, labels, data.fingerprint)

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> TableData:
        check_table(workspace)
        return TableData(None, workspace.manifest["graph"]["nodes"], given.extras or {})

    def marks(self, data: TableData, options: Options) -> Options:
        return {name: _mark(stripes) for name, stripes in data.stripes(_tiling(data.nodes, options)).items()}

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: TableData, options: Options, session: Session) -> TableProgram:
        tiling = _tiling(data.nodes, options)
        distances = read_distances(data.table, tiling)
        return build_program(tiling, session.pool, distances, data.stripes(tiling), _workers(session))

    def lay_out(self, data: TableData, options: Options, session: Session) -> TableProgram:
        workspace, tiling = session.workspace, _tiling(data.nodes, options)
        assert workspace is not None
        check_ends(workspace, tiling)
        make_group(workspace.graph)
        for name, stripes in data.stripes(tiling).items():
            if stripes is not None:
                write_parts(workspace.graph, FILES[name], _upper_parts(stripes), np.float64)
        program = self.load(data, options, session)
        if data.extras["upper"] is not None:
            # Closed once: closing it again when it is loaded changes nothing and is quick.
            shutil.rmtree(workspace.graph / "upper")
            write_vector(workspace.graph, "upper", program.upper)
        return program

    def load(self, data: TableData, options: Options, session: Session) -> TableProgram:
        assert session.workspace is not None
        return load_program(session.workspace, _tiling(data.nodes, options), session.pool, _workers(session))

    def start(self, program: TableProgram, options: Options, pool: Pool) -> tuple[TableIterate, TablePlan]:
        return program.start(), first_plan(program, Settings(**options["settings"]))

    def load_point(self, program: TableProgram, workspace: Workspace, pool: Pool) -> TableIterate:
        return load_iterate(workspace, program)

    def load_plan(self, workspace: Workspace) -> TablePlan:
        plan = read_record(TablePlan, without_retired(workspace.manifest["plan"]), workspace.record, "plan")
        require(plan.stage in (SCAN, CERTIFY), workspace.record, f"plan.stage is {plan.stage!r}")
        require(min(plan.slack, plan.strict) >= 0, workspace.record, "the plan has numbers below zero")
        return plan

    def load_feasible(self, program: TableProgram, group: Path, pool: Pool) -> Tiles:
        return program.new_tiles().fill_lines(read_stored(group, "x", program.tiling))

    def new_store(self, program: TableProgram, budget: Budget, pool: Pool) -> TriangleStore:
        return TriangleStore(program.tiling, budget.rows, pool)

    def load_rows(self, store: TriangleStore, point: TableIterate, group: Path) -> TriangleStore:
        return store.read(group)

    def write(self, group: Path, state: TableState) -> None:
        state.point.x.write_tiles(group, "x")
        if state.point.shift is not None:
            state.point.shift.write_tiles(group, "shift")
        state.rows.write(group / "rows")

    def problem(self, program: TableProgram, options: Options, session: Session) -> TableSchedule:
        workers = Workers(_workers(session).pool, session.monitor.stop)
        return TableSchedule(program, session.monitor, Settings(**options["settings"]), options["tol"], workers)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        """The certificate of a table measures how far the iterate is from its closure, which no violation exceeds."""
        return {"closure_distance": violation}

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        tiling = held_tiling(workspace)
        for block, rows in zip(tiling.blocks, read_rows(workspace.generation / "rows", tiling), strict=True):
            if len(rows.code):
                yield as_row_block(tiling, block, rows)

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        return verify_table(workspace, oracle=oracle, workers=workers, memory=memory)


def _tiling(nodes: int, options: Options) -> Tiling:
    return Tiling(nodes, options["settings"]["side"])


def _workers(session: Session) -> Workers:
    """Workers that nothing stops; one worker is the caller."""
    return Workers(session.threads if session.workers > 1 else None)


def _upper_parts(stripes: Stripes) -> Iterator[np.ndarray]:
    """The entries above the diagonal, as parts of a vector over edges."""
    first = 0
    for stripe in stripes:
        yield stripe[np.arange(stripe.shape[1]) > first + np.arange(len(stripe))[:, None]]
        first += len(stripe)


def _mark(stripes: Stripes | None) -> str | None:
    if stripes is None:
        return None
    total = hashlib.blake2b(digest_size=16)
    for part in _upper_parts(stripes):
        total.update(part.tobytes())
    return total.hexdigest()
