"""Symmetric matrices as callers give them, read a few lines at a time: arrays, memory maps, zarr arrays, vectors."""

import hashlib
from collections.abc import Callable, Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..engine.problem import FeasiblePoint
from ..errors import InputError, WorkspaceError
from ..storage.arrays import ArrayWriter, open_array, read_array, write_labels
from ..storage.workspace import EDGES, Workspace, building, create_manifest
from .tiles import Tiling

# Lines of tile row 0, 1, ... as float64[lines, n]; what is left of the diagonal means nothing.
Stripes = Iterator[np.ndarray]


def as_square(graph: Any) -> Any:
    """Nested lists as an array; anything else as it is."""
    if not isinstance(graph, list):
        return graph
    try:
        return np.asarray(graph, np.float64)
    except (TypeError, ValueError):
        return graph


def square_size(matrix: Any) -> int | None:
    """Lines of what can be read as a square matrix of numbers, whole or in parts; None for anything else."""
    shape, kind = getattr(matrix, "shape", None), getattr(matrix, "dtype", None)
    if shape is None or kind is None or sparse.issparse(matrix) or np.dtype(kind).kind not in "biuf":
        return None
    return int(shape[0]) if len(shape) == 2 and shape[0] == shape[1] else None


def read_square(matrix: Any, tiling: Tiling, what: str, check: Callable[[np.ndarray], np.ndarray]) -> Stripes:
    """The lines of a square matrix, refused where it is not symmetric or ``check`` finds an entry wrong."""
    for i in range(tiling.across):
        own = tiling.lines(i)
        stripe = np.asarray(matrix[own, :], np.float64)
        mirror = np.asarray(matrix[:, own], np.float64).T
        _refuse(~check(stripe), stripe, own.start, what)
        differ = np.argwhere(stripe != mirror)
        if len(differ):
            a, b = differ[0]
            raise InputError(
                f"{what}: entries ({a + own.start}, {b}) = {stripe[a, b]} and ({b}, {a + own.start}) = {mirror[a, b]} "
                "differ; symmetrise first"
            )
        yield stripe


def read_vector(vector: np.ndarray, tiling: Tiling, what: str, check: Callable[[np.ndarray], np.ndarray]) -> Stripes:
    """The lines of a vector over the edges (0, 1), (0, 2), ..., (1, 2), ..."""
    wrong = ~check(vector)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{what} {at} is {vector[at]}; {_EXPECTED[what]}")
    yield from _stripes(tiling, lambda first, last: vector[first:last])


def read_stored(group: Path, name: str, tiling: Tiling) -> Stripes:
    """The lines of a vector over edges on disk."""
    if open_array(group, name, np.float64).shape != (tiling.edges,):
        raise WorkspaceError(f"{group / name} is damaged: it has not one number for each of {tiling.edges} pairs")
    yield from _stripes(tiling, lambda first, last: read_array(group, name, first, last, np.float64))


def _stripes(tiling: Tiling, read: Callable[[int, int], np.ndarray]) -> Stripes:
    for i in range(tiling.across):
        own = tiling.lines(i)
        stripe = np.zeros((own.stop - own.start, tiling.nodes))
        nodes = np.arange(own.start, own.stop)[:, None]
        stripe[np.arange(tiling.nodes) > nodes] = read(
            tiling.edge_of(own.start, own.start + 1), tiling.edge_of(own.stop, own.stop + 1)
        )
        yield stripe


_EXPECTED = {
    "distance": "every entry must be a finite number",
    "weight": "weights must be finite and positive",
    "lower limit": "limits may be infinite but must be numbers",
    "upper limit": "limits may be infinite but must be numbers",
}


def _refuse(wrong: np.ndarray, stripe: np.ndarray, first: int, what: str) -> None:
    found = np.argwhere(wrong)
    if len(found):
        i, j = found[0]
        raise InputError(f"{what}: entry ({i + first}, {j}) is {stripe[i, j]}; {_EXPECTED[what]}")


def read_distances(matrix: Any, tiling: Tiling) -> Stripes:
    """The lines of a matrix of distances."""
    for i, stripe in enumerate(read_square(matrix, tiling, "distance", np.isfinite)):
        first = tiling.lines(i).start
        own = stripe[:, first : first + len(stripe)]
        if np.diag(own).any():
            at = int(np.argmax(np.diag(own) != 0))
            raise InputError(f"entry ({first + at}, {first + at}) is {own[at, at]}; the diagonal must be zero")
        yield stripe


