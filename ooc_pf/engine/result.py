"""What a solve returns."""

import functools
import html
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .rows import RowBlock, Rows

COMMON = (
    "x",
    "objective",
    "lower_bound",
    "gap",
    "violation",
    "status",
    "converged",
    "n_iter",
    "n_active",
    "history",
    "duals",
    "blocks",
    "nodes",
    "workspace",
)


def _finite(value: Any) -> Any:
    """The value, or None for what JSON cannot say."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Duals:
    """Remembered rows with their multipliers: row i is ``rows.edges[rows.start[i]:rows.start[i + 1]]``."""

    rows: "Rows"
    values: np.ndarray


@dataclass(frozen=True)
class Held:
    """A function that returns one value: unlike a closure it can be pickled and copied."""

    value: Any

    def __call__(self) -> Any:
        return self.value


def label_array(labels: Any) -> np.ndarray:
    """Clusters by node, from an array, a series, a dict, or the column of a table."""
    if isinstance(labels, dict):
        return np.array(list(labels.values()))
    return np.asarray(labels if hasattr(labels, "dtype") else labels["cluster"])


def cluster_sizes(labels: Any) -> np.ndarray:
    """Sizes of clusters, largest first; labels in any form of `label_array`."""
    return np.sort(np.unique(label_array(labels), return_counts=True)[1])[::-1]


def _multipliers(block: "RowBlock") -> Iterable[tuple[int | str, float]]:
    """Name or key, and dual, of each row that matters, the dual being that of the row as it was given."""
    assert block.general is not None
    dual, keys = block.dual * block.general.unit, block.key.tolist()
    if block.names is not None:
        keys = [name or key for name, key in zip(block.names, keys, strict=True)]
    return [(key, z) for key, z in zip(keys, dual.tolist(), strict=True) if z]


def _increments(block: "RowBlock") -> Iterable[tuple[int, np.ndarray]]:
    assert block.general is not None
    return zip(block.key, np.split(block.general.coefficient, block.start[1:-1]), strict=True)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """An answer with its certificate.

    A problem may add fields of its own. They are attributes too, ``dir(result)`` lists them, and asking for one that
    belongs to another problem is an AttributeError. A result can be printed, pickled and copied; pickling reads
    everything that is still on disk.

    Attributes
    ----------
    problem : str
        The problem that was solved.
    x : array, or what the problem was given as
        The best feasible point known, read when asked for if it is on disk; of general rows and sets the iterate,
        feasible up to ``violation``.
    objective : float
        Its objective: an upper bound of the optimum where the point is feasible.
    lower_bound : float
        Proven lower bound of the optimum.
    gap : float
        |objective - lower_bound| / |lower_bound|: how much worse than the best the answer may be. Zero where both
        are zero, infinite where only the lower bound is and nothing was checked.
    violation : float
        Largest violation of a constraint at the iterate when all constraints were last checked; infinite if they never
        were. Of general rows and sets it is the distance of the iterate from what satisfies the constraint. The ``x``
        of cycles and tables violates none. For tables the number is an upper bound of the largest
        violation, ``closure_distance``.
    status : str
        "converged", or why the run stopped: "iteration_limit", "time_limit", "interrupted", "callback"; of clusters
        also "ratio_reached", of complete graphs "stalled", of general rows and sets "infeasible" and "stalled".
    converged : bool
        Whether what was asked for is proven: the status is "converged" or "ratio_reached".
    n_iter, n_active : int
        Iterations done in all, and rows remembered at the end.
    history : list of dict
        One record an iteration.
    blocks : callable
        Iterates over the remembered rows block by block, for those too many for `duals`.
    duals : Duals or dict
        The remembered rows and their multipliers, read when asked for. Of general rows: the multiplier by the name or
        number of the row; of general sets: the increment of each set, over the variables it is about.
    nodes : array or None
        Labels of the nodes in the input, where the graph came from a workspace or has any.
    workspace : Path, str or None
        Where the state is, if it is on disk or on an object store.
    made : dict
        What the problem adds, by name.
    keyed : str or None
        What the keys of the remembered rows number, where they do: "rows" or "sets".

    Notes
    -----
    Correlation clustering adds ``labels``, the cluster of each node; ``cost``, what the clusters cost;
    ``lp_lower_bound``, a lower bound of what any clustering costs; ``certified_ratio``, the ratio of the two;
    ``optimal``, whether no clustering can be cheaper; ``proven_nodes``, how many nodes are in components of attractive
    edges where none can be cheaper; ``apriori_ratio`` and ``paper_ratio``, known before rounding; and ``zeros``, how
    many weights of zero were given and left out. They are None while a run has not come to them.

    Metric nearness of a table adds ``closure_distance``, the Euclidean distance between the iterate and its
    shortest-path closure.
    """

    problem: str
    read_x: Callable[[], Any]
    objective: float
    lower_bound: float
    gap: float
    violation: float
    status: str
    n_iter: int
    n_active: int
    history: list[dict[str, Any]]
    blocks: Callable[[], Iterable["RowBlock"]]
    workspace: str | os.PathLike[str] | None = None
    made: dict[str, Any] = field(default_factory=dict)
    read_nodes: Callable[[], np.ndarray | None] = lambda: None
    keyed: str | None = None

    @functools.cached_property
    def x(self) -> Any:
        return self.read_x()

    @functools.cached_property
    def nodes(self) -> np.ndarray | None:
        return self.read_nodes()

    @functools.cached_property
    def duals(self) -> Duals | dict[Any, Any]:
        from .rows import Rows

        blocks = list(self.blocks())
        if self.keyed == "rows":
            return {key: dual for block in blocks for key, dual in _multipliers(block)}
        if self.keyed == "sets":
            return {int(k): q for block in blocks for k, q in _increments(block)}
        values = np.concatenate([block.dual for block in blocks]) if blocks else np.empty(0)
        return Duals(Rows.join([block.rows for block in blocks]), values)

    @property
    def converged(self) -> bool:
        return self.status in ("converged", "ratio_reached")

    def summary(self) -> dict[str, Any]:
        """The numbers of the certificate, fit for JSON."""
        return {
            "status": self.status,
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "gap": _finite(self.gap),
            "violation": _finite(self.violation),
            "n_iter": self.n_iter,
            "n_active": self.n_active,
            "workspace": None if self.workspace is None else str(self.workspace),
            **{name: _finite(value) for name, value in self.made.items() if isinstance(value, Real)},
        }

    # -- what the problem adds ------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Called for names that are not found otherwise; while a copy is being built, before there is anything.
        made = self.__dict__.get("made") or {}
        if name in made:
            return made[name]
        if name.startswith("_") or "problem" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(f"this result of {self.problem} has no {name}; it has: {', '.join((*COMMON, *made))}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.made})

    # -- copies ---------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"read_x": Held(self.x), "read_nodes": Held(self.nodes), "blocks": Held(list(self.blocks()))}
        return type(self), tuple(values.values())

    # -- words ----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        lines = list(self._lines())
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)

    def _repr_html_(self) -> str:
        lines = "".join(
            f'<tr><th style="text-align: left">{html.escape(name)}</th><td>{html.escape(text)}</td></tr>'
            for name, text in self._lines()
        )
        return f"<table>{lines}</table>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Name and text of each line of the printed table."""
        yield "problem", self.problem
        yield "status", self.status
        yield "objective", f"{self.objective:.10g}"
        yield "lower bound", f"{self.lower_bound:.10g}"
        yield "gap", f"{self.gap:.2e}"
        name = "closure distance" if "closure_distance" in self.made else "violation"
        yield name, f"{self.violation:.2e}" if math.isfinite(self.violation) else "not checked yet"
        yield from self._made_lines()
        yield "iterations", f"{self.n_iter}"
        yield "constraints remembered", f"{self.n_active}"
        if self.workspace is not None:
            yield "workspace", str(self.workspace)

    def _made_lines(self) -> Iterator[tuple[str, str]]:
        for name, value in self.made.items():
            if name == "labels" and value is not None:
                yield "clusters", f"{len(cluster_sizes(value))}"
            elif name == "proven_nodes" and value is not None and self.made["labels"] is not None:
                yield "proven optimal", f"{value:,} of {len(label_array(self.made['labels'])):,} nodes"
            elif isinstance(value, bool):
                yield name.replace("_", " "), "yes" if value else "no"
            elif isinstance(value, Real) and name != "closure_distance":
                yield name.replace("_", " "), f"{value:.10g}"
