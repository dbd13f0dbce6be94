"""General rows and sets: how a run is built, stored, loaded and verified.

The objective, the oracle and the sets are functions of the caller. A workspace holds everything else, so such a run
goes on when it is called again with the same functions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Given, Options, Session, Size
from ..engine.handed import HandedData, HandedFamily
from ..engine.problem import Problem
from ..engine.rows import RowBlock
from ..engine.store import ConstraintStore, read_blocks
from ..engine.sweeps import Iterate
from ..errors import InputError
from ..objectives import Objective
from ..storage.arrays import open_array
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, check_vector, read_vector, write_vector
from ..storage.workspace import Workspace
from . import settings
from .check import verify_general
from .program import RowProgram
from .schedule import CHECK, SAMPLE, SCAN, RowPlan, RowState
from .stored import write_objective


@dataclass(frozen=True)
class Request(HandedData):
    """A problem of general rows or sets.

    Attributes
    ----------
    program : RowProgram
    make : Session -> Problem
        The steps of Algorithm 1.
    stage : str
        The first one.
    store : dict
        What the store of rows forgets, and what changes in it.
    mark : () -> str, or None
        A fingerprint of the rows, where they are a table.
    owns : RowBlock -> bool, or None
        Whether stored rows can be of this problem, where that can be told.
    """

    program: RowProgram
    make: Callable[[Session], Problem[Iterate, ConstraintStore, RowPlan]]
    stage: str
    store: dict[str, Any] = field(default_factory=dict)
    mark: Callable[[], str] | None = None
    owns: Callable[[RowBlock], bool] | None = None

    @property
    def size(self) -> Size:
        return Size(0, self.program.objective.size)

    @property
    def fingerprint(self) -> str:
        return self.program.objective.fingerprint


@dataclass(frozen=True)
class GeneralFamily(HandedFamily):
    """Rows or sets."""

    name: str

    fields: dict[str, Any] = field(default_factory=dict)
    noun = "objective"
    alone = "general rows and sets work"

    @property
    def kind(self) -> str:
        return self.name

    @property
    def keyed(self) -> str:
        return self.name

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check_held(self, workspace: Workspace) -> None:
        kinds = {"tol": float, "seed": object}
        check_fields(workspace.manifest["problem"]["options"], kinds, workspace.record, "problem.options.")

    def needs(self, given: Given, size: Size, options: Options) -> tuple[int, int]:
        matrix = given.source.program.objective.matrix
        fixed = settings.PER_VARIABLE * size.edges + settings.SCAN + (0 if matrix is None else 2 * matrix.nbytes)
        return fixed, settings.LEAST_ROWS

    # -- a run --------------------------------------------------------------------------------------------------------

    def marks(self, data: Request, options: Options) -> Options:
        return {"rows": None if data.mark is None else data.mark()}

    def lay_out(self, data: Request, options: Options, session: Session) -> Request:
        assert session.workspace is not None
        write_objective(session.workspace.graph, data.program.objective)
        return data

    def start(self, request: Request, options: Options, pool: Pool) -> tuple[Iterate, RowPlan]:
        y = Vector.of(request.program.objective.start.copy())
        return Iterate(request.program, y, pool), RowPlan(request.stage)

    def load_point(self, request: Request, workspace: Workspace, pool: Pool) -> Iterate:
        y = read_vector(workspace.generation, "y", pool)
        check_vector(workspace.generation, "y", y, request.program.objective.size)
        if request.owns is not None:
            group = workspace.generation / "rows"
            require(all(map(request.owns, read_blocks(group, y.size))), group, "it holds rows of other sets")
        return Iterate(request.program, y, pool)

    def load_plan(self, workspace: Workspace) -> RowPlan:
        plan = read_record(RowPlan, workspace.manifest["plan"], workspace.record, "plan")
        require(plan.stage in (SCAN, SAMPLE, CHECK), workspace.record, f"plan.stage is {plan.stage!r}")
        require(min(plan.task, plan.draws, plan.since) >= 0, workspace.record, "the plan has counts below zero")
        # Asked again, so tried again.
        known = plan.verdict in (None, "stalled", "infeasible")
        require(known, workspace.record, f"plan.verdict is {plan.verdict!r}")
        return replace(plan, verdict=None, since=0) if plan.verdict == "stalled" else plan

    def load_feasible(self, request: Request, group: Path, pool: Pool) -> Vector:
        x = read_vector(group, "x", pool)
        check_vector(group, "x", x, request.program.objective.size)
        return x

    def new_store(self, request: Request, budget: Budget, pool: Pool) -> ConstraintStore:
        return ConstraintStore(budget.rows, pool, **request.store)

    def load_rows(self, store: ConstraintStore, point: Iterate, group: Path) -> ConstraintStore:
        return store.read(group, point.y.size)

    def write(self, group: Path, state: RowState) -> None:
        write_vector(group, "y", state.point.y)
        state.rows.write(group / "rows")

    def problem(
        self, request: Request, options: Options, session: Session
    ) -> Problem[Iterate, ConstraintStore, RowPlan]:
        return request.make(session)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        group = workspace.generation
        return read_blocks(group / "rows", open_array(group, "y").shape[0])

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        return verify_general(workspace)


ROWS = GeneralFamily("rows")
SETS = GeneralFamily("sets")


def check_objective(objective: Any) -> None:
    """Refuse what is no objective."""
    if not isinstance(objective, Objective):
        raise InputError(f"the objective must be made by ooc_pf.objectives, found {type(objective).__name__}")


def read_point(name: str, point: Any, objective: Objective) -> np.ndarray:
    """A point inside the domain, given by the user."""
    found = np.asarray(point, np.float64)
    if found.shape != (objective.size,):
        raise InputError(f"{name} must have {objective.size} entries, found shape {found.shape}")
    low, high = objective.domain
    wrong = ~(np.isfinite(found) & (found > low) & (found < high))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name}[{at}] is {found[at]}, outside the domain of the objective")
    return found
