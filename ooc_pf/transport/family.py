"""Transport: how a run is built, stored, loaded and verified.

A workspace holds masses and costs, too, see `data`, unless they are a function of the caller.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Given, Options, Session, Size
from ..engine.handed import HandedFamily
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, flat, read_vector
from ..storage.workspace import Workspace
from . import settings
from .check import EXACT, SOFT, verify_transport
from .crew import Crew
from .data import TransportData
from .exact import ExactPlan, ExactPoint, ExactSchedule, SupportCount
from .plan import unpack
from .soft import SoftPlan, SoftPoint, SoftSchedule
from .store import PairStore


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
        positive = 0.0 < options["weight"] < math.inf
        require(positive, workspace.record, "problem.options.weight is no positive number")

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
        return PairStore(program.task.costs, most) if program.marginals == SOFT else SupportCount(most)

    def problem(self, program: TransportData, options: Options, session: Session) -> Any:
        crew = Crew(session.threads if session.workers > 1 else None, session.monitor.stop)
        if program.marginals == SOFT:
            return SoftSchedule(program.task, program.weight, crew, session.monitor)
        return ExactSchedule(program.task, program.weight, crew, session.monitor, program.levels)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        return verify_transport(workspace, self.load_plan(workspace))


def pair_bytes(marginals: str) -> int:
    """Bytes held for each pair."""
    return settings.PAIR_BYTES if marginals == SOFT else settings.SUPPORT_BYTES


TRANSPORT = TransportFamily()
