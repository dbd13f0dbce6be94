"""What may differ from call to call without changing the answer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ..errors import InputError
from .monitor import Monitor


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where a call keeps its state, what it may use, when it stops, and who watches it.

    Attributes are named and described as the keywords of `metric_nearness`.
    """

    workspace: Any = None
    memory: int | str | None = None
    workers: int | None = None
    max_iter: int | None = None
    max_time: float | None = None
    callback: Callable[[dict[str, Any]], Any] | None = None
    progress: bool = False
    restart: bool = False
    client: Any = None

    def check(self) -> None:
        """Refuse limits that cannot be kept."""
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 0):
            raise InputError(f"max_iter must be a whole number from 0 on, found {self.max_iter!r}")
        if self.max_time is not None and not (isinstance(self.max_time, Real) and self.max_time >= 0):
            raise InputError(f"max_time must be a number of seconds, found {self.max_time!r}")

    def monitor(self) -> Monitor:
        return Monitor(progress=self.progress, callback=self.callback, max_time=self.max_time)


def check_tol(tol: Any) -> None:
    """Refuse a tolerance that is not a positive number."""
    if not (isinstance(tol, Real) and 0 < float(tol) < math.inf):
        raise InputError(f"tol must be a positive number, found {tol!r}")


def check_ratio(ratio: Any) -> None:
    """Refuse a ratio of cost and bound that cannot be."""
    if not (isinstance(ratio, Real) and 1 <= float(ratio) < math.inf):
        raise InputError(f"ratio must be a number from 1 on, found {ratio!r}: cost of the clusters over the bound")


def check_seed(seed: Any) -> None:
    """Refuse a seed that no random generator takes."""
    if not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 on, found {seed!r}")
