"""Project and Forget for metric learning: projections in the LogDet divergence onto remembered pairs.

The point is the matrix A = (I + sum sign dual vv')^-1. A projection is a rank-one update; the slack of a pair follows
from its multiplier. A look at all pairs brings those that are violated and not yet remembered, and certifies. Or pairs
drawn at random stand for all, as in the paper, and all are looked at now and then.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate
from ..engine.monitor import Monitor
from ..engine.problem import Pass, State, Swept, Turn
from ..errors import BudgetError
from ..kernels.itml import Terms, project_pairs
from ..storage.arrays import read_array, write_array
from ..storage.records import require
from ..storage.vectors import Vector
from . import settings
from .newton import Bound, Place, is_positive, log_determinant
from .pairs import Crew, Pairs, Source, squared_norms


@dataclass(frozen=True)
class PairPlan:
    """There is one stage only."""

    stage: str = "pairs"


class PairStore:
    """Remembered pairs with their multipliers.

    Parameters
    ----------
    d : int
    most : int or None
        How many pairs fit the memory.
    terms : Terms or None
        What multipliers are judged by when they are read.
    """

    def __init__(self, d: int, most: int | None = None, terms: Terms | None = None):
        self.key = np.empty(0, np.int64)
        self.pairs = Pairs(np.empty((0, d)), np.empty(0, np.int8))
        self.dual = np.empty(0)
        self._most, self._terms = most, terms

    def __len__(self) -> int:
        return len(self.key)

    def append(self, rows: Any) -> int:
        key, pairs = rows
        if self._most is not None and len(self) + len(key) > self._most:
            raise BudgetError(
                f"{len(self) + len(key):,} pairs are to be remembered and {self._most:,} fit memory=; allow more, or "
                'use method="newton", which remembers none'
            )
        self.key = np.concatenate([self.key, key])
        self.pairs = Pairs(*(np.concatenate(both) for both in zip(self.pairs, pairs, strict=True)))
        self.dual = np.concatenate([self.dual, np.zeros(len(key))])
        return len(key)

    def forget(self) -> int:
        keep = self.dual > 0.0
        self.key, self.dual = self.key[keep], self.dual[keep]
        self.pairs = Pairs(self.pairs.difference[keep], self.pairs.sign[keep])
        return int(np.sum(~keep))

    def blocks(self) -> Iterator[Any]:
        return iter(())

    def write(self, group: Path) -> None:
        write_array(group, "key", self.key)
        write_array(group, "dual", self.dual)
        write_array(group, "difference", self.pairs.difference.ravel())
        write_array(group, "similar", self.pairs.sign > 0)

    def read(self, group: Path) -> None:
        key, dual = read_array(group, "key", dtype=np.int64), read_array(group, "dual", dtype=np.float64)
        difference, similar = read_array(group, "difference", dtype=np.float64), read_array(group, "similar")
        d = self.pairs.difference.shape[1]
        whole = len(key) == len(dual) == len(similar) and len(difference) == d * len(key)
        sound = whole and bool(np.isfinite(difference).all()) and bool(np.isfinite(dual).all() and (dual >= 0.0).all())
        if sound and self._terms is not None:
            # The conjugate of the losses is infinite beyond.
            sound = bool((dual[similar.astype(bool)] * self._terms.upper < self._terms.near).all())
        require(sound and similar.dtype == np.bool_, group, "the pairs are not what a run writes")
        self.key, self.dual = key, dual
        self.pairs = Pairs(difference.reshape(-1, d), np.where(similar, 1, -1).astype(np.int8))

    def has_made(self, matrix: np.ndarray) -> bool:
        """Whether a matrix is the one that follows from the multipliers."""
        inverse = self.inverse()
        near = np.allclose(matrix @ inverse, np.eye(len(matrix)), atol=1e-6)
        return near and is_positive(matrix) and is_positive(inverse)

    def inverse(self) -> np.ndarray:
        """I + sum sign dual vv'."""
        v, sign = self.pairs
        return np.eye(v.shape[1]) + (v * (sign * self.dual)[:, None]).T @ v

    def conjugate(self, terms: Terms) -> float:
        """Of the losses, at the multipliers."""
        near, far = (self.dual[self.pairs.sign == kind] for kind in (1, -1))
        return -terms.near * float(np.sum(np.log1p(-near * terms.upper / terms.near))) - terms.far * float(
            np.sum(np.log1p(far * terms.lower / terms.far))
        )


@dataclass
class PairPoint:
    """The matrix, and the best lower bound of all looks."""

    matrix: np.ndarray
    best: float = 0.0

    def close(self) -> None:
        """Nothing is held."""

    def write(self, group: Path) -> None:
        write_array(group, "matrix", self.matrix.ravel())
        write_array(group, "best", np.array([self.best]))

    @classmethod
    def read(cls, group: Path, d: int) -> "PairPoint":
        matrix, best = (read_array(group, name, dtype=np.float64) for name in ("matrix", "best"))
        sound = matrix.size == d * d and best.size == 1 and np.isfinite(matrix).all() and np.isfinite(best).all()
        require(bool(sound), group, "the matrix is not what a run writes")
        return cls(matrix.reshape(d, d), float(best[0]))


