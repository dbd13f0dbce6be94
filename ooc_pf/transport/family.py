"""Transport: how a run is built, stored, loaded and verified.

Masses and costs are the caller's. A workspace holds everything else, so a run goes on when it is called again with the
same ones.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import check_certificate, claimed_now
from ..engine.check import require as demand
from ..engine.family import Given, Options, Session, Size
from ..engine.handed import HandedData, HandedFamily
from ..storage.arrays import digest, read_array
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, flat, read_vector
from ..storage.workspace import Workspace
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


def _answer(data: TransportData, state: Any, options: Options, status: str, stop: np.ndarray) -> dict[str, Any]:
    """The best potentials and the plan in one vector."""
    return {"x": Vector.of(np.concatenate([state.point.best, flat(state.feasible)]))}


@dataclass(frozen=True)
class TransportFamily(HandedFamily):
    """Quadratically regularised transport."""

    name: str = "transport"
    kind: str = "transport"
    fields: dict[str, Any] = field(default_factory=dict)
    finish = staticmethod(_answer)
    noun = "pair of masses and their costs"
    alone = "transport works"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check_held(self, workspace: Workspace) -> None:
        options = workspace.manifest["problem"]["options"]
        check_fields(options, {"tol": float, "marginals": str, "weight": float}, workspace.record, "problem.options.")
        require(options["marginals"] in (SOFT, EXACT), workspace.record, "problem.options.marginals is neither of two")

    def needs(self, given: Given, size: Size, options: Options) -> tuple[int, int]:
        n, m = given.source.task.costs.shape
        lists = settings.STRIPES * m * settings.BEST * 16
        least = settings.LEAST_PAIRS * (n + m)
        if options["marginals"] == EXACT:
            least = max(least, settings.COARSE**2)  # of the coarsest problem, whose pairs all take part
        fixed = settings.FIXED + (n + m) * settings.NODE_BYTES + lists
        return fixed, least * pair_bytes(options["marginals"])

    # -- a run --------------------------------------------------------------------------------------------------------

    def start(self, program: TransportData, options: Options, pool: Pool) -> tuple[Any, Any]:
        if program.marginals == SOFT:
            return SoftPoint.start(program.task, program.weight), SoftPlan()
        return ExactPoint.start(program.levels, program.weight)

    def load_point(self, program: TransportData, workspace: Workspace, pool: Pool) -> Any:
        if program.marginals == SOFT:
            return SoftPoint.read(workspace.generation, program.task)
        point = ExactPoint.read(workspace.generation, program.task)
        self.load_plan(workspace).check_at(program.levels, program.weight, point.z, workspace.record)
        return point

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

    def problem(self, program: TransportData, options: Options, session: Session) -> Any:
        crew = Crew(session.threads if session.workers > 1 else None, session.monitor.stop)
        if program.marginals == SOFT:
            return SoftSchedule(program.task, program.weight, crew, session.monitor)
        return ExactSchedule(program.task, program.weight, crew, session.monitor, program.levels)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        """Check every array and that the claims agree with each other; masses and costs themselves are not here."""
        manifest, group = workspace.manifest, workspace.generation
        soft, nodes = manifest["problem"]["options"]["marginals"] == SOFT, manifest["graph"]["edges"]
        z = read_array(group, "z", dtype=np.float64)
        whole = soft or not manifest["plan"].get("level")  # else as many as a coarser problem has
        demand(workspace, bool(np.isfinite(z).all()) and (len(z) == nodes or not whole), "the stored z is not a point")
        rows = manifest["n_active"]
        if soft:
            p = read_array(group / "rows", "p", dtype=np.float64)
            added = read_array(group / "rows", "added", dtype=np.int64)
            demand(workspace, bool((p >= 0.0).all()), "a stored multiplier is negative")
            demand(workspace, len(added) == 1, "it is not known how many pairs were taken up")
            demand(workspace, len(p) == rows, "the pairs are not as many as the manifest says")
            bounds = manifest["lower_bound"], manifest["objective"]
            demand(workspace, None in bounds or bounds[0] <= bounds[1], "the lower bound is above the objective")
        else:
            support = SupportCount()
            support.read(group / "rows")
            demand(workspace, len(support) == rows, "the support is not as large as the manifest says")
        claimed = claimed_now(manifest) or {}
        scale, worth = claimed.get("scale") or 1.0, claimed.get("worth") or 0.0
        check_certificate(workspace, violation=None, scale=scale, worth=worth)
        return {"rows": rows, "lower_bound": manifest["lower_bound"]}


def pair_bytes(marginals: str) -> int:
    """Bytes held for each pair."""
    return settings.PAIR_BYTES if marginals == SOFT else settings.SUPPORT_BYTES


TRANSPORT = TransportFamily()
