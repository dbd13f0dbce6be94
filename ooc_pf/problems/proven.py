"""How much of a clustering is proven optimal: all of it, or some of the parts that attraction connects.

A conflict closes a path of attractive edges, so it lies inside one component of them, and no clustering need pay for
repulsion between components. So cost and bound are sums over the components, and each is judged by its own.
"""

import itertools
from typing import Any

import numpy as np

from ..cycles.inputs import Edges
from ..cycles.point import CyclePoint
from ..cycles.program import ScaledBound
from ..engine.store import ConstraintStore
from ..storage.vectors import spans
from .rounders import edges_of
from .streaming import components

WHOLE = 1e-9  # relative: how far a multiple may be off by rounding
ROUNDING = 1e-12  # relative: a bound of a component this near to its cost differs from it by rounding alone


def prove(
    point: CyclePoint, rows: ConstraintStore, labels: np.ndarray, base: float | None, cost: float, bound: ScaledBound
) -> dict[str, Any]:
    """Whether clusters of this cost are proven optimal, and how many nodes are in components where they are.

    A complete graph is one component: every pair counts.
    """
    edges = edges_of(point)
    step = 0.0 if cost <= bound.value else common_step(edges, base)
    if leaves_no_room(cost, bound.value, step):
        return {"optimal": True, "proven_nodes": edges.nodes}
    proven = 0 if base else int(np.count_nonzero(proven_by_component(point, rows, labels, bound.scale, step)))
    return {"optimal": proven == edges.nodes, "proven_nodes": proven}


def is_optimal(edges: Edges, base: float | None, cost: float, bound: float) -> bool:
    """Whether the bound of the whole graph alone leaves no room for a cheaper clustering."""
    return bool(cost <= bound or leaves_no_room(cost, bound, common_step(edges, base)))


def leaves_no_room(cost: Any, bound: Any, step: float) -> Any:
    """Whether no cost that differs by a multiple of ``step`` is between bound and cost; of numbers or arrays."""
    return (cost <= bound) | (cost - bound < step * (1.0 - WHOLE) - WHOLE * cost)


def common_step(edges: Edges, base: float | None) -> float:
    """The smallest weight where all weights are multiples of it, else zero.

    So are all costs then: a cheaper clustering is cheaper by that much.
    """
    parts = [np.array([base])] if base else []
    least = min(
        (float(np.abs(part).min()) for part in itertools.chain(parts, (part for _, part in edges.value.spans()))),
        default=np.inf,
    )
    multiples = (part / least for part in itertools.chain(parts, (part for _, part in edges.value.spans())))
    whole = all(bool((np.abs(part - np.round(part)) <= WHOLE * np.abs(part)).all()) for part in multiples)
    return least if whole else 0.0


def proven_by_component(
    point: CyclePoint, rows: ConstraintStore, labels: np.ndarray, scale: float, step: float
) -> np.ndarray:
    """Of each node whether the clusters in its component are proven optimal, bool[nodes]."""
    edges = edges_of(point)
    home = components(spans(edges.u, edges.v, edges.value), edges.nodes)
    cost = _costs(edges, home, labels)
    bound = _bounds(point, rows, home, scale)
    # Many small components cost exactly what their bound says, and rounding must not decide about them.
    return leaves_no_room(cost, bound * (1.0 + ROUNDING), step)[home]


def _costs(edges: Edges, home: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What the clusters cost in each component, by its number.

    Repulsion between two components that a cluster joins is one too many for both of them.
    """
    cost = np.zeros(edges.nodes)
    for u, v, weight in spans(edges.u, edges.v, edges.value):
        wrong = (labels[u] == labels[v]) != (weight > 0.0)
        a, b, paid = home[u[wrong]], home[v[wrong]], np.abs(weight[wrong])
        np.add.at(cost, a, paid)
        np.add.at(cost, b[a != b], paid[a != b])
    return cost


def _bounds(point: CyclePoint, rows: ConstraintStore, home: np.ndarray, scale: float) -> np.ndarray:
    """A lower bound of what any clustering costs in each component, from ``scale`` times the multipliers of its rows.

    Numbers are added one by one, in the order of rows and edges, so that sums do not depend on how these are cut.
    """
    edges, program, bound = edges_of(point), point.program, np.zeros(len(home))
    for block in rows.blocks():
        closing = block.index[block.start[:-1]]
        np.add.at(bound, home[edges.u.take(block.table)[closing]], block.dual)
    bound *= scale
    for (_, u), (cost, load) in zip(edges.u.spans(), program.cost_and_load(point.y, program.unit), strict=True):
        over = scale * load > cost
        np.add.at(bound, home[u[over]], cost[over] - scale * load[over])
    return np.maximum(bound, 0.0)
