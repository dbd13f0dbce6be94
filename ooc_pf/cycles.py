"""Quadratic programs over cycles: the one shape behind metric nearness and correlation clustering.

    min 1/2 sum_e (x_e - t_e)^2 / inverse_e   with   x >= 0   and   closing * x_c - sum_{e in P} x_e <= rhs

for every closing edge c and every path P between its ends. A path violates its row when it is shorter than
``limit = closing * x_c - rhs``, and the point that sets each closing x to ``closing * (reach + rhs)``, where reach is
the smaller of limit and distance, is feasible.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .certificate import Certificate, quadratic_dual, quadratic_value
from .constraints import ConstraintStore
from .graph import Graph
from .kernels.paths import UNLIMITED
from .kernels.sweep import project_rows
from .monitor import Monitor
from .oracle import Found, Frozen, count_blocks
from .problem import Problem, State

# Settings that shape the answer's bits. They are stored with a run, so a later release may choose others.
SETTINGS = {"waves": 8, "local_sweeps": 10, "rounds": 10, "keep_paths": 3}

HOPS = {"triangles": 1, "squares": 2, "stream": UNLIMITED, "certify": UNLIMITED}


@dataclass(frozen=True)
class CycleProgram:
    """The data of a program over cycles; vectors are by edge."""

    target: np.ndarray
    inverse: np.ndarray
    closing: float
    rhs: float
    graph: Graph

    @property
    def slack(self) -> float:
        """Violations below this are rounding."""
        return 1e-14 * max(1.0, float(np.abs(self.target).max(initial=0.0)))

    def freeze(self, state: State, generation: Any = None) -> Frozen:
        x = np.maximum(state.y, 0.0)
        return Frozen(x, self.limit(x), generation and (generation, "y"))

    def limit(self, x: np.ndarray) -> np.ndarray:
        """The length below which a path violates its row, by closing edge."""
        return self.closing * x[self.graph.closer_edge] - self.rhs

    def feasible(self, x: np.ndarray, reach: np.ndarray, closers: slice) -> np.ndarray:
        """``x`` with the closing edges brought within their reach."""
        point = x.copy()
        point[self.graph.closer_edge[closers]] = np.maximum(self.closing * (reach + self.rhs), 0.0)
        return point

    def bound(self, y: np.ndarray, rows: ConstraintStore) -> float:
        """Value of the dual, where y belongs to the duals of the rows."""
        dual_sum = sum(float(block.dual.sum()) for block in rows.blocks()) if self.rhs else 0.0
        return quadratic_dual(y, self.target, self.inverse, self.rhs, dual_sum)

    def value(self, x: np.ndarray) -> float:
        return quadratic_value(x, self.target, self.inverse)

    def rebuild(self, rows: ConstraintStore) -> np.ndarray:
        """y from the duals alone: ``t - inverse * A'z``, the invariant every sweep keeps."""
        load = np.zeros(len(self.target))
        for block in rows.blocks():
            spread = np.repeat(block.dual, np.diff(block.start))
            spread *= -1.0
            spread[block.start[:-1]] *= -self.closing
            np.add.at(load, block.table[block.index], spread)
        return self.target - self.inverse * load


def cycle_problem(name: str, program: CycleProgram, oracle: Any, monitor: Monitor, *, tol: float,
                  settings: dict[str, int] = SETTINGS, generation: Any = lambda: None) -> Problem:  # fmt: skip
    """The engine's record for a program over cycles.

    The oracle goes through stages: short cycles, which are cheap to list, as long as they pay; one complete pass, which
    gives a feasible point; complete passes in waves with sweeps between, until the estimates say that the next
    complete pass of a frozen point will certify.
    """
    blocks = count_blocks(program.graph)
    wave_size = max(1, -(-blocks // settings["waves"]))

    def find(state: State) -> Found:
        stage, wave = state.plan["stage"], state.plan["wave"]
        part = range(blocks)
        if stage == "stream":
            part = part[wave * wave_size : (wave + 1) * wave_size]
        with monitor.timed("oracle"), monitor.bar(stage, len(part)) as tick:
            frozen = program.freeze(state, generation())
            options = {"hops": HOPS[stage], "keep_paths": settings["keep_paths"], "slack": program.slack}
            return oracle.find(frozen, part, tick=tick, **options)

    def measure(state: State, found: Found) -> tuple[Certificate, np.ndarray]:
        frozen = program.freeze(state)
        point = program.feasible(frozen.x, found.reach, found.closers)
        violation = float((frozen.limit[found.closers] - found.reach).max(initial=0.0))
        return Certificate(program.value(point), program.bound(state.y, state.rows), violation), point

    def sweep(state: State, found: Found) -> dict[str, Any]:
        counts = {"sweeps": 0, "projections": 0}
        if state.plan["stage"] == "stream" and not len(found.rows):
            return counts
        enough = max(0.02 * float(found.violation.max(initial=0.0)), 0.01 * tol)
        for _ in range(settings["rounds"] if HOPS[state.plan["stage"]] == UNLIMITED else 1):
            residual = 0.0
            for block in state.rows.blocks():
                y = state.y[block.table]
                moved = project_rows(block.start, block.index, block.dual, y, program.inverse[block.table],
                                     program.closing, program.rhs, settings["local_sweeps"])  # fmt: skip
                state.y[block.table] = y
                residual = max(residual, moved)
            counts["sweeps"] += settings["local_sweeps"]
            counts["projections"] += settings["local_sweeps"] * len(state.rows)
            if residual <= enough:
                break
        return counts

    def plan(state: State, found: Found, before: float, after: float) -> dict[str, Any]:
        now = state.plan
        if now["stage"] in ("triangles", "squares"):
            pays = len(found.rows) and after - before > 1e-3 * max(1.0, abs(after))
            following = {"triangles": "squares", "squares": "certify"}[now["stage"]]
            return {**now, "stage": now["stage"] if pays else following}
        if now["stage"] == "certify":
            return {"stage": "stream", "wave": 0, "worst": 0.0}
        wave = now["wave"] + 1
        worst = max(now["worst"], float(found.violation.max(initial=0.0)))
        if wave * wave_size < blocks:
            return {**now, "wave": wave, "worst": worst}
        # A pass with sweeps takes the violation down by one to three orders: the next one may as well certify.
        promising = worst <= 100.0 * tol
        return {"stage": "certify" if promising else "stream", "wave": 0, "worst": 0.0}

    return Problem(name, find, measure, sweep, lambda state: program.bound(state.y, state.rows), plan)


def first_plan(staged: bool) -> dict[str, Any]:
    """Where the schedule starts; an engine that cannot stop at short cycles goes to complete passes at once."""
    return {"stage": "triangles" if staged else "certify", "wave": 0, "worst": 0.0}
