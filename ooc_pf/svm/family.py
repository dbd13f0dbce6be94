"""Support vector machines: how a run is built, stored, loaded and verified.

The rows are the caller's. A workspace holds everything else, so a run goes on when it is called again with the same
rows, labels and weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import agree, check_certificate
from ..engine.check import require as demand
from ..engine.family import Given, Options, Session, Size
from ..engine.limits import Limits, check_seed, check_tol
from ..engine.problem import FeasiblePoint
from ..engine.rows import RowBlock
from ..errors import InputError
from ..storage.arrays import digest, read_array, write_array
from ..storage.memory import Budget, parse_memory, refuse_below
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, check_vector, flat, read_vector
from ..storage.workspace import Workspace, building, create_manifest
from . import settings
from .passes import Passes
from .program import Program
from .schedule import NEWTON, SAMPLE, SEARCH, ActiveRows, Iterate, SvmPlan, SvmSchedule, SvmState, levels_of

VECTORS = ("value", "slope", "lower")


@dataclass(frozen=True)
class SvmData:
    """Rows, labels and weights."""

    program: Program

    @property
    def size(self) -> Size:
        return Size(0, len(self.program.positive) * self.program.width)

    @property
    def fingerprint(self) -> str:
        program = self.program
        return digest(
            np.frombuffer(program.table.fingerprint().encode(), np.uint8), program.code, program.weight,
            program.by_class, np.array(program.positive),
        )  # fmt: skip

    def restore(self, point: FeasiblePoint) -> np.ndarray:
        return flat(point)

    def notes(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class SvmFamily:
    """L2 support vector machines by Newton's method."""

    name: str = "svm"
    kind: str = "svm"
    fields: dict[str, Any] = field(default_factory=dict)
    engine = None
    finish = None
    keyed = "rows"
    free = ("tol",)
    resumable = False
    noun = "table of rows"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        if limits.client is not None:
            raise InputError("client= is for searches over cycles; support vector machines work on one machine")
        check_tol(options["tol"])
        check_seed(options["seed"])
        return {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}

    def check_held(self, workspace: Workspace) -> None:
        kinds = {"tol": float, "seed": int, "C": float, "fit_intercept": bool}
        check_fields(workspace.manifest["problem"]["options"], kinds, workspace.record, "problem.options.")

    def settle(self, options: Options, size: Size, held: Options | None, *, disk: bool) -> Options:
        return options

    def needs_disk(self, options: Options) -> bool:
        return False

    def processes(self, options: Options) -> bool:
        return False

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        if isinstance(limits.memory, Budget):
            return limits.memory
        budget, program = parse_memory(limits.memory), given.source.program
        if budget is None:
            return Budget()
        fixed = settings.FIXED + held_bytes(program)
        refuse_below(fixed + task_bytes(program), budget, limits.memory)
        return Budget(rows=budget - fixed)

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> SvmData:
        return given.source

    def create(self, path: Any, data: SvmData) -> None:
        with building(path) as directory:
            source = {"file": None, "digest": data.fingerprint}
            create_manifest(directory, kind=self.kind, nodes=0, edges=data.size.edges, source=source)

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> SvmData:
        return given.source

    def marks(self, data: SvmData, options: Options) -> Options:
        return {}

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: SvmData, options: Options, session: Session) -> Program:
        return data.program

    def lay_out(self, data: SvmData, options: Options, session: Session) -> Program:
        return data.program

    def load(self, data: SvmData, options: Options, session: Session) -> Program:
        return data.program

    def start(self, program: Program, options: Options, pool: Pool) -> tuple[Iterate, SvmPlan]:
        return Iterate.start(program), SvmPlan(SAMPLE if levels_of(program) else NEWTON)

    def load_point(self, program: Program, workspace: Workspace, pool: Pool) -> Iterate:
        group, point = workspace.generation, Iterate.start(program)
        for name in ("w", "base", *VECTORS):
            found = read_array(group, name, dtype=np.float64)
            held = getattr(point, name)
            whole = found.size == held.size and (name == "value" or np.isfinite(found).all())
            require(bool(whole) and not np.isnan(found).any(), group, f"{name} is not what a run writes")
            held[...] = found.reshape(held.shape)
        if point.gram:
            grams = read_array(group, "gram", dtype=np.float64)
            upper = np.triu_indices(program.width)
            whole = grams.size == len(point.gram) * len(upper[0]) and np.isfinite(grams).all()
            require(bool(whole), group, "gram is not what a run writes")
            for gram, part in zip(point.gram, np.split(grams, len(point.gram)), strict=True):
                gram[upper] = part
        return point

    def load_plan(self, workspace: Workspace) -> SvmPlan:
        plan = read_record(SvmPlan, workspace.manifest["plan"], workspace.record, "plan")
        require(plan.stage in (SAMPLE, NEWTON, SEARCH), workspace.record, f"plan.stage is {plan.stage!r}")
        require(min(plan.level, plan.since) >= 0, workspace.record, "the plan has counts below zero")
        # Asked again, so tried again.
        return SvmPlan(plan.stage, plan.level) if plan.verdict else plan

    def load_feasible(self, program: Program, group: Path, pool: Pool) -> Vector:
        x = read_vector(group, "x", pool)
        check_vector(group, "x", x, len(program.positive) * program.width)
        return x

    def new_store(self, program: Program, budget: Budget, pool: Pool) -> ActiveRows:
        return ActiveRows(np.zeros((len(program.positive), program.table.rows), np.bool_))

    def load_rows(self, store: ActiveRows, point: Iterate, group: Path) -> ActiveRows:
        packed, shape = read_array(group, "active", dtype=np.uint8), store.active.shape
        count = shape[0] * shape[1]
        require(len(packed) == -(-count // 8), group, "active is not what a run writes")
        store.put(np.unpackbits(packed, count=count).view(np.bool_).reshape(shape))
        return store

    def write(self, group: Path, state: SvmState) -> None:
        point = state.point
        for name in ("w", "base", *VECTORS):
            write_array(group, name, getattr(point, name).ravel())
        if point.gram:
            upper = np.triu_indices(point.w.shape[1])
            write_array(group, "gram", np.concatenate([gram[upper] for gram in point.gram]))
        state.rows.write(group / "rows")

    def problem(self, program: Program, options: Options, session: Session) -> SvmSchedule:
        ahead = session.workers + 1
        if session.budget.rows is not None:
            ahead = max(1, min(ahead, session.budget.rows // max(task_bytes(program), 1)))
        passes = Passes(program, session.threads, session.monitor, ahead)
        return SvmSchedule(program, passes, options["tol"], options["seed"], levels_of(program))

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        return {}

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        return iter(())

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        """Check every array and that the claims agree with each other; the rows themselves are not here."""
        manifest, group = workspace.manifest, workspace.generation
        size = manifest["graph"]["edges"]
        w, lower = read_array(group, "w", dtype=np.float64), read_array(group, "lower", dtype=np.float64)
        active = int(np.unpackbits(read_array(group / "rows", "active", dtype=np.uint8)).sum())
        demand(workspace, len(w) == size and bool(np.isfinite(w).all()), "the stored w is not a point")
        demand(workspace, active == manifest["n_active"], "the active rows are not as many as the manifest says")
        demand(workspace, len(lower) > 0 and size % len(lower) == 0, "the stored bounds are not those of classes")
        report: dict[str, Any] = {"rows": active, "lower_bound": float(lower.sum())}
        agree(workspace, report["lower_bound"], manifest["lower_bound"], "lower bound")
        if workspace.feasible:
            x = read_array(workspace.feasible, "x")
            demand(workspace, len(x) == size and bool(np.isfinite(x).all()), "the stored x is not a point")
            inner = x.reshape(len(lower), -1)
            inner = inner[:, : inner.shape[1] - manifest["problem"]["options"]["fit_intercept"]]
            with np.errstate(over="ignore"):
                least = max(0.5 * float(np.sum(inner**2)), manifest["lower_bound"]) * (1.0 - 1e-9)
            demand(workspace, manifest["objective"] >= least, "the objective is below what it cannot be below")
        check_certificate(workspace, violation=None, scale=1.0, worth=0.0)
        return report


def held_bytes(program: Program) -> int:
    """Bytes that a run holds all the time: labels, active rows (old and new), Hessians and one more to factor."""
    k, p, rows = len(program.positive), program.width, program.table.rows
    grams = 8 * p * p * (k + 2) if program.dense else 0
    return program.code.nbytes + 2 * k * rows + grams + 8 * k * p * 12


def task_bytes(program: Program) -> int:
    """Bytes of a part of the rows and of what is computed from it."""
    k, p, table = len(program.positive), program.width, program.table
    grams = 8 * p * p * k if program.dense else 0
    largest = max(last - first for first, last in table.parts)
    return (table.part_bytes if table.copies else 0) + grams + 8 * (4 * settings.TILE_ENTRIES + 6 * largest)


SVM = SvmFamily()
