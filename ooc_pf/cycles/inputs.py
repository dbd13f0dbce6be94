"""The forms in which a caller may hand over a graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import igraph
import numpy as np
from scipy import sparse

from ..errors import InputError, WorkspaceError
from ..storage.arrays import count_labels
from ..storage.vectors import Pool, Vector, read_vector, spans
from ..storage.workspace import Workspace
from .graph import canonical_edges

MANY_NODES = 10_000_000  # more of them, most without an edge, are a mistake


@dataclass(frozen=True)
class Edges:
    """Edges, and how to give a vector over them back in the caller's form."""

    u: Vector
    v: Vector
    value: Vector
    nodes: int
    restore: Callable[[np.ndarray], Any]
    zeros: int | None = None  # of signed edges: how many weights of zero were left out


def read_edges(graph: Any, kind: str = "distance", labels: np.ndarray | None = None) -> Edges:
    """Edges of ``(u, v, value)`` arrays, a scipy.sparse matrix, a square array or an igraph.Graph.

    With ``kind="signed"`` edges of weight zero are no edges, a vector given back has nan there, and what a node is to
    itself, on the diagonal of a matrix, does not count. Nodes that have ``labels`` are as many as these.
    """
    if kind == "signed" and isinstance(graph, tuple) and len(graph) == 3 and np.asarray(graph[2]).dtype == bool:
        raise InputError("the weights are True and False; give numbers: positive for together, negative for apart")
    edges = _read_edges(graph, kind == "signed", labels)
    if kind == "signed" and edges.nodes < 2:
        raise InputError(f"the graph has {edges.nodes} nodes; clustering needs two at least")
    return _without_zeros(edges) if kind == "signed" else edges


def _edges(
    u: np.ndarray, v: np.ndarray, value: np.ndarray, nodes: int, restore: Callable, zeros: int | None = None
) -> Edges:
    return Edges(Vector.of(u), Vector.of(v), Vector.of(value), nodes, restore, zeros)


def _without_zeros(edges: Edges) -> Edges:
    keep = edges.value.whole != 0.0
    if keep.all():
        return replace(edges, zeros=0)

    def restore(x: np.ndarray) -> Any:
        full = np.full(len(keep), np.nan)
        full[keep] = x
        return edges.restore(full)

    zeros = int(np.count_nonzero(~keep))
    u, v, value = edges.u.whole[keep], edges.v.whole[keep], edges.value.whole[keep]
    return _edges(u, v, value, edges.nodes, restore, zeros)


def _read_edges(graph: Any, loops: bool, labels: np.ndarray | None) -> Edges:
    if isinstance(graph, igraph.Graph):
        return _from_igraph(graph)
    if sparse.issparse(graph):
        return _from_sparse(graph, loops)
    if isinstance(graph, tuple) and len(graph) == 3:
        return _from_arrays(*graph, labels)
    return _from_square(graph, loops)


def _from_arrays(u: Any, v: Any, value: Any, labels: np.ndarray | None) -> Edges:
    u, v, value = canonical_edges(u, v, value, labels)
    nodes = int(max(u.max(initial=-1), v.max(initial=-1))) + 1 if labels is None else len(labels)
    if nodes > MANY_NODES and nodes > 100 * len(u):
        raise InputError(
            f"node numbers go up to {nodes - 1} for {len(u)} edges, and memory goes with the largest; number the nodes "
            "from 0 on, e.g. with np.unique(np.stack((u, v)), return_inverse=True), or use `convert`"
        )
    return _edges(u, v, value, nodes, lambda x: x)


def _from_igraph(graph: igraph.Graph) -> Edges:
    if graph.is_directed():
        raise InputError("the igraph graph is directed; make it undirected first, e.g. graph.as_undirected()")
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    value = graph.es["weight"] if "weight" in graph.es.attributes() else np.ones(len(ends))
    u, v, value = canonical_edges(ends[:, 0], ends[:, 1], value)
    return _edges(u, v, value, graph.vcount(), lambda x: x)


