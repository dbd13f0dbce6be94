"""What the schedule of a program over cycles decides by, and who makes clusters on the way."""

from dataclasses import dataclass
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
    """

    stage: str
    wave: int = 0
    worst: float = 0.0
    began: float = 0.0
    last: float = 1.0
    cold: float = 0.0
    idle: int = 0
    rounded: int = 0


CycleState = State[CyclePoint, ConstraintStore, CyclePlan]


@dataclass(frozen=True)
class CyclePass(Pass):
    """A pass over some sources.

    ``cut`` tells whether violated rows were left out because there were too many, ``surveyed`` that all closing edges
    were looked at by way of the contracted graph.
    """

    cut: bool = False
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
