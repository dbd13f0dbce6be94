"""Which kind of search comes next over cycles, and from which sources.

A stage is repeated for as long as it pays, or while it promises more for its work than the others.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from ..engine.certificate import NEGLIGIBLE
from ..engine.problem import Turn
from . import settings as numbers
from .passes import hottest
from .plan import CyclePass, CyclePlan, CycleState
from .program import CycleProgram
from .search import Places, all_sources, count_blocks
from .settings import CERTIFY, DISJOINT, HOT, Settings, Stage


@dataclass(frozen=True)
class Stages:
    """The stages of a program over cycles.

    Attributes
    ----------
    program : CycleProgram
        As it was at the beginning of this call.
    settings : Settings
    tol : float
    """

    program: CycleProgram
    settings: Settings
    tol: float

    @functools.cached_property
    def sources(self) -> Places:
        """The places of all sources."""
        return all_sources(self.program.graph)

    @functools.cached_property
    def names(self) -> list[str]:
        """The stages in their order."""
        return [stage.name for stage in self.settings.stages]

    @property
    def revisits(self) -> bool:
        """Whether the most violated sources are searched again between complete passes."""
        return HOT in self.names

    def now(self, plan: CyclePlan) -> Stage:
        """The stage that a run is in."""
        return self.settings.stages[self.names.index(plan.stage)]

    def wave_size(self, stage: Stage) -> int:
        """Sources of a wave, at most."""
        if stage.name == CERTIFY:
            return max(1, len(self.sources))
        share = -(-count_blocks(self.sources) // stage.waves)
        return numbers.BLOCK_SOURCES * max(1, min(share, self.settings.most_blocks))

    def wave(self, state: CycleState, stage: Stage) -> Places:
        """The sources that come next."""
        size = self.wave_size(stage)
        if stage.name == HOT:
            assert state.point.heat is not None
            return hottest(state.point.heat, state.plan.cold, size)
        return self.sources[state.plan.wave * size : (state.plan.wave + 1) * size]

    def cold(self, worst: float) -> float:
        """How little a source may be violated to be left alone: a part of the worst, but no less than is asked for."""
        aim = (self.settings.calm or 0.0) * self.tol * self.program.scale
        share = (self.settings.share or 0.0) * worst
        return max(share, aim if worst > aim else 0.0, self.program.slack)

    # -- what comes next ----------------------------------------------------------------------------------------------

    def follow(self, state: CycleState, turn: Turn) -> CyclePlan:
        """Where the run stands after an iteration."""
        now = state.plan
        stage = self.now(now)
        began = turn.before if now.wave == 0 else now.began
        worst = max(now.worst, turn.found.worst)
        if self._pass_goes_on(state, stage, turn.found):
            return replace(now, wave=now.wave + 1, worst=worst, began=began, work=now.work + self._work(stage, turn))
        if stage.name == HOT:
            return CyclePlan(CERTIFY, last=worst)
        if stage.name == self.names[-1]:
            # A pass with sweeps takes the violation down, so that the next one may as well certify.
            assert self.settings.promise is not None
            promising = worst <= self.settings.promise * self.tol * state.point.program.scale
            return CyclePlan(CERTIFY if promising else stage.name, last=worst)
        if stage.name == CERTIFY:
            cold = self.cold(worst)
            again = turn.found.surveyed or (self.revisits and not len(hottest(state.point.heat, cold, 1)))
            return CyclePlan(CERTIFY if again else self.names[-1], last=worst, cold=cold)
        return self._next_pass(now, stage, turn, worst)

    def _next_pass(self, now: CyclePlan, stage: Stage, turn: Turn, worst: float) -> CyclePlan:
        """Repeat a stage while it pays."""
        following = CyclePlan(self.names[self.names.index(stage.name) + 1], last=worst)
        if stage.name == DISJOINT:
            again = turn.found.found > stage.pays * self.program.graph.closers
            return CyclePlan(stage.name, last=worst) if again else following
        enough = stage.pays * max(abs(turn.after), NEGLIGIBLE * self.program.worth)
        if self.settings.best_first:
            return self._best_pass(now, stage, turn, worst, enough)
        if stage.hops >= 0 or self.settings.patience is None:
            began = turn.before if now.wave == 0 else now.began
            pays = worst > 0.0 and turn.after - began > enough
            return CyclePlan(stage.name, last=worst) if pays else following
        if turn.after - now.began > enough:
            return replace(now, last=worst, began=turn.after, idle=0)
        if now.idle + 1 < self.settings.patience:
            return replace(now, last=worst, idle=now.idle + 1)
        return following

    def _best_pass(self, now: CyclePlan, stage: Stage, turn: Turn, worst: float, enough: float) -> CyclePlan:
        """The stage that raises the bound most for its work, as far as is known, after each was tried once.

        What a stage raised some passes ago it would hardly raise today. Where the last one, trees, no longer pays,
        complete passes are due.
        """
        early = self.names[: self.names.index(CERTIFY)]
        rise = turn.after - (turn.before if now.wave == 0 else now.began)
        pays = worst > 0.0 and rise > enough
        if stage.name == early[-1] and not pays:
            return CyclePlan(CERTIFY, last=worst)
        rates = {name: numbers.RATE_LEFT * rate for name, rate in now.rates.items()}
        rates[stage.name] = rise / (now.work + self._work(stage, turn)) if pays else 0.0
        best = max(early, key=lambda name: rates.get(name, np.inf))
        return CyclePlan(best if rates.get(best, np.inf) > 0.0 else early[-1], last=worst, rates=rates)

    def _work(self, stage: Stage, turn: Turn) -> float:
        """What an iteration took, by counts that are the same for any budget and workers."""
        tree_arcs = (self.settings.trees or 0) * self.program.graph.arcs
        searched = numbers.WORK_OF_TREE_ARC * tree_arcs if stage.hops < 0 else turn.found.relaxed
        return max(1.0, searched + numbers.WORK_OF_PROJECTION * turn.swept.projections)

    def _pass_goes_on(self, state: CycleState, stage: Stage, found: CyclePass) -> bool:
        """Whether there is another wave."""
        done = state.plan.wave + 1
        if stage.name == HOT:
            # Expectations may be wrong: after two passes' worth of them it is time to look everywhere.
            return len(self.wave(state, stage)) > 0 and done < numbers.REVISIT_PASSES * stage.waves
        if stage.name == DISJOINT:
            return found.cut
        if stage.hops < 0 and self.settings.best_first:
            return False  # trees look at all sources at once
        return done * self.wave_size(stage) < len(self.sources)
