"""Clusters of a graph whose edges do not fit in memory, by passes over them with a few numbers a node in memory.

The same search as in `rounding`. Contraction sorts the arcs between clusters in buckets on disk, and nodes move in the
order of their arcs. A graph of clusters that is small enough is searched in memory. Which one is does not depend on
the budget, so that the clusters do not either.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..cycles.disk_layout import node_ranges
from ..errors import SearchStopped
from ..kernels import streams
from ..kernels.clusters import count_members, number_clusters
from ..kernels.components import join_ends, settle
from ..storage.buckets import Buckets
from ..storage.vectors import Pool, Vector
from . import rounding
from .rounding import Level

# These shape the clusters.
FEW_ARCS = 1 << 18  # a graph of at most so many arcs is searched in memory
MOST_PASSES = 24  # of moves over one graph
WORTHWHILE = 1e-3  # of all nodes must move in a pass for another one
MOST_RETURNS = 3  # of moves of single nodes, each followed by joins of clusters
AFRESH = (1.0, 0.5)  # how much weights are perturbed, and how much of them holds on to the best clusters
NEARBY, NEARBY_PASSES = (2.0, 0.0), 2  # the same where the best clusters are only moved a little, and for how long

# These cost time and memory only.
BUCKET_ARCS = 1 << 17  # that are sorted together, at least
BLOCK_ARCS = 1 << 16  # that are read together

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # ends and weights of consecutive edges


@dataclass(frozen=True)
class EdgeStream:
    """Edges with signed weights that come in parts, again and again.

    Attributes
    ----------
    parts : function
        Goes through all edges once: u, v, weight of each part.
    nodes : int
    pool : Pool or None
        Where arcs are kept.
    stop : uint8[1]
        Set to 1 if a pass is to end early, with SearchStopped.
    """

    parts: Callable[[], Iterable[Part]]
    nodes: int
    pool: Pool | None
    stop: np.ndarray

    def __iter__(self) -> Iterator[Part]:
        for part in self.parts():
            self.check()
            yield part

    def check(self) -> None:
        if self.stop[0]:
            raise SearchStopped


class PagedLevel(NamedTuple):
    """A graph whose nodes move, as `rounding.Level`, with its arcs in vectors."""

    start: np.ndarray
    node: Vector
    weight: Vector
    least: float


AnyLevel = Level | PagedLevel


def round_in_passes(
    edges: EdgeStream,
    guides: Iterable[EdgeStream],
    *,
    seed: int | tuple[int, ...] = 0,
    known: np.ndarray | None = None,
    agreed: EdgeStream | None = None,
    rounds: int = 0,
) -> np.ndarray:
    """Clusters no worse than those ``known``, than all nodes apart, and than the components of attractive edges.

    Parameters
    ----------
    edges : EdgeStream
        The graph.
    guides : iterable of EdgeStream
        The same edges with other weights, each for a candidate that is then improved by the true ones.
    seed : int or tuple of int
        The same seed gives the same clusters.
    known : int32[nodes], optional
        Clusters to start from as well.
    agreed : EdgeStream, optional
        The same edges, with a positive weight where the fractional solution keeps their ends together.
    rounds : int
        How often the best clusters are perturbed, and fused with what comes of it.

    Returns
    -------
    int32[nodes]
        Numbered by first appearance.
    """
    rng = np.random.default_rng(seed)
    best = _cheapest(edges, [_alone(edges.nodes), components(edges, edges.nodes)] if known is None else [known])
    if cost(edges, best) == 0.0:
        return number_clusters(best)
    whole, guides = contracted(edges, _alone(edges.nodes)), list(guides)
    if agreed is not None:
        best = _cheapest(edges, [best, _over_agreed(edges, whole, guides, agreed, best, rng)])
        known = None if known is None else best
    pool = [_candidate(edges, whole, guide, rng) for guide in guides] + ([] if known is None else [known])
    best = _cheapest(edges, [best, *pool, _fused(edges, whole, pool, rng, rounding.QUICK_ROUNDS)])
    for k in range(rounds):
        other = _perturbed(edges, whole, best, rng, afresh=k % 2 == 0)
        best = _cheapest(edges, [best, _fused(edges, whole, [best, other], rng, rounding.QUICK_ROUNDS)])
    close(whole)
    return number_clusters(best)


def cost(edges: EdgeStream, labels: np.ndarray) -> float:
    """Cost of clusters, see `rounding.clustering_cost`."""
    return sum((rounding.clustering_cost(u, v, weight, labels) for u, v, weight in edges), 0.0)


def _cheapest(edges: EdgeStream, pool: list[np.ndarray]) -> np.ndarray:
    return min(pool, key=lambda labels: cost(edges, labels))


# Candidates -----------------------------------------------------------------------------------------------------------


def _alone(nodes: int) -> np.ndarray:
    return np.arange(nodes, dtype=np.int32)


def components(edges: Iterable[Part], nodes: int) -> np.ndarray:
    """Components of the attractive edges: of each node the lowest one that it is connected with."""
    parent = _alone(nodes)
    for u, v, weight in edges:
        join_ends(u, v, weight > 0, parent)
    settle(parent)
    return parent


def _candidate(edges: EdgeStream, whole: AnyLevel, guide: EdgeStream, rng: np.random.Generator) -> np.ndarray:
    """Clusters by other weights, improved by the true ones."""
    alone = _alone(edges.nodes)
    if guide is edges:
        return improve(edges, whole, alone, rng)
    level = contracted(guide, alone)
    labels = improve(guide, level, alone, rng)
    close(level)
    return improve(edges, whole, labels, rng)


def _over_agreed(
    edges: EdgeStream,
    whole: AnyLevel,
    guides: list[EdgeStream],
    agreed: EdgeStream,
    best: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Clusters of the groups that the fractional solution keeps together, if their graph is small, and improved."""
    groups = number_clusters(components(agreed, agreed.nodes))
    levels = []
    for stream in (edges, *guides):
        level = contracted(stream, groups)
        if not isinstance(level, Level):
            close(level)
            return best
        levels.append(level)
    return improve(edges, whole, rounding.search_agreed(levels[0], levels[1:], groups, best, rng), rng)