def _from_sparse(matrix: Any, loops: bool) -> Edges:
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"a sparse matrix of distances must be square, found shape {matrix.shape}")
    entries = sparse.coo_array(matrix)
    row, column, value = entries.row, entries.col, entries.data.astype(np.float64)
    off = row != column
    if np.any(value[~off] != 0) and not loops:
        raise InputError("the diagonal of the sparse matrix must be zero or empty")
    upper = row < column
    mirrored = {"upper": sparse.coo_array((value[upper], (row[upper], column[upper])), matrix.shape).tocsr()}
    mirrored["lower"] = sparse.coo_array(
        (value[off & ~upper], (column[off & ~upper], row[off & ~upper])), matrix.shape
    ).tocsr()
    used = [part for part in mirrored.values() if part.nnz]
    if len(used) == 2:
        same = np.array_equal(used[0].indptr, used[1].indptr) and np.array_equal(used[0].indices, used[1].indices)
        if not same or not np.array_equal(used[0].data, used[1].data):
            raise InputError("the sparse matrix is neither symmetric nor triangular; give each pair one distance")
    half = sparse.coo_array(used[0] if used else sparse.csr_array(matrix.shape))
    u, v, value = canonical_edges(half.row, half.col, half.data)

    def restore(x: np.ndarray) -> sparse.csr_array:
        ends = (np.concatenate((u, v)), np.concatenate((v, u)))
        return sparse.coo_array((np.concatenate((x, x)), ends), matrix.shape).tocsr()

    return _edges(u, v, value, matrix.shape[0], restore)


def _from_square(graph: Any, loops: bool) -> Edges:
    try:
        matrix = np.asarray(graph, np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        lazy = "collect() it first, or " if hasattr(graph, "collect") else ""
        raise InputError(
            f"cannot read a graph from {type(graph).__name__} of shape {np.shape(matrix)}; {lazy}give a workspace "
            "path, a tuple (u, v, value) of arrays, a square array, a scipy.sparse matrix, a table of edges, or a "
            "graph of networkx or igraph"
        )
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        i, j = wrong[0]
        raise InputError(f"entry ({i}, {j}) is {matrix[i, j]}; every entry must be a finite number")
    wrong = np.argwhere(matrix != matrix.T)
    if len(wrong):
        i, j = wrong[0]
        raise InputError(
            f"entries ({i}, {j}) = {matrix[i, j]} and ({j}, {i}) = {matrix[j, i]} differ; symmetrise first"
        )
    if np.any(np.diag(matrix)) and not loops:
        i = int(np.argmax(np.diag(matrix) != 0))
        raise InputError(f"entry ({i}, {i}) is {matrix[i, i]}; the diagonal must be zero")
    u, v = np.triu_indices(len(matrix), 1)

    def restore(x: np.ndarray) -> np.ndarray:
        full = np.zeros_like(matrix)
        full[u, v] = full[v, u] = x
        return full

    return _edges(u, v, matrix[u, v], len(matrix), restore)


def read_weights(weights: Any, edges: Edges) -> np.ndarray | None:
    """Positive weights by edge, from a vector by edge or a square array; None stays None, which means all one."""
    if weights is None:
        return None
    weights = np.asarray(weights, np.float64)
    if weights.shape == (edges.nodes, edges.nodes):
        weights = np.concatenate([weights[u, v] for u, v in spans(edges.u, edges.v)] or [np.empty(0)])
    if weights.shape != (len(edges.u),):
        raise InputError(f"weights must be one number an edge, {len(edges.u)} in all, found shape {weights.shape}")
    with np.errstate(divide="ignore", over="ignore"):
        wrong = ~(np.isfinite(weights) & (weights > 0) & np.isfinite(1.0 / weights))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"weight {at} is {weights[at]}; weights must be finite and positive (or leave the edge out)")
    return weights


def load_edges(workspace: Workspace, pool: Pool) -> Edges:
    """The edges of a workspace; vectors over them are given back as they are."""
    nodes, edges = workspace.manifest["graph"]["nodes"], workspace.manifest["graph"]["edges"]
    kinds = {"u": np.int32, "v": np.int32, "value": np.float64}
    u, v, value = (read_vector(workspace.edges, field, pool, kind) for field, kind in kinds.items())
    sound = len(u) == len(v) == len(value) == edges and count_labels(workspace.edges) == nodes
    signed = workspace.manifest["graph"]["kind"] == "signed"
    if sound:
        for a, b, w in spans(u, v, value):
            sound = sound and bool(np.all((a >= 0) & (a < b) & (b < nodes)) and np.isfinite(w).all())
            sound = sound and not (signed and (w == 0.0).any())
    if not sound or not _are_different(u, v):
        raise WorkspaceError(f"{workspace.edges} does not hold the edges it should; convert them again")
    return Edges(u, v, value, nodes, lambda x: x)


def _are_different(u: Vector, v: Vector) -> bool:
    """Whether no edge is listed twice; of edges that are not in order and too many for memory that is not looked at."""
    before, ordered = -1, True
    for a, b in spans(u, v):
        pair = (a.astype(np.int64) << 32) | b
        ordered = ordered and (not len(pair) or (pair[0] > before and bool((pair[1:] > pair[:-1]).all())))
        before = int(pair[-1]) if len(pair) else before
    if ordered or u.whole is None:
        return True
    return len(np.unique((u.whole.astype(np.int64) << 32) | v.whole)) == len(u)
