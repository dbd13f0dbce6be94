"""Weighted correlation clustering on signed graphs: a certified relaxation, and actual clusters.

Put f = x on attractive edges and f = 1 - x on repulsive ones. The paper's program over metrics has the same optimum as

    min sum w f + (w / gamma) f^2   with   f >= 0   and   sum of f over C >= 1

for every cycle C with exactly one repulsive edge, so searches run on attractive edges only, and never beyond length 1.
"""

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np

from ..cycles.family import Limits, solve_cycles
from ..cycles.graph import Graph, build_complete_graph, build_graph
from ..cycles.inputs import Edges
from ..cycles.persist import MakeProgram
from ..cycles.program import CycleProgram, Pairs, linear_bound
from ..engine.problem import State, total_charge
from ..engine.result import Result
from ..errors import InputError
from ..storage.vectors import Pool, Vector
from .rounding import round_clusters, round_in_passes

PROXIMAL_GAMMA = 1.0


def _settings(oracle: str, complete: bool, linear: bool, external: bool) -> dict[str, Any] | None:
    """How the oracle goes about it; of each stage: name, hops (-1: trees), waves, rounds of sweeps, and the least
    relative rise of the bound to go on with it.

    On complete graphs distances are short of 1 for few pairs only, so that complete passes are cheap and trees do not
    pay. Neither do they for the linear program, whose steps want all rows: few proximal steps end at the solution.
    """
    if external and (complete or linear):
        return None
    most = {"most_blocks": 1 << 9, "most_rows": 1 << (16 if external else 19 if complete else 21)}
    waves, rounds = (1, 3) if linear else (8, 2) if complete else (12, 3)
    stages = [["certify", 0, 1, 3 if linear or complete else 10, 0.0], ["stream", 0, waves, rounds, 0.0]]
    if oracle == "igraph":
        return {"keep_paths": 1, "promise": 3.0, "stages": stages, **most}
    short = [["triangles", 1, 1, 2, 1e-3], ["squares", 2, 1, 2, 1e-2]]
    if complete or linear:
        return {"keep_paths": 6, "promise": 10.0, "stages": short + stages, **most}
    heat = {"share": 0.05, "calm": 0.35}
    stages = [["certify", 0, 1, 10, 0.0], ["hot", 0, 12, 3, 0.0]]
    if external:
        return {"keep_paths": 3, "stages": short + stages, **heat, **most}
    # Rows are what is missing at first, sweeps later on.
    trees = [["trees", -1, 1, 1, 2e-5], ["hubs", -1, 1, 3, 5e-6]]
    return {"keep_paths": 6, "trees": 32, "penalty": 0.03, "stages": [*short, *trees, *stages], **heat, **most}


def _signed_graph(edges: Edges) -> Graph:
    attractive = edges.value.whole > 0
    return build_graph(edges.u.whole, edges.v.whole, edges.nodes, passable=attractive, closing=~attractive)


def clustering_program(gamma: float | None, base: float | None = None) -> MakeProgram:
    """The program for a given gamma, as 1/2 (f - t)^2 / inverse with t = -gamma/2 and inverse = gamma / (2 w).

    Without gamma it is the linear one, by proximal steps of that form.
    """
    linear, gamma = gamma is None, gamma or PROXIMAL_GAMMA

    def make(edges: Edges, _: Any, graph: Graph | None, pool: Pool) -> CycleProgram:
        size, pairs = len(edges.value), None
        parts = (gamma / (2.0 * np.abs(part)) for _, part in edges.value.spans())
        inverse = Vector.filled(parts, size, np.float64, pool)
        if base:
            ends = np.column_stack((edges.u.whole, edges.v.whole)).astype(np.int32)
            attractive = edges.value.whole > 0
            pairs = Pairs(ends, len(ends), attractive, -gamma / 2.0, gamma / (2.0 * abs(base)))
            graph = graph or build_complete_graph(*ends.T, edges.nodes, passable=attractive)
        graph = graph or _signed_graph(edges)
        program = CycleProgram(
            target=Vector.constant(size, -gamma / 2.0), inverse=inverse, closing=-1.0, rhs=-1.0, graph=graph,
            offset=gamma / 4.0 * sum(float(np.abs(part).sum()) for _, part in edges.value.spans()),
            magnitude=gamma / 2.0, pairs=pairs, step=-gamma / 2.0 if linear else None,
        )  # fmt: skip
        return program.with_pairs(np.empty((0, 2), np.int32)) if pairs else program

    return make


