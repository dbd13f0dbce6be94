"""What a solve returns."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .rows import RowBlock, Rows

# Kinds of problems whose rows have keys: what a multiplier belongs to is then a row, or a set.
KEYED = ("rows", "sets")
RATIOS = ("cost", "lp_lower_bound", "certified_ratio", "apriori_ratio", "paper_ratio")


def _finite(value: float) -> float | None:
    """The value, or None for what JSON cannot say."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Duals:
    """Remembered rows with their multipliers: row i is ``rows.edges[rows.start[i]:rows.start[i + 1]]``."""

    rows: Rows
    values: np.ndarray


def _increments(block: RowBlock) -> Iterable[tuple[int, np.ndarray]]:
    return zip(block.key, np.split(block.coefficient, block.start[1:-1]), strict=True)


@dataclass(frozen=True)
class Result:
    """An answer with its certificate.

    Attributes
    ----------
    x : array, or what the problem was given as
        The best feasible point known, read when asked for if it is on disk; of general rows and sets the iterate,
        feasible up to ``violation``.
    objective : float
        Its objective: an upper bound of the optimum where the point is feasible.
    lower_bound : float
        Proven lower bound of the optimum.
    gap : float
        |objective - lower_bound| / max(1, |lower_bound|).
    violation : float
        Largest violation of a constraint at the iterate when it was last checked completely; x itself violates none.
    status : str
        "converged", or why the run stopped: "iteration_limit", "time_limit", "interrupted", "callback"; of general rows
        and sets also "infeasible" and "stalled".
    n_iter, n_active : int
        Iterations done in all, and rows remembered at the end.
    history : list of dict
        One record an iteration.
    blocks : callable
        Iterates over the remembered rows block by block, for those too many for `duals`.
    duals : Duals or dict
        The remembered rows and their multipliers, read when asked for. Of general rows: the multiplier of each key; of
        general sets: the increment of each set, over the variables it is about.
    workspace : Path or None
        Where the state is, if it is on disk.
    labels, cost, lp_lower_bound, certified_ratio, apriori_ratio, paper_ratio
        Of correlation clustering: the cluster of each node, what the clusters cost, a lower bound of what any
        clustering costs, the ratio of the two, and the ratios known before rounding.
    nodes : array or None
        Labels of the nodes in the input, where the graph came from a workspace.
    plan
        Transport plan, for the problem that has one.
    zeros : int
        Weights of zero that were given and left out: such pairs count as not listed.
    keyed : str or None
        What the keys of the remembered rows number, where they do: "rows" or "sets".
    """

    read_x: Callable[[], Any] = field(repr=False)
    objective: float
    lower_bound: float
    gap: float
    violation: float
    status: str
    n_iter: int
    n_active: int
    history: list[dict[str, Any]] = field(repr=False)
    blocks: Callable[[], Iterable[RowBlock]] = field(repr=False)
    workspace: Path | None = None
    labels: np.ndarray | None = field(default=None, repr=False)
    cost: float | None = None
    lp_lower_bound: float | None = None
    certified_ratio: float | None = None
    apriori_ratio: float | None = None
    paper_ratio: float | None = None
    read_nodes: Callable[[], np.ndarray | None] = field(default=lambda: None, repr=False)
    plan: Any = field(default=None, repr=False)
    zeros: int = 0
    keyed: str | None = field(default=None, repr=False)

    @functools.cached_property
    def x(self) -> Any:
        return self.read_x()

    @functools.cached_property
    def nodes(self) -> np.ndarray | None:
        return self.read_nodes()

    @functools.cached_property
    def duals(self) -> Duals | dict[int, Any]:
        blocks = list(self.blocks())
        if self.keyed == "rows":
            return {int(k): float(z) for block in blocks for k, z in zip(block.key, block.dual, strict=True) if z}
        if self.keyed == "sets":
            return {int(k): q for block in blocks for k, q in _increments(block)}
        values = np.concatenate([block.dual for block in blocks]) if blocks else np.empty(0)
        return Duals(Rows.join([block.rows for block in blocks]), values)

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    def summary(self) -> dict[str, Any]:
        """The numbers of the certificate, fit for JSON."""
        clusters = {name: _finite(getattr(self, name)) for name in RATIOS if getattr(self, name) is not None}
        return {
            "status": self.status,
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "violation": _finite(self.violation),
            "n_iter": self.n_iter,
            "n_active": self.n_active,
            "workspace": None if self.workspace is None else str(self.workspace),
            **clusters,
        }
