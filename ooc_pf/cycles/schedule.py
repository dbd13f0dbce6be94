"""What the oracle of a program over cycles does next, and what it makes of what it finds.

The oracle goes through stages (see `stages`): short cycles are cheap to list, complete passes are not. The last stage
repeats until its violations promise that a complete pass over one frozen point, without sweeps between, will
certify.
"""

import contextlib
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.certificate import NEGLIGIBLE, Certificate, certified_ratio
from ..engine.monitor import Monitor
from ..engine.problem import Swept, Turn
from ..engine.rows import Rows
from ..engine.sweeps import SWEEPS_EACH_ROUND, sweep_round
from ..errors import BudgetError, SearchStopped
from ..kernels.paths import UNLIMITED
from ..storage.vectors import PAGE, Vector
from ..storage.workspace import Workspace
from . import settings as numbers
from .found import Found
from .frozen import Frozen, SearchRules
from .passes import draw_roots, freeze, heated, hottest, look
from .plan import CyclePass, CyclePlan, CycleState, Rounder
from .point import CyclePoint
from .program import CycleProgram, nonnegative
from .search import count_blocks
from .settings import CERTIFY, DISJOINT, Settings, Stage
from .stages import Stages

RATIO_REACHED, STALLED = "ratio_reached", "stalled"  # statuses


