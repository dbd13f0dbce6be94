"""What a pass looks at, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..storage.vectors import Vector
from .graph import Graph


@dataclass(frozen=True)
class Frozen:
    """The point a pass looks at.

    Attributes
    ----------
    graph : Graph
    y : Vector
        By edge; lengths are max(y, 0).
    limit : x -> limit
        The length below which a path violates its row, from the x of its closing edge.
    beyond : float
        The same for a pair of a complete graph that is not ``known``; -inf for other graphs.
    known : (int64[nodes + 1], int32[pairs]) or None
        Upper ends of the known pairs, in CSR by lower end.
    address : (Path, str) or None
        Where workers in other processes find the point: a group and the name of an array in it.
    """

    graph: Graph
    y: Vector
    limit: Callable[[np.ndarray], np.ndarray]
    beyond: float = -np.inf
    known: tuple[np.ndarray, np.ndarray] | None = None
    address: tuple[Path, str] | None = None

    def x(self, edge: np.ndarray) -> np.ndarray:
        """Values at some edges."""
        return np.maximum(self.y.take(edge), 0.0)


@dataclass(frozen=True)
class SearchRules:
    """How far a search goes, and what it keeps.

    Attributes
    ----------
    hops : int
        Paths have at most one arc more than this; `kernels.paths.UNLIMITED`: a complete search.
    keep_paths : int
        Rows for each closing edge at most, those of the shortest paths.
    slack : float
        Rows violated by no more than this are left out.
    coarse : bool
        Whether six digits are enough for distances.
    together : bool
        Whether the sources of a block are searched from at once.
    """

    hops: int
    keep_paths: int
    slack: float
    coarse: bool = False
    together: bool = False


@dataclass(frozen=True)
class TreeRules:
    """What the trees of a pass are grown for.

    Attributes
    ----------
    penalty : float
        What each arc of a way costs beside its length.
    slack : float
        By how much at least a row must be violated.
    most : int
        Rows that there is room for.
    seed : int
        Decides between ways of one length, and which closing edges are looked at.
    """

    penalty: float
    slack: float
    most: int
    seed: int
