"""The iterate of a program over cycles, whose variables may come and go in a complete graph."""

from dataclasses import dataclass, replace

import numpy as np

from ..engine.store import ConstraintStore
from ..engine.sweeps import Iterate, total_charge
from ..storage.vectors import Vector, spans
from . import settings
from .program import CycleProgram, ScaledBound


@dataclass
class CyclePoint(Iterate):
    """y by edge, where x = max(y, 0).

    Attributes
    ----------
    program : CycleProgram
        As far as it is known: a complete graph has variables only for the pairs that rows need.
    heat : float64[sources] or None
        The violation expected from each source, for a schedule that revisits the worst.
    labels : int32[nodes] or None
        The best clusters known, where a problem has clusters.
    """

    program: CycleProgram
    heat: np.ndarray | None = None
    labels: np.ndarray | None = None

    def bound(self, rows: ConstraintStore) -> float:
        """Value of the dual; where right-hand sides are zero no row need be looked at."""
        return super().bound(rows) if self.program.rhs else self.program.bound(self.y, 0.0)

    def bound_of_clusterings(self, rows: ConstraintStore) -> float:
        """A lower bound of the linear cost of every clustering, from the duals."""
        return self.scaled_bound(rows).value

    def scaled_bound(self, rows: ConstraintStore) -> ScaledBound:
        """That bound, and the multiple of the duals that gives it."""
        return self.program.scaled_bound(self.y, total_charge(self.program, rows))

    def admit(self, pairs: np.ndarray) -> None:
        """Give these pairs of a complete graph a variable."""
        if len(pairs):
            self.program = self.program.with_pairs(pairs)
            self.y = Vector.of(np.concatenate((self.y.whole, self.program.target.whole[self.y.size :])))

    def recentre(self) -> None:
        """Take the next proximal step of a linear program from here; the duals stay."""
        program, step = self.program, self.program.step
        centred = (np.maximum(part, 0.0) + step for _, part in self.y.spans())
        self._follow(replace(program, target=Vector.filled(centred, program.size, np.float64, self.pool)), 1.0)

    def stretch(self, first: CycleProgram, step: float) -> None:
        """Give the proximal steps of a linear program another length; the duals and the centre stay.

        ``first`` is the program as it was made.
        """
        before = self.program
        moved = (part + (step - before.step) for _, part in before.target.spans())
        target = Vector.filled(moved, before.size, np.float64, self.pool)
        self._follow(first.stretched(step, target, self.pool), step / before.step)
        if before.inverse.whole is None and before.inverse is not first.inverse:
            before.inverse.close()

    def _follow(self, program: CycleProgram, growth: float) -> None:
        """Go over to a program in which the same duals move y away from the target so many times as far."""
        before, y = self.program, self.y
        moved = (new + growth * (part - old) for part, old, new in spans(y, before.target, program.target))
        self.program, self.y = program, Vector.filled(moved, y.size, np.float64, self.pool)
        for vector in (y, before.target):
            if vector.whole is None:  # in pages; one in memory may be in use elsewhere
                vector.close()

    def dismiss(self, rows: ConstraintStore, share: float = settings.DISMISS_SHARE) -> None:
        """Take their variable from the unlisted pairs without rows, once they are more than this share of all."""
        pairs = self.program.pairs
        if pairs is None:
            return
        keep = np.zeros(self.y.size, bool)
        keep[: pairs.listed] = True
        for block in rows.blocks():
            keep[block.table[block.index]] = True
        keep |= self.program.target.whole != pairs.target
        if len(keep) - keep.sum() > share * len(pairs.unlisted):
            rows.renumber(np.where(keep, np.cumsum(keep) - 1, -1))
            self.program = self.program.keep_pairs(keep)
            self.y = Vector.of(self.y.whole[keep])
