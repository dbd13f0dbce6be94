"""The same problem on fewer rows and columns."""

from dataclasses import dataclass

import numpy as np

from . import settings
from .inputs import Costs, Task


@dataclass(frozen=True)
class Level:
    """The problem on some of the rows and columns, each of which stands for its neighbours."""

    a: np.ndarray
    b: np.ndarray
    costs: Costs

    def coarser(self) -> "Level":
        a, b = (np.add.reduceat(side, np.arange(0, len(side), settings.COARSEN)) for side in (self.a, self.b))
        return Level(a, b, self.costs.every(settings.COARSEN))

    @property
    def pairs(self) -> int:
        return len(self.a) * len(self.b)


def levels_of(task: Task) -> list[Level]:
    """The problem itself, and coarser and coarser ones."""
    found = [Level(task.a, task.b, task.costs)]
    while max(found[-1].costs.shape) > settings.COARSE:
        found.append(found[-1].coarser())
    return found
