"""Transport: how a run is built, stored, loaded and verified.

Masses and costs are the caller's. A workspace holds everything else, so a run goes on when it is called again with the
same ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import check_certificate, claimed_now
from ..engine.check import require as demand
from ..engine.family import Given, Options, Session, Size
from ..engine.limits import Limits, check_tol
from ..engine.problem import FeasiblePoint
from ..engine.rows import RowBlock
from ..errors import InputError
from ..storage.arrays import digest, read_array
from ..storage.memory import Budget, parse_memory, refuse_below
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, flat, read_vector
from ..storage.workspace import Workspace, building, create_manifest
from . import settings
from .crew import Crew
from .exact import ExactPlan, ExactPoint, ExactSchedule, SupportCount
from .inputs import Task
from .levels import Level, levels_of
from .plan import unpack
from .soft import SoftPlan, SoftPoint, SoftSchedule
from .store import PairStore

SOFT, EXACT = "soft", "exact"


@dataclass(frozen=True)
class TransportData:
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

    def restore(self, point: FeasiblePoint) -> np.ndarray:
        return flat(point)

    def notes(self) -> dict[str, Any]:
        return {}


def _answer(data: TransportData, state: Any, options: Options, hurry: bool) -> dict[str, Any]:
    """The best potentials and the plan in one vector."""
    return {"x": Vector.of(np.concatenate([state.point.best, flat(state.feasible)]))}


@dataclass(frozen=True)
class TransportFamily:
    """Quadratically regularised transport."""

    name: str = "transport"
    kind: str = "transport"
    fields: dict[str, Any] = field(default_factory=dict)
    engine = None
    finish = staticmethod(_answer)
    keyed = "rows"
    free = ("tol",)
    resumable = False
    noun = "pair of masses and their costs"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        if limits.client is not None:
            raise InputError("client= is for searches over cycles; transport works on one machine")
        check_tol(options["tol"])
        return {**options, "tol": float(options["tol"])}

    def check_held(self, workspace: Workspace) -> None:
        options = workspace.manifest["problem"]["options"]
        check_fields(options, {"tol": float, "marginals": str, "weight": float}, workspace.record, "problem.options.")
        require(options["marginals"] in (SOFT, EXACT), workspace.record, "problem.options.marginals is neither of two")

    def settle(self, options: Options, size: Size, held: Options | None, *, disk: bool) -> Options:
        return options

    def needs_disk(self, options: Options) -> bool:
        return False

    def processes(self, options: Options) -> bool:
        return False

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        if isinstance(limits.memory, Budget):
            return limits.memory
        budget, (n, m) = parse_memory(limits.memory), given.source.task.costs.shape
        if budget is None:
            return Budget()
        lists = settings.STRIPES * m * settings.BEST * 16
        fixed = settings.FIXED + (n + m) * settings.NODE_BYTES + lists
        least = settings.LEAST_PAIRS * (n + m)
        if options["marginals"] == EXACT:
            least = max(least, settings.COARSE**2)  # of the coarsest problem, whose pairs all take part
        refuse_below(fixed + least * pair_bytes(options["marginals"]), budget, limits.memory)
        return Budget(rows=budget - fixed)

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> TransportData:
        return given.source

    def create(self, path: Any, data: TransportData) -> None:
        with building(path) as directory:
            source = {"file": None, "digest": data.fingerprint}
            create_manifest(directory, kind=self.kind, nodes=0, edges=data.size.edges, source=source)

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> TransportData:
        return given.source

    def marks(self, data: TransportData, options: Options) -> Options:
        return {}

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: TransportData, options: Options, session: Session) -> TransportData:
        return data

    def lay_out(self, data: TransportData, options: Options, session: Session) -> TransportData:
        return data

    def load(self, data: TransportData, options: Options, session: Session) -> TransportData:
        return data

    def start(self, program: TransportData, options: Options, pool: Pool) -> tuple[Any, Any]:
        if program.marginals == SOFT:
            return SoftPoint.start(program.task, program.weight), SoftPlan()
        return ExactPoint.start(program.levels, program.weight)

    def load_point(self, program: TransportData, workspace: Workspace, pool: Pool) -> Any:
        kind = SoftPoint if program.marginals == SOFT else ExactPoint
        return kind.read(workspace.generation, program.task)

    def load_plan(self, workspace: Workspace) -> Any:
        soft = workspace.manifest["problem"]["options"]["marginals"] == SOFT
        plan = read_record(SoftPlan if soft else ExactPlan, workspace.manifest["plan"], workspace.record, "plan")
        plan.check(workspace.record)
        return plan

    def load_feasible(self, program: TransportData, group: Path, pool: Pool) -> Vector:
        x = read_vector(group, "x", pool)
        unpack(program.task, flat(x), group)
        return x

    def new_store(self, program: TransportData, budget: Budget, pool: Pool) -> PairStore | SupportCount:
        most = None if budget.rows is None else budget.rows // pair_bytes(program.marginals)
        return PairStore(program.task.costs.shape, most) if program.marginals == SOFT else SupportCount(most)

    def load_rows(self, store: Any, point: Any, group: Path) -> Any:
        store.read(group)
        return store

    def write(self, group: Path, state: Any) -> None:
        state.point.write(group)
        state.rows.write(group / "rows")

    def problem(self, program: TransportData, options: Options, session: Session) -> Any:
        crew = Crew(session.threads if session.workers > 1 else None, session.monitor.stop)
        if program.marginals == SOFT:
            return SoftSchedule(program.task, program.weight, crew, session.monitor)
        return ExactSchedule(program.task, program.weight, crew, session.monitor, program.levels)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        return {}

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        return iter(())

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        """Check every array and that the claims agree with each other; masses and costs themselves are not here."""
        manifest, group = workspace.manifest, workspace.generation
        soft, nodes = manifest["problem"]["options"]["marginals"] == SOFT, manifest["graph"]["edges"]
        z = read_array(group, "z", dtype=np.float64)
        demand(workspace, bool(np.isfinite(z).all()) and (len(z) == nodes or not soft), "the stored z is not a point")
        rows = manifest["n_active"]
        if soft:
            p = read_array(group / "rows", "p", dtype=np.float64)
            demand(workspace, bool((p >= 0.0).all()), "a stored multiplier is negative")
            demand(workspace, len(p) == rows, "the pairs are not as many as the manifest says")
            bounds = manifest["lower_bound"], manifest["objective"]
            demand(workspace, None in bounds or bounds[0] <= bounds[1], "the lower bound is above the objective")
        claimed = claimed_now(manifest) or {"scale": 1.0, "worth": 0.0}
        check_certificate(workspace, violation=None, scale=claimed["scale"], worth=claimed["worth"])
        return {"rows": rows, "lower_bound": manifest["lower_bound"]}


def pair_bytes(marginals: str) -> int:
    """Bytes held for each pair."""
    return settings.PAIR_BYTES if marginals == SOFT else settings.SUPPORT_BYTES


TRANSPORT = TransportFamily()
