"""Weighted correlation clustering on signed graphs: a certified relaxation, and actual clusters.

Put f = x on attractive edges and f = 1 - x on repulsive ones. The paper's program over metrics has the same optimum as

    min sum w f + (w / gamma) f^2   with   f >= 0   and   sum of f over C >= 1

for every cycle C with exactly one repulsive edge, so searches run on attractive edges only, and never beyond length 1.
"""

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ..cycles import settings
from ..cycles.family import CycleData, CycleFamily
from ..cycles.graph import Graph, build_complete_graph, build_graph
from ..cycles.inputs import Edges
from ..cycles.plan import CycleState
from ..cycles.point import CyclePoint
from ..cycles.program import CycleProgram, MakeProgram, Pairs
from ..cycles.settings import Settings
from ..engine.certificate import certified_ratio, converged
from ..engine.check import agree, require
from ..engine.family import Given, Options
from ..engine.limits import Limits, check_ratio
from ..engine.result import Result
from ..engine.run import solve
from ..engine.store import ConstraintStore
from ..errors import InputError
from ..storage.arrays import read_array
from ..storage.vectors import Pool, Vector, read_vector
from ..storage.workspace import Workspace
from .forms import read_form
from .proven import is_optimal, prove
from .rounders import cost_of, fractions, last_clusters, make_rounder
from .warm import warm_start_from

NO_REPULSION = (
    "no weight is negative, so a cluster for each connected part costs nothing; give base= (--base), the negative "
    "weight of pairs that are not listed, to find denser clusters"
)
RATIOS = ("cost", "lp_lower_bound", "certified_ratio", "optimal", "proven_nodes", "apriori_ratio", "paper_ratio")
FORMER = "thresholds_only"  # what earlier releases said of clusters on disk


def clustering_settings(options: Options, disk: bool) -> Settings | None:
    """How the oracle goes about it; complete graphs are not laid out for disk."""
    complete, linear = bool(options["base"]), options["gamma"] is None
    if disk:
        on_disk = settings.LINEAR_ON_DISK if linear else settings.CLUSTERING_ON_DISK
        return None if complete else on_disk
    if options["oracle"] == "igraph":
        return settings.igraph_clustering(complete=complete, linear=linear)
    if linear:
        return settings.LINEAR_COMPLETE if complete else settings.LINEAR
    return settings.COMPLETE if complete else settings.CLUSTERING


def _signed_graph(edges: Edges) -> Graph:
    attractive = edges.value.whole > 0
    return build_graph(edges.u.whole, edges.v.whole, edges.nodes, passable=attractive, closing=~attractive)


def clustering_program(gamma: float | None, base: float | None = None, first: float | None = None) -> MakeProgram:
    """The program for a given gamma, as 1/2 (f - t)^2 / inverse with t = -gamma/2 and inverse = gamma / (2 w).

    Without gamma it is the linear one, by proximal steps of that form, with ``first`` for gamma to begin with.
    """
    linear, gamma = gamma is None, gamma or first or settings.PROXIMAL_GAMMA

    def make(edges: Edges, _: Any, graph: Graph | None, pool: Pool) -> CycleProgram:
        size, pairs = len(edges.value), None
        parts = (gamma / (2.0 * np.abs(part)) for _, part in edges.value.spans())
        with np.errstate(over="ignore"):  # what is too small is refused by name
            inverse = Vector.filled(parts, size, np.float64, pool)
        if base:
            ends = np.column_stack((edges.u.whole, edges.v.whole)).astype(np.int32)
            attractive = edges.value.whole > 0
            pairs = Pairs(ends, len(ends), attractive, -gamma / 2.0, gamma / (2.0 * abs(base)))
            graph = graph or build_complete_graph(*ends.T, edges.nodes, passable=attractive)
        graph = graph or _signed_graph(edges)
        total = sum(float(np.abs(part).sum()) for _, part in edges.value.spans())
        program = CycleProgram(
            target=Vector.constant(size, -gamma / 2.0),
            inverse=inverse,
            closing=-1.0,
            rhs=-1.0,
            graph=graph,
            offset=gamma / 4.0 * total,
            magnitude=max(1.0, gamma / 2.0),
            worth=total if linear else total * (1.0 + 1.0 / gamma),
            pairs=pairs,
            step=-gamma / 2.0 if linear else None,
            edges=edges,
        )
        return program.with_pairs(np.empty((0, 2), np.int32)) if pairs else program

    return make