PairState = State[PairPoint, PairStore, PairPlan]


@dataclass
class PairSchedule:
    """The steps of Algorithm 1 for pairs.

    ``drawn`` is how many similar and how many dissimilar pairs stand for all at a step, None: all are looked at.
    """

    source: Source
    crew: Crew
    monitor: Monitor
    drawn: int | None = None
    seed: int = 0

    def find(self, state: PairState) -> Pass:
        if self.drawn is not None and state.iteration % settings.LOOK_EVERY != settings.LOOK_EVERY - 1:
            return self._draw(state, self.drawn)
        with self.monitor.timed("oracle"):
            place = self._look(state, self.crew)
            rows, worst = self._violated(state, place.root, self._candidates(state))
        shown = Vector.of(place.root.ravel().copy())
        return Pass(len(rows[0]), worst, rows, self.source.size, self._certificate(state, place), shown)  # type: ignore[arg-type]

    def _candidates(self, state: PairState) -> Iterable[tuple[np.ndarray, Pairs]]:
        """The pairs of this iteration, the same ones whenever it is run."""
        if self.drawn is None:
            return self.source.blocks()
        return [self.source.draw(self.drawn, np.random.default_rng((self.seed, state.iteration)))]

    def _draw(self, state: PairState, count: int) -> Pass:
        """The violated ones of pairs drawn at random, which prove nothing."""
        with self.monitor.timed("oracle"):
            root = np.linalg.cholesky(0.5 * (state.point.matrix + state.point.matrix.T))
            rows, worst = self._violated(state, root, self._candidates(state))
        return Pass(len(rows[0]), worst, rows, 2 * count)  # type: ignore[arg-type]

    def _look(self, state: PairState, crew: Crew) -> Place:
        point = state.point
        root = np.linalg.cholesky(0.5 * (point.matrix + point.matrix.T))
        place = Place.at(root, self.source.look(root, crew))
        seen = Bound(root.T @ root)
        seen.raise_by(place)
        best = max(seen.value, self.bound(state))
        if best > point.best:
            point.best, state.moved = best, True
        return place

    def _certificate(self, state: PairState, place: Place) -> Certificate:
        worth = float(len(place.root))
        return Certificate(place.value, min(state.point.best, place.value), 0.0, worth=worth)

    def _violated(
        self, state: PairState, root: np.ndarray, candidates: Iterable[tuple[np.ndarray, Pairs]]
    ) -> tuple[tuple[np.ndarray, Pairs], float]:
        """Pairs beyond their bounds that are not remembered."""
        upper, lower, *_ = self.source.terms
        keys, parts, worst = [np.empty(0, np.int64)], [Pairs(np.empty((0, len(root))), np.empty(0, np.int8))], 0.0
        for key, (difference, sign) in candidates:
            p = squared_norms(difference @ root)
            excess = np.where(sign > 0, p / upper - 1.0, 1.0 - p / lower)
            excess[(p <= 0.0) | np.isin(key, state.rows.key, kind="sort")] = 0.0
            there = np.flatnonzero(excess > 0.0)
            worst = max(worst, float(excess.max(initial=0.0)))
            keys.append(key[there])
            parts.append(Pairs(difference[there], sign[there]))
        return (np.concatenate(keys), Pairs(*(np.concatenate(side) for side in zip(*parts, strict=True)))), worst

    def sweep(self, state: PairState, found: Pass) -> Swept:
        rows, matrix, largest, changed = state.rows, state.point.matrix, np.inf, 0
        sweeps = 0
        while sweeps < settings.SWEEPS and largest > 0.0 and not self.monitor.stop[0]:
            moved, largest = project_pairs(matrix, *rows.pairs, rows.dual, self.source.terms, self.monitor.stop)
            changed, sweeps = changed + moved, sweeps + 1
        # The matrix anew from the multipliers, against rounding.
        inverse = np.linalg.inv(np.linalg.cholesky(rows.inverse()))
        state.point.matrix = inverse.T @ inverse
        return Swept(sweeps, changed, residual=float(largest))

    def forget(self, state: PairState) -> int:
        return state.rows.forget()

    def bound(self, state: PairState) -> float:
        own = log_determinant(np.linalg.cholesky(state.rows.inverse())) - state.rows.conjugate(self.source.terms)
        return max(own, state.point.best)

    def plan(self, state: PairState, turn: Turn) -> PairPlan:
        return state.plan

    def verdict(self, state: PairState) -> str | None:
        return None

    def close(self, state: PairState, status: str) -> Certificate | None:
        """Look at the last matrix if there is time, or if no other was looked at."""
        crew = replace(self.crew, stop=np.zeros(1, np.uint8))
        if state.feasible is not None and (status == "converged" or self.monitor.stop_reason):
            return state.certificate
        place = self._look(state, crew)
        certificate = self._certificate(state, place)
        if place.value <= state.objective:
            state.feasible, state.objective = Vector.of(place.root.ravel().copy()), place.value
        return certificate
