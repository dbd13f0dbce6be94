"""Write the answer of a workspace to one file: edges by their own labels, target and x."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .errors import InputError, WorkspaceError
from .workspace import Workspace, open_array, read_array, read_labels

FORMATS = ("csv", "parquet", "npz")
BATCH = 1 << 20


def export(workspace: str | Path, target: str | Path, *, format: str | None = None) -> int:
    """Write ``u, v, value, x`` of every edge, with the node labels of the input; returns the number of edges.

    The format is that of the file's ending unless named. The file appears when it is complete; one that is there
    already is replaced.
    """
    place, target = Workspace(workspace), Path(target)
    format = format or target.suffix.lstrip(".").lower()
    if format not in FORMATS:
        raise InputError(f"cannot export to {format or target.name!r}; name a file ending in .csv, .parquet or .npz")
    if place.feasible is None:
        raise WorkspaceError(f"{place.path} has no answer to export yet; run `ooc-pf solve {place.path}`")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; make it first")
    partial = target.with_name(target.name + ".partial")
    try:
        edges = _write_npz(place, partial) if format == "npz" else _write_table(place, partial, format)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return edges


def _columns(place: Workspace, start: int, stop: int, labels: np.ndarray) -> dict[str, np.ndarray]:
    u, v, value = (read_array(place.edges, name, start, stop) for name in ("u", "v", "value"))
    return {"u": labels[u], "v": labels[v], "value": value, "x": read_array(place.feasible, "x", start, stop)}


def _write_table(place: Workspace, file: Path, format: str) -> int:
    labels = read_labels(place.edges)
    edges = open_array(place.edges, "u").shape[0]
    label = pa.int64() if labels.dtype == np.int64 else pa.string()
    schema = pa.schema([("u", label), ("v", label), ("value", pa.float64()), ("x", pa.float64())])
    open_writer: Any = pa.csv.CSVWriter if format == "csv" else pa.parquet.ParquetWriter
    with open_writer(file, schema) as writer:
        for start in range(0, edges, BATCH):
            columns = _columns(place, start, min(start + BATCH, edges), labels)
            arrays = [pa.array(column, type=schema.field(name).type) for name, column in columns.items()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return edges


def _write_npz(place: Workspace, file: Path) -> int:
    labels = read_labels(place.edges)
    if labels.dtype == object:
        labels = labels.astype(np.str_)  # so that the file can be read without pickle
    edges = open_array(place.edges, "u").shape[0]
    with open(file, "wb") as stream:
        np.savez(stream, **_columns(place, 0, edges, labels))
    return edges