def correlation_clustering(
    graph: Any,
    *,
    gamma: float | None = 1.0,
    base: float | None = None,
    tol: float = 1e-2,
    oracle: str = "numba",
    seed: int = 0,
    workspace: Any = None,
    memory: int | str | None = None,
    workers: int | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = False,
    restart: bool = False,
    external: bool | None = None,
    client: Any = None,
) -> Result:
    """Cluster a signed graph so that few attractive edges are cut and few repulsive ones kept inside, with proof.

    Solves ``min sum w f + (w / gamma) f^2`` over the fractional clusterings (see the module), rounds the solution to
    clusters, and bounds from below the cost that any clustering can have.

    Parameters
    ----------
    graph : path, (u, v, weight) arrays, square array, scipy.sparse matrix or igraph.Graph
        Positive weights attract, negative ones repel. A path names a workspace converted with ``kind="signed"``. Zero
        weights in arrays are an error; square arrays and `convert` drop them.
    gamma : float or None
        Strength of the linear against the quadratic term; the larger, the closer to the linear program. None: the
        linear program itself, ``min sum w f``.
    base : float, optional
        Weight of every pair of nodes that is not listed, zero or negative. Such pairs are never listed: memory grows
        with the attractive pairs and those that come into conflict. By default pairs not listed do not count.
    tol : float
        Stop when the relative gap of the relaxation and the largest violation are both at most this.

    The other parameters are those of `metric_nearness`; ``seed`` decides the random trees of the search and the
    rounding.

    Returns
    -------
    Result
        ``x`` (0 together, 1 apart, by edge; for a pair not listed the length of the shortest path over attractive
        edges, at most 1), ``labels`` (cluster of each node), ``cost`` of the clusters, ``lp_lower_bound`` that holds
        for every clustering, ``certified_ratio = cost / lp_lower_bound``, ``apriori_ratio``, and ``paper_ratio``, the
        formula as printed in the paper (both None for the linear program).

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
    limits = Limits(workspace, memory, workers, max_iter, max_time, callback, progress, restart, client)
    options = {"tol": tol, "oracle": oracle, "seed": seed, "gamma": gamma, "base": base}
    options |= {"external": external, "settings": lambda disk: _settings(oracle, bool(base), gamma is None, disk)}
    return solve_cycles(
        "clustering", graph, clustering_program(gamma, base), kind="signed", weights=None, options=options,
        limits=limits, finish=finish_clustering,
    )  # fmt: skip


def _checked_base(base: Any) -> float | None:
    if base is None or (isinstance(base, Real) and base == 0):
        return None
    if not (isinstance(base, Real) and -np.inf < base < 0):
        raise InputError(
            f"base must be a finite number that is not positive, found {base!r}: it is the weight of every pair not "
            "listed, and with attraction between all of them the answer would be one cluster; list attractive pairs"
        )
    return float(base)


def finish_clustering(edges: Edges, state: State, options: dict[str, Any], hurry: bool) -> dict[str, Any]:
    """Bounds and ratios from the multipliers and the best feasible f; and clusters, unless there is no time."""
    gamma, f = options["gamma"], state.feasible
    unit = (gamma or PROXIMAL_GAMMA) / 2.0
    bound = linear_bound(lambda: state.program.cost_and_load(state.y, unit), total_charge(state.program, state.rows))
    x = Vector.filled(_fractions(edges, f), len(edges.value), np.float64, state.pool)
    made = {"x": x, "lp_lower_bound": bound}
    if gamma is not None:
        made |= _ratios(edges, f, abs(options["base"] or 0.0), gamma)
    if not hurry:
        labels, cost = _clusters(edges, state, x, options)
        ratio = 1.0 if cost == 0 else cost / bound if bound > 0 else None
        made |= {"labels": labels, "cost": cost, "certified_ratio": ratio}
    return made


def _fractions(edges: Edges, f: Vector) -> Iterator[np.ndarray]:
    """Parts of x, 0 together and 1 apart, over the listed edges."""
    for first, value in edges.value.spans():
        part = f.read(first, first + len(value))
        yield np.clip(np.where(value > 0, part, 1.0 - part), 0.0, 1.0)


def _clusters(edges: Edges, state: State, x: Vector, options: dict[str, Any]) -> tuple[np.ndarray, float]:
    if options["external"]:
        return round_in_passes(edges.u, edges.v, edges.value, x, edges.nodes)
    u, v, value = edges.u.whole, edges.v.whole, edges.value.whole
    loads = [load for _, load in state.program.cost_and_load(state.y, 1.0)]
    reduced = value - np.sign(value) * np.concatenate(loads or [np.empty(0)])[: len(value)]
    return round_clusters(u, v, value, x.whole, edges.nodes, base=options["base"], seed=options["seed"],
                          reduced=reduced)  # fmt: skip


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
