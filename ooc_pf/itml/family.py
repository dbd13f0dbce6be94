"""Metric learning: how a run is built, stored, loaded and verified.

Points and pairs are the caller's. A workspace holds everything else, so a run goes on when it is called again with the
same ones.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import agree, check_certificate, claimed_now
from ..engine.check import require as demand
from ..engine.family import Options, Session, Size
from ..engine.handed import HandedData, HandedFamily
from ..storage.arrays import digest, read_array
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, check_vector, read_vector
from ..storage.workspace import Workspace
from .inputs import Task
from .newton import log_determinant
from .pairs import AllPairs, Crew
from .schedule import PairPlan, PairPoint, PairSchedule, PairStore
from .steps import NEWTON, SAMPLE, NoPairs, StepPlan, StepPoint, StepSchedule

METHODS = ("newton", "project_and_forget")


def row_bytes(d: int) -> int:
    """Bytes of a remembered pair."""
    return 16 * d + 64


@dataclass(frozen=True)
class ItmlData(HandedData):
    """A task, and how it is solved."""

    task: Task
    method: str

    @property
    def size(self) -> Size:
        return Size(0, self.task.source.dimension**2)

    @property
    def fingerprint(self) -> str:
        """Of points and classes; of listed pairs their labels, and the differences of a few."""
        source = self.task.source
        shared = np.array(source.terms), self.task.root
        if isinstance(source, AllPairs):
            return digest(*shared, source.points, source.classes, source.groups)
        places = np.linspace(0, max(source.size - 4, 0), 16).astype(int)
        some = [source.read(int(at), min(int(at) + 4, source.size)) for at in places]
        return digest(*shared, source.sign, np.concatenate(some))


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
        kind = StepSchedule if program.method == NEWTON else PairSchedule
        return kind(program.task.source, crew, session.monitor)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        """Check every array and that the claims agree with each other; the pairs themselves are not here."""
        manifest, d = workspace.manifest, round(workspace.manifest["graph"]["edges"] ** 0.5)
        steps = manifest["problem"]["options"]["method"] == NEWTON
        if steps:
            now = StepPoint.read(workspace.generation, d).now
            if now is not None:
                best = now.bound
                found = log_of(workspace, best.matrix) - log_determinant(now.place.root) - best.conjugate
                agree(workspace, best.value if best.value == 0.0 else found, best.value, "lower bound", size=float(d))
                bound = min(best.value, now.place.value)
                agree(workspace, bound, manifest["lower_bound"], "lower bound", size=float(d))
        else:
            store = PairStore(d)
            store.read(workspace.generation / "rows")
            demand(workspace, len(store) == manifest["n_active"], "the pairs are not as many as the manifest says")
            matrix = PairPoint.read(workspace.generation, d).matrix
            demand(workspace, store.has_made(matrix), "the stored matrix does not follow from the multipliers")
        if workspace.feasible:
            x = read_array(workspace.feasible, "x", dtype=np.float64)
            root = x.reshape(d, d) if len(x) == d * d else np.zeros((1, 1))
            held = np.isfinite(root).all() and (np.diag(root) > 0.0).all() and (np.triu(root, 1) == 0.0).all()
            demand(workspace, bool(held), "the stored x is not the root of a matrix")
            least = float(np.sum(root * root)) - log_determinant(root) - d if held else 0.0
            above = manifest["objective"] >= max(least, manifest["lower_bound"]) * (1.0 - 1e-9)
            demand(workspace, above, "the objective is below what it cannot be below")
        worth = (claimed_now(manifest) or {}).get("worth") or float(d)
        check_certificate(workspace, violation=None, scale=1.0, worth=worth)
        return {"rows": manifest["n_active"], "lower_bound": manifest["lower_bound"]}


def log_of(workspace: Workspace, matrix: np.ndarray) -> float:
    """The logarithm of the determinant of a stored matrix, which must be positive definite."""
    try:
        return log_determinant(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        demand(workspace, False, "the stored bound is not positive definite")
        raise


ITML = ItmlFamily()
