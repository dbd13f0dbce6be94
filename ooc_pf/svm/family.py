"""Support vector machines: how a run is built, stored, loaded and verified.

The rows are the caller's. A workspace holds everything else, so a run goes on when it is called again with the same
rows, labels and weights. One that was made from files knows where its rows are, see `files`.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Given, Options, Session, Size
from ..engine.handed import HandedFamily
from ..storage.arrays import read_array, write_array
from ..storage.memory import Budget
from ..storage.records import check_fields, read_record, require
from ..storage.vectors import Pool, Vector, check_vector, read_vector
from ..storage.workspace import Workspace
from . import settings
from .check import verify_svm
from .data import SvmData
from .passes import Passes
from .program import Program
from .schedule import NEWTON, SAMPLE, SEARCH, ActiveRows, Iterate, SvmPlan, SvmSchedule, SvmState, levels_of

VECTORS = ("value", "slope", "lower")


@dataclass(frozen=True)
class SvmFamily(HandedFamily):
    """L2 support vector machines by Newton's method."""

    name: str = "svm"
    kind: str = "svm"
    fields: dict[str, Any] = field(default_factory=dict)
    noun = "table of rows"
    alone = "support vector machines work"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check_held(self, workspace: Workspace) -> None:
        kinds = {"tol": float, "seed": int, "C": float, "fit_intercept": bool}
        options = workspace.manifest["problem"]["options"]
        check_fields(options, kinds, workspace.record, "problem.options.")
        require(0.0 < options["C"] < math.inf, workspace.record, "problem.options.C is no positive number")

    def needs(self, given: Given, size: Size, options: Options) -> tuple[int, int]:
        program = given.source.program
        return settings.FIXED + held_bytes(program), task_bytes(program)

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: SvmData, options: Options, session: Session) -> Program:
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

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        return verify_svm(workspace)


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