def _perturbed(
    edges: EdgeStream, whole: AnyLevel, best: np.ndarray, rng: np.random.Generator, *, afresh: bool
) -> np.ndarray:
    """Clusters by perturbed weights, improved by the true ones: made afresh, or by a few moves from the best ones.

    Some graphs need the one, some the other.
    """
    guide = _noisy(edges, best, int(rng.integers(1 << 32)), *(AFRESH if afresh else NEARBY))
    level, start = contracted(guide, _alone(edges.nodes)), _alone(edges.nodes) if afresh else best
    if afresh or isinstance(level, Level):
        labels = improve(guide, level, start, rng, returns=1)
    else:
        labels = move_in_passes(guide, level, start, NEARBY_PASSES)
    close(level)
    return improve(edges, whole, labels, rng)


def _noisy(edges: EdgeStream, best: np.ndarray, seed: int, spread: float, hold: float) -> EdgeStream:
    """Weights times random numbers around 1, and more or less by a part of themselves to hold on to ``best``."""

    def parts() -> Iterator[Part]:
        for k, (u, v, weight) in enumerate(edges):
            noise = np.random.default_rng((seed, k)).uniform(1.0 - spread, 1.0 + spread, len(weight))
            yield u, v, weight * noise + hold * np.abs(weight) * np.where(best[u] == best[v], 1.0, -1.0)

    return replace(edges, parts=parts)


# Local search ---------------------------------------------------------------------------------------------------------


def improve(
    edges: EdgeStream, whole: AnyLevel, labels: np.ndarray, rng: np.random.Generator, returns: int = MOST_RETURNS
) -> np.ndarray:
    """Local search of the Louvain kind over the whole graph; returns numbered labels.

    Nodes move, then clusters are joined, and so on while they are, but at most so many times.
    """
    if isinstance(whole, Level):
        return rounding.improve(whole, labels, rng)
    labels = number_clusters(labels)
    for _ in range(returns):
        labels = move_in_passes(edges, whole, labels)
        joined = _joined(edges, labels, rng)
        if joined.max() == labels.max():
            break
        labels = joined
    return labels


