"""Record linkage: clusters of records from scored pairs, and which of them are proven to be the best.

No clustering is made cheaper by joining records that no attraction connects. So the components of the attractive links
are problems of their own, and each has its own bound from the multipliers of the rows inside it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..cycles.program import linear_bound
from ..edgelist.links import read_links, read_pairs, read_records
from ..edgelist.tables import number_nodes
from ..engine.limits import parse_duration
from ..engine.result import Result
from ..engine.run import interrupts_return
from ..errors import InputError, nearest
from .clustering import correlation_clustering
from .forms import table_like

MOST_COMPARED = 10_000  # records among which the one that was meant is looked for
PROVEN = 1e-9  # relative: a cost this near to its bound differs from it by rounding alone
FORBID = 1.01  # a pair that must not be together repels by so much more than a record of it can gain by being there
ALONE = {"tol": 1e-9, "max_iter": 300}  # of a component whose bound is not at its cost after the run on all of them


@dataclass(frozen=True, eq=False, repr=False)
class LinkClusters:
    """Clusters of records.

    Attributes
    ----------
    table
        A row for each record: ``record``, its ``cluster_id``, and whether that cluster is ``proven``. A table of the
        library that the links came from; for arrays a dict of arrays.
    clusters
        A row for each cluster: ``cluster_id``, ``size``, ``proven``, and ``certified_ratio`` of the records it was
        chosen among: what the clusters there cost over what any clusters there must cost.
    records, cluster_id, proven : arrays by record
        The columns of ``table``. A cluster is proven if no clustering of the records that links connect costs less.
    cost : float
        Weight of the links that go against the clusters.
    lower_bound : float
        Proven: no clustering costs less.
    """

    table: Any
    clusters: Any
    records: np.ndarray
    cluster_id: np.ndarray
    proven: np.ndarray
    cost: float
    lower_bound: float

    @property
    def certified_ratio(self) -> float | None:
        """``cost / lower_bound``; None while nothing is proven."""
        return _ratio(self.cost, self.lower_bound)

    def __repr__(self) -> str:
        found, first = np.unique(self.cluster_id, return_index=True)
        ratio = "none yet" if self.certified_ratio is None else f"{self.certified_ratio:.6f}"
        return (
            f"{len(self.records)} records in {len(found)} clusters, {self.proven[first].sum()} of them proven\n"
            f"cost {self.cost:.10g}, lower bound {self.lower_bound:.10g}, certified ratio {ratio}"
        )


class Edges(NamedTuple):
    """Links between groups of records that stay together."""

    u: np.ndarray
    v: np.ndarray
    weight: np.ndarray
    groups: int


class Search(NamedTuple):
    """How to look for clusters, and since when."""

    tol: float
    seed: int
    workers: int | None
    progress: bool
    max_time: float | None
    began: float

    def run(self, u: np.ndarray, v: np.ndarray, weight: np.ndarray, **options: Any) -> Result:
        """Solve the linear program in the time that is left."""
        left = None if self.max_time is None else max(0.0, self.max_time - (time.monotonic() - self.began))
        own = {"tol": self.tol, "seed": self.seed, "workers": self.workers, "max_time": left}
        with interrupts_return():
            result = correlation_clustering((u, v, weight), gamma=None, progress=self.progress, **{**own, **options})
        if result.status == "interrupted":  # of a part: it has nothing to show for the whole
            raise KeyboardInterrupt
        return result


class Parts(NamedTuple):
    """Components of attractive links: that of each group, and the cost and the bound of each component."""

    of: np.ndarray
    cost: np.ndarray
    bound: np.ndarray


def cluster_links(
    links: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    probability: str | bool | None = None,
    threshold: float | None = None,
    must_link: Any = None,
    cannot_link: Any = None,
    records: Any = None,
    tol: float = 1e-4,
    seed: int = 0,
    workers: int | None = None,
    max_time: float | str | None = None,
    progress: bool = False,
) -> LinkClusters:
    """Cluster records by the scores of pairs of them, so that as little evidence as possible is contradicted.

    Connected components join everybody who is linked by a chain, whatever speaks against it. This is correlation
    clustering instead: links with positive weight speak for one record holder, negative ones against it, and pairs
    that were not compared do not count. It solves the linear program and tells which clusters are proven to be best.

    Parameters
    ----------
    links : table or (left, right, weight) arrays
        A row for each compared pair: a pandas DataFrame or anything with the Arrow C stream interface. Columns of
        splink are known: unique_id_l, unique_id_r, source_dataset_l, source_dataset_r, match_weight,
        match_probability.
    source, target, weight : str, optional
        Columns of the two ids and of the match weight, if their names do not tell.
    probability : str or True, optional
        Column of match probabilities, instead of weights; True: the numbers of the links are probabilities. Weights
        then are their log odds.
    threshold : float, optional
        What speaks neither for nor against: a weight (0), or a probability (0.5).
    must_link, cannot_link : list of pairs of ids, or table, optional
        Records that are known to be the same, or different. Each must be in a link or in ``records``.
    records : array, optional
        Ids of all records, or of those without a link: such a record is a cluster of its own, with others only if
        ``must_link`` says so.
    tol : float
        Relative gap at which the run on all links stops; components that are not solved by then are solved alone.
    seed, workers, max_time, progress
        As of `metric_nearness`. Clusters are at hand when the time is up, too, but fewer of them are proven.

    Returns
    -------
    LinkClusters

    Examples
    --------
    >>> import ooc_pf as pf
    >>> left, right = ["ann", "ann", "bob"], ["anne", "bob", "rob"]
    >>> found = pf.cluster_links((left, right, [0.9, 0.2, 0.8]), probability=True)
    >>> found.records.tolist(), found.cluster_id.tolist(), bool(found.proven.all())
    (['ann', 'anne', 'bob', 'rob'], [0, 0, 1, 1], True)
    """
    a, b, weights = read_links(links, source, target, weight, probability, threshold)
    pairs = [*read_pairs(must_link, "must_link"), *read_pairs(cannot_link, "cannot_link")]
    everyone = [] if records is None else [read_records(records)]
    (u, v, *ends), labels = number_nodes(a, b, *pairs, *everyone)
    must, cannot = (ends[0], ends[1]), (ends[2], ends[3])
    _check_known(np.concatenate((u, v, *ends[4:])), must, "must_link", labels)
    _check_known(np.concatenate((u, v, *ends[4:])), cannot, "cannot_link", labels)
    group = _joined(must, len(labels))
    edges, settled = _between_groups(u, v, weights, group, cannot, labels)
    chosen, parts = _solve(edges, Search(tol, seed, workers, progress, parse_duration(max_time), time.monotonic()))
    return _collect(links, labels, chosen[group], parts.of[group], parts, settled)


# -- what must and must not be together -------------------------------------------------------------------------------


def _check_known(known: np.ndarray, pairs: tuple[np.ndarray, np.ndarray], what: str, labels: np.ndarray) -> None:
    """Refuse pairs with a record that is not among the known ones."""
    strange = ~np.isin(np.stack(pairs, 1), known)
    if strange.any():
        row, side = np.argwhere(strange)[0]
        name, others = labels[pairs[side][row]], labels[np.unique(known)]
        text = isinstance(name, str)
        near = nearest(name, others) if text and len(others) <= MOST_COMPARED else ""
        raise InputError(
            f"{what}, pair {row} (from 0): the record {name if not text else repr(name)} is in no link{near}; correct "
            "it, or give the records that have no link as records="
        )


def _joined(pairs: tuple[np.ndarray, np.ndarray], nodes: int, keep: np.ndarray | None = None) -> np.ndarray:
    """The component of each node, numbered from 0, if these pairs are joined."""
    u, v = pairs if keep is None else (pairs[0][keep], pairs[1][keep])
    return connected_components(sparse.coo_array((np.ones(len(u)), (u, v)), (nodes, nodes)), directed=False)[1]


def _between_groups(
    u: np.ndarray, v: np.ndarray, weight: np.ndarray, group: np.ndarray, cannot: tuple[Any, Any], labels: np.ndarray
) -> tuple[Edges, float]:
    """Links between groups, and the cost that is settled: of links against what must be, or against each other."""
    _check_links(u, v, weight, labels)
    a, b = group[u], group[v]
    inside = a == b
    settled = -float(weight[inside & (weight < 0.0)].sum())
    groups = int(group.max(initial=-1)) + 1
    pair, weight, total = _summed(a[~inside], b[~inside], weight[~inside], groups)
    settled += float((total - np.abs(weight)).sum()) / 2.0  # between two groups the weaker side loses
    apart = _pairs_apart(group, cannot, labels, groups)
    forbidden = np.isin(pair, apart)
    settled += float(weight[forbidden & (weight > 0.0)].sum())
    pair, weight = pair[~forbidden], weight[~forbidden]
    # Taking one record of the pair out of a cluster costs no more than all that attracts it, so no best clustering has
    # a pair that repels by more than that.
    attraction = np.zeros(groups)
    for ends in (pair // groups, pair % groups):
        np.add.at(attraction, ends, np.maximum(weight, 0.0))
    force = FORBID * np.minimum(attraction[apart // groups], attraction[apart % groups])
    pair, weight = np.concatenate((pair, apart)), np.concatenate((weight, -force))
    used = weight != 0.0
    return Edges(pair[used] // groups, pair[used] % groups, weight[used], groups), settled


def _check_links(u: np.ndarray, v: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> None:
    for wrong, what in ((~np.isfinite(weight), "has a weight that is not a finite number"), (u == v, "is with itself")):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"row {at} (from 0): the link ({labels[u[at]]}, {labels[v[at]]}) {what}; remove it")
    _, first, count = np.unique(
        np.minimum(u, v) * len(labels) + np.maximum(u, v), return_index=True, return_counts=True
    )
    if (count > 1).any():
        at = first[np.argmax(count > 1)]
        pair = f"({labels[u[at]]}, {labels[v[at]]})"
        raise InputError(f"row {at} (from 0): the link {pair} is listed {count.max()} times; give each pair one weight")


def _summed(a: np.ndarray, b: np.ndarray, weight: np.ndarray, groups: int) -> tuple[np.ndarray, ...]:
    """Each pair of groups once, as one number, with the sum of its weights, and that of their sizes."""
    pair, place = np.unique(np.minimum(a, b) * groups + np.maximum(a, b), return_inverse=True)
    place = place.ravel()
    return pair, np.bincount(place, weight, len(pair)), np.bincount(place, np.abs(weight), len(pair))


def _pairs_apart(group: np.ndarray, cannot: tuple[Any, Any], labels: np.ndarray, groups: int) -> np.ndarray:
    a, b = group[cannot[0]], group[cannot[1]]
    if (a == b).any():
        at = int(np.argmax(a == b))
        one, two = labels[cannot[0][at]], labels[cannot[1][at]]
        raise InputError(f"{one} and {two} must not be linked, but are the same record by must_link")
    return np.unique(np.minimum(a, b) * groups + np.maximum(a, b))


# -- solving ----------------------------------------------------------------------------------------------------------


def _solve(edges: Edges, search: Search) -> tuple[np.ndarray, Parts]:
    """Clusters of the groups, and what is known of each component."""
    u, v, weight, groups = edges
    of = _joined((u, v), groups, weight > 0.0)
    inside = of[u] == of[v]
    u, v, weight, home = u[inside], v[inside], weight[inside], of[u[inside]]
    count = int(of.max(initial=-1)) + 1
    if not (weight < 0.0).any():
        return of, Parts(of, np.zeros(count), np.zeros(count))
    result = search.run(u, v, weight)
    labels = np.concatenate((result.labels, np.arange(len(result.labels), groups)))
    labels = _connected(labels, u, v, weight)
    cost = np.bincount(home, _against(labels, u, v, weight), count)
    bound = _bounds(result, weight, home, cost)
    for part in np.flatnonzero(cost > (1.0 + PROVEN) * bound):
        own = home == part
        nodes, ends = np.unique((u[own], v[own]), return_inverse=True)
        ends = (*ends.reshape(2, -1), weight[own])
        result = search.run(*ends, **ALONE)
        bound[part] = max(bound[part], result.lp_lower_bound)
        better = _connected(result.labels, *ends)
        its_cost = float(_against(better, *ends).sum())
        if its_cost < cost[part]:
            cost[part], labels[nodes] = its_cost, groups + nodes[better]
    return labels, Parts(of, cost, np.minimum(bound, cost))


def _connected(labels: np.ndarray, u: np.ndarray, v: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Clusters cut into what attraction connects, which never costs more: nobody is joined without a reason."""
    return _joined((u, v), len(labels), (weight > 0.0) & (labels[u] == labels[v]))


