"""Newton steps in the matrix as turns of the loop: a step with its line search is a sweep, no pair is remembered."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, State, Swept, Turn
from ..storage.arrays import read_array, write_array
from ..storage.records import require
from ..storage.vectors import Vector
from . import settings
from .newton import Bound, Curvature, Place, Solved, first_place, has_curvature, is_positive, solve_sample, step
from .pairs import Crew, ListedPairs, Source

SAMPLE, NEWTON = "sample", "newton"


@dataclass(frozen=True)
class StepPlan:
    """Where the steps stand.

    Attributes
    ----------
    stage : str
        "sample" until the sample has been solved and all pairs were looked at for the first time.
    verdict : str or None
        The status the run should end with.
    """

    stage: str = SAMPLE
    verdict: str | None = None


@dataclass
class StepPoint:
    """Where the steps stand, and the steps that their curvature remembers.

    ``now`` is None before the first look.
    """

    d: int
    now: Solved | None = None
    steps: list[tuple[np.ndarray, np.ndarray]] | None = None

    def close(self) -> None:
        """Nothing is held."""

    def write(self, group: Path) -> None:
        now = self.now
        if now is None:
            write_array(group, "numbers", np.empty(0))
            return
        place, bound = now.place, now.bound
        counts = [place.value, place.conjugate, bound.conjugate, bound.value, now.looks, now.steps]
        write_array(group, "numbers", np.array(counts, np.float64))
        for name, matrix in (("root", place.root), ("dual", place.dual), ("bound", bound.matrix)):
            write_array(group, name, matrix.ravel())
        write_array(group, "steps", np.array(self.steps or [], np.float64).ravel())

    @classmethod
    def read(cls, group: Path, d: int) -> "StepPoint":
        counts = read_array(group, "numbers", dtype=np.float64)
        if not len(counts):
            return cls(d)
        require(len(counts) == 6 and bool(np.isfinite(counts).all()), group, "numbers are not what a run writes")
        found = {name: read_array(group, name, dtype=np.float64) for name in ("root", "dual", "bound", "steps")}
        for name, values in found.items():
            whole = values.size == d * d or (name == "steps" and values.size % (2 * d * d) == 0)
            require(whole and bool(np.isfinite(values).all()), group, f"{name} is not what a run writes")
        root, dual, matrix = (found[name].reshape(d, d) for name in ("root", "dual", "bound"))
        require(bool((np.diag(root) > 0.0).all() and (np.triu(root, 1) == 0.0).all()), group, "root is no root")
        require(is_positive(matrix), group, "bound is not positive definite")
        value, conjugate, other, best, looks, made = counts.tolist()
        now = Solved(Place(root, value, dual, conjugate), Bound(matrix, other, best), looks=int(looks), steps=int(made))
        steps = [(pair[0], pair[1]) for pair in found["steps"].reshape(-1, 2, d, d)]
        require(all(has_curvature(*pair) for pair in steps), group, "steps has one without curvature")
        return cls(d, now, steps)


class NoPairs:
    """Newton steps remember no pairs."""

    def __len__(self) -> int:
        return 0

    def append(self, rows: Any) -> int:
        raise NotImplementedError("no pairs are remembered")

    def forget(self) -> int:
        return 0

    def blocks(self) -> Iterator[Any]:
        return iter(())

    def write(self, group: Path) -> None:
        """There is nothing to write."""

    def read(self, group: Path) -> None:
        """There is nothing to read."""


StepState = State[StepPoint, NoPairs, StepPlan]


@dataclass
class StepSchedule:
    """The steps of Algorithm 1, for Newton's method."""

    source: Source
    crew: Crew
    monitor: Monitor
    drawn: ListedPairs | None = None

    @property
    def _sample(self) -> ListedPairs:
        """The same one every time; of few pairs, all of them."""
        if self.drawn is None:
            self.drawn = self.source.sample(settings.SAMPLE, np.random.default_rng(0))
        return self.drawn

    @property
    def _all(self) -> Source:
        return self._sample if self.source.size <= settings.SAMPLE else self.source

    def find(self, state: StepState) -> Pass:
        looked = 0
        if state.point.now is None:
            with self.monitor.timed("oracle"):
                self._begin(state.point)
            looked, state.moved = self.source.size, True
        now = state.point.now
        assert now is not None
        return Pass(0, now.gap, None, looked, self._certificate(now), _shown(now.place.root))

    def _begin(self, point: StepPoint) -> None:
        root = np.eye(point.d)
        if self._all is not self._sample:
            root = solve_sample(self._sample, root, self.crew)
        point.now, point.steps = first_place(self._all, root, self.crew), []

    def _certificate(self, now: Solved) -> Certificate:
        value, worth = now.place.value, float(len(now.place.root))
        return Certificate(value, min(now.bound.value, value), 0.0, worth=worth)

    def sweep(self, state: StepState, found: Pass) -> Swept:
        point = state.point
        assert point.now is not None and point.steps is not None
        before = point.now.looks
        curvature = Curvature(self._sample, exact=self._all is self._sample, steps=point.steps)
        moved = step(point.now, self._all, curvature, self.crew)
        point.steps = curvature.steps
        return Swept(int(moved), 0, {"passes": point.now.looks - before})

    def forget(self, state: StepState) -> int:
        return 0

    def bound(self, state: StepState) -> float:
        now = state.point.now
        return 0.0 if now is None else min(now.bound.value, now.place.value)

    def plan(self, state: StepState, turn: Turn) -> StepPlan:
        return StepPlan(NEWTON, None if turn.swept.sweeps else "stalled")

    def verdict(self, state: StepState) -> str | None:
        return state.plan.verdict

    def close(self, state: StepState, status: str) -> Certificate | None:
        """The last place is the best; before the first look it is the prior, at which all pairs are looked at."""
        if state.point.now is None:
            patient = replace(self.crew, stop=np.zeros(1, np.uint8))
            state.point.now = first_place(self._all, np.eye(state.point.d), patient)
        now = state.point.now
        state.feasible, state.objective = _shown(now.place.root), now.place.value
        return self._certificate(now)


def _shown(root: np.ndarray) -> Vector:
    return Vector.of(root.ravel().copy())
