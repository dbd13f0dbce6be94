"""Metric learning: how a run is built, stored, loaded and verified.

A workspace holds points and pairs, too, see `data`, unless there are too many.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Options, Session
from ..engine.handed import HandedFamily
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, check_vector, read_vector
from ..storage.workspace import Workspace
from .check import verify_itml
from .data import ItmlData
from .pairs import Crew
from .schedule import PairPlan, PairPoint, PairSchedule, PairStore
from .steps import NEWTON, SAMPLE, NoPairs, StepPlan, StepPoint, StepSchedule

METHODS = ("newton", "project_and_forget")


def row_bytes(d: int) -> int:
    """Bytes of a remembered pair."""
    return 16 * d + 64


@dataclass(frozen=True)
class ItmlFamily(HandedFamily):
    """Metric learning by Newton steps or by projections."""

    name: str = "itml"
    kind: str = "itml"
    fields: dict[str, Any] = field(default_factory=dict)
    noun = "set of pairs, or prior, gamma or bounds,"
    alone = "metric learning works"

    def check_held(self, workspace: Workspace) -> None:
        options = workspace.manifest["problem"]["options"]
        check_fields(options, {"tol": float, "method": str}, workspace.record, "problem.options.")
        require(options["method"] in METHODS, workspace.record, f"problem.options.method is {options['method']!r}")
        if "drawn" in options:
            check_fields(options, {"drawn": int, "seed": int}, workspace.record, "problem.options.")
            require(
                options["drawn"] > 0 and options["seed"] >= 0, workspace.record, "problem.options.drawn is no count"
            )

    # -- a run --------------------------------------------------------------------------------------------------------

    def start(self, program: ItmlData, options: Options, pool: Pool) -> tuple[Any, Any]:
        d = program.task.source.dimension
        return (StepPoint(d), StepPlan()) if program.method == NEWTON else (PairPoint(np.eye(d)), PairPlan())

    def load_point(self, program: ItmlData, workspace: Workspace, pool: Pool) -> Any:
        kind = StepPoint if program.method == NEWTON else PairPoint
        return kind.read(workspace.generation, program.task.source.dimension)

    def load_plan(self, workspace: Workspace) -> Any:
        steps = workspace.manifest["problem"]["options"]["method"] == NEWTON
        kind, stages = (StepPlan, (SAMPLE, NEWTON)) if steps else (PairPlan, (PairPlan.stage,))
        plan = read_record(kind, workspace.manifest["plan"], workspace.record, "plan")
        require(plan.stage in stages, workspace.record, f"plan.stage is {plan.stage!r}")
        # Asked again, so tried again.
        return kind(plan.stage)

    def load_feasible(self, program: ItmlData, group: Path, pool: Pool) -> Vector:
        x = read_vector(group, "x", pool)
        check_vector(group, "x", x, program.size.edges)
        return x

    def new_store(self, program: ItmlData, budget: Budget, pool: Pool) -> Any:
        if program.method == NEWTON:
            return NoPairs()
        d = program.task.source.dimension
        most = None if budget.rows is None else budget.rows // row_bytes(d)
        return PairStore(d, most, program.task.source.terms)

    def load_rows(self, store: Any, point: Any, group: Path) -> Any:
        store = super().load_rows(store, point, group)
        if isinstance(store, PairStore):
            require(store.has_made(point.matrix), group, "the matrix does not follow from the multipliers")
        return store

    def problem(self, program: ItmlData, options: Options, session: Session) -> Any:
        crew = Crew(session.threads if session.workers > 1 else None, session.monitor.stop)
        if program.method == NEWTON:
            return StepSchedule(program.task.source, crew, session.monitor)
        draws = options.get("drawn"), options.get("seed", 0)
        return PairSchedule(program.task.source, crew, session.monitor, *draws)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        return verify_itml(workspace)


ITML = ItmlFamily()
