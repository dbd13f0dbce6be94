"""What the engine needs to know of a problem, and the state it works on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .certificate import Certificate
from .constraints import ConstraintStore
from .oracle import Found


@dataclass
class State:
    """All that changes during a run; what a generation stores.

    Attributes
    ----------
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

    y: np.ndarray
    rows: ConstraintStore
    plan: dict[str, Any]
    iteration: int = 0
    feasible: np.ndarray | None = None
    objective: float = np.inf
    certificate: Certificate | None = None
    history: list[dict[str, Any]] = field(default_factory=list)


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
    bound : State -> float
        Value of the dual at the present duals.
    plan : State, Found, float, float -> dict
        What the oracle does next, from the bounds before and after this iteration.
    """

    name: str
    find: Callable[[State], Found]
    measure: Callable[[State, Found], tuple[Certificate, np.ndarray]]
    sweep: Callable[[State, Found], dict[str, Any]]
    bound: Callable[[State], float]
    plan: Callable[[State, Found, float, float], dict[str, Any]]