def correlation_clustering(
    graph: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    gamma: float | None = None,
    base: float | None = None,
    tol: float = 1e-2,
    ratio: float | None = None,
    oracle: str = "numba",
    seed: int = 0,
    workspace: Any = None,
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | str | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
    restart: bool = False,
    external: bool | None = None,
    client: Any = None,
    warm_start: Any = None,
) -> Result:
    """Cluster a signed graph so that few attractive edges are cut and few repulsive ones kept inside, with proof.

    Solves ``min sum w f``, or ``min sum w f + (w / gamma) f^2``, over the fractional clusterings (see the module).
    Makes clusters of the point on the way and at the end, and bounds from below the cost that any clustering can have.

    Parameters
    ----------
    graph : path, (u, v, weight) arrays, table of edges, square array (or DataFrame), scipy.sparse matrix, graph
        As for `metric_nearness`. Positive weights attract, negative ones repel. A path names a workspace converted with
        ``kind="signed"``. Pairs of weight zero count as not listed: ``x`` is nan there, and ``zeros`` tells how many
        were given. The diagonal of a matrix does not count.
    gamma : float or None
        None: the linear program, ``min sum w f``, whose bound proves most about clusters. A number: the paper's
        quadratic program, with this strength of the linear against the quadratic term.
    base : float, optional
        Weight of every pair of nodes that is not listed, zero or negative. Such pairs are never listed: memory grows
        with the attractive pairs and those that come into conflict. By default pairs not listed do not count.
    tol : float
        Stop when the relative gap of the relaxation and the largest violation are both at most this.
    ratio : float, optional
        Stop as soon as the clusters cost at most this many times the lower bound. Of the linear program: 1 + tol if it
        is not given.

    The other parameters are those of `metric_nearness`; ``seed`` decides the random trees of the search and the
    rounding.

    Returns
    -------
    Result
        ``x`` (0 together, 1 apart, by edge; for a pair not listed the length of the shortest path over attractive
        edges, at most 1), ``labels`` (cluster of each node: an array, for pandas a Series by node, for networkx a dict,
        for other tables a table of ``node`` and ``cluster``), ``cost`` of the clusters, ``lp_lower_bound`` that holds
        for every clustering, ``certified_ratio = cost / lp_lower_bound``, ``apriori_ratio``, and ``paper_ratio``, the
        formula as printed in the paper (both None for the linear program). ``optimal`` tells that no clustering is
        cheaper: the bound is at the cost, or all weights are multiples of one number, and it is less than that below.
        ``proven_nodes`` counts the nodes for which this is proven, each component of the attractive edges by its own
        cost and bound (with ``base`` all nodes or none). The status "ratio_reached" tells that the run ended because
        of ``ratio``, "stalled" that more pairs of a complete graph came into conflict than ``memory`` has room for, and
        that the bound, which holds, no longer rose.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> u, v = np.array([0, 1, 0, 2, 3]), np.array([1, 2, 2, 3, 4])
    >>> result = pf.correlation_clustering((u, v, np.array([1.0, 1.0, 1.0, -1.0, 1.0])))
    >>> result.labels.tolist(), result.cost
    ([0, 0, 0, 1, 1], 0.0)
    """
    if gamma is not None and not (isinstance(gamma, Real) and 0 < gamma < np.inf):
        raise InputError(f"gamma must be a positive number, or None for the linear program, found {gamma!r}")
    gamma = None if gamma is None else float(gamma)
    base = _checked_base(base)
    if ratio is not None:
        check_ratio(ratio)
        ratio = float(ratio)
    limits = Limits(
        workspace=workspace,
        memory=memory,
        workers=workers,
        max_iter=max_iter,
        max_time=max_time,
        callback=callback,
        progress=progress,
        restart=restart,
        client=client,
    )
    options = {"tol": tol, "oracle": oracle, "seed": seed, "gamma": gamma, "base": base, "external": external}
    options["ratio"] = ratio
    form = read_form(graph, source, target, weight)
    begin = warm_start_from(warm_start, CLUSTERING, graph, workspace)
    return form.solved(lambda: solve(CLUSTERING, Given(form.graph, labels=form.labels, begin=begin), options, limits))


def _checked_base(base: Any) -> float | None:
    if base is None or (isinstance(base, Real) and base == 0):
        return None
    if not (isinstance(base, Real) and -np.inf < base < 0):
        raise InputError(
            f"base must be a finite number that is not positive, found {base!r}: it is the weight of every pair not "
            "listed, and with attraction between all of them the answer would be one cluster; list attractive pairs"
        )
    return float(base)


