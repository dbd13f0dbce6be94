"""From a fractional correlation clustering to clusters.

1. Candidates: components below a threshold, the pivot algorithm (Ailon, Charikar and Newman), and greedy additive edge
   contraction (Keuper et al.), on the weights alone and guided by the fractional solution.
2. Each candidate is improved by local search of the Louvain kind: move single nodes, contract, move clusters, repeat.
3. Fusion: groups of nodes that all candidates keep together are contracted. The search goes on over these few groups.
4. Kernighan-Lin style moves: a node is forced to move, others follow, and the chain is undone if it does not pay.
5. The same over the groups that the fractional solution keeps together, which late in a run is best of all.

Every number here is what a clustering *saves* against all nodes apart; only `clustering_cost` speaks of cost.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ..errors import InputError
from ..kernels import clusters
from ..kernels.clusters import number_clusters

# All of these shape the clusters, none of them the lower bound.
QUANTILES = 16  # thresholds tried, at quantiles of x
KEPT_THRESHOLDS = 2  # how many of these, the cheapest, are candidates
PIVOTINGS = 4  # runs of the pivot algorithm with a fixed threshold, and as many with random ones
PIVOT_THRESHOLD = 0.5  # the fixed one: a pivot takes neighbours with x below it
COARSE_ROUNDS = 10  # most rounds of forced moves over the contracted graph
FINE_ROUNDS = 4  # and over the whole graph
QUICK_ROUNDS = 1  # the same on the way
AGREED_ROUNDS = 12  # and over the groups that the fractional solution keeps together
CLOSE = 0.01  # which it does up to this x
LEAST_TRIES = 1000  # forced moves in a round; a large graph gets one for each node
DEPTH = 200  # most moves in the chain that follows a forced one
HUB = 256  # nodes with more arcs are not in it
ROUNDING = 1e-13  # relative to the largest sum of weights at a node: no move for less


class Level(NamedTuple):
    """A graph whose nodes move, as the kernels take it.

    Attributes
    ----------
    start : int64[nodes + 1]; node : int32[arcs]; weight : float64[arcs]
        Arcs in both directions; the weight is what a listed pair saves beyond ``base``.
    size : float64[nodes]
        How many original nodes each one stands for.
    base : float
        What every pair saves, never positive.
    least : float
        Savings up to this are rounding.
    """

    start: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    base: float
    least: float


def round_clusters(
    u: Any,
    v: Any,
    weight: Any,
    x: Any,
    nodes: int,
    *,
    base: float | None = None,
    seed: int | tuple[int, ...] = 0,
    reduced: Any = None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Clusters of low true cost near a fractional solution.

    Parameters
    ----------
    u, v : int[edges]
        Ends of the listed pairs, u < v, each pair once.
    weight : float64[edges]
        Positive: attractive, costs that much apart. Negative: repulsive, costs that much together.
    x : float64[edges]
        Fractional solution, 0 together, 1 apart.
    nodes : int
    base : float, optional
        Weight of every pair not listed, never positive; None: such pairs do not count.
    seed : int
        The same seed gives the same clusters.
    reduced : float64[edges], optional
        Reduced costs: signed weights less what the duals of the relaxation use up. They guide one of the candidates.
    known : int32[nodes], optional
        Clusters to start from as well.

    Returns
    -------
    labels : int32[nodes], numbered from 0 by first appearance
    cost : float
    """
    u, v, weight, x, base, reduced = _checked(u, v, weight, x, nodes, base, reduced)
    rng = np.random.default_rng(seed)
    level, arc_edge = _whole(u, v, weight, nodes, base)

    def cost(labels: np.ndarray) -> float:
        return clustering_cost(u, v, weight, labels, base=base)

    pool = [labels for _, labels in _trivial(u, v, weight, nodes)] + ([] if known is None else [known])
    best = min(pool, key=cost)
    if cost(best) > 0:
        pool += [labels for _, labels in _candidates(u, v, weight, x, level, arc_edge, rng, reduced)]
        improved = (improve(level, labels, rng) for labels in pool)
        pool = list({labels.tobytes(): labels for labels in improved}.values())  # many end at the same clusters
        guides = [guided(weight, x), *([] if reduced is None else [reduced])]
        pool.append(_by_agreement(u, v, weight, x, level, arc_edge, guides, min(pool, key=cost), rng))
        pool.append(shaken(level, _fused(level, pool, rng, COARSE_ROUNDS), rng, FINE_ROUNDS))
        pool.append(improve(level, _connected(u, v, weight, pool[-1]), rng))
        best = min([best, *pool], key=cost)
    return number_clusters(best), cost(best)


