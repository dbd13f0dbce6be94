"""Edge lists of any size to workspaces.

First pass: the rows are read, checked and put aside as Parquet. Then the nodes are numbered, and the rows sorted
(external merge sort) and merged into edges, see `merge`.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyarrow import parquet

from ..errors import BudgetError, InputError
from ..storage.memory import parse_memory
from ..storage.workspace import EDGES, building, create_manifest
from .choices import BAD_LINES, KINDS, POLICIES
from .merge import Database, number_nodes, write_edges
from .parquet import ParquetSource
from .progress import Progress
from .text import TextLabels, TextSource, row_schema

MIN_MEMORY = 400 * 10**6  # bytes; DuckDB and Arrow do not work with less
BLOCK_BYTES = 4 << 20  # cost only: bytes of text parsed at once

Source = ParquetSource | TextSource


def convert(
    source: str | os.PathLike,
    workspace: str | os.PathLike,
    *,
    columns: str | Iterable[str | int] | None = None,
    kind: str = "distance",
    duplicates: str | None = None,
    bad_lines: str = "error",
    memory: int | float | str | None = "1GB",
    progress: bool = False,
) -> dict[str, Any]:
    """Convert an edge list into a new workspace.

    Nodes may be any integers or text; they become 0..n-1 in the order of their labels, and the labels are kept. Every
    label of a good line is a node, even if all its edges are dropped. Edges are undirected: (a, b) and (b, a) are the
    same pair. The same file gives the same workspace, bit for bit, whatever the memory.

    Parameters
    ----------
    source : path
        Text separated by spaces, tabs or commas, Matrix Market, each plain or gzip; or Parquet. The format is found
        from the content. Lines that begin with # or % are comments.
    workspace : path
        The directory to make; it must not exist. Nothing is left there if the conversion fails.
    columns : two or three names or positions, optional
        The columns of node, node and value: names of the header line, or positions from 1, as a sequence or as text
        such as ``"from,to,weight"``. By default the first three, or two if there are no more. Without names, the first
        data line is taken as a header if its value is not a number and its nodes are not both integers; or, with
        two columns only, if it is from,to, source,target, src,dst, u,v, node1,node2 or FromNodeId,ToNodeId.
    kind : {"distance", "signed"}
        What the value is: a target distance (1 if there is no such column), or a signed weight (zeros are dropped).
    duplicates : {"mean", "sum", "sign", "first", "error"}, optional
        What becomes of a pair that is given more than once. ``"sign"`` (signed only) takes the sign of the sum of the
        signs. Signed pairs that cancel to zero are dropped. The default is mean for distances, sum for signed weights.
    bad_lines : {"error", "skip"}
        Stop at a line that cannot be used, or leave it out and count it.
    memory : size
        The most memory to use, beyond the interpreter and its modules; at least 400MB. Files may be much larger, but
        tens of millions of nodes need more than the least: `BudgetError` then says so.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    dict
        What was read, dropped, merged and written; `describe` puts it in words. The workspace keeps a copy.

    Raises
    ------
    InputError
        The file or an option cannot be used; the message names the line.
    WorkspaceError
        The workspace exists already.
    BudgetError
        The memory is too small.
    """
    duplicates = duplicates or ("sum" if kind == "signed" else "mean")
    _check_option("kind", kind, KINDS)
    _check_option("duplicates", duplicates, POLICIES if kind == "signed" else [p for p in POLICIES if p != "sign"])
    _check_option("bad_lines", bad_lines, BAD_LINES)
    columns, budget = _parse_columns(columns), _parse_budget(memory)
    with building(workspace) as directory, Progress(progress) as bar:
        reader = _open_source(Path(source), columns, kind, bad_lines == "skip")
        report = _fill(directory, reader, kind, duplicates, budget, bar)
        create_manifest(directory, kind=kind, nodes=report["nodes"], edges=report["edges"], source=report)
    return report


def describe(report: dict[str, Any]) -> str:
    """Say in a few lines what `convert` did.

    Parameters
    ----------
    report : dict
        What `convert` returned.

    Returns
    -------
    str
        Lines for people, without a line end after the last.
    """
    dropped = {
        "bad lines skipped": report["bad_lines_skipped"],
        "self loops dropped": report["self_loops"],
        "zero weights dropped": report["zero_weights"],
        f"repeated rows merged ({report['duplicates']})": report["repeated_rows"],
        "pairs given in both directions": report["both_directions"],
        "pairs cancelled to zero": report["cancelled_pairs"],
    }
    header = f", header {','.join(report['header'])}" if report["header"] else ""
    value = "signed weights" if report["kind"] == "signed" else "distances"
    return "\n".join(
        [
            f"{report['file']}: {report['format']}{header}, {report['rows']:,} rows",
            *(f"  {count:,} {what}" for what, count in dropped.items() if count),
            f"  {report['nodes']:,} nodes ({report['labels']} labels), {report['edges']:,} edges, "
            f"{value} from {report['value_min']:g} to {report['value_max']:g}",
        ]
    )


def _fill(directory: Path, reader: Source, kind: str, duplicates: str, budget: int | None, bar: Progress) -> dict:
    """Write the arrays of a workspace; returns the report."""
    file = reader.path.name
    report = {
        "file": file,
        "format": reader.format,
        "kind": kind,
        "duplicates": duplicates,
        "header": list(reader.header) if reader.header else None,
    }
    scratch = directory / "scratch"
    scratch.mkdir()
    report |= _collect_rows(reader, scratch / "rows.parquet", kind, bar)
    with Database(scratch, budget, bar.show) as database:
        report["nodes"] = number_nodes(database, directory / EDGES, file)
        found = write_edges(database, directory / EDGES, kind, duplicates, file, reader.unit)
    report |= _account(report, found)
    shutil.rmtree(scratch)
    return report


# -- options --------------------------------------------------------------------------------------------------------


def _check_option(name: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise InputError(f"{name} {value!r} is unknown here; choose one of {', '.join(allowed)}")


def _parse_columns(columns: str | Iterable[str | int] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    names = tuple(str(name).strip() for name in (columns.split(",") if isinstance(columns, str) else columns))
    if len(names) not in (2, 3) or len(set(names)) != len(names) or not all(names):
        raise InputError(f"columns {columns!r} must be two or three different names: node, node and perhaps the value")
    return names


def _parse_budget(memory: int | float | str | None) -> int | None:
    budget = parse_memory(memory)
    if budget is not None and budget < MIN_MEMORY:
        raise BudgetError(f"memory {memory!r} is too small to convert with; the least is {MIN_MEMORY // 10**6}MB")
    return budget


def _open_source(path: Path, columns: tuple[str, ...] | None, kind: str, skip_bad: bool) -> Source:
    """A reader for a file, whose format is found from its first bytes."""
    try:
        with open(path, "rb") as file:
            is_parquet = file.read(4) == b"PAR1"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    value = "weight" if kind == "signed" else "distance"
    if is_parquet:
        reader = ParquetSource(path, columns, value, skip_bad)
    else:
        reader = TextSource(path, columns, value, skip_bad, BLOCK_BYTES)
    if kind == "signed" and not reader.has_value:
        raise InputError(
            f"{path.name} has no third column; a signed edge list needs a weight for every edge: "
            "name its column, or use kind='distance' (every distance is then 1)"
        )
    return reader


# -- reading --------------------------------------------------------------------------------------------------------


def _collect_rows(reader: Source, file: Path, kind: str, bar: Progress) -> dict[str, Any]:
    """Put all good rows aside in ``file``, and count them."""
    try:
        counts = _write_rows(reader, file, kind, bar)
    except TextLabels:  # start again, with all labels as text
        reader.text_labels = True
        counts = _write_rows(reader, file, kind, bar)
    counts["bad_lines_skipped"] = reader.bad
    counts["labels"] = "text" if reader.text_labels else "integer"
    if not counts["rows"]:
        raise InputError(f"{reader.path.name} holds no edges ({reader.bad} bad lines skipped)")
    return counts


def _write_rows(reader: Source, file: Path, kind: str, bar: Progress) -> dict[str, Any]:
    rows = loops = zeros = 0
    schema = row_schema(reader.text_labels)
    with parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=False, write_statistics=False) as writer:
        for table in reader.tables():
            if not len(table):
                continue
            writer.write_table(table)
            is_loop = pc.equal(table["a"], table["b"])
            rows += len(table)
            loops += pc.sum(is_loop).as_py()
            if kind == "signed":
                zeros += pc.sum(pc.and_not(pc.equal(table["value"], 0.0), is_loop)).as_py()
            bar.show("reading", reader.done)
    return {"rows": rows, "self_loops": loops, "zero_weights": zeros}


def _account(report: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What became of the rows: ``report`` counts what was read, ``found`` what was written."""
    pairs = found.pop("pairs")
    if not found["edges"]:
        raise InputError(
            f"{report['file']}: no edge is left of {report['rows']} rows: {report['self_loops']} self loops, "
            f"{report['zero_weights']} zero weights, {pairs} pairs that cancel"
        )
    usable = report["rows"] - report["self_loops"] - report["zero_weights"]
    return {"repeated_rows": usable - pairs, "cancelled_pairs": pairs - found["edges"], **found}