def finish_clustering(
    data: CycleData, state: CycleState, options: Options, status: str, stop: np.ndarray
) -> dict[str, Any]:
    """Bounds and ratios from the multipliers and the best feasible f; and clusters, as good as there is time for."""
    edges, iterate = data.edges, state.point
    gamma, f = options["gamma"], state.feasible
    if len(edges.value) and not options["base"] and not any((part < 0.0).any() for _, part in edges.value.spans()):
        warnings.warn(NO_REPULSION, stacklevel=2)
    assert isinstance(f, Vector)
    bound = iterate.scaled_bound(state.rows)
    x = Vector.filled(fractions(edges, f), len(edges.value), np.float64, state.pool)
    made = {"x": x, "lp_lower_bound": bound.value}
    if gamma is not None and converged(state.certificate, options["tol"]):  # at an optimum only they mean anything
        made |= _ratios(edges, f, abs(options["base"] or 0.0), gamma)
    labels = last_clusters(iterate, x, options, status, stop)
    if labels is None:
        return made
    cost = cost_of(edges, labels, options["base"])
    made |= {"labels": labels, "cost": cost, "certified_ratio": certified_ratio(cost, bound.value)}
    return made | prove(iterate, state.rows, labels, options["base"], cost, bound)


def check_clusters(
    workspace: Workspace, edges: Edges, iterate: CyclePoint, rows: ConstraintStore, f: Vector
) -> dict[str, Any]:
    """Recompute bound, fractions, cost and ratios of an answer from the multipliers, the point and the labels."""
    options, facts = workspace.manifest["problem"]["options"], workspace.manifest["facts"]
    group, gamma, bound = workspace.answer, options["gamma"], iterate.scaled_bound(rows)
    assert group is not None
    found: dict[str, Any] = {"lp_lower_bound": bound.value}
    x = read_vector(group, "x", iterate.pool)
    same = x.size == len(edges.value)
    for (_, stored), fraction in zip(x.spans(), fractions(edges, f), strict=same):
        same = same and np.array_equal(stored, fraction)
    require(workspace, same, "the x of the answer does not follow from the feasible point")
    if gamma is not None:
        found |= _ratios(edges, f, abs(options["base"] or 0.0), gamma)
    if (group / "labels").exists():
        labels = read_array(group, "labels")
        sound = labels.shape == (edges.nodes,) and labels.dtype.kind == "i"
        require(workspace, sound, f"the answer has labels of shape {labels.shape} for {edges.nodes} nodes")
        cost = cost_of(edges, labels, options["base"])
        found |= {"cost": cost, "certified_ratio": certified_ratio(cost, bound.value)}
        if "proven_nodes" in facts:
            found |= prove(iterate, rows, labels, options["base"], cost, bound)
        else:  # of a release that judged the graph as a whole
            found["optimal"] = is_optimal(edges, options["base"], cost, bound.value)
    claims = {name: claimed for name, claimed in facts.items() if name != FORMER}
    for name, claimed in claims.items():
        agree(workspace, found.get(name), claimed, name.replace("_", " "))
    return {name: found[name] for name in claims}


def _ratios(edges: Edges, f: Vector, more: float, gamma: float) -> dict[str, float]:
    """What can be said of the linear cost of f before any bound: the right formula, and the printed one.

    ``more`` is the weight of the pairs that are not listed; those with a variable come after the listed ones.
    """
    linear = quadratic = 0.0
    for first, value in edges.value.spans():
        part, weight = f.read(first, first + len(value)), np.abs(value)
        linear, quadratic = linear + float(weight @ part), quadratic + float(weight @ (part * part))
    rest = f.read(len(edges.value), f.size)
    linear, quadratic = linear + more * float(rest.sum()), quadratic + more * float(rest @ rest)
    share = quadratic / (gamma * linear) if linear > 0 else 0.0
    return {"apriori_ratio": (1.0 + 1.0 / gamma) / (1.0 + share), "paper_ratio": (1.0 + gamma) / (1.0 + share / 2.0)}


def wanted_ratio(options: Options) -> float | None:
    """How well clusters must be proven to end a run; of the linear program as well as the gap has to be."""
    linear = options["gamma"] is None
    return options.get("ratio") or (1.0 + options["tol"] if linear else None)


CLUSTERING = CycleFamily(
    name="clustering",
    kind="signed",
    program=lambda options: clustering_program(
        options["gamma"], options.get("base"), (options.get("settings") or {}).get("gamma")
    ),
    settings=clustering_settings,
    finish=finish_clustering,
    check_answer=check_clusters,
    fields={"labels": None, **dict.fromkeys(RATIOS), "zeros": 0},
    stored={"gamma": float | None, "base": float | None},
    sound=lambda options: (
        (options["gamma"] is None or options["gamma"] > 0)
        and (options["base"] or 0.0) <= 0.0
        and (options.get("ratio") is None or (isinstance(options["ratio"], float) and options["ratio"] >= 1.0))
    ),
    rounder=make_rounder,
    ratio=wanted_ratio,
    free=("ratio",),
)
