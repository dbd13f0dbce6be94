"""Tables in memory as edge lists: whatever has the Arrow C stream interface, and data frames of pandas."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from .columns import Unclear, choose_nodes, choose_value, locate
from .kinds import is_id, is_number, is_text, plain_type

ROLES = ("source", "target", "weight")


class EdgeTable(NamedTuple):
    """Edges row by row: numbers of two nodes, a value, and the labels of the nodes, in order."""

    u: np.ndarray
    v: np.ndarray
    value: np.ndarray
    labels: np.ndarray


def is_table(value: Any) -> bool:
    """Whether it has columns: a data frame of pandas, or anything with the Arrow C stream interface."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "iloc") and hasattr(value, "columns"))


def read_table(
    table: Any, source: str | None = None, target: str | None = None, weight: str | None = None
) -> EdgeTable:
    """The edges in a table; columns that are not named are found by their names, and without a value it is 1."""
    a, b, value = read_columns(table, source, target, weight)
    (u, v), labels = number_nodes(a, b)
    return EdgeTable(u, v, value, labels)


def read_columns(
    table: Any, source: str | None = None, target: str | None = None, weight: str | None = None
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, np.ndarray]:
    """The ids of two nodes and the value, row by row, as `read_table` finds them."""
    what = type(table).__name__
    names, column = _opened(table, what)
    places = _choose(names, what, source, target, weight)
    columns = [column(place) for place in places]
    fits = ((is_id, "integers or text for a node id"),) * 2 + ((is_number, "numbers for a value"),)
    for role, place, found, (fit, wanted) in zip(ROLES, places, columns, fits, strict=False):
        if not fit(plain_type(found.type)):
            raise InputError(
                f"{what}: column {names[place]!r} has type {found.type}, expected {wanted}; name another with {role}="
            )
    a, b, *values = columns
    for ends in (a, b):
        if ends.null_count:
            row = pc.index(ends.is_null(), True).as_py()
            raise InputError(f"row {row} (from 0) lacks a node id: {a[row].as_py()!r} to {b[row].as_py()!r}; remove it")
    return a, b, pc.cast(values[0], pa.float64(), safe=False).to_numpy() if values else np.ones(len(a))


def _opened(table: Any, what: str) -> tuple[list[str], Any]:
    """The names of the columns, and a function that reads the column in one place."""
    try:
        if hasattr(table, "iloc"):  # pandas: only the columns in use are converted, as others may hold anything
            return [str(name) for name in table.columns], lambda k: as_column(table.iloc[:, k])
        reader = pa.RecordBatchReader.from_stream(table)
        return reader.schema.names, reader.read_all().column
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{what} cannot be read as a table of edges ({str(error).splitlines()[0][:200]})") from None


def as_column(values: Any) -> pa.ChunkedArray:
    """Values of one kind, from a series, an array or a list."""
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).splitlines()[0][:200]
        name = getattr(values, "name", None)
        where = "the values" if name is None else f"column {name!r}"
        raise InputError(f"{where}: not all of one kind, integers or text ({reason})") from None
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values of another type; those stored by number in a dictionary, as categories are, come without it."""
    if not pa.types.is_dictionary(values.type):
        return values.cast(kind)
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in values.chunks], kind)


def _choose(names: list[str], what: str, source: str | None, target: str | None, weight: str | None) -> tuple[int, ...]:
    """The places of source, target and perhaps weight."""
    if (source is None) != (target is None):
        raise InputError(f"{what}: give both source= and target=, or neither")
    for name in (source, target, weight):
        if name is not None:
            locate(what, (name,), names, "in the table")
    try:
        if source is None or target is None:
            others = [name for name in names if name != weight]
            source, target = (others[k] for k in choose_nodes(others))
        ends = (names.index(source), names.index(target))
        return (*ends, *(choose_value(names, ends) if weight is None else (names.index(weight),)))
    except Unclear as unclear:
        told = ", ".join(names[:20])
        raise InputError(
            f"{what}: the columns are {told}, and {unclear}; name them with source=, target= and weight="
        ) from None


def number_nodes(*columns: pa.ChunkedArray) -> tuple[list[np.ndarray], np.ndarray]:
    """Nodes as numbers in the order of their labels, and the labels; one text among them makes all of them text."""
    kind = pa.large_string() if any(is_text(plain_type(ends.type)) for ends in columns) else pa.int64()
    try:
        columns = tuple(_cast(ends, kind) for ends in columns)
    except pa.ArrowInvalid:
        raise InputError("there are node ids above 2**63 - 1; give them as text") from None
    labels = pc.unique(pa.chunked_array([chunk for ends in columns for chunk in ends.chunks], kind))
    labels = labels.take(pc.sort_indices(labels))
    numbers = [pc.index_in(ends, value_set=labels).to_numpy().astype(np.int64) for ends in columns]
    return numbers, labels.to_numpy(zero_copy_only=False)
