"""The oracle's schedule and the engine's record for programs over cycles."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .certificate import Certificate
from .kernels.paths import UNLIMITED
from .monitor import Monitor
from .oracle import Found, Frozen, count_blocks
from .pages import Vector
from .problem import Pass, Problem, State, total_charge
from .program import CycleProgram, nonnegative
from .rows import TRAIL, Rows
from .sweeping import sweep_round

CERTIFY = "certify"
FLOOR = 0.1  # rows violated by less than this part of the tolerance are left for later


@dataclass(frozen=True)
class Stage:
    """A kind of pass over the sources. Stages shape the bits of an answer, so they are kept with a run.

    Attributes
    ----------
    hops : int
        How many arcs from its source a search goes; 0: no limit, -1: trees instead of searches.
    waves : int
        In how many parts the sources are taken, with sweeps between.
    rounds : int
        Rounds of sweeps after a wave, at most.
    pays : float
        The stage is repeated while a pass raises the bound by more than this, relatively.
    """

    name: str
    hops: int
    waves: int
    rounds: int
    pays: float


def freeze(program: CycleProgram, y: Vector, address: Any = None) -> Frozen:
    """The point the oracle looks at."""
    graph = program.graph
    known = program.pairs.by_lower_end(graph.nodes) if program.pairs else None
    return Frozen(graph, y, program.limit, program.beyond, known, address)


def look(program: CycleProgram, y: Vector, batches: Iterable[Found], most_rows: int,
         point: Vector | None) -> tuple[Found, float]:  # fmt: skip
    """Take in what a search brings, batch by batch: the rows, at most so many, and the largest violation.

    ``point``, which begins as max(y, 0), is made feasible on the way for all edges looked at; of pairs that are new,
    the reach stays with what was found.
    """
    parts, held, worst = [], 0, 0.0
    for found in batches:
        old = found.edge >= 0
        edge, reach = found.edge[old], found.reach[old]
        worst = max(worst, float(found.violation.max(initial=0.0)))
        if point is not None:
            worst = max(worst, float((program.limit(np.maximum(y.take(edge), 0.0)) - reach).max(initial=0.0)))
            point.put(edge, program.within(reach))
        found = replace(found, edge=found.edge[~old], reach=found.reach[~old])
        found = found.first_rows(most_rows - held)
        held += len(found.rows)
        parts.append(found)
    return Found.join(parts).numbered(y.size), worst


def cycle_problem(name: str, program: CycleProgram, oracle: Any, monitor: Monitor, options: dict[str, Any],
                  generation: Any = lambda: None) -> Problem:  # fmt: skip
    """The engine's record for a program over cycles.

    The oracle goes through stages, each as long as it pays: short cycles are cheap to list, complete passes not. The
    last stage repeats until its violations promise that a complete pass over one frozen point, without sweeps between,
    will certify.
    """
    tol, settings = options["tol"], options["settings"]
    stages = {stage[0]: Stage(*stage) for stage in settings["stages"]}
    order = list(stages)
    blocks, slack = count_blocks(program.graph), program.slack

    def wave_size(stage: Stage) -> int:
        if stage.name == CERTIFY:
            return max(1, blocks)
        return max(1, min(-(-blocks // stage.waves), settings["most_blocks"]))

    def find(state: State) -> Pass:
        stage = stages[state.plan["stage"]]
        if stage.hops < 0:
            return find_by_trees(state)
        first = state.plan["wave"] * wave_size(stage)
        part = range(blocks)[first : first + wave_size(stage)]
        complete = len(part) == blocks and stage.hops == 0
        rules = {"hops": stage.hops or UNLIMITED, "keep_paths": settings["keep_paths"], "slack": slack,
                 "stop": monitor.stop}  # fmt: skip
        address = generation() and (generation(), "y")
        with monitor.timed("oracle"), monitor.bar(stage.name, len(part)) as tick:
            point = nonnegative(state.y, state.pool) if complete else None
            batches = oracle.find(freeze(state.program, state.y, address), part, tick=tick, **rules)
            found, worst = look(state.program, state.y, batches, settings["most_rows"], point)
        state.admit(found.pairs)
        if not complete:
            return Pass(worthwhile(found), worst, found.relaxed)
        if len(found.pairs):
            point = Vector.of(np.concatenate((point.whole, state.program.within(found.reach))))
        certificate = Certificate(state.program.value(point), bound(state), worst, program.scale)
        return Pass(worthwhile(found), worst, found.relaxed, certificate, point)

    def worthwhile(found: Found) -> Rows:
        """The rows without those whose violation hardly counts yet: they would only make the sweeps longer."""
        least = FLOOR * min(float(found.violation.max(initial=0.0)), tol * program.scale)
        return found.rows.select(found.violation >= least)

    def find_by_trees(state: State) -> Pass:
        closers = state.program.graph.closer_node.whole
        if not len(closers):
            return Pass(Rows.empty(), 0.0)
        dice = np.random.default_rng([options["seed"], state.iteration])
        roots = closers[dice.integers(0, len(closers), settings["trees"])]
        with monitor.timed("oracle"), monitor.bar("trees", len(roots)) as tick:
            frozen = freeze(state.program, state.y)
            # A detour of a few arcs more is worth finding only once the violations are of that size.
            penalty = settings["penalty"] * min(1.0, 3.0 * state.plan["last"])
            found = oracle.find_by_trees(frozen, roots, penalty=penalty, slack=slack, tick=tick)
        return Pass(found.rows, float(found.violation.max(initial=0.0)), found.relaxed)

    def sweep(state: State, found: Pass) -> dict[str, Any]:
        counts = {"sweeps": 0, "projections": 0}
        if program.pairs:
            counts["pairs"] = len(state.program.pairs.unlisted)
        stage = stages[state.plan["stage"]]
        if stage.name != CERTIFY and not len(found.rows):
            return counts
        enough = max(0.02 * found.worst, 0.01 * tol * state.program.scale)
        for _ in range(stage.rounds):
            residual = sweep_round(state, monitor.stop)
            counts["sweeps"] += TRAIL - 1
            counts["projections"] += (TRAIL - 1) * len(state.rows)
            if residual <= enough:
                break
        if state.program.step is not None:
            state.recentre()
        return counts

    def forget(state: State) -> int:
        forgotten = state.rows.forget()
        state.dismiss()
        return forgotten

    def bound(state: State) -> float:
        return state.program.bound(state.y, total_charge(state.program, state.rows) if state.program.rhs else 0.0)

    def plan(state: State, found: Pass, before: float, after: float) -> dict[str, Any]:
        now = state.plan
        stage = stages[now["stage"]]
        began = before if now["wave"] == 0 else now["began"]
        worst = max(now["worst"], found.worst)
        if (now["wave"] + 1) * wave_size(stage) < blocks:
            return {**now, "wave": now["wave"] + 1, "worst": worst, "began": began}
        if stage.name == order[-1]:
            # A pass with sweeps takes the violation down, so that the next one may as well certify.
            return first_plan(
                CERTIFY if worst <= settings["promise"] * tol * state.program.scale else stage.name, worst
            )
        if stage.name == CERTIFY:
            return first_plan(order[-1], worst)
        pays = worst > 0.0 and after - began > stage.pays * max(1.0, abs(after))
        return first_plan(stage.name if pays else order[order.index(stage.name) + 1], worst)

    return Problem(name, find, sweep, forget, bound, plan)


def first_plan(stage: str, last: float = 1.0) -> dict[str, Any]:
    """The beginning of a pass; ``last`` is the worst violation of the one before."""
    return {"stage": stage, "wave": 0, "worst": 0.0, "began": 0.0, "last": last}
