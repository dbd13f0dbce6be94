"""What the engine needs to know of a problem, and the state it works on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .certificate import Certificate
from .constraints import ConstraintStore
from .oracle import Found
from .program import CycleProgram


@dataclass
class State:
    """All that changes during a run; what a generation stores.

    Attributes
    ----------
    program : CycleProgram
        The program, as far as it is known: a complete graph has variables only for the pairs that rows need.
    y : float64[edges]
        Minimiser for the present duals before bounds: x = max(y, 0).
    rows : ConstraintStore
        The remembered rows and their duals.
    plan : dict
        Where the oracle's schedule stands; plain values, kept in the manifest.
    feasible, objective
        Best feasible point known, and its objective.
    certificate : Certificate or None
        Of the last complete pass.
    """

    program: CycleProgram
    y: np.ndarray
    rows: ConstraintStore
    plan: dict[str, Any]
    iteration: int = 0
    feasible: np.ndarray | None = None
    objective: float = np.inf
    certificate: Certificate | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def x(self) -> np.ndarray:
        """The minimiser for the present duals."""
        return np.maximum(self.y, 0.0)

    def admit(self, pairs: np.ndarray) -> None:
        """Give these pairs of a complete graph a variable."""
        if len(pairs):
            self.program = self.program.with_pairs(pairs)
            self.y = np.concatenate((self.y, self.program.target[len(self.y) :]))

    def recentre(self) -> None:
        """Take the next proximal step of a linear program from here; the duals stay."""
        before = self.program.target
        self.program = self.program.recentred(self.x)
        self.y += self.program.target - before

    def dismiss(self) -> None:
        """Take their variable from the unlisted pairs without rows, once there are many of them."""
        pairs = self.program.pairs
        if pairs is None:
            return
        keep = np.zeros(len(self.y), bool)
        keep[: pairs.listed] = True
        for block in self.rows.blocks():
            keep[block.table[block.index]] = True
        keep |= self.program.target != pairs.target
        if len(keep) - keep.sum() > 0.25 * len(pairs.unlisted):
            number = np.where(keep, np.cumsum(keep) - 1, -1)
            self.rows.renumber(number)
            self.program, self.y = self.program.keep_pairs(keep), self.y[keep]


@dataclass(frozen=True)
class Problem:
    """A problem as a record of functions.

    Attributes
    ----------
    find : State -> Found
        The oracle: violated rows at the present point. Raises SearchStopped when asked to stop.
    measure : State, Found -> (Certificate, feasible point)
        What a complete search of the present point proves.
    sweep : State, Found -> dict
        Project onto the remembered rows, changing ``y`` and the duals; returns counts for the record.
    forget : State -> int
        Drop the rows that stopped mattering; returns how many those were.
    bound : State -> float
        Value of the dual at the present duals.
    plan : State, Found, float, float -> dict
        What the oracle does next, from the bounds before and after this iteration.
    """

    name: str
    find: Callable[[State], Found]
    measure: Callable[[State, Found], tuple[Certificate, np.ndarray]]
    sweep: Callable[[State, Found], dict[str, Any]]
    forget: Callable[[State], int]
    bound: Callable[[State], float]
    plan: Callable[[State, Found, float, float], dict[str, Any]]