def round_weights(
    u: Any,
    v: Any,
    weight: Any,
    nodes: int,
    *,
    base: float | None = None,
    seed: int | tuple[int, ...] = 0,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Clusters by the weights alone, no worse than those ``known``; the arguments are those of `round_clusters`."""
    u, v, weight, _, base, _ = _checked(u, v, weight, np.zeros(len(weight)), nodes, base, None)
    rng = np.random.default_rng(seed)
    level, _ = _whole(u, v, weight, nodes, base)
    starts = np.arange(nodes, dtype=np.int32), clusters.join_greedily(u, v, weight - base, level.size, base)
    pool = [improve(level, labels, rng) for labels in starts] + ([] if known is None else [known])
    pool.append(shaken(level, _fused(level, pool, rng, QUICK_ROUNDS), rng, QUICK_ROUNDS))
    return number_clusters(min(pool, key=lambda labels: clustering_cost(u, v, weight, labels, base=base)))


def round_quickly(
    u: Any,
    v: Any,
    weight: Any,
    x: Any,
    nodes: int,
    *,
    known: np.ndarray,
    base: float | None = None,
    seed: int | tuple[int, ...] = 0,
    reduced: Any = None,
) -> np.ndarray:
    """Clusters no worse than those ``known``, in a small part of the time of `round_clusters`, whose arguments it has.

    The groups that the point keeps together come first. Where these bring nothing the point says too little yet, or
    nothing more, and the search is over single nodes.
    """
    u, v, weight, x, base, reduced = _checked(u, v, weight, x, nodes, base, reduced)
    rng = np.random.default_rng(seed)
    level, arc_edge = _whole(u, v, weight, nodes, base)

    def cost(labels: np.ndarray) -> float:
        return clustering_cost(u, v, weight, labels, base=base)

    guides = [guided(weight, x), *([] if reduced is None else [reduced])]
    found = _by_agreement(u, v, weight, x, level, arc_edge, guides, known, rng)
    if cost(found) < cost(known):
        return found
    pool = [clusters.join_greedily(u, v, guide - base, level.size, base) for guide in guides]
    pool = [*(improve(level, labels, rng) for labels in pool), known]
    pool.append(shaken(level, _fused(level, pool, rng, QUICK_ROUNDS), rng, QUICK_ROUNDS))
    return number_clusters(min(pool, key=cost))


def clustering_cost(u: Any, v: Any, weight: Any, labels: Any, *, base: float | None = None) -> float:
    """Cost of clusters: attractive pairs apart and repulsive pairs together, listed or not.

    Takes O(nodes + edges), whatever the size of the clusters.

    Parameters
    ----------
    u, v, weight, base
        As in `round_clusters`.
    labels : int[nodes]
        The cluster of each node.

    Returns
    -------
    float
    """
    labels, weight = np.asarray(labels), np.asarray(weight, np.float64)
    together = labels[u] == labels[v]
    cost = float(weight[~together & (weight > 0)].sum() - weight[together & (weight < 0)].sum())
    if base:
        size = np.unique(labels, return_counts=True)[1].astype(np.int64)
        cost -= base * float((size * (size - 1) // 2).sum() - np.count_nonzero(together))
    return cost


def _checked(u: Any, v: Any, weight: Any, x: Any, nodes: int, base: float | None, reduced: Any) -> tuple[Any, ...]:
    """The arguments of `round_clusters` as the kernels take them."""
    weight, x = np.asarray(weight, np.float64), np.clip(np.asarray(x, np.float64), 0.0, 1.0)
    reduced = None if reduced is None else np.asarray(reduced, np.float64)
    found = [len(values) for values in (u, v, weight, x, reduced) if values is not None]
    if len(set(found)) > 1:
        raise InputError(f"vectors by edge must have one length, found {found}")
    if nodes < 1:
        raise InputError(f"nodes must be positive, found {nodes}")
    base = 0.0 if base is None else float(base)
    if not -np.inf < base <= 0:
        raise InputError(f"base must be a finite number that is not positive, found {base}")
    return np.asarray(u).astype(np.int32), np.asarray(v).astype(np.int32), weight, x, base, reduced


# Graphs ---------------------------------------------------------------------------------------------------------------


def _whole(u: np.ndarray, v: np.ndarray, weight: np.ndarray, nodes: int, base: float) -> tuple[Level, np.ndarray]:
    """The graph itself, and the edge of each arc."""
    edge = np.tile(np.arange(len(u)), 2)
    tail, head = np.concatenate((u, v)), np.concatenate((v, u))
    arcs = sparse.coo_array((edge, (tail, head)), shape=(nodes, nodes)).tocsr()
    return _level(arcs, weight[arcs.data] - base, np.ones(nodes), base), arcs.data


def _contracted(level: Level, labels: np.ndarray) -> Level:
    """One node for each cluster; ``labels`` are numbered without gaps."""
    count = int(labels.max()) + 1
    tail, head = np.repeat(labels, np.diff(level.start)), labels[level.node]
    across = tail != head
    arcs = sparse.coo_array((level.weight[across], (tail[across], head[across])), shape=(count, count)).tocsr()
    return _level(arcs, arcs.data, np.bincount(labels, level.size, count), level.base)


def _level(arcs: sparse.csr_array, weight: np.ndarray, size: np.ndarray, base: float) -> Level:
    """A graph for the kernels, with its threshold of rounding."""
    start = arcs.indptr.astype(np.int64)
    tail = np.repeat(np.arange(len(size)), np.diff(start))
    strongest = np.bincount(tail, np.abs(weight), len(size)).max() - base * size.max() * size.sum()
    return Level(start, arcs.indices.astype(np.int32), weight, size, base, ROUNDING * float(strongest))


def _components(u: np.ndarray, v: np.ndarray, keep: np.ndarray, nodes: int) -> np.ndarray:
    """Connected components of the edges with ``keep`` set, int32[nodes]."""
    pairs = sparse.coo_array((np.ones(np.count_nonzero(keep), np.int8), (u[keep], v[keep])), shape=(nodes, nodes))
    return csgraph.connected_components(pairs, directed=False)[1].astype(np.int32)


def _connected(u: np.ndarray, v: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Clusters split into their components over attractive edges: never dearer, and not found by moves of nodes."""
    return _components(u, v, (weight > 0) & (labels[u] == labels[v]), len(labels))


# Candidates -----------------------------------------------------------------------------------------------------------


def _trivial(u: np.ndarray, v: np.ndarray, weight: np.ndarray, nodes: int) -> Iterator[tuple[str, np.ndarray]]:
    """(Name, labels) of the two clusterings that need no search."""
    yield "singletons", np.arange(nodes, dtype=np.int32)
    yield "components", _components(u, v, weight > 0, nodes)


def _candidates(
    u: np.ndarray,
    v: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    level: Level,
    arc_edge: np.ndarray,
    rng: np.random.Generator,
    reduced: np.ndarray | None = None,
) -> Iterator[tuple[str, np.ndarray]]:
    """(Name, labels int32[nodes]) of each starting point that uses x or the weights."""
    nodes, base = len(level.size), level.base
    yield from _thresholds(u, v, weight, x, nodes, base)
    for k in range(2 * PIVOTINGS):
        threshold = PIVOT_THRESHOLD if k < PIVOTINGS else rng.random(len(arc_edge))
        order = rng.permutation(nodes).astype(np.int32)
        yield f"pivots {k}", clusters.pivot(level.start, level.node, x[arc_edge] < threshold, order)
    for name, guide in (("weights", weight), ("guided", guided(weight, x)), ("reduced", reduced)):
        if guide is not None:
            yield f"contraction by {name}", clusters.join_greedily(u, v, guide - base, level.size, base)


def guided(weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From twice the weight where x agrees with its sign to nothing where it does not.

    Contracting by x alone would leave contractions that pay undone.
    """
    return weight + np.abs(weight) * (1 - 2 * x)


def _thresholds(
    u: np.ndarray, v: np.ndarray, weight: np.ndarray, x: np.ndarray, nodes: int, base: float
) -> list[tuple[str, np.ndarray]]:
    """The cheapest clusterings into components of the edges with x below a threshold."""
    thresholds = np.unique(np.quantile(x, np.linspace(0, 1, QUANTILES + 1)[1:]))
    tried = [(f"x < {threshold:.3g}", _components(u, v, x < threshold, nodes)) for threshold in thresholds]
    return sorted(tried, key=lambda it: clustering_cost(u, v, weight, it[1], base=base))[:KEPT_THRESHOLDS]


# Local search ---------------------------------------------------------------------------------------------------------


def improve(level: Level, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Local search of the Louvain kind; returns numbered labels.

    Move nodes while a move saves. Contract each cluster to a node and improve that graph in the same way. Begin again
    if clusters were joined.
    """
    labels = number_clusters(labels)
    while True:
        order = rng.permutation(len(labels)).astype(np.int32)
        # Repeated, since with a base a move may change what pays for nodes that are no neighbours.
        while clusters.move_nodes(*level, labels, order) > 0:
            pass
        labels = number_clusters(labels)
        count = int(labels.max()) + 1
        if count == len(labels):
            return labels
        joined = improve(_contracted(level, labels), np.arange(count, dtype=np.int32), rng)
        if joined.max() + 1 == count:
            return labels
        labels = joined[labels]


def shaken(level: Level, labels: np.ndarray, rng: np.random.Generator, rounds: int) -> np.ndarray:
    """Rounds of Kernighan-Lin style moves: forced ones whose chain stays if it pays, see `kernels.clusters.shake`."""
    degree, labels = np.diff(level.start), labels.copy()
    linked = np.flatnonzero(degree)
    for _ in range(rounds if len(linked) else 0):
        repeats = -(-LEAST_TRIES // len(linked))
        near = rng.permutation(np.tile(linked, repeats)).astype(np.int32)
        arcs = level.start[near] + (rng.random(len(near)) * degree[near]).astype(np.int64)
        clusters.shake(*level, labels, near, arcs, DEPTH, HUB)
        labels = improve(level, labels, rng)
    return labels


def _fused(level: Level, pool: list[np.ndarray], rng: np.random.Generator, most_rounds: int) -> np.ndarray:
    """The best clustering found over the groups of nodes that all of ``pool`` keep together."""
    groups = common_groups(pool)
    return search_groups(_contracted(level, groups), groups, pool, rng, most_rounds)


def common_groups(pool: list[np.ndarray]) -> np.ndarray:
    """The groups of nodes that all clusterings keep together (their meet), numbered."""
    groups = pool[0]
    for labels in pool[1:]:
        groups = clusters.meet(groups, labels)
    return number_clusters(groups)


def search_groups(
    coarse: Level, groups: np.ndarray, pool: list[np.ndarray], rng: np.random.Generator, most_rounds: int
) -> np.ndarray:
    """Clusters of the groups, whose graph is ``coarse``: the best of ``pool``, improved there and with forced moves."""
    found = [improve(coarse, _of_groups(groups, labels), rng) for labels in pool]
    best = max(found, key=lambda labels: _saved(coarse, labels))
    # Candidates that agree on little leave a large graph. Then no more moves are tried than the whole one has nodes.
    rounds = max(len(groups), COARSE_ROUNDS * LEAST_TRIES) // max(len(coarse.size), LEAST_TRIES)
    return shaken(coarse, best, rng, min(rounds, most_rounds))[groups]


def _by_agreement(
    u: np.ndarray,
    v: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    level: Level,
    arc_edge: np.ndarray,
    guides: list[np.ndarray],
    known: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Clusters of the groups that the fractional solution keeps together, then improved node by node."""
    groups = number_clusters(_components(u, v, (weight > 0) & (x <= CLOSE), len(level.size)))
    weights = (level.weight, *(guide[arc_edge] - level.base for guide in guides))
    coarse, *others = (_contracted(level._replace(weight=each), groups) for each in weights)
    return improve(level, search_agreed(coarse, others, groups, known, rng), rng)


def search_agreed(
    coarse: Level, others: list[Level], groups: np.ndarray, known: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Clusters of the groups, whose graph is ``coarse``, from those ``known`` and from joins by ``others``.

    ``others`` are graphs of the same groups with other weights.
    """
    starts = [_of_groups(groups, known), *(_joined(other) for other in others)]
    found = [improve(coarse, start, rng) for start in starts]
    best = _fused(coarse, found, rng, COARSE_ROUNDS)
    # No more moves are tried than the whole graph has nodes, or the search would cost more than the run.
    rounds = max(1, len(groups) // max(len(coarse.size), LEAST_TRIES))
    return shaken(coarse, best, rng, min(rounds, AGREED_ROUNDS))[groups]


def _joined(level: Level) -> np.ndarray:
    """Greedy contraction of a graph that has its arcs in both directions."""
    tail = np.repeat(np.arange(len(level.size), dtype=np.int32), np.diff(level.start))
    once = tail < level.node
    return clusters.join_greedily(tail[once], level.node[once], level.weight[once], level.size, level.base)


def _of_groups(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A cluster for each group, which is that of one of its nodes."""
    start = np.empty(int(groups.max()) + 1, np.int32)
    start[groups] = number_clusters(labels)
    return number_clusters(start)


def _saved(level: Level, labels: np.ndarray) -> float:
    """What ``labels`` save on this level, up to a constant of the level."""
    inside = np.repeat(labels, np.diff(level.start)) == labels[level.node]
    total = np.bincount(labels, level.size)
    return 0.5 * (float(level.weight[inside].sum()) + level.base * float(total @ total))
