"""The iterate of a program over cycles, whose variables may come and go in a complete graph."""

from dataclasses import dataclass

import numpy as np

from ..engine.store import ConstraintStore
from ..engine.sweeps import Iterate
from ..storage.vectors import Vector
from . import settings
from .program import CycleProgram


@dataclass
class CyclePoint(Iterate):
    """y by edge, where x = max(y, 0).

    Attributes
    ----------
    program : CycleProgram
        As far as it is known: a complete graph has variables only for the pairs that rows need.
    heat : float64[sources] or None
        The violation expected from each source, for a schedule that revisits the worst.
    """

    program: CycleProgram
    heat: np.ndarray | None = None

    def bound(self, rows: ConstraintStore) -> float:
        """Value of the dual; where right-hand sides are zero no row need be looked at."""
        return super().bound(rows) if self.program.rhs else self.program.bound(self.y, 0.0)

    def admit(self, pairs: np.ndarray) -> None:
        """Give these pairs of a complete graph a variable."""
        if len(pairs):
            self.program = self.program.with_pairs(pairs)
            self.y = Vector.of(np.concatenate((self.y.whole, self.program.target.whole[self.y.size :])))

    def stretch(self, first: CycleProgram, step: float) -> None:
        """Give the proximal steps of a linear program another length; the duals stay.

        ``first`` is the program as it was made.
        """
        before = self.program
        centre = before.target.whole - before.step
        self.program = first.stretched(step, Vector.of(centre + step))
        load = (self.y.whole - before.target.whole) * (step / before.step)
        self.y = Vector.of(self.program.target.whole + load)

    def recentre(self) -> None:
        """Take the next proximal step of a linear program from here; the duals stay."""
        before = self.program.target.whole
        self.program = self.program.recentred(np.maximum(self.y.whole, 0.0))
        self.y = Vector.of(self.y.whole + (self.program.target.whole - before))

    def dismiss(self, rows: ConstraintStore) -> None:
        """Take their variable from the unlisted pairs without rows, once there are many of them."""
        pairs = self.program.pairs
        if pairs is None:
            return
        keep = np.zeros(self.y.size, bool)
        keep[: pairs.listed] = True
        for block in rows.blocks():
            keep[block.table[block.index]] = True
        keep |= self.program.target.whole != pairs.target
        if len(keep) - keep.sum() > settings.DISMISS_SHARE * len(pairs.unlisted):
            rows.renumber(np.where(keep, np.cumsum(keep) - 1, -1))
            self.program = self.program.keep_pairs(keep)
            self.y = Vector.of(self.y.whole[keep])
