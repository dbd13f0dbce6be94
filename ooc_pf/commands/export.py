"""Write the answer of a workspace to one file: edges with their values and x, or nodes with their clusters."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..errors import InputError, WorkspaceError
from ..storage.arrays import open_array, read_array, read_labels
from ..storage.memory import MIB, parse_memory, refuse_below
from ..storage.workspace import Workspace, read_steadily
from .formats import format_of

# Cost only: rows written at once without a budget, and the fewest within one.
BATCH = 1 << 20
LEAST_BATCH = 1 << 13
# Measured bytes: of a row while it is written, of a label that is text, of one that is a number, and of all else.
PER_ROW = 256
PER_TEXT = 120
PER_NUMBER = 8
FIXED = 24 * MIB

Columns = dict[str, np.ndarray]


def export(
    workspace: str | Path,
    target: str | Path,
    *,
    format: str | None = None,
    clusters: bool = False,
    memory: int | str | None = None,
) -> int:
    """Write the answer of a workspace to one file, with the node labels of the input.

    Parameters
    ----------
    workspace : path or address
    target : path
        The file appears when it is complete; one that is there already is replaced.
    format : {"csv", "parquet", "npz"}, optional
        By default that of the file's ending.
    clusters : bool
        Write ``node, cluster`` of every node; otherwise ``u, v, value, x`` of every edge.
    memory : int or str, optional
        A budget. All labels must fit; edges are written in parts that do, except to npz.

    Returns
    -------
    int
        How many rows were written.
    """
    target = Path(target)
    format = format_of(target, format)
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; make it first")
    partial = target.with_name(target.name + ".partial")

    def write(place: Workspace) -> int:
        if not place.edges.exists():
            raise WorkspaceError(f"{place.name} holds no graph to export; its answer is pf.open({str(place.name)!r}).x")
        batch = _rows_at_once(place, memory, whole=clusters or format == "npz")
        batches = _nodes(place) if clusters else _edges(place, batch)
        return _write_npz(partial, batches) if format == "npz" else _write_table(partial, batches, format)

    try:
        rows = read_steadily(workspace, write)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def _rows_at_once(place: Workspace, memory: int | str | None, *, whole: bool) -> int:
    """How many rows to write at once within a budget; a budget that will not do is refused."""
    budget = parse_memory(memory)
    if budget is None:
        return BATCH
    graph = place.manifest["graph"]
    fixed = FIXED + graph["nodes"] * (PER_NUMBER if (place.edges / "labels").exists() else PER_TEXT)
    refuse_below(fixed + PER_ROW * (graph["edges"] if whole else LEAST_BATCH), budget, memory)
    return BATCH if whole else min(BATCH, (budget - fixed) // PER_ROW)


def _edges(place: Workspace, batch: int) -> Iterator[Columns]:
    labels = read_labels(place.edges)
    edges = open_array(place.edges, "u").shape[0]
    for start in range(0, max(edges, 1), batch):
        span = (start, min(start + batch, edges))
        u, v, value = (read_array(place.edges, name, *span) for name in ("u", "v", "value"))
        x = read_array(place.outcome, "x", *span)
        yield {"u": labels[u], "v": labels[v], "value": value, "x": x}


def _nodes(place: Workspace) -> Iterator[Columns]:
    if not (place.outcome / "labels").exists():
        raise WorkspaceError(f"{place.name} has no clusters to export; they come with `--problem clustering`")
    yield {"node": read_labels(place.edges), "cluster": read_array(place.outcome, "labels")}


def _write_table(file: Path, batches: Iterator[Columns], format: str) -> int:
    open_writer: Any = pa.csv.CSVWriter if format == "csv" else pa.parquet.ParquetWriter
    rows, writer = 0, None
    try:
        for columns in batches:
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            writer = writer or open_writer(file, table.schema)
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_npz(file: Path, batches: Iterator[Columns]) -> int:
    parts = list(batches)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Text of fixed width, so that the file can be read without pickle.
    whole = {name: values.astype(np.str_) if values.dtype == object else values for name, values in whole.items()}
    with open(file, "wb") as stream:
        np.savez(stream, **whole)
    return len(next(iter(whole.values())))
