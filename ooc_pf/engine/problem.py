"""What the engine needs to know of a problem, and the state it works on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..storage.vectors import Pool, Vector
from .certificate import Certificate
from .rows import RowBlock, Rows
from .store import ConstraintStore


class Program(Protocol):
    """What sweeps and bounds need to know of a problem: how y and the dual objective follow from duals.

    ``charge`` is what the dual objective needs to know of a block's duals beside y; it adds up over the blocks.
    """

    def project(self, block: RowBlock, y: Vector) -> float: ...
    def charge(self, block: RowBlock, dual: np.ndarray) -> float: ...
    def clipped(self, block: RowBlock, dual: np.ndarray) -> np.ndarray: ...
    def rebuild(self, duals: Iterable[tuple[RowBlock, np.ndarray]], out: Vector) -> None: ...
    def dual(self, y: Vector, charge: float) -> float: ...
    def bound(self, y: Vector, charge: float) -> float: ...
    def changed(self) -> dict[str, Vector]: ...


def total_charge(program: Program, rows: ConstraintStore) -> float:
    """The charge of all duals."""
    return sum(program.charge(block, block.dual) for block in rows.blocks())


@dataclass
class State:
    """All that changes during a run; what a generation stores.

    On a complete graph given as a table, program, y, rows and feasible point are those of the `dense` package, which
    come in tiles.

    Attributes
    ----------
    program : Program
        The program, as far as it is known: a complete graph has variables only for the pairs that rows need.
    y : Vector
        What x follows from at the present duals: for cycles, by edge, x = max(y, 0).
    rows : ConstraintStore
        The remembered rows and their duals.
    plan : dict
        Where the oracle's schedule stands; plain values, kept in the manifest.
    feasible, objective : Vector or None, float
        Best feasible point known, and its objective.
    pool : Pool
        What the vectors share.
    certificate : Certificate or None
        Of the last complete pass.
    heat : float64[sources] or None
        How violated the rows from each source are expected to be, for a schedule that asks.
    """

    program: Program
    y: Vector
    rows: ConstraintStore
    plan: dict[str, Any]
    pool: Pool
    iteration: int = 0
    feasible: Vector | None = None
    objective: float = np.inf
    certificate: Certificate | None = None
    heat: np.ndarray | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    _spare: Vector | None = None

    def rebuilt(self, duals: Iterable[tuple[RowBlock, np.ndarray]]) -> Vector:
        """y for other duals, in a vector that lasts until the next call; `adopt` makes it the present one."""
        if self._spare is None or self._spare.size != self.y.size:
            self._spare = Vector(self.y.size, pool=self.pool)
        self.program.rebuild(duals, self._spare)
        return self._spare

    def adopt(self, y: Vector) -> None:
        """Go on from what `rebuilt` gave."""
        self.y, self._spare = y, self.y

    def admit(self, pairs: np.ndarray) -> None:
        """Give these pairs of a complete graph a variable."""
        if len(pairs):
            self.program = self.program.with_pairs(pairs)
            self.y = Vector.of(np.concatenate((self.y.whole, self.program.target.whole[self.y.size :])))

    def recentre(self) -> None:
        """Take the next proximal step of a linear program from here; the duals stay."""
        before = self.program.target.whole
        self.program = self.program.recentred(np.maximum(self.y.whole, 0.0))
        self.y = Vector.of(self.y.whole + (self.program.target.whole - before))

    def dismiss(self) -> None:
        """Take their variable from the unlisted pairs without rows, once there are many of them."""
        pairs = self.program.pairs
        if pairs is None:
            return
        keep = np.zeros(self.y.size, bool)
        keep[: pairs.listed] = True
        for block in self.rows.blocks():
            keep[block.table[block.index]] = True
        keep |= self.program.target.whole != pairs.target
        if len(keep) - keep.sum() > 0.25 * len(pairs.unlisted):
            number = np.where(keep, np.cumsum(keep) - 1, -1)
            self.rows.renumber(number)
            self.program, self.y = self.program.keep_pairs(keep), Vector.of(self.y.whole[keep])


@dataclass(frozen=True)
class Pass:
    """What the oracle brought.

    Attributes
    ----------
    rows : Rows
        Violated rows worth remembering.
    worst : float
        The largest violation seen.
    relaxed : int
        Arcs, rows or sets looked at.
    certificate, point : Certificate and Vector, or None
        If the search was complete: what it proves, and the point it made.
    cut : bool
        Whether violated rows were left out because there were too many.
    """

    rows: Rows
    worst: float
    relaxed: int = 0
    certificate: Certificate | None = None
    point: Vector | None = None
    cut: bool = False


@dataclass(frozen=True)
class Problem:
    """A problem as a record of functions.

    Attributes
    ----------
    find : State -> Pass
        The oracle: violated rows at the present point, and what a complete search of it proves. Raises SearchStopped
        when asked to stop.
    sweep : State, Pass -> dict
        Project onto the remembered rows, changing ``y`` and the duals; returns counts for the record.
    forget : State -> int
        Drop the rows that stopped mattering; returns how many those were.
    bound : State -> float
        Value of the dual at the present duals.
    plan : State, Pass, float, float -> dict
        What the oracle does next, from the bounds before and after this iteration.
    hopeless : State -> str or None
        Why the run should be given up, as a status, if it should.
    """

    name: str
    find: Callable[[State], Pass]
    sweep: Callable[[State, Pass], dict[str, Any]]
    forget: Callable[[State], int]
    bound: Callable[[State], float]
    plan: Callable[[State, Pass, float, float], dict[str, Any]]
    hopeless: Callable[[State], str | None] = lambda state: None
