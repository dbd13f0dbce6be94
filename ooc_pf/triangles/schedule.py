"""How the engine works on metric nearness over the complete graph: scan, sweep, certify."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cycles.schedule import CERTIFY
from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, Problem, State
from ..kernels.triangles import scan_triples
from .program import ROUNDING, Crew, DenseProgram, close_block, close_tiles, open_block, raise_to_limits
from .store import TriangleRows
from .sweeps import DEPTH, STRIDE, extrapolate, sweep_once
from .tiles import Block

SCAN = "scan"


@dataclass(frozen=True)
class Scan(Pass):
    """A pass over all triangles; ``rows`` only tells how many were violated, as they are remembered already.

    ``norm`` is that of the violations, of a pass that does not certify.
    """

    norm: float = math.inf


def first_plan(program: DenseProgram, options: dict[str, Any]) -> dict[str, Any]:
    """Begin with the large violations; ``strict`` falls with every attempt to certify that came too early."""
    return {"stage": SCAN, "slack": max(options["settings"]["first"], ROUNDING) * program.size, "strict": 1.0,
            "slow": False, "stride": STRIDE}  # fmt: skip


def norm_to_certify(program: DenseProgram, tol: float) -> float:
    """Norm of the violations found at which a certificate is likely to meet ``tol``.

    That is better than asked for, not relative to the largest number, where rounding lets us.
    """
    rounding = ROUNDING * program.size * math.sqrt(program.tiling.edges)
    return 0.3 * min(max(tol, rounding), tol * program.scale)


def dense_problem(program: DenseProgram, monitor: Monitor, options: dict[str, Any], crew: Crew) -> Problem:
    """The engine's record.

    A scan looks at every triangle but takes up only violations above a fraction of the last ones: those below mostly
    vanish by themselves, and would only have to be remembered and forgotten.
    """
    settings, tiling = options["settings"], program.tiling
    triangles = math.comb(tiling.nodes, 3)
    constants = program.inverse, program.lower, program.upper
    residual = math.inf  # of the sweeps of the iteration under way

    def find(state: State) -> Scan:
        with monitor.timed("oracle"), monitor.bar(state.plan["stage"], len(tiling.rounds)) as tick:
            return certify(state, tick) if state.plan["stage"] == CERTIFY else scan(state, tick)

    def certify(state: State, tick: Callable[[], Any]) -> Scan:
        """The shortest-path closure of the iterate: a feasible point, and how far that is."""
        point = program.new_tiles()
        for span in point.passes():
            point.write(span[0], program.clip(state.y.y(span), span))
        close_tiles(point, crew, tick)
        squares = []
        for span in point.passes():
            far = program.clip(state.y.y(span), span) - point.read(*span)
            squares.append(float(np.sum(far * far)))
        distance = math.sqrt(math.fsum(squares))
        raise_to_limits(program, point)
        certificate = Certificate(program.value(point), bound(state), distance, program.scale)
        return Scan(range(0), 0.0, triangles, certificate, point)

    def scan(state: State, tick: Callable[[], Any]) -> Scan:
        x, shift, slack = state.y.x, state.y.shift, state.plan["slack"]

        def task(at: int, block: Block) -> tuple[int, np.ndarray]:
            triples, (lines, inverse, lower, upper, moved) = open_block(block, x, *constants, shift)
            rows = state.rows.get(at)
            *kept, found, totals = scan_triples(lines, inverse, moved, lower, upper, triples, rows.code, rows.dual,
                                                rows.start, slack)  # fmt: skip
            close_block(block, (x, lines), (shift, moved))
            state.rows.put(at, TriangleRows(*kept))
            return found, totals

        parts = list(crew.visit(tiling, task, tick))
        worst = max((float(totals[0]) for _, totals in parts), default=0.0)
        norm = math.sqrt(math.fsum(totals[1] for _, totals in parts))
        return Scan(range(sum(found for found, _ in parts)), worst, triangles, norm=norm)

    def sweep(state: State, found: Scan) -> dict[str, Any]:
        nonlocal residual
        enough = max(0.01 * found.worst, ROUNDING * program.size)
        slow = state.plan["slow"]
        done, taken, residual = 0, 0, math.inf
        while done < settings["sweeps"] and residual > enough:
            residual = sweep_once(program, state, crew, done % DEPTH if slow else None)
            done += 1
            if slow and done % DEPTH == 0:
                taken += extrapolate(program, state, crew)
        return {"sweeps": done, "projections": done * len(state.rows), "extrapolated": taken, "residual": residual}

    def forget(state: State) -> int:
        return state.rows.forget()

    def bound(state: State) -> float:
        return program.bound(state.y)

    def plan(state: State, found: Scan, before: float, after: float) -> dict[str, Any]:
        now = state.plan
        if now["stage"] == CERTIFY:
            return {**now, "stage": SCAN, "slack": ROUNDING * program.size, "strict": 0.1 * now["strict"]}
        worst = found.worst or residual
        slack = max(settings["fraction"] * worst, ROUNDING * program.size)
        aim = now["strict"] * norm_to_certify(program, options["tol"])
        small = max(found.norm, residual, now["slack"]) <= aim
        quiet = not found.rows and now["slack"] <= ROUNDING * program.size
        slow = state.iteration + 1 >= settings["patience"]
        return {**now, "stage": CERTIFY if small or quiet else SCAN, "slack": slack, "slow": slow}

    return Problem("nearness", find, sweep, forget, bound, plan)
