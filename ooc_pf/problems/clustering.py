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
from ..graph import Graph, build_graph
from ..inputs import Edges
from ..problem import State
from ..program import CycleProgram, sum_duals
from ..result import Result
from ..rounding import round_clusters
from ..solving import Limits, MakeProgram, solve_cycles

# Of each stage: name, hops (-1: trees), waves, rounds of sweeps, least relative rise of the bound to go on with it.
_COMPLETE = [["certify", 0, 1, 3, 0.0], ["stream", 0, 16, 2, 0.0]]
_SHORT = [["triangles", 1, 1, 2, 1e-3], ["squares", 2, 1, 2, 1e-2], ["trees", -1, 1, 1, 1e-5]]
SETTINGS = {
    "numba": {"keep_paths": 6, "promise": 3.0, "trees": 32, "penalty": 0.03, "stages": _SHORT + _COMPLETE},
    "igraph": {"keep_paths": 1, "promise": 3.0, "stages": _COMPLETE},
}


def clustering_program(gamma: float) -> MakeProgram:
    """The program for a given gamma, as 1/2 (f - t)^2 / inverse with t = -gamma/2 and inverse = gamma / (2 w)."""

    def make(edges: Edges, _: np.ndarray | None, graph: Graph | None) -> CycleProgram:
        weight = np.abs(edges.value)
        graph = graph or build_graph(edges.u, edges.v, edges.nodes, passable=edges.value > 0, closing=edges.value < 0)
        target = np.full(len(weight), -gamma / 2.0)
        offset = gamma / 4.0 * float(weight.sum())
        return CycleProgram(target, gamma / (2.0 * weight), closing=-1.0, rhs=-1.0, graph=graph, offset=offset)

    return make


def correlation_clustering(
    graph: Any,
    *,
    gamma: float = 1.0,
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
    gamma : float
        Strength of the linear against the quadratic term; the larger, the closer to the linear program.
    tol : float
        Stop when the relative gap of the quadratic program and the largest violation are both at most this.

    The other parameters are those of `metric_nearness`; ``seed`` decides the random trees of the search and the
    rounding.

    Returns
    -------
    Result
        ``x`` (0 together, 1 apart, by edge), ``labels`` (cluster of each node), ``cost`` of the clusters,
        ``lp_lower_bound`` that holds for every clustering, ``certified_ratio = cost / lp_lower_bound``,
        ``apriori_ratio``, and ``paper_ratio``, the formula as printed in the paper.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> u, v = np.array([0, 1, 0, 2, 3]), np.array([1, 2, 2, 3, 4])
    >>> result = pf.correlation_clustering((u, v, np.array([1.0, 1.0, 1.0, -1.0, 1.0])))
    >>> result.labels.tolist(), result.cost
    ([0, 0, 0, 1, 1], 0.0)
    """
    if not (isinstance(gamma, Real) and 0 < gamma < np.inf):
        raise InputError(f"gamma must be a positive number, found {gamma!r}")
    limits = Limits(workspace, memory, workers, max_iter, max_time, callback, progress, restart)
    options = {"tol": tol, "oracle": oracle, "seed": seed, "gamma": float(gamma), "settings": SETTINGS.get(oracle)}
    return solve_cycles(
        "clustering", graph, clustering_program(float(gamma)), kind="signed", weights=None, options=options,
        limits=limits, finish=finish_clustering,
    )  # fmt: skip


def finish_clustering(edges: Edges, program: CycleProgram, state: State, options: dict[str, Any],
                      hurry: bool) -> dict[str, Any]:  # fmt: skip
    """Bounds and ratios from the multipliers and the best feasible f; and clusters, unless there is no time."""
    weight, gamma, f = np.abs(edges.value), options["gamma"], state.feasible
    load = (state.y - program.target) / program.inverse
    bound = lp_bound(weight, load, sum_duals(state.rows.blocks()))
    linear, quadratic = float(weight @ f), float(weight @ (f * f))
    share = quadratic / (gamma * linear) if linear > 0 else 0.0
    made = {
        "x": np.clip(np.where(edges.value > 0, f, 1.0 - f), 0.0, 1.0),
        "lp_lower_bound": bound,
        "apriori_ratio": (1.0 + 1.0 / gamma) / (1.0 + share),
        "paper_ratio": (1.0 + gamma) / (1.0 + share / 2.0),
    }
    if not hurry:
        reduced = np.sign(edges.value) * (weight - load)
        labels, cost = round_clusters(
            edges.u, edges.v, edges.value, made["x"], edges.nodes, seed=options["seed"], reduced=reduced
        )
        ratio = 1.0 if cost == 0 else cost / bound if bound > 0 else None
        made |= {"labels": labels, "cost": cost, "certified_ratio": ratio}
    return made


def lp_bound(weight: np.ndarray, load: np.ndarray, duals: float) -> float:
    """The best of ``s * sum z + sum min(0, w - s * load)`` over s >= 0: a lower bound for the linear program.

    Scaled multipliers ``s z`` are feasible for the dual of the linear program up to what they exceed the weights by.
    The value is concave and piecewise linear in s with bends at w / load, so the best bend is the best s.
    """
    loaded = load > 1e-300
    if not loaded.any():
        return 0.0
    weight, load = weight[loaded], load[loaded]
    order = np.argsort(weight / load, kind="stable")
    bend = (weight / load)[order]
    # At a bend, the edges before it are over their weight.
    over_weight, over_load = np.cumsum(weight[order]), np.cumsum(load[order])
    return max(0.0, float(np.max(bend * duals + over_weight - bend * over_load)))