def _against(labels: np.ndarray, u: np.ndarray, v: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What each link costs."""
    return np.where((weight > 0.0) == (labels[u] == labels[v]), 0.0, np.abs(weight))


def _bounds(result: Result, weight: np.ndarray, home: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """A lower bound of the cost of every clustering of each component, from the multipliers of its rows."""
    rows, duals = result.duals.rows, result.duals.values
    load = np.bincount(rows.edges, np.repeat(duals, np.diff(rows.start)), len(weight))
    total = np.bincount(home[rows.edges[rows.start[:-1]]], duals, len(cost))
    # As they are the multipliers are nearly always the best; else the best multiple of them is looked for.
    bound = total - np.bincount(home, np.maximum(load - np.abs(weight), 0.0), len(cost))
    order = np.argsort(home, kind="stable")
    ends = np.searchsorted(home[order], np.arange(len(cost) + 1))
    for part in np.flatnonzero(cost > (1.0 + PROVEN) * bound):
        own = order[ends[part] : ends[part + 1]]
        bound[part] = max(bound[part], linear_bound(_excess(np.abs(weight[own]), load[own]), float(total[part])))
    return bound


def _excess(cost: np.ndarray, load: np.ndarray) -> Callable[[float], tuple[float, float]]:
    """What a multiple of the load exceeds the cost by, as `linear_bound` asks for it."""

    def excess(scale: float) -> tuple[float, float]:
        over = scale * load > cost
        return float(np.sum(cost[over] - scale * load[over])), float(np.sum(load[over]))

    return excess


# -- output -----------------------------------------------------------------------------------------------------------


def _ratio(cost: float, bound: float) -> float | None:
    return 1.0 if cost == 0.0 else cost / bound if bound > 0.0 else None


def _collect(
    links: Any, labels: np.ndarray, chosen: np.ndarray, part: np.ndarray, parts: Parts, settled: float
) -> LinkClusters:
    """Clusters numbered by their first record."""
    _, first, place = np.unique(chosen, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    cluster, first = number[place.ravel()], np.sort(first)
    proven = parts.cost <= (1.0 + PROVEN) * parts.bound
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(parts.cost == 0.0, 1.0, parts.cost / parts.bound)
    by_record = {"record": labels, "cluster_id": cluster, "proven": proven[part]}
    by_cluster = {
        "cluster_id": np.arange(len(first)),
        "size": np.bincount(cluster),
        "proven": proven[part[first]],
        "certified_ratio": ratio[part[first]],
    }
    return LinkClusters(
        table_like(links, by_record),
        table_like(links, by_cluster),
        *by_record.values(),
        cost=float(parts.cost.sum()) + settled,
        lower_bound=float(parts.bound.sum()) + settled,
    )
