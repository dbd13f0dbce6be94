"""Memory budgets: how they are written, shared out and refused."""

import re
from dataclasses import dataclass
from typing import Any

from ..errors import BudgetError, InputError
from .machine import SHARE, memory_at_hand

MIB = 1 << 20
AUTO = "auto"  # as much as the machine and the container leave

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def parse_memory(memory: int | float | str | None) -> int | None:
    """Bytes of a budget such as ``"500MB"``, ``"1.5GiB"``, ``10**9`` or ``"auto"``; None means no limit."""
    if memory is None:
        return None
    if memory == AUTO:
        free = memory_at_hand()
        return None if free is None else int(SHARE * free)
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+]?[0-9]+)?)\s*([KMGT]?I?)B?\s*", str(memory), re.IGNORECASE)
    wrong = InputError(f"memory {memory!r} is not a size; write it like '500MB', '2GiB' or 1000000000")
    if found is None:
        raise wrong
    try:
        size = int(float(found[1]) * _UNITS[found[2].upper()])
    except (ValueError, KeyError, OverflowError):
        raise wrong from None
    if size <= 0:
        raise InputError(f"memory {memory!r} must be positive")
    return size


@dataclass(frozen=True)
class Budget:
    """Bytes for each use; None: as much as it takes.

    Attributes
    ----------
    rows : int or None
        Remembered rows that stay in memory between visits.
    vectors : int or None
        Pages of vectors by edge.
    slots : int or None
        Pages of arcs for each worker.
    held : int
        Pages of arcs that stay in memory for all workers.
    build : int
        Temporaries while a graph is laid out; costs time only.
    pairs : int or None
        Not bytes: how many pairs of a complete graph may have a variable, the listed ones included.
    lanes : int
        Not bytes: how many sources a worker searches from at once.
    """

    rows: int | None = None
    vectors: int | None = None
    slots: int | None = None
    held: int = 0
    build: int = 256 * MIB
    pairs: int | None = None
    lanes: int = 32


def refuse_below(least: int, budget: int, memory: Any, hint: str = "") -> None:
    """Refuse a budget that cannot do, with the least that will."""
    if budget < least:
        raise BudgetError(f"memory={memory!r} is too small here; the least that will do is {least:,} bytes{hint}")
