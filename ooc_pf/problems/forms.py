"""The forms in which people have graphs, and the answer in the form that went in.

Libraries that are no dependency are looked for among those that are loaded: what they made can only come from there.
Readers of tables are loaded when there is one.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..engine.result import Result
from ..errors import InputError, Interrupted, nearest
from ..storage.workspace import is_path
from ..triangles.inputs import as_square

if TYPE_CHECKING:
    from ..edgelist.tables import EdgeTable

ROUNDING = 1e-12  # of the largest entry: two entries of a pair that differ by less are meant to be the same
LINES = 256  # cost only: of a square array compared with its mirror image at once


def _unchanged(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Form:
    """A graph as the engine takes it, and the way back.

    Attributes
    ----------
    graph
        A path, arrays (u, v, value), a square array, a sparse matrix or an igraph.Graph.
    labels : array or None
        Integers or text, by node, that a workspace can keep.
    by_edge, by_node : function
        Put a vector by edge (or a square array), or one by node, into the form of the input.
    rounding : float
        How far a matrix was from being symmetric, where that counts as rounding.
    """

    graph: Any
    labels: np.ndarray | None = None
    by_edge: Callable[[Any], Any] = _unchanged
    by_node: Callable[[Any], Any] = _unchanged
    rounding: float = 0.0

    def beside(self, value: Any) -> Any:
        """Weights or limits as an array; those with labels must have the labels of the graph."""
        if _is_a(value, "pandas", "DataFrame") and self.labels is not None:
            for axis in (value.index, value.columns):
                if list(axis) != list(self.labels):
                    raise InputError("the table given beside the graph has other labels, or in another order")
        return value.to_numpy() if hasattr(value, "to_numpy") else value

    def solved(self, solve: Callable[[], Result]) -> Result:
        """What ``solve()`` returns in the form of the input, also if it is interrupted."""
        try:
            return self.dress(solve())
        except Interrupted as error:
            error.result = self.dress(error.result)
            raise

    def dress(self, result: Result) -> Result:
        """The result in the form of the input."""
        made = dict(result.made)
        if made.get("labels") is not None:
            made["labels"] = self.by_node(made["labels"])
        changes: dict[str, Any] = {"made": made, "read_x": lambda: self.by_edge(result.x)}
        if self.labels is not None:
            changes["read_nodes"] = lambda: self.labels
        return replace(result, **changes)


def read_form(graph: Any, source: str | None = None, target: str | None = None, weight: str | None = None) -> Form:
    """Take a graph in any form; ``source``, ``target`` and ``weight`` are columns of a table.

    Of a networkx graph ``weight`` names the attribute of an edge.
    """
    form = _read_form(graph, source, target, weight)
    if form.rounding:
        text = f"the matrix is symmetric but for rounding (by {form.rounding:.1e} at most); means of pairs were taken"
        warnings.warn(text, stacklevel=3)
    return form


def _read_form(graph: Any, source: str | None, target: str | None, weight: str | None) -> Form:
    if _is_a(graph, "networkx", "Graph"):
        _no_columns(graph, source, target)
        return _from_networkx(graph, weight)
    if _is_a(graph, "pandas", "DataFrame"):
        square = source is None and weight is None and _is_square_frame(graph)
        return _from_square_frame(graph) if square else _from_table(graph, source, target, weight)
    if _is_a(graph, "xarray", "DataArray"):
        _no_columns(graph, source, target, weight)
        return _from_array_with_labels(graph)
    if hasattr(graph, "__arrow_c_stream__"):
        return _from_table(graph, source, target, weight)
    _no_columns(graph, source, target, weight)
    if is_path(graph):
        return Form(graph)
    if isinstance(graph, tuple) and len(graph) == 3:
        return _from_arrays(*graph)
    graph = as_square(graph)
    if isinstance(graph, np.ndarray) and graph.ndim == 1 and len(graph):
        return _from_condensed(graph)
    matrix, rounding = evened(graph)
    return Form(matrix, rounding=rounding)


def _is_a(value: Any, library: str, name: str) -> bool:
    loaded = sys.modules.get(library)
    return loaded is not None and isinstance(value, getattr(loaded, name, ()))


def _no_columns(graph: Any, *columns: str | None) -> None:
    named = [name for name in columns if name is not None]
    if named:
        what = "a file names its columns when it is converted" if is_path(graph) else "it has no columns"
        raise InputError(f"column {named[0]!r} was asked of {type(graph).__name__}: {what}")


# -- lists of edges ---------------------------------------------------------------------------------------------------


def _from_arrays(u: Any, v: Any, value: Any) -> Form:
    """Numbers are taken as they are; text is numbered in its order."""
    u, v = np.asarray(u), np.asarray(v)
    if not ({u.dtype.kind, v.dtype.kind} & set("OUT") and u.ndim == v.ndim == 1 and len(u) == len(v)):
        return Form((u, v, value))
    from ..edgelist.tables import as_column, number_nodes

    (u, v), labels = number_nodes(as_column(u.astype(object)), as_column(v.astype(object)))
    return Form((u, v, value), labels)


def _from_table(table: Any, source: str | None, target: str | None, weight: str | None) -> Form:
    from ..edgelist.tables import read_table

    edges = read_table(table, source, target, weight)
    return _from_frame(table, edges) if _is_a(table, "pandas", "DataFrame") else _from_arrow(table, edges)


def _from_frame(frame: Any, edges: "EdgeTable") -> Form:
    pandas = sys.modules["pandas"]
    index = pandas.Index(edges.labels, name="node")
    return Form(
        edges[:3],
        edges.labels,
        lambda x: pandas.Series(x, frame.index, name="x"),
        lambda labels: pandas.Series(labels, index, name="cluster"),
    )


def _from_arrow(table: Any, edges: "EdgeTable") -> Form:
    """A frame of polars gives a series and a frame; anything else an Arrow array and an Arrow table."""
    import pyarrow as pa

    column = sys.modules["polars"].Series if _is_a(table, "polars", "DataFrame") else pa.array
    return Form(
        edges[:3], edges.labels, column, lambda labels: table_like(table, {"node": edges.labels, "cluster": labels})
    )


def table_like(table: Any, columns: dict[str, np.ndarray]) -> Any:
    """Columns as a table of the library that made another one; beside no table, the dict of arrays."""
    for library in ("pandas", "polars"):
        if _is_a(table, library, "DataFrame"):
            return sys.modules[library].DataFrame(columns)
    if not hasattr(table, "__arrow_c_stream__"):
        return columns
    import pyarrow as pa

    return pa.table(columns)


def _from_networkx(graph: Any, weight: str | None) -> Form:
    if graph.is_directed() or graph.is_multigraph():
        kind = "directed" if graph.is_directed() else "a multigraph"
        raise InputError(f"the networkx graph is {kind}; make it a plain one first, e.g. networkx.Graph(graph)")
    name, nodes = weight or "weight", list(graph)
    number = {node: k for k, node in enumerate(nodes)}
    ends, value, named = [], [], weight is not None
    for a, b, found in graph.edges(data=True):
        ends.append((a, b))
        value.append(found.get(name))
        named = named or name in found
    if not named:
        value = [1.0] * len(value)
    if None in value:
        a, b = ends[value.index(None)]
        known = graph.edges[a, b]
        lacks = f"None as {name!r}" if name in known else f"no attribute {name!r}{nearest(name, map(str, known))}"
        raise InputError(
            f"edge ({a!r}, {b!r}) has {lacks}; give every edge a number, or name another attribute with weight="
        )
    u, v = (np.array([number[pair[k]] for pair in ends], np.int64) for k in (0, 1))
    return Form(
        (u, v, np.array(value)),
        _stored_labels(nodes),
        lambda x: dict(zip(ends, x.tolist(), strict=True)),
        lambda labels: dict(zip(nodes, labels.tolist(), strict=True)),
    )


def _stored_labels(nodes: list[Any]) -> np.ndarray:
    """Labels of any kind as integers, or else as text."""
    if all(type(node) is int and abs(node) < 2**63 for node in nodes):
        return np.array(nodes, np.int64)
    labels = np.empty(len(nodes), object)
    labels[:] = [str(node) for node in nodes]
    if len(set(labels)) < len(nodes):
        raise InputError("two nodes of the graph read the same as text, such as 1 and '1'; rename one")
    return labels


# -- tables of all pairs ----------------------------------------------------------------------------------------------


def _is_square_frame(frame: Any) -> bool:
    """Whether lines and columns have the same names; in another order they are refused."""
    if frame.shape[0] != frame.shape[1] or not len(frame):
        return False
    if frame.index.equals(frame.columns):
        return True
    lines, columns = set(frame.index), set(frame.columns)
    if lines == columns:
        raise InputError("the lines of the square table are in another order than its columns: take df.loc[df.columns]")
    if lines & columns:  # of a table of edges, lines are not named like columns
        some = ", ".join(sorted(map(repr, lines ^ columns))[:3])
        raise InputError(f"the square table has {some} among its lines or its columns, but not among both")
    return False


def _from_square_frame(frame: Any) -> Form:
    pandas = sys.modules["pandas"]
    try:
        matrix = frame.to_numpy(np.float64)
    except (TypeError, ValueError):
        raise InputError("the square table holds something that is no number") from None
    matrix, rounding = evened(matrix)
    return Form(
        matrix,
        _stored_labels(frame.index.tolist()),
        lambda x: pandas.DataFrame(x, frame.index, frame.columns),
        lambda labels: pandas.Series(labels, frame.index, name="cluster"),
        rounding,
    )


def _from_array_with_labels(array: Any) -> Form:
    """A square DataArray of xarray; lines and columns are named by their coordinates, if they have any."""
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise InputError(f"a DataArray must be square, a line and a column for each node, found shape {array.shape}")
    lines, columns = (array.coords[dim].values if dim in array.coords else None for dim in array.dims)
    if lines is not None and columns is not None and lines.tolist() != columns.tolist():
        raise InputError("the lines of the DataArray have other coordinates than its columns, or in another order")
    names = lines if columns is None else columns
    matrix, rounding = evened(np.asarray(array.values, np.float64))
    coords = {} if names is None else {array.dims[0]: names}
    make = type(array)
    return Form(
        matrix,
        None if names is None else _stored_labels(names.tolist()),
        lambda x: array.copy(data=x),
        lambda labels: make(labels, coords, array.dims[:1], "cluster"),
        rounding,
    )


def _from_condensed(distances: np.ndarray) -> Form:
    from scipy.spatial.distance import squareform

    nodes = round((1.0 + (1.0 + 8.0 * len(distances)) ** 0.5) / 2.0)
    if nodes * (nodes - 1) // 2 != len(distances):
        raise InputError(
            f"a vector of {len(distances)} numbers is no list of all pairs: {nodes} points have "
            f"{nodes * (nodes - 1) // 2}"
        )
    return Form(squareform(np.asarray(distances, np.float64)), by_edge=lambda x: squareform(x, checks=False))


def evened(matrix: Any) -> tuple[Any, float]:
    """The matrix, made symmetric and hollow where it is but for rounding, and by how much; otherwise as it is."""
    if sparse.issparse(matrix):
        return _evened_sparse(matrix)
    square = isinstance(matrix, np.ndarray) and not isinstance(matrix, np.memmap) and matrix.ndim == 2
    if not (square and matrix.shape[0] == matrix.shape[1] and matrix.dtype.kind == "f"):
        return matrix, 0.0
    parts = [_off(matrix, slice(first, first + LINES)) for first in range(0, len(matrix), LINES)]
    largest, off = np.array(parts).reshape(-1, 2).max(axis=0, initial=0.0)
    limit, diagonal = ROUNDING * largest, np.abs(np.diag(matrix)).max(initial=0.0)
    hollow = 0.0 < diagonal <= limit
    if not (np.isfinite(limit) and off <= limit and (off > 0.0 or hollow)):
        return matrix, 0.0
    mean = 0.5 * matrix + 0.5 * matrix.T
    if hollow:
        np.fill_diagonal(mean, 0.0)
    return mean, float(max(off, diagonal) if hollow else off)


def _off(matrix: np.ndarray, lines: slice) -> tuple[float, float]:
    """The largest entry of some lines, and how far they are from their mirror image."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(matrix[lines]).max(), np.abs(matrix[lines] - matrix[:, lines].T).max()


def _evened_sparse(matrix: Any) -> tuple[Any, float]:
    if matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind != "f" or not matrix.nnz:
        return matrix, 0.0
    off = float(abs(matrix - matrix.T).max())
    if not 0.0 < off <= ROUNDING * float(abs(matrix).max()):
        return matrix, 0.0
    return 0.5 * matrix + 0.5 * matrix.T, off