def _joined(edges: EdgeStream, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Join numbered clusters where that saves: each is a node that moves, and joined with others a node again."""
    level, alone = contracted(edges, labels), _alone(int(labels.max()) + 1)
    if isinstance(level, Level):
        return number_clusters(rounding.improve(level, alone, rng)[labels])
    joined = move_in_passes(edges, level, alone)
    if joined.max() < alone.max():
        joined = _joined(_edges_of(level, edges), joined, rng)
    close(level)
    return joined[labels]


def _fused(
    edges: EdgeStream, whole: AnyLevel, pool: list[np.ndarray], rng: np.random.Generator, most_rounds: int
) -> np.ndarray:
    """The best clustering found over the groups of nodes that all of ``pool`` keep together, and improved again."""
    groups = rounding.common_groups(pool)
    coarse = contracted(edges, groups)
    if isinstance(coarse, Level):
        best = rounding.search_groups(coarse, groups, pool, rng, most_rounds)
    else:
        best = _search_groups(_edges_of(coarse, edges), coarse, groups, pool, rng)
        close(coarse)
    if isinstance(whole, Level):
        return rounding.shaken(whole, best, rng, most_rounds)
    return improve(edges, whole, best, rng)


def _search_groups(
    edges: EdgeStream, coarse: PagedLevel, groups: np.ndarray, pool: list[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """The best of ``pool`` after moves of whole groups, whose graph is ``coarse`` and has these edges."""
    found = []
    for labels in pool:
        start = np.empty(edges.nodes, np.int32)
        start[groups] = labels
        found.append(_joined(edges, move_in_passes(edges, coarse, start), rng))
    return _cheapest(edges, found)[groups]


def move_in_passes(edges: EdgeStream, level: PagedLevel, labels: np.ndarray, passes: int = MOST_PASSES) -> np.ndarray:
    """Move single nodes where that saves, in passes over the arcs; returns numbered labels."""
    start, node, weight, least = level
    size, labels = np.ones(len(labels)), number_clusters(labels)
    *counts, _ = count_members(labels, size)
    waiting = np.ones(len(labels), bool)
    for _ in range(passes):
        moved = 0
        for first, last in node_ranges(start, BLOCK_ARCS):
            edges.check()
            if waiting[first:last].any():
                a, b = int(start[first]), int(start[last])
                arcs = start[first : last + 1] - a, node.read(a, b), weight.read(a, b)
                moved += streams.move_in_order(first, *arcs, size, least, labels, *counts, waiting)
        if moved <= WORTHWHILE * len(labels):
            break
    return number_clusters(labels)


# Graphs ---------------------------------------------------------------------------------------------------------------


def contracted(edges: EdgeStream, labels: np.ndarray) -> AnyLevel:
    """The graph with one node for each cluster; ``labels`` are numbered without gaps."""
    degree = np.zeros(int(labels.max()) + 1, np.int64)
    for u, v, _ in edges:
        streams.count_across(u, v, labels, degree)
    node, weight = (Vector(int(degree.sum()), dtype, edges.pool) for dtype in (np.int32, np.float64))
    at, strongest = 0, 0.0
    for some_nodes, some_weights, strength in _merged(edges, labels, degree):
        node.write(at, some_nodes)
        weight.write(at, some_weights)
        at, strongest = at + len(some_nodes), max(strongest, strength)
    start, least = _starts(degree), rounding.ROUNDING * strongest
    level = PagedLevel(start, node, weight, least)
    if at > FEW_ARCS:
        return level
    whole = Level(start, node.read(0, at).copy(), weight.read(0, at).copy(), np.ones(len(degree)), 0.0, least)
    close(level)
    return whole


def _starts(degree: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(degree)))


def _merged(
    edges: EdgeStream, labels: np.ndarray, degree: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Heads and weights of the arcs between clusters, by tail, and the largest sum of absolute weights at one of them.

    ``degree`` has how many arcs each cluster has, and then how many merged ones.
    """
    room = max(BUCKET_ARCS, edges.nodes // 4)
    ranges, seen = list(node_ranges(_starts(degree), room)), np.zeros(len(degree), np.int32)
    buckets = _dealt(edges, labels, degree, ranges)
    for k, (first, last) in enumerate(ranges):
        most = int(degree[first:last].sum())
        if last == first + 1:  # one that may have more arcs than there is room for
            most = min(most, len(degree))
        node, weight, used = np.empty(most, np.int32), np.empty(most), 0
        for arcs in buckets.take(k, room):
            edges.check()
            if last == first + 1:
                used = streams.merge_tail(arcs, seen, node, weight, 0, used)
                degree[first] = used
            else:
                used = streams.merge_arcs(arcs, first, degree[first:last], seen, node, weight)
        yield node[:used], weight[:used], _strongest(degree[first:last], weight[:used])
    buckets.close()


def _strongest(degree: np.ndarray, weight: np.ndarray) -> float:
    """The largest sum of absolute weights of consecutive arcs that belong together."""
    linked = degree > 0
    begin = _starts(degree)[:-1][linked]
    return float(np.add.reduceat(np.abs(weight), begin).max(initial=0.0)) if len(begin) else 0.0


def _dealt(edges: EdgeStream, labels: np.ndarray, degree: np.ndarray, ranges: list[tuple[int, int]]) -> Buckets:
    """The arcs between clusters, a bucket for each range of tails, in the order of the edges."""
    sizes = np.array([degree[first:last].sum() for first, last in ranges])
    ends, buckets = np.array([last for _, last in ranges]), Buckets(sizes, streams.ARC, edges.pool)
    for u, v, weight in edges:
        arcs = np.empty(2 * len(u), streams.ARC)
        begin = streams.deal_arcs(u, v, weight, labels, ends, arcs)
        for k in np.flatnonzero(np.diff(begin)):
            buckets.add(k, arcs[begin[k] : begin[k + 1]])
    return buckets


def _edges_of(level: PagedLevel, edges: EdgeStream) -> EdgeStream:
    """The edges of a contracted graph, in the order of its arcs."""

    def parts() -> Iterator[Part]:
        for first, last in node_ranges(level.start, BLOCK_ARCS):
            a, b = int(level.start[first]), int(level.start[last])
            u = np.repeat(np.arange(first, last, dtype=np.int32), np.diff(level.start[first : last + 1]))
            v, weight = level.node.read(a, b), level.weight.read(a, b)
            once = u < v
            yield u[once], v[once], weight[once]

    return replace(edges, parts=parts, nodes=len(level.start) - 1)


def close(level: AnyLevel) -> None:
    """Give up the arcs of a graph."""
    if isinstance(level, PagedLevel):
        level.node.close()
        level.weight.close()