@dataclass(frozen=True)
class CycleSchedule:
    """The steps of Algorithm 1 for a program over cycles.

    Attributes
    ----------
    program : CycleProgram
        As it was at the beginning of this call.
    oracle
        Has ``find`` and ``find_by_trees``, as `search.NumbaOracle`.
    threads, workers : Executor or None, int
        Who sweeps side by side.
    most_pairs : int or None
        How many pairs of a complete graph may have a variable.
    workspace : Workspace or None
        Where workers in other processes find the point.
    rounder : Rounder or None
    ratio : float or None
        The run may end when its clusters cost at most this many times what any must.
    """

    program: CycleProgram
    oracle: Any
    monitor: Monitor
    settings: Settings
    tol: float
    seed: int = 0
    threads: Executor | None = None
    workers: int = 1
    most_pairs: int | None = None
    workspace: Workspace | None = None
    rounder: Rounder | None = None
    ratio: float | None = None

    @functools.cached_property
    def stages(self) -> Stages:
        """Which stage comes when, and which sources."""
        return Stages(self.program, self.settings, self.tol)

    @functools.cached_property
    def rules(self) -> SearchRules:
        """How complete searches go about it."""
        coarse = self.tol >= numbers.COARSE_TOLERANCE
        return SearchRules(UNLIMITED, self.settings.keep_paths, self.program.slack, coarse)

    # -- find ---------------------------------------------------------------------------------------------------------

    def find(self, state: CycleState) -> CyclePass:
        stage = self.stages.now(state.plan)
        if stage.name == DISJOINT:
            return self.find_disjoint(state, stage)
        if stage.hops < 0:
            return self.find_by_trees(state)
        surveyed = self.find_by_survey(state) if stage.name == CERTIFY and self.settings.shrink else None
        return surveyed or self.find_by_searches(state, stage)

    def find_by_survey(self, state: CycleState, *, rows: bool = True) -> CyclePass | None:
        """A complete pass over the contracted graph, and rows through the most violated sources.

        None if the contracted graph is not much smaller.
        """
        iterate, program = state.point, state.point.program
        with self.monitor.timed("oracle"), self.monitor.bar("survey", count_blocks(self.stages.sources)) as tick:
            frozen = freeze(program, iterate.y, self._address())
            most_joins = min(frozen.graph.arcs // self.settings.shrink, self.settings.most_rows)
            survey = self.oracle.survey(frozen, most_joins, tick=tick, stop=self.monitor.stop)
            if survey is None:
                return None
            point = nonnegative(iterate.y, iterate.pool)
            worst = look(program, iterate.y, survey.batches(), 0, point).worst
            peak, relaxed = survey.peak, survey.relaxed
            del survey  # the contracted graph makes room for rows
            found = self._rows_of_hot(state, frozen, peak, worst, tick) if rows else Found.join([])
        taken, relaxed = self._worthwhile(found), relaxed + found.relaxed
        return CyclePass(len(taken), worst, taken, relaxed, self._proof(state, point, worst), point, surveyed=True)

    def _rows_of_hot(
        self, state: CycleState, frozen: Frozen, peak: np.ndarray, worst: float, tick: Callable[[], bool]
    ) -> Found:
        """Rows through trees from the most violated sources; of the very worst by searches if trees miss them."""
        hot = np.where(peak > self.stages.cold(worst), peak, 0.0)
        count = min(self.settings.trees or 1, int(np.count_nonzero(hot)))
        if not count:
            return Found.join([])
        generator = np.random.default_rng([self.seed, state.iteration])
        roots = self.program.graph.sources[generator.choice(len(hot), count, replace=False, p=hot / hot.sum())]
        found = self._grow(frozen, roots, worst, tick)
        if float(found.violation.max(initial=0.0)) >= numbers.MET_BY_TREES * worst:
            return found
        part = hottest(peak, 0.0, numbers.BLOCK_SOURCES)
        batches = self.oracle.find(frozen, part, rules=self.rules, tick=tick, stop=self.monitor.stop)
        return replace(Found.join([found, *batches]), edge=found.edge, reach=found.reach)

    def _grow(self, frozen: Frozen, roots: np.ndarray, worst: float, tick: Callable[[], bool]) -> Found:
        """Cycles through shortest-path trees from these roots."""
        assert self.settings.penalty is not None
        # A detour of a few arcs more is worth finding only once the violations are of that size.
        penalty = self.settings.penalty * min(1.0, worst)
        slack, most = self.program.slack, self.settings.most_rows
        return self.oracle.find_by_trees(frozen, roots, penalty=penalty, slack=slack, most=most, tick=tick)

    def find_by_searches(self, state: CycleState, stage: Stage) -> CyclePass:
        """One bounded search from each source of the wave."""
        iterate, part = state.point, self.stages.wave(state, stage)
        complete = len(part) == len(self.stages.sources) and stage.hops == 0
        with self.monitor.timed("oracle"), self.monitor.bar(stage.name, count_blocks(part)) as tick:
            point = nonnegative(iterate.y, iterate.pool) if complete else None
            frozen = freeze(iterate.program, iterate.y, self._address())
            rules = replace(self.rules, hops=stage.hops or UNLIMITED)
            batches = self.oracle.find(frozen, part, rules=rules, tick=tick, stop=self.monitor.stop)
            room, most = self._room(iterate), self.settings.most_rows
            found, worst, cut, short, whole = look(iterate.program, iterate.y, batches, most, point, room)
        iterate.admit(found.pairs)
        if self.stages.revisits and stage.hops == 0:
            iterate.heat = heated(iterate.heat, len(self.stages.sources), part, found.peak)
            state.moved = True
        rows = self._worthwhile(found)
        cut = cut and len(rows) == len(found.rows)  # else even rows that were taken are hardly violated
        if point is None or not whole:
            return CyclePass(len(rows), worst, rows, found.relaxed, cut=cut, short=short)
        if iterate.program.pairs:
            reach = np.concatenate((found.reach, found.left))
            point = Vector.of(np.concatenate((point.whole, iterate.program.within(reach))))
        proof = self._proof(state, point, worst)
        return CyclePass(len(rows), worst, rows, found.relaxed, proof, point, cut=cut, short=short)

    def _proof(self, state: CycleState, point: Vector, worst: float) -> Certificate:
        """What a complete search proves."""
        value, program = state.point.program.value_of_any(point), self.program
        return Certificate(value, self.bound(state), worst, program.scale, worth=program.worth)

    def _address(self) -> Any:
        return None if self.workspace is None else (self.workspace.generation, "y")

    def _room(self, iterate: CyclePoint) -> int | None:
        """How many more pairs of a complete graph may have a variable."""
        if self.most_pairs is None or iterate.program.pairs is None:
            return None
        size = iterate.y.size
        if size > self.most_pairs:  # only of a run that began with more memory
            raise BudgetError(
                f"{size:,} pairs have a variable, and there is memory for {self.most_pairs:,}; the workspace, if any, "
                "is as it was: resume it with more memory="
            )
        return self.most_pairs - size

    def _worthwhile(self, found: Found) -> Rows:
        """The rows without those whose violation hardly counts yet: they would only make the sweeps longer."""
        largest = float(found.violation.max(initial=0.0))
        least = numbers.LEAST_OF_TOLERANCE * min(largest, self.tol * self.program.scale)
        return found.rows.select(found.violation >= least)

    def find_disjoint(self, state: CycleState, stage: Stage) -> CyclePass:
        """Cycles that share no edge: what one projection gains no other takes away, so that few are forgotten."""
        iterate, seed = state.point, (self.seed, state.iteration)
        # Where much is violated by much, what is violated by little can wait.
        share = numbers.UNTOUCHED if state.plan.wave else numbers.LEFT_OF_WORST
        slack = max(self.program.slack, share * self.program.scale)
        rounds = len(numbers.rounds_of(stage.hops))
        spans = -(-self.program.graph.closers // PAGE)
        with self.monitor.timed("oracle"), self.monitor.bar(stage.name, rounds * spans) as tick:
            found = self.oracle.find_disjoint(
                freeze(iterate.program, iterate.y),
                hops=stage.hops,
                slack=slack,
                most=self.settings.most_rows,
                seed=seed,
                tick=tick,
                stop=self.monitor.stop,
            )
        cut, room = len(found.rows) == self.settings.most_rows, self._room(iterate)
        found, worst, _, short, _ = look(iterate.program, iterate.y, [found], self.settings.most_rows, None, room)
        iterate.admit(found.pairs)
        return CyclePass(len(found.rows), worst, found.rows, found.relaxed, cut=cut and not short, short=short)

    def find_by_trees(self, state: CycleState) -> CyclePass:
        """Cycles through a few shortest-path trees: the paper's random oracle."""
        iterate = state.point
        if not iterate.program.graph.closers:
            return CyclePass(0, 0.0, Rows.empty())
        assert self.settings.trees is not None
        generator = np.random.default_rng([self.seed, state.iteration])
        roots = draw_roots(iterate, self.settings.trees, generator)
        with self.monitor.timed("oracle"), self.monitor.bar("trees", len(roots)) as tick:
            found = self._grow(freeze(iterate.program, iterate.y, self._address()), roots, state.plan.last, tick)
        worst = float(found.violation.max(initial=0.0))
        return CyclePass(len(found.rows), worst, found.rows, found.relaxed)

    # -- sweep, forget, bound -----------------------------------------------------------------------------------------

    def sweep(self, state: CycleState, found: CyclePass) -> Swept:
        swept = self._sweep(state, found)
        return replace(swept, more={**swept.more, **self._round(state, thoroughly=found.surveyed)})

    def _sweep(self, state: CycleState, found: CyclePass) -> Swept:
        iterate, stage = state.point, self.stages.now(state.plan)
        pairs = {"pairs": len(iterate.program.pairs.unlisted)} if iterate.program.pairs else {}
        # A proximal step is itself something to sweep for.
        if stage.name != CERTIFY and not found.found and iterate.program.step is None:
            return Swept(more=pairs)
        tolerated = numbers.SETTLED_OF_TOLERANCE * self.tol * iterate.program.scale
        settled = max(numbers.SETTLED_OF_WORST * found.worst, tolerated)
        sweeps, residual = 0, np.inf
        while sweeps < stage.rounds * SWEEPS_EACH_ROUND and residual > settled:
            residual = sweep_round(iterate, state.rows, self.monitor.stop, self.threads, self.workers)
            sweeps += SWEEPS_EACH_ROUND
        # Rows that are left out come in the next pass, before a step; those without room for their pairs may never.
        if iterate.program.step is not None and (found.short or not found.cut):
            self._step(state, stage)
        return Swept(sweeps, sweeps * len(state.rows), pairs, residual)

    def _step(self, state: CycleState, stage: Stage) -> None:
        """Go on with the proximal point method: make the steps longer while trees are young, else take one."""
        settings, iterate = self.settings, state.point
        gamma = -2.0 * iterate.program.step
        young = stage.hops < 0 or stage.name == DISJOINT
        if settings.rise is not None and stage.hops > 0 and not young:
            return
        if settings.rise is not None and young and gamma < settings.most_gamma:
            iterate.stretch(self.program, iterate.program.step * settings.rise)
        elif stage.hops >= 0 or state.iteration % (settings.every or 1) == 0:
            iterate.recentre()

    # -- clusters -----------------------------------------------------------------------------------------------------

    def _round(self, state: CycleState, *, thoroughly: bool) -> dict[str, float]:
        """Make clusters if it is time, and say what is known of the best ones.

        Near the end of a run the bound hardly rises any more, and better clusters are worth their time.
        """
        if self.rounder is None:
            return {}
        if self._is_time_to_round(state):
            self.oracle.release()
            with self.monitor.timed("round"):
                state.point.labels = self.rounder.improve(
                    state.point, state.iteration, self.monitor.stop, thoroughly=thoroughly
                )
            state.moved = True
        return self._standing(state)

    def _is_time_to_round(self, state: CycleState) -> bool:
        """Clusters are made anew each time the run has grown enough, so that they cost a small part of it."""
        return state.iteration + 1 >= state.plan.again

    def _plan_rounding(self, state: CycleState, turn: Turn) -> dict[str, Any]:
        """When clusters are made again, where they were made now: the sooner, the more it brought beside the bound."""
        known = turn.swept.more
        if "cost" not in known or not self._is_time_to_round(state):
            return {name: getattr(state.plan, name) for name in ("rounded", "again", "cost", "proven")}
        now, cost, bound = state.iteration + 1, known["cost"], known["bound_of_clusterings"]
        before = state.plan.cost if state.plan.rounded else np.inf
        pays = (before - cost) * bound >= numbers.ROUND_PAYS * (bound - state.plan.proven) * cost
        wait = max((numbers.ROUND_AGAIN - 1.0) * now, numbers.ROUND_LATER) * (1 if pays else numbers.ROUND_MUCH_LATER)
        return {"rounded": now, "again": now + int(wait), "cost": cost, "proven": bound}

    def _standing(self, state: CycleState) -> dict[str, float]:
        """Cost of the best clusters, what any must cost, and the ratio of the two."""
        if self.rounder is None or state.point.labels is None:
            return {}
        cost, bound = self.rounder.cost(state.point), state.point.bound_of_clusterings(state.rows)
        ratio = certified_ratio(cost, bound)
        return {"cost": cost, "bound_of_clusterings": bound, **({} if ratio is None else {"ratio": ratio})}

    def forget(self, state: CycleState) -> int:
        forgotten = state.rows.forget()
        before = state.point.y.size
        state.point.dismiss(state.rows, 0.0 if state.plan.short else numbers.DISMISS_SHARE)
        state.moved = state.moved or state.point.y.size < before
        return forgotten

    def bound(self, state: CycleState) -> float:
        return state.point.bound(state.rows)

    # -- plan ---------------------------------------------------------------------------------------------------------

    def plan(self, state: CycleState, turn: Turn) -> CyclePlan:
        share = max(numbers.LEAST_RISE, numbers.LEAST_RISE_OF_TOLERANCE * self.tol)
        rise = share * max(abs(turn.after), NEGLIGIBLE * self.program.worth)
        planned = replace(self.stages.follow(state, turn), **self._plan_rounding(state, turn))
        return planned.follow(state.plan, short=turn.found.short, bound=turn.after, rise=rise)

    def verdict(self, state: CycleState) -> str | None:
        """A program over cycles always has a solution: only a proof that is good enough ends it, or lack of room."""
        crowded = STALLED if state.plan.crowded >= numbers.CROWDED_PATIENCE else None
        if self.ratio is None:
            return crowded
        last = state.history[-1] if state.history and state.history[-1]["iteration"] == state.iteration else {}
        standing = last if "bound_of_clusterings" in last else self._standing(state)
        return RATIO_REACHED if standing.get("ratio", np.inf) <= self.ratio else crowded

    def close(self, state: CycleState, status: str) -> Certificate | None:
        """Look once more if there is time, so that there is a good feasible point; or take a plain one."""
        certificate = self._look_once_more(state, status)
        self.oracle.release()  # what is made of the answer may need the memory
        return certificate

    def _look_once_more(self, state: CycleState, status: str) -> Certificate | None:
        """Give the state the best feasible point there is; returns what is known of its iterate."""
        certificate = state.certificate
        if status == "converged":
            return certificate
        if status in (RATIO_REACHED, STALLED):
            # What is shown then depends on the multipliers and clusters alone, not on where the run was stopped before.
            state.feasible = None
        if status == "iteration_limit" and not (state.history and "gap" in state.history[-1]):
            with contextlib.suppress(SearchStopped, BudgetError), self.monitor.at_most(numbers.CLOSING_SECONDS):
                look_on = replace(state, point=replace(state.point), plan=CyclePlan(CERTIFY))
                surveyed = self.find_by_survey(look_on, rows=False) if self.settings.shrink else None
                seen = surveyed or self.find(look_on)
                certificate = seen.certificate
                if certificate and certificate.objective <= state.objective:
                    state.feasible, state.objective = seen.point, certificate.objective
        program = state.point.program
        if isinstance(state.feasible, Vector):  # the length of a proximal step shows in the last digit
            state.objective = program.value_of_any(state.feasible)
        keep_better(state, program, program.plain_point(state.pool))
        clusters = None if self.rounder is None or state.point.labels is None else self.rounder.feasible(state.point)
        if clusters is not None:
            keep_better(state, program, clusters)
        return certificate


def keep_better(state: CycleState, program: CycleProgram, point: Vector) -> None:
    """Show this feasible point if it is better than the one there is."""
    value = program.value_of_any(point)
    if state.feasible is None or value < state.objective:
        state.feasible, state.objective = point, value
    else:
        point.close()
