"""The oracle's schedule and the engine's record for programs over cycles."""

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, Problem, State, total_charge
from ..engine.rows import TRAIL, Rows
from ..engine.sweeps import sweep_round
from ..errors import BudgetError
from ..kernels.paths import UNLIMITED
from ..storage.vectors import Vector
from .program import CycleProgram, nonnegative
from .search import BLOCK_SOURCES, Found, Frozen, Places, SearchRules, all_sources, count_blocks

CERTIFY, HOT = "certify", "hot"
CROWDED = 1.5  # times as many rows as a pass may take up are sifted at once
FLOOR = 0.1  # rows violated by less than this part of the tolerance are left for later
COOLING = 0.5  # what sweeps leave of a violation, at a guess


@dataclass(frozen=True)
class Stage:
    """A kind of pass over the sources. Stages shape the bits of an answer, so they are kept with a run.

    Attributes
    ----------
    hops : int
        How many arcs from its source a search goes; 0: no limit, -1: trees instead of searches.
    waves : int
        In how many parts the sources are taken, with sweeps between. The stage "hot" takes as many at a time, but
        always those that are most violated as far as is known, until none is worth it.
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
         point: Vector | None) -> tuple[Found, float, bool]:  # fmt: skip
    """Take in what a search brings, batch by batch: rows, the largest violation, and whether rows were left out.

    Of more than ``most_rows`` those that are violated most are kept, and no new pairs but theirs.

    ``point``, which begins as max(y, 0), is made feasible on the way for all edges looked at; of pairs that are new,
    the reach stays with what was found.
    """
    parts, held, seen, worst = [], 0, 0, 0.0
    for found in batches:
        old = found.edge >= 0
        edge, reach = found.edge[old], found.reach[old]
        worst = max(worst, float(found.violation.max(initial=0.0)))
        if point is not None:
            worst = max(worst, float((program.limit(np.maximum(y.take(edge), 0.0)) - reach).max(initial=0.0)))
            point.put(edge, program.within(reach))
        found = replace(found, edge=found.edge[~old], reach=found.reach[~old])
        parts.append(found)
        held, seen = held + len(found.rows), seen + len(found.rows)
        if held > CROWDED * most_rows:
            parts = [Found.join(parts).worst_rows(most_rows)]
            held = len(parts[0].rows)
    taken = Found.join(parts).worst_rows(most_rows)
    return taken.numbered(y.size), worst, len(taken.rows) < seen


def cycle_problem(name: str, program: CycleProgram, oracle: Any, monitor: Monitor, options: dict[str, Any],
                  generation: Any = lambda: None, threads: Executor | None = None, workers: int = 1,
                  most_pairs: int | None = None) -> Problem:  # fmt: skip
    """The engine's record for a program over cycles.

    The oracle goes through stages, each as long as it pays: short cycles are cheap to list, complete passes not. The
    last stage repeats until its violations promise that a complete pass over one frozen point, without sweeps between,
    will certify.

    ``threads`` for as many ``workers`` sweep side by side; ``most_pairs`` of a complete graph may have a variable.
    """
    tol, settings = options["tol"], options["settings"]
    stages = {stage[0]: Stage(*stage) for stage in settings["stages"]}
    order = list(stages)
    sources, slack = all_sources(program.graph), program.slack
    blocks = count_blocks(sources)

    def wave_size(stage: Stage) -> int:
        if stage.name == CERTIFY:
            return max(1, len(sources))
        return BLOCK_SOURCES * max(1, min(-(-blocks // stage.waves), settings["most_blocks"]))

    def wave(state: State, stage: Stage) -> Places:
        if stage.name == HOT:
            return hottest(state.heat, state.plan["cold"], wave_size(stage))
        first = state.plan["wave"] * wave_size(stage)
        return sources[first : first + wave_size(stage)]

    def find(state: State) -> Pass:
        stage = stages[state.plan["stage"]]
        if stage.hops < 0:
            return find_by_trees(state)
        part = wave(state, stage)
        complete = len(part) == len(sources) and stage.hops == 0
        rules = SearchRules(hops=stage.hops or UNLIMITED, keep_paths=settings["keep_paths"], slack=slack)
        address = generation() and (generation(), "y")
        with monitor.timed("oracle"), monitor.bar(stage.name, count_blocks(part)) as tick:
            point = nonnegative(state.y, state.pool) if complete else None
            frozen = freeze(state.program, state.y, address)
            batches = oracle.find(frozen, part, rules=rules, tick=tick, stop=monitor.stop)
            found, worst, cut = look(state.program, state.y, batches, settings["most_rows"], point)
        check_room(state, found.pairs)
        state.admit(found.pairs)
        if HOT in stages and stage.hops == 0:
            state.heat = heated(state.heat, len(sources), part, found.peak)
        if not complete or (cut and state.program.pairs):
            return Pass(worthwhile(found), worst, found.relaxed, cut=cut)
        if len(found.pairs):
            point = Vector.of(np.concatenate((point.whole, state.program.within(found.reach))))
        certificate = Certificate(state.program.value(point), bound(state), worst, program.scale)
        return Pass(worthwhile(found), worst, found.relaxed, certificate, point, cut)

    def check_room(state: State, pairs: np.ndarray) -> None:
        if len(pairs) and most_pairs is not None and state.y.size + len(pairs) > most_pairs:
            raise BudgetError(
                f"{state.y.size + len(pairs):,} pairs need a variable, and there is memory for {most_pairs:,}; the "
                "workspace, if any, is as it was after its last iteration: resume it with more memory="
            )

    def worthwhile(found: Found) -> Rows:
        """The rows without those whose violation hardly counts yet: they would only make the sweeps longer."""
        least = FLOOR * min(float(found.violation.max(initial=0.0)), tol * program.scale)
        return found.rows.select(found.violation >= least)

    def cold(worst: float) -> float:
        """How little a source may be violated to be left alone: a part of the worst, but no less than is asked for."""
        aim = settings.get("calm", 0.0) * tol * program.scale
        return max(settings.get("share", 0.0) * worst, aim if worst > aim else 0.0, slack)

    def find_by_trees(state: State) -> Pass:
        if not state.program.graph.closers:
            return Pass(Rows.empty(), 0.0)
        dice = np.random.default_rng([options["seed"], state.iteration])
        roots = draw_roots(state.program, state.y, settings["trees"], dice)
        with monitor.timed("oracle"), monitor.bar("trees", len(roots)) as tick:
            frozen = freeze(state.program, state.y)
            # A detour of a few arcs more is worth finding only once the violations are of that size.
            penalty = settings["penalty"] * min(1.0, state.plan["last"])
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
            residual = sweep_round(state, monitor.stop, threads, workers)
            counts["sweeps"] += TRAIL - 1
            counts["projections"] += (TRAIL - 1) * len(state.rows)
            if residual <= enough:
                break
        if state.program.step is not None and not found.cut:
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
        if stage.name == HOT:
            # Guesses may be wrong: after two passes' worth of them it is time to look everywhere.
            if len(wave(state, stage)) and now["wave"] + 1 < 2 * stage.waves:
                return {**now, "wave": now["wave"] + 1, "worst": worst, "began": began}
            return first_plan(CERTIFY, worst)
        if (now["wave"] + 1) * wave_size(stage) < len(sources):
            return {**now, "wave": now["wave"] + 1, "worst": worst, "began": began}
        if stage.name == order[-1]:
            # A pass with sweeps takes the violation down, so that the next one may as well certify.
            return first_plan(
                CERTIFY if worst <= settings["promise"] * tol * state.program.scale else stage.name, worst
            )
        if stage.name == CERTIFY:
            calm = order[-1] == HOT and not len(hottest(state.heat, cold(worst), 1))
            return first_plan(CERTIFY if calm else order[-1], worst, cold(worst))
        pays = worst > 0.0 and after - began > stage.pays * max(1.0, abs(after))
        return first_plan(stage.name if pays else order[order.index(stage.name) + 1], worst)

    return Problem(name, find, sweep, forget, bound, plan)


def draw_roots(program: CycleProgram, y: Vector, count: int, dice: np.random.Generator) -> np.ndarray:
    """Roots for trees: nodes drawn by the multipliers that pass through them, since that is where short paths meet."""
    graph = program.graph
    load = np.concatenate([load for _, load in program.cost_and_load(y, 1.0)])
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    traffic = np.bincount(tail, np.maximum(load[graph.arc_edge.whole], 0.0), graph.nodes)
    busy = np.flatnonzero(traffic)
    if not len(busy):
        return dice.choice(graph.closer_node.whole, count)
    return dice.choice(busy, min(count, len(busy)), replace=False, p=traffic[busy] / traffic.sum())


def first_plan(stage: str, last: float = 1.0, cold: float = 0.0) -> dict[str, Any]:
    """The beginning of a pass; ``last`` is the worst violation of the one before, ``cold`` what is left alone."""
    return {"stage": stage, "wave": 0, "worst": 0.0, "began": 0.0, "last": last, "cold": cold}


def hottest(heat: np.ndarray, cold: float, most: int) -> np.ndarray:
    """Places of the sources hotter than ``cold``; of too many, the hottest."""
    hot = np.flatnonzero(heat > cold)
    return np.sort(hot[np.argsort(-heat[hot], kind="stable")[:most]])


def heated(heat: np.ndarray | None, sources: int, places: Places, peak: np.ndarray) -> np.ndarray:
    """What is to be expected of each source after the sweeps that follow; nothing is known of one never visited."""
    heat = np.full(sources, np.inf) if heat is None else heat.copy()
    heat[places] = COOLING * peak
    return heat
