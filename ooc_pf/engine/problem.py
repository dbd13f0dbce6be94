"""The contract between the loop of Algorithm 1 and a family of problems."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..storage.vectors import Pool, Spanned
from .certificate import Certificate
from .rows import RowBlock, Rows


class Plan(Protocol):
    """Where the schedule of a family stands: a dataclass of plain values, kept in the manifest."""

    @property
    def stage(self) -> str: ...


class Store(Protocol):
    """The remembered rows with their duals."""

    def __len__(self) -> int: ...
    def append(self, rows: Rows) -> int: ...
    def forget(self) -> int: ...
    def blocks(self) -> Iterator[RowBlock]: ...
    def write(self, group: Path) -> None: ...


class FeasiblePoint(Spanned, Protocol):
    """A point as a vector that comes in consecutive parts."""

    def close(self) -> None: ...


Point = TypeVar("Point")
PlanT = TypeVar("PlanT", bound=Plan)
StoreT = TypeVar("StoreT", bound=Store)


@dataclass
class State(Generic[Point, StoreT, PlanT]):
    """All that changes during a run.

    Attributes
    ----------
    point
        The iterate, in the form its family works on.
    rows
        The remembered rows and their duals.
    plan
        What the schedule does next.
    pool : Pool
        What vectors in pages share.
    iteration : int
        How many are done.
    feasible, objective : point or None, float
        Best feasible point known, and its objective.
    certificate : Certificate or None
        Of the last complete pass.
    moved : bool
        Whether point or rows changed since they were last committed.
    whole : bool
        Whether this is the state after an iteration, and not one that was stopped in the middle.
    history : list of dict
        One record an iteration.
    """

    point: Point
    rows: StoreT
    plan: PlanT
    pool: Pool
    iteration: int = 0
    feasible: FeasiblePoint | None = None
    objective: float = np.inf
    certificate: Certificate | None = None
    moved: bool = False
    whole: bool = True
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Pass:
    """What the oracle brought.

    Attributes
    ----------
    found : int
        How many violated rows.
    worst : float
        The largest violation seen.
    rows : Rows or None
        Those worth remembering; None where the oracle has remembered them already.
    relaxed : int
        Arcs, rows or sets looked at.
    certificate, point : Certificate and point, or None
        If the search was complete: what it proves, and the point it made.
    """

    found: int
    worst: float
    rows: Rows | None = None
    relaxed: int = 0
    certificate: Certificate | None = None
    point: FeasiblePoint | None = None


@dataclass(frozen=True)
class Swept:
    """What the sweeps of an iteration did.

    Attributes
    ----------
    sweeps, projections : int
    more : dict
        Further counts, for the record.
    residual : float
        The largest correction of the last sweep.
    verdict : str or None
        The status the run should end with, if the multipliers decide it.
    """

    sweeps: int = 0
    projections: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    residual: float = np.inf
    verdict: str | None = None

    def counts(self) -> dict[str, Any]:
        return {"sweeps": self.sweeps, "projections": self.projections, **self.more}


@dataclass(frozen=True)
class Turn:
    """What a schedule decides by: one iteration, and the lower bounds before and after it."""

    found: Pass
    swept: Swept
    before: float
    after: float


@dataclass
class Record:
    """One iteration, as the history keeps it and progress shows it."""

    iteration: int
    stage: str
    found: Pass
    lower_bound: float
    added: int = 0
    swept: Swept | None = None
    forgotten: int = 0
    kept: int = 0
    cost: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        found = self.found
        return {
            "iteration": self.iteration,
            "stage": self.stage,
            "found": found.found,
            "worst": found.worst,
            "relaxed": found.relaxed,
            **(found.certificate.as_dict() if found.certificate else {}),
            "added": self.added,
            **(self.swept.counts() if self.swept else {}),
            "forgotten": self.forgotten,
            "lower_bound": self.lower_bound,
            "kept": self.kept,
            **self.cost,
        }


class Problem(Protocol[Point, StoreT, PlanT]):
    """The steps of Algorithm 1 for one problem. ``find`` and ``sweep`` raise SearchStopped when asked to stop."""

    def find(self, state: State[Point, StoreT, PlanT]) -> Pass:
        """The oracle: violated rows at the present point, and what a complete search of it proves."""
        ...

    def sweep(self, state: State[Point, StoreT, PlanT], found: Pass) -> Swept:
        """Project onto the remembered rows, changing the point and the duals."""
        ...

    def forget(self, state: State[Point, StoreT, PlanT]) -> int:
        """Drop the rows that stopped mattering; returns how many those were."""
        ...

    def bound(self, state: State[Point, StoreT, PlanT]) -> float:
        """Value of the dual at the present duals: a lower bound of the optimum."""
        ...

    def plan(self, state: State[Point, StoreT, PlanT], turn: Turn) -> PlanT:
        """What the oracle does next."""
        ...

    def verdict(self, state: State[Point, StoreT, PlanT]) -> str | None:
        """Why the run should be given up, as a status, if it should."""
        ...

    def close(self, state: State[Point, StoreT, PlanT], status: str) -> Certificate | None:
        """Make sure that a run that stopped early has a point to show; returns what is known of its iterate."""
        ...
