"""Metric nearness: the closest weights to the given ones that are distances on the graph."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..cycles import settings
from ..cycles.family import CycleFamily
from ..cycles.graph import Graph, build_graph
from ..cycles.inputs import Edges
from ..cycles.program import CycleProgram
from ..cycles.settings import Settings
from ..engine.family import Given, Options
from ..engine.limits import Limits
from ..engine.result import Result
from ..engine.run import solve
from ..errors import InputError
from ..storage.vectors import Pool, Vector
from ..storage.workspace import Workspace, is_path
from ..triangles.family import TableFamily
from ..triangles.inputs import square_size
from ..triangles.stored import holds_table, lists_all_pairs
from .forms import read_form
from .warm import warm_start_from


def nearness_settings(options: Options, disk: bool) -> Settings:
    """How the oracle goes about it."""
    if options["oracle"] == "igraph":
        return settings.NEARNESS_IGRAPH
    return settings.NEARNESS_ON_DISK if disk else settings.NEARNESS


def nearness_program(
    edges: Edges, weights: np.ndarray | Vector | None, graph: Graph | None, pool: Pool
) -> CycleProgram:
    """min 1/2 sum w (x - d)^2 with x >= 0 and x_c <= length of every path between the ends of c."""
    graph = graph or build_graph(edges.u.whole, edges.v.whole, edges.nodes)
    inverse = Vector.constant(len(edges.u), 1.0)
    if weights is not None:
        weights = weights if isinstance(weights, Vector) else Vector.of(weights)
        with np.errstate(over="ignore"):  # what is too small is refused by name
            inverse = Vector.filled((1.0 / part for _, part in weights.spans()), weights.size, np.float64, pool)
    scale = max((float(np.abs(part).max()) for _, part in edges.value.spans()), default=0.0)
    program = CycleProgram(edges.value, inverse, closing=1.0, rhs=0.0, graph=graph, scale=scale, magnitude=scale)
    with np.errstate(over="ignore"):
        return replace(program, worth=program.value(Vector.constant(program.size, 0.0)))


NEARNESS = CycleFamily("nearness", "distance", lambda options: nearness_program, nearness_settings)
TABLE = TableFamily("nearness", "distance")


def _is_table(graph: Any, oracle: str, external: bool | None, limits: Limits) -> bool:
    """Whether every pair is given and nothing asks for searches over cycles. A run goes on as it began."""
    if oracle != "numba" or external:
        return False
    if not is_path(graph):
        return limits.client is None and square_size(graph) is not None
    workspace = Workspace(graph)
    if workspace.manifest["problem"] is not None and not limits.restart:
        return holds_table(workspace)
    return limits.client is None and lists_all_pairs(workspace)


def metric_nearness(
    graph: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    weights: Any = None,
    lower: Any = None,
    upper: Any = None,
    tol: float | None = None,
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
    """Move the distances on the edges of a graph as little as possible until no detour is shorter than an edge.

    Solves ``min 1/2 sum_e w_e (x_e - d_e)^2`` over the x >= 0 in which every edge is a shortest path between its ends.

    Parameters
    ----------
    graph : path, (u, v, d) arrays, table of edges, square array (or DataFrame), scipy.sparse matrix, graph
        A path names a workspace made by `convert`. A table is a pandas DataFrame, or anything with the Arrow C stream
        interface (polars, pyarrow, DuckDB relations), with a row for each edge. A graph is one of igraph or networkx,
        with distances in the edge attribute ``weight``. A vector by pair, as scipy.spatial.distance.pdist makes it,
        stands for a square array. Nodes may be text. Distances may be negative; the graph may have several parts.
        Entries (i, j) and (j, i) that differ by rounding alone are replaced by their mean, with a warning.
    source, target, weight : str, optional
        Columns of a table: the two nodes and the distance. By default their names tell, as in `convert`; without a
        distance it is 1. Of a networkx graph ``weight`` names the edge attribute.
    weights : array, optional
        Positive weight of each edge, in the order of the edges, or a square array where the graph is one.
    lower, upper : number or array, optional
        Limits of x on a complete graph, a square array or a vector by edge like the weights. ``upper=d`` only decreases
        distances, ``lower=d`` only increases them.
    tol : float, optional
        Stop when the relative gap between the bounds and the largest violation, relative to the largest distance, are
        both at most this. None: 1e-10 for a complete graph, where it costs little, else 1e-6.
    oracle : {"numba", "igraph"}
        Which engine finds violated cycles. "igraph" works in processes, so a script that asks for it needs the usual
        ``if __name__ == "__main__":`` guard.
    seed : int
        Stored with the run. The present method makes no random choice.
    workspace : path, optional
        Keep the state here, on disk, and continue from it. None: in memory.
    memory : int or str, optional
        Budget in bytes, or like "500MB", for what is held beyond the interpreter.
    workers : int, optional
        Threads or processes; the answer does not depend on it. None: one a core.
    max_iter, max_time : optional
        Stop after so many iterations, or after so many seconds, or a time like "90s" or "6h", of this call.
    callback : callable, optional
        Called with a dict after each iteration; a true answer stops the run.
    progress : bool
        Show progress on stderr.
    restart : bool
        Discard the progress in the workspace.
    external : bool, optional
        Lay the graph out for disk instead of memory: nodes keep their order, nothing that grows with the edges stays
        in memory unless it fits the budget. By default done for graphs of more than four million edges. A square array,
        which has an engine of its own for that, is with ``external=True`` or ``client`` treated as a list of edges.
    client : dask.distributed.Client or str, optional
        A cluster, or the address of its scheduler, to search on; its workers must see the workspace under the same
        path. The answer does not depend on it.
    warm_start : path, optional
        Workspace of another run, on nearly the same graph: this one begins with its rows and their multipliers. Nodes
        are matched by label, rows over an edge that is not there are left out; a table must have the same nodes in the
        same order. What is proven is proven for the new numbers. A run that was begun already goes on as it is.

    Returns
    -------
    Result
        ``x`` is feasible whatever the status, and comes in the form of the input: by edge (a Series for a DataFrame, a
        dict for networkx), or square, or by pair. For a square array ``violation`` is
        the Euclidean distance of the iterate from its shortest-path closure, no smaller than the largest violation.

    Examples
    --------
    >>> import numpy as np, ooc_pf as pf
    >>> result = pf.metric_nearness((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 5.0])))
    >>> result.x.round(6).tolist(), round(result.objective, 6)
    ([2.0, 2.0, 4.0], 1.5)
    """
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
    form = read_form(graph, source, target, weight)
    graph, (weights, lower, upper) = form.graph, map(form.beside, (weights, lower, upper))
    if _is_table(graph, oracle, external, limits):
        options = {"tol": 1e-10 if tol is None else tol, "oracle": oracle, "seed": seed}
        begin = warm_start_from(warm_start, TABLE, graph, workspace)
        given = Given(graph, {"weights": weights, "lower": lower, "upper": upper}, form.labels, begin)
        return form.solved(lambda: solve(TABLE, given, options, limits))
    if lower is not None or upper is not None:
        raise InputError("lower= and upper= need a complete graph, given as a square array, and oracle='numba'")
    options = {"tol": 1e-6 if tol is None else tol, "oracle": oracle, "seed": seed, "external": external}
    begin = warm_start_from(warm_start, NEARNESS, graph, workspace)
    return form.solved(lambda: solve(NEARNESS, Given(graph, {"weights": weights}, form.labels, begin), options, limits))
