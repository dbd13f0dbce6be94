"""What the schedule of a program over cycles decides by, and who makes clusters on the way."""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ..engine.problem import Pass, State
from ..engine.store import ConstraintStore
from ..storage.vectors import Vector
from .point import CyclePoint


@dataclass(frozen=True)
class CyclePlan:
    """Where the schedule stands within a pass.

    Attributes
    ----------
    wave : int
        The part of the sources that comes next.
    worst : float
        The largest violation of the pass so far.
    began : float
        The lower bound when the pass began; in a stage that has patience, when it last rose.
    last : float
        The largest violation of the pass before.
    cold : float
        Sources of a smaller expected violation are left alone in the stage "hot".
    idle : int
        Passes since the bound last rose, in a stage that has patience.
    rounded : int
        The iteration in which clusters were last made.
    again : int
        The one in which they are made next, or the first one after it.
    cost, proven : float
        What clusters cost when they were last made, 0 before that, and what any was known to cost then.
    short : bool
        Whether there ever was no room for a pair of a complete graph that a row needed.
    level : float
        Since then: the lower bound when it last rose by as much as counts.
    crowded : int
        Iterations since the bound was there in which such a pair had no room.
    work : float
        What the pass so far took, by counts.
    rates : dict
        By stage: how much a pass of it promises to raise the bound for its work, where the best one goes next.
    """

    stage: str
    wave: int = 0
    worst: float = 0.0
    began: float = 0.0
    last: float = 1.0
    cold: float = 0.0
    idle: int = 0
    rounded: int = 0
    again: int = 0
    cost: float = 0.0
    proven: float = 0.0
    short: bool = False
    level: float = 0.0
    crowded: int = 0
    work: float = 0.0
    rates: dict = field(default_factory=dict)

    def follow(self, before: "CyclePlan", *, short: bool, bound: float, rise: float) -> "CyclePlan":
        """The same, with what is known of the room after an iteration that began with the plan ``before``.

        Parameters
        ----------
        short : bool
            Whether the iteration left pairs out for which there was no room.
        bound : float
            The lower bound after it.
        rise : float
            A rise of the bound by more counts.
        """
        if not (short or before.short):
            return self
        if bound > before.level + rise:
            return replace(self, short=True, level=bound, crowded=0)
        return replace(self, short=True, level=before.level, crowded=before.crowded + short)


CycleState = State[CyclePoint, ConstraintStore, CyclePlan]


@dataclass(frozen=True)
class CyclePass(Pass):
    """A pass over some sources.

    ``cut`` tells whether violated rows were left out because there were too many, ``short`` that some were because
    there is no room for their pairs, ``surveyed`` that all closing edges were looked at by way of the contracted graph.
    """

    cut: bool = False
    short: bool = False
    surveyed: bool = False


class Rounder(Protocol):
    """Makes clusters of a point on the way."""

    def improve(self, point: CyclePoint, iteration: int, stop: np.ndarray, *, thoroughly: bool = False) -> np.ndarray:
        """Clusters at least as good as those that the point has, int32[nodes]; other ones in other iterations.

        May raise SearchStopped once ``stop`` uint8[1] is set.
        """
        ...

    def cost(self, point: CyclePoint) -> float:
        """What the clusters of the point cost."""
        ...

    def feasible(self, point: CyclePoint) -> Vector | None:
        """The clusters of the point as a feasible x, if that is not too large."""
        ...
