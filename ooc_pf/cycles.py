"""The oracle's schedule and the engine's record for programs over cycles."""

from typing import Any

import numpy as np

from .certificate import Certificate
from .kernels.paths import UNLIMITED
from .monitor import Monitor
from .oracle import Found, Frozen, count_blocks
from .problem import Problem, State
from .program import CycleProgram, sum_duals
from .sweeping import TRAIL, sweep_round

# Settings that shape the answer's bits. They are stored with a run, so a later release may choose others.
SETTINGS = {"waves": 8, "short_rounds": 2, "rounds": 10, "keep_paths": 3}

HOPS = {"triangles": 1, "squares": 2, "stream": UNLIMITED, "certify": UNLIMITED}


def freeze(program: CycleProgram, state: State, generation: Any = None) -> Frozen:
    """The point the oracle looks at."""
    x = np.maximum(state.y, 0.0)
    return Frozen(x, program.limit(x), generation and (generation, "y"))


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
            frozen = freeze(program, state, generation())
            options = {"hops": HOPS[stage], "keep_paths": settings["keep_paths"], "slack": program.slack}
            return oracle.find(frozen, part, tick=tick, **options)

    def measure(state: State, found: Found) -> tuple[Certificate, np.ndarray]:
        frozen = freeze(program, state)
        point = program.feasible(frozen.x, found.reach, found.closers)
        violation = float((frozen.limit[found.closers] - found.reach).max(initial=0.0))
        return Certificate(program.value(point), bound(state), violation), point

    def sweep(state: State, found: Found) -> dict[str, Any]:
        counts = {"sweeps": 0, "projections": 0}
        if state.plan["stage"] == "stream" and not len(found.rows):
            return counts
        enough = max(0.02 * float(found.violation.max(initial=0.0)), 0.01 * tol)
        for _ in range(settings["rounds" if HOPS[state.plan["stage"]] == UNLIMITED else "short_rounds"]):
            residual = sweep_round(program, state)
            counts["sweeps"] += TRAIL - 1
            counts["projections"] += (TRAIL - 1) * len(state.rows)
            if residual <= enough:
                break
        return counts

    def bound(state: State) -> float:
        return program.bound(state.y, sum_duals(state.rows.blocks()) if program.rhs else 0.0)

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

    return Problem(name, find, measure, sweep, bound, plan)


def first_plan(staged: bool) -> dict[str, Any]:
    """Where the schedule starts; an engine that cannot stop at short cycles goes to complete passes at once."""
    return {"stage": "triangles" if staged else "certify", "wave": 0, "worst": 0.0}
