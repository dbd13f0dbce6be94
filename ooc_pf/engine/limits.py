"""What may differ from call to call without changing the answer."""

import math
import re
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
    max_time: float | str | None = None
    callback: Callable[[dict[str, Any]], Any] | None = None
    progress: bool = False
    restart: bool = False
    client: Any = None

    def check(self) -> None:
        """Refuse limits that cannot be kept."""
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 0):
            raise InputError(f"max_iter must be a whole number from 0 on, found {self.max_iter!r}")
        parse_duration(self.max_time)

    def monitor(self) -> Monitor:
        if self.progress:
            from ..kernels import compiling  # here, so that reading limits loads no compiler

            compiling.shown = True
        return Monitor(progress=self.progress, callback=self.callback, max_time=parse_duration(self.max_time))


_NAMES = {1: "s sec secs second seconds", 60: "m min mins minute minutes", 3600: "h hour hours", 86400: "d day days"}
_UNITS = {name: size for size, names in _NAMES.items() for name in names.split()}
_PART = r"([0-9]*\.?[0-9]+)\s*([a-z]+)\s*"


def parse_duration(time: float | str | None) -> float | None:
    """Seconds of a time such as 90, ``"90s"``, ``"30min"``, ``"1h30m"`` or ``"2 days"``; None means no limit."""
    if time is None:
        return None
    text = str(time).strip().lower()
    parts = re.findall(_PART, text) if re.sub(_PART, "", text) == "" else []
    try:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else float(text)
    except (KeyError, ValueError):
        seconds = math.nan
    if not seconds >= 0.0:
        raise InputError(f"max_time must be a time like 90, '90s', '30min', '1h30m' or '2d', found {time!r}")
    return seconds


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
