"""Clusters of a point of the relaxation, on the way and at the end, of graphs in memory and on disk."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cycles.inputs import Edges
from ..cycles.point import CyclePoint
from ..cycles.schedule import RATIO_REACHED
from ..engine.family import Options
from ..errors import SearchStopped
from ..storage.vectors import Vector, spans
from .rounding import CLOSE, clustering_cost, guided, round_clusters, round_quickly, round_weights
from .streaming import EdgeStream, Part, round_in_passes

MOST_UNLISTED = 1 << 20  # pairs inside clusters that a feasible point of a complete graph may have
WAY_ROUNDS, LAST_ROUNDS = 2, 8  # of perturbation and fusion on disk, on the way and at the end; shape the clusters


def make_rounder(options: Options) -> "RounderInMemory | RounderInPasses":
    """Who makes the clusters of a run with these options; see `cycles.plan.Rounder`."""
    return (
        RounderInPasses(options["seed"]) if options["external"] else RounderInMemory(options["base"], options["seed"])
    )


def last_clusters(point: CyclePoint, x: Vector, options: Options, status: str, stop: np.ndarray) -> np.ndarray | None:
    """The clusters of the answer: those known where they are good enough or time is up, else better ones; None: none.

    A run that ends because its clusters are as good as was asked for does not look for better ones.
    """
    rounder, over = make_rounder(options), status in ("interrupted", "time_limit")
    if status == RATIO_REACHED or (over and (point.labels is not None or _takes_long(options, status))):
        return point.labels
    if over:
        return rounder.improve(point, 0, np.zeros(1, np.uint8))
    try:
        return rounder.finish(point, x, stop)
    except SearchStopped:
        return point.labels


def _takes_long(options: Options, status: str) -> bool:
    """Whether somebody who waits for a run to stop would wait for its first clusters."""
    return bool(options["external"]) and status == "interrupted"


@dataclass(frozen=True)
class RounderInMemory:
    """Makes clusters of a graph in memory."""

    base: float | None
    seed: int

    def improve(self, point: CyclePoint, iteration: int, stop: np.ndarray, *, thoroughly: bool = False) -> np.ndarray:
        seed = self.seed, iteration
        if point.labels is None:
            known = None if self.base else RounderInPasses(self.seed).improve(point, iteration, stop)
            nodes = edges_of(point).nodes
            return round_weights(*self._graph(point), nodes, base=self.base, seed=seed, known=known)
        x, more = np.concatenate([np.empty(0), *fractions(edges_of(point), point.y)]), self._more(point)
        if thoroughly:
            return round_clusters(*self._graph(point), x, seed=seed, **more)[0]
        return round_quickly(*self._graph(point), x, seed=seed, **more)

    def finish(self, point: CyclePoint, x: Vector, stop: np.ndarray) -> np.ndarray:
        """Clusters for the answer, whose fractions are x."""
        return round_clusters(*self._graph(point), x.whole, seed=self.seed, **self._more(point))[0]

    def _graph(self, point: CyclePoint) -> tuple[Any, ...]:
        edges = edges_of(point)
        return edges.u.whole, edges.v.whole, edges.value.whole

    def _more(self, point: CyclePoint) -> dict[str, Any]:
        reduced = np.concatenate([np.empty(0), *reduced_weights(point)])
        return {"nodes": edges_of(point).nodes, "base": self.base, "reduced": reduced, "known": point.labels}

    def cost(self, point: CyclePoint) -> float:
        assert point.labels is not None
        return cost_of(edges_of(point), point.labels, self.base)

    def feasible(self, point: CyclePoint) -> Vector | None:
        """One where a pair is not as its sign wants it; of a complete graph also for unlisted pairs inside clusters."""
        edges, labels = edges_of(point), point.labels
        assert labels is not None
        f = np.concatenate([np.empty(0), *disagreements(edges, labels)])
        if self.base:
            size = np.unique(labels, return_counts=True)[1].astype(np.int64)
            listed = int(np.count_nonzero(labels[edges.u.whole] == labels[edges.v.whole]))
            unlisted = int((size * (size - 1) // 2).sum()) - listed
            if unlisted > max(MOST_UNLISTED, len(f)):
                return None
            f = np.concatenate((f, np.ones(unlisted)))
        return Vector.of(f)


@dataclass(frozen=True)
class RounderInPasses:
    """Makes clusters of a graph that is laid out for disk."""

    seed: int

    def improve(self, point: CyclePoint, iteration: int, stop: np.ndarray, *, thoroughly: bool = False) -> np.ndarray:
        edges, known = self._edges(point, stop), point.labels
        if known is None:
            return round_in_passes(edges, [edges], seed=(self.seed, iteration))
        *guides, agreed = self._guides(edges, point, lambda: fractions(edges_of(point), point.y))
        rounds = LAST_ROUNDS if thoroughly else WAY_ROUNDS
        return round_in_passes(edges, guides, seed=(self.seed, iteration), known=known, agreed=agreed, rounds=rounds)

    def finish(self, point: CyclePoint, x: Vector, stop: np.ndarray) -> np.ndarray:
        """Clusters for the answer, whose fractions are x; SearchStopped when ``stop`` is set."""
        edges = self._edges(point, stop)
        *guides, agreed = self._guides(edges, point, lambda: (part for _, part in x.spans()))
        guides, known = [edges, *guides], point.labels
        return round_in_passes(edges, guides, seed=self.seed, known=known, agreed=agreed, rounds=LAST_ROUNDS)

    def _edges(self, point: CyclePoint, stop: np.ndarray) -> EdgeStream:
        edges = edges_of(point)
        return EdgeStream(lambda: spans(edges.u, edges.v, edges.value), edges.nodes, point.pool, stop)

    def _guides(
        self, edges: EdgeStream, point: CyclePoint, x: Callable[[], Iterable[np.ndarray]]
    ) -> Iterator[EdgeStream]:
        """Weights guided by x, and by the multipliers; and those that are positive where x keeps an edge together."""

        def by_x() -> Iterator[Part]:
            for (u, v, weight), part in zip(edges.parts(), x(), strict=True):
                yield u, v, guided(weight, part)

        def by_multipliers() -> Iterator[Part]:
            for (u, v, _), reduced in zip(edges.parts(), reduced_weights(point), strict=True):
                yield u, v, reduced

        def by_agreement() -> Iterator[Part]:
            for (u, v, weight), part in zip(edges.parts(), x(), strict=True):
                yield u, v, np.where(part <= CLOSE, weight, 0.0)

        yield from (replace(edges, parts=parts) for parts in (by_x, by_multipliers, by_agreement))

    def cost(self, point: CyclePoint) -> float:
        assert point.labels is not None
        return cost_of(edges_of(point), point.labels, None)

    def feasible(self, point: CyclePoint) -> Vector:
        edges, labels = edges_of(point), point.labels
        assert labels is not None
        return Vector.filled(disagreements(edges, labels), len(edges.value), np.float64, point.pool)


# By edge, in parts ----------------------------------------------------------------------------------------------------


def edges_of(point: CyclePoint) -> Edges:
    """What the program of the point was made from."""
    assert point.program.edges is not None
    return point.program.edges


def fractions(edges: Edges, f: Vector) -> Iterator[np.ndarray]:
    """Parts of x, 0 together and 1 apart, over the listed edges."""
    for first, value in edges.value.spans():
        part = f.read(first, first + len(value))
        yield np.clip(np.where(value > 0, part, 1.0 - part), 0.0, 1.0)


def disagreements(edges: Edges, labels: np.ndarray) -> Iterator[np.ndarray]:
    """Parts of f: one where a listed pair is not as its sign wants it."""
    for u, v, value in spans(edges.u, edges.v, edges.value):
        yield ((labels[u] == labels[v]) != (value > 0)).astype(np.float64)


def reduced_weights(point: CyclePoint) -> Iterator[np.ndarray]:
    """Parts of the signed weights less what the multipliers use up."""
    loads = (load for _, load in point.program.cost_and_load(point.y, 1.0))
    for (_, value), load in zip(edges_of(point).value.spans(), loads, strict=False):
        yield value - np.sign(value) * load[: len(value)]


def cost_of(edges: Edges, labels: np.ndarray, base: float | None) -> float:
    """Cost of clusters, a part of the edges at a time."""
    cost, inside = 0.0, 0
    for u, v, weight in spans(edges.u, edges.v, edges.value):
        cost += clustering_cost(u, v, weight, labels)
        inside += int(np.count_nonzero(labels[u] == labels[v])) if base else 0
    if not base:
        return cost
    size = np.unique(labels, return_counts=True)[1].astype(np.int64)
    return cost - base * float((size * (size - 1) // 2).sum() - inside)
