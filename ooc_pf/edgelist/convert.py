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

from ..errors import BudgetError, InputError, nearest
from ..storage.memory import parse_memory
from ..storage.workspace import EDGES, building, create_manifest
from .choices import BAD_LINES, KINDS, POLICIES
from .delimiters import parse_delimiter
from .layout import Asked
from .merge import Database, number_nodes, write_edges
from .multicut import usual_kind
from .parquet import ParquetSource
from .progress import Progress
from .sources import no_trace, readable_file
from .text import TextLabels, TextSource, row_schema

MIN_MEMORY = 400 * 10**6  # bytes; DuckDB and Arrow do not work with less
BLOCK_BYTES = 4 << 20  # cost only: bytes of text parsed at once

Source = ParquetSource | TextSource


def convert(
    source: str | os.PathLike,
    workspace: str | os.PathLike,
    *,
    columns: str | Iterable[str | int] | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    kind: str | None = None,
    duplicates: str | None = None,
    bad_lines: str = "error",
    memory: int | float | str | None = "1GB",
    progress: bool = False,
) -> dict[str, Any]:
    """Convert an edge list into a new workspace.

    Nodes may be any integers or text; they become 0..n-1 in the order of their labels, and the labels are kept. If any
    of them is not an integer written the plain way, such as 007 or +7, all are text. Every label of a good line is a
    node, even if all its edges are dropped. Edges are undirected: (a, b) and (b, a) are the same pair. The same file
    gives the same workspace, bit for bit, whatever the memory.

    Parameters
    ----------
    source : path
        Text, Matrix Market or MULTICUT, each plain or gzip; or Parquet. The format is found from the content. ``"-"``
        is standard input; what comes through a pipe is put aside beside the workspace first. Lines end with LF, CR LF
        or CR; those that begin with # or % are comments. Blanks around a field do not count.
    workspace : path
        The directory to make; it must not exist. Nothing is left there if the conversion fails. ``~`` is the home
        directory.
    columns : two or three names or positions, optional
        The columns of node, node and value: names of the header line, or positions from 1, as a sequence or as text
        such as ``"from,to,weight"``. By default the names in the header decide: pairs such as source and target, from
        and to, node_1 and node_2, and for the value weight, distance, rating and the like. Without a header, two or
        three columns are taken in order. Anything else is refused.
    delimiter : {"space", "tab", "comma", "semicolon", "pipe"} or the sign itself, optional
        What separates the fields, ``"space"`` meaning any blanks; by default found from the first lines. A tab wins
        over spaces.
    header : bool, optional
        Whether the first data line holds names. By default it does if it names nodes as above, or if it has no number
        while the lines below it have; where it may be either, it is refused.
    kind : {"distance", "signed"}, optional
        What the value is: a target distance (1 if there is no such column), or a signed weight (zeros are dropped). By
        default a signed weight in MULTICUT files, which have no others, and else a distance.
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
        Which columns were used, and what was read, dropped, merged and written; `describe` puts it in words. The
        workspace keeps a copy.

    Raises
    ------
    InputError
        The file or an option cannot be used; the message names the line.
    WorkspaceError
        The workspace exists already.
    BudgetError
        The memory is too small.
    """
    if kind is not None:
        _check_option("kind", kind, KINDS)
    _check_option("bad_lines", bad_lines, BAD_LINES)
    _check_option("header", header, (True, False, None))
    asked = Asked(_parse_columns(columns), parse_delimiter(delimiter), header)
    budget = _parse_budget(memory)
    with no_trace(workspace), building(workspace) as directory, Progress(progress) as bar:
        scratch = directory.absolute() / "scratch"
        scratch.mkdir()
        file = readable_file(source, scratch / "given")
        kind = kind or usual_kind(file)
        duplicates = _checked_rule(duplicates, kind)
        reader = _open_source(file, asked, kind, bad_lines == "skip")
        report = _fill(directory / EDGES, scratch, reader, kind, duplicates, budget, bar)
        shutil.rmtree(scratch)
        create_manifest(directory, kind=kind, nodes=report["nodes"], edges=report["edges"], source=report)
    return report


def _fill(
    group: Path, scratch: Path, reader: Source, kind: str, duplicates: str, budget: int | None, bar: Progress
) -> dict[str, Any]:
    """Write the arrays of a workspace; returns the report."""
    file = reader.path.name
    report = {
        "file": file,
        "format": reader.format,
        "kind": kind,
        "duplicates": duplicates,
        **_describe_columns(reader),
    }
    report |= _collect_rows(reader, scratch / "rows.parquet", kind, bar)
    shutil.rmtree(scratch / "given", ignore_errors=True)
    with Database(scratch, budget, bar.show) as database:
        report["nodes"] = number_nodes(database, group, file)
        found = write_edges(database, group, kind, duplicates, file, reader.unit)
    return report | _account(report, found)


def _describe_columns(reader: Source) -> dict[str, Any]:
    """How the source is read, for the report; positions from 1."""
    names = [*(reader.header or ()), *[None] * reader.width]
    used = zip(("node", "node", "value"), reader.positions, strict=False)
    left = sorted({*range(reader.width)} - {*reader.positions})
    return {
        "delimiter": reader.delimiter,
        "header": list(reader.header) if reader.header else None,
        "columns": [{"role": role, "position": k + 1, "name": names[k]} for role, k in used],
        "unused_columns": [names[k] or f"column {k + 1}" for k in left],
    }


# -- options --------------------------------------------------------------------------------------------------------


def _check_option(name: str, value: Any, allowed: Iterable[Any]) -> None:
    if value not in allowed:
        known = [str(each) for each in allowed]
        raise InputError(
            f"{name} {value!r} is unknown here{nearest(str(value), known)}; choose one of {', '.join(known)}"
        )


def _checked_rule(duplicates: str | None, kind: str) -> str:
    """What becomes of a pair that is given more than once."""
    rule = duplicates or ("sum" if kind == "signed" else "mean")
    _check_option("duplicates", rule, POLICIES if kind == "signed" else [p for p in POLICIES if p != "sign"])
    return rule


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


def _open_source(path: Path, asked: Asked, kind: str, skip_bad: bool) -> Source:
    """A reader for a file, whose format is found from its first bytes."""
    try:
        with open(path, "rb") as file:
            is_parquet = file.read(4) == b"PAR1"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    value = "weight" if kind == "signed" else "distance"
    if is_parquet:
        reader: Source = ParquetSource(path, asked, value, skip_bad)
    else:
        reader = TextSource(path, asked, value, skip_bad, BLOCK_BYTES)
    if kind == "signed" and not reader.has_value:
        raise InputError(
            f"{path.name} has no third column that is known as a weight; a signed edge list needs a weight for every "
            "edge: name its column with columns= (--columns), or use kind='distance' (--kind distance), where every "
            "distance is then 1"
        )
    return reader


# -- reading --------------------------------------------------------------------------------------------------------


def _collect_rows(reader: Source, file: Path, kind: str, bar: Progress) -> dict[str, Any]:
    """Put all good rows aside in ``file``, and count them."""
    because = None
    try:
        counts = _write_rows(reader, file, kind, bar)
    except TextLabels as found:  # start again, with all labels as text
        reader.text_labels, because = True, str(found)
        counts = _write_rows(reader, file, kind, bar)
    counts |= {"lines": reader.lines, "bad_lines_skipped": reader.bad, "extra_fields": reader.extra}
    counts |= {"labels": "text" if reader.text_labels else "integer", "text_because": because}
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
