"""Weighted correlation clustering on signed graphs: a certified relaxation, and actual clusters.

Put f = x on attractive edges and f = 1 - x on repulsive ones. The paper's program over metrics has the same optimum as

    min sum w f + (w / gamma) f^2   with   f >= 0   and   sum of f over C >= 1

for every cycle C with exactly one repulsive edge, so searches run on attractive edges only, and never beyond length 1.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ..errors import InputError
from ..graph import Graph, build_complete_graph, build_graph
from ..inputs import Edges
from ..problem import State
from ..program import CycleProgram, Pairs, linear_bound, sum_duals
from ..result import Result
from ..rounding import round_clusters
from ..solving import Limits, MakeProgram, solve_cycles

PROXIMAL_GAMMA = 1.0


def _settings(oracle: str, complete: bool, linear: bool) -> dict[str, Any]:
    """How the oracle goes about it; of each stage: name, hops (-1: trees), waves, rounds of sweeps, and the least
    relative rise of the bound to go on with it.

    On complete graphs distances are short of 1 for few pairs only, so that complete passes are cheap and trees do not
    pay. Neither do they for the linear program, whose steps want all rows: few proximal steps end at the solution.
    """
    waves = 1 if linear else 8 if complete else 16
    stages = [["certify", 0, 1, 3, 0.0], ["stream", 0, waves, 3 if linear else 2, 0.0]]
    if oracle == "igraph":
        return {"keep_paths": 1, "promise": 3.0, "stages": stages}
    short = [["triangles", 1, 1, 2, 1e-3], ["squares", 2, 1, 2, 1e-2]]
    if complete or linear:
        return {"keep_paths": 6, "promise": 10.0, "stages": short + stages}
    trees = [["trees", -1, 1, 1, 1e-5]]
    return {"keep_paths": 6, "promise": 3.0, "trees": 32, "penalty": 0.03, "stages": short + trees + stages}


def clustering_program(gamma: float | None, base: float | None = None) -> MakeProgram:
    """The program for a given gamma, as 1/2 (f - t)^2 / inverse with t = -gamma/2 and inverse = gamma / (2 w).

    Without gamma it is the linear one, by proximal steps of that form.
    """
    linear, gamma = gamma is None, gamma or PROXIMAL_GAMMA

    def make(edges: Edges, _: np.ndarray | None, graph: Graph | None) -> CycleProgram:
        weight, attractive = np.abs(edges.value), edges.value > 0
        pairs = None
        if base:
            ends = np.column_stack((edges.u, edges.v)).astype(np.int32)
            pairs = Pairs(ends, len(ends), attractive, -gamma / 2.0, gamma / (2.0 * abs(base)))
            graph = graph or build_complete_graph(edges.u, edges.v, edges.nodes, passable=attractive)
        graph = graph or build_graph(edges.u, edges.v, edges.nodes, passable=attractive, closing=~attractive)
        target = np.full(len(weight), -gamma / 2.0)
        offset = gamma / 4.0 * float(weight.sum())
        step = -gamma / 2.0 if linear else None
        program = CycleProgram(target, gamma / (2.0 * weight), -1.0, -1.0, graph, offset, pairs=pairs, step=step)
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
    limits = Limits(workspace, memory, workers, max_iter, max_time, callback, progress, restart)
    options = {"tol": tol, "oracle": oracle, "seed": seed, "gamma": gamma, "base": base}
    options["settings"] = _settings(oracle, bool(base), gamma is None)
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
    program, gamma, f, listed = state.program, options["gamma"], state.feasible, len(edges.value)
    load = (state.y - program.target) / program.inverse
    more = abs(options["base"] or 0.0)
    weight = np.append(np.abs(edges.value), np.full(max(len(f), len(load)) - listed, more))
    bound = linear_bound(weight[: len(load)], load, sum_duals(state.rows.blocks()))
    made = {} if gamma is None else _ratios(weight[: len(f)], f, gamma)
    load, f = load[:listed], f[:listed]
    made |= {"x": np.clip(np.where(edges.value > 0, f, 1.0 - f), 0.0, 1.0), "lp_lower_bound": bound}
    if not hurry:
        reduced = edges.value - np.sign(edges.value) * load
        labels, cost = round_clusters(
            edges.u, edges.v, edges.value, made["x"], edges.nodes, base=options["base"], seed=options["seed"],
            reduced=reduced,
        )  # fmt: skip
        ratio = 1.0 if cost == 0 else cost / bound if bound > 0 else None
        made |= {"labels": labels, "cost": cost, "certified_ratio": ratio}
    return made


def _ratios(weight: np.ndarray, f: np.ndarray, gamma: float) -> dict[str, float]:
    """What can be said of the linear cost of f before any bound: the right formula, and the printed one."""
    linear, quadratic = float(weight @ f), float(weight @ (f * f))
    share = quadratic / (gamma * linear) if linear > 0 else 0.0
    return {"apriori_ratio": (1.0 + 1.0 / gamma) / (1.0 + share), "paper_ratio": (1.0 + gamma) / (1.0 + share / 2.0)}