def read_option(value: Any, tiling: Tiling, what: str) -> Stripes | None:
    """The lines of weights or limits: a number, a square array or a vector over edges; None stays None."""
    if value is None:
        return None
    check = is_weight if what == "weight" else lambda values: ~np.isnan(values)
    if isinstance(value, Real):
        value = np.full(tiling.edges, float(value))
    if not hasattr(value, "shape"):
        try:
            value = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{what}s must be numbers, found {type(value).__name__}") from None
    if value.shape == (tiling.nodes, tiling.nodes):
        return read_square(value, tiling, what, check if what != "weight" else _is_weight_beside(tiling))
    if value.shape == (tiling.edges,):
        return read_vector(np.asarray(value, np.float64), tiling, what, check)
    raise InputError(
        f"{what}s must be one number an edge, {tiling.edges} in all, or a square array with {tiling.nodes} lines; "
        f"found shape {value.shape}"
    )


def is_weight(values: np.ndarray) -> np.ndarray:
    """Which numbers may be weights: finite and positive, and so are their inverses."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.isfinite(values) & (values > 0) & np.isfinite(1.0 / values)


def _is_weight_beside(tiling: Tiling) -> Callable[[np.ndarray], np.ndarray]:
    """Weights of a square array, where the diagonal may be anything."""
    line = 0

    def check(stripe: np.ndarray) -> np.ndarray:
        nonlocal line
        sound = is_weight(stripe)
        sound[np.arange(len(stripe)), line + np.arange(len(stripe))] = True
        line += len(stripe)
        return sound

    return check


# -- workspaces -------------------------------------------------------------------------------------------------------


def _ends(tiling: Tiling) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(u, v) of the edges, in pieces."""
    for i in range(tiling.across):
        own = tiling.lines(i)
        nodes = np.arange(own.start, own.stop)
        u, v = np.nonzero(np.arange(tiling.nodes) > nodes[:, None])
        yield u + own.start, v


def digest_square(matrix: Any, tiling: Tiling, *more: np.ndarray) -> str:
    """The fingerprint `inputs.digest` gives the same graph as a list of edges."""
    total = hashlib.blake2b(digest_size=16)
    for end in (0, 1):
        for ends in _ends(tiling):
            total.update(np.ascontiguousarray(ends[end]).tobytes())
    for i, stripe in enumerate(read_distances(matrix, tiling)):
        own = np.arange(tiling.lines(i).start, tiling.lines(i).stop)
        total.update(stripe[np.arange(tiling.nodes) > own[:, None]].tobytes())
    for array in (np.array(tiling.nodes), *more):
        total.update(array.tobytes())
    return total.hexdigest()


def create_table_workspace(path: str | Path, matrix: Any, tiling: Tiling, labels: np.ndarray, mark: str) -> None:
    """Make a workspace of all pairs from a square matrix, a few lines at a time."""
    with building(path) as directory:
        group = directory / EDGES
        writers = [ArrayWriter(group, *field) for field in (("u", np.int32), ("v", np.int32), ("value", np.float64))]
        for (u, v), stripe in zip(_ends(tiling), read_distances(matrix, tiling), strict=True):
            for writer, values in zip(writers, (u, v, stripe[u - u[:1], v]), strict=True):
                writer.append(values)
        for writer in writers:
            writer.close()
        write_labels(group, labels)
        source = {"file": None, "digest": mark}
        create_manifest(directory, kind="distance", nodes=tiling.nodes, edges=tiling.edges, source=source)


def check_ends(workspace: Workspace, tiling: Tiling) -> None:
    """Refuse a workspace that does not list every pair once, in order."""
    at = 0
    for u, v in _ends(tiling):
        stored = [read_array(workspace.edges, name, at, at + len(u), np.int32) for name in ("u", "v")]
        if not (np.array_equal(stored[0], u) and np.array_equal(stored[1], v)):
            raise WorkspaceError(f"{workspace.edges} does not hold the edges it should; convert them again")
        at += len(u)


def unfold(point: FeasiblePoint, nodes: int) -> np.ndarray:
    """A vector over edges as a symmetric matrix."""
    matrix = np.zeros((nodes, nodes))
    i, j = 0, 1  # where the next entry goes
    for _, part in point.spans():
        while len(part):
            count = min(nodes - j, len(part))
            matrix[i, j : j + count] = part[:count]
            part, j = part[count:], j + count
            if j == nodes:
                i, j = i + 1, i + 2
    for i in range(nodes - 1):
        matrix[i + 1 :, i] = matrix[i, i + 1 :]
    return matrix
