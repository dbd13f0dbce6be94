"""Edge lists of any size to workspaces: read, relabel, merge repeated pairs, sort.

The rows are checked while they are read and put aside as Parquet; DuckDB then collects the labels, joins them and sorts
the rows, all within a memory limit; and the sorted rows are merged as they stream by.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from .edgetext import BATCH_ROWS, ParquetSource, TextLabels, TextSource
from .errors import BudgetError, InputError
from .workspace import EDGES, ArrayWriter, building, create_manifest, parse_memory

KINDS = ("distance", "signed")
POLICIES = ("mean", "sum", "sign", "first", "error")
BAD_LINES = ("error", "skip")
MAX_COUNT = 2**31 - 1
MIN_MEMORY = 400 * 10**6
BLOCK_BYTES = 4 << 20

# Measured: beyond its limit the process holds up to 240 MB (DuckDB's own, Arrow's and the blocks being read).
_BESIDE_DUCKDB = 260 * 10**6
_DUCKDB_SHARE = 0.75


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
    columns = _parse_columns(columns)
    budget = parse_memory(memory)
    if budget is not None and budget < MIN_MEMORY:
        raise BudgetError(f"memory {memory!r} is too small to convert with; the least is {MIN_MEMORY // 10**6}MB")
    source = Path(source)

    with building(workspace) as directory, _Progress(progress) as bar:
        reader = _open_source(source, columns, kind, bad_lines == "skip", budget)
        report = {
            "file": source.name,
            "format": reader.format,
            "kind": kind,
            "duplicates": duplicates,
            "header": list(reader.header) if reader.header else None,
        }
        scratch = directory / "scratch"
        scratch.mkdir()
        report |= _collect_rows(reader, scratch / "rows.parquet", kind, bar)
        with _Database(scratch, budget, bar) as database:
            report["nodes"] = _relabel(database, scratch, directory / EDGES, source.name)
            report |= _write_edges(database, scratch, directory / EDGES, report, reader.unit)
        shutil.rmtree(scratch)
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


def add_convert_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `convert` to a command line."""
    parser.add_argument("source", metavar="SOURCE", help="edge list: text, CSV, Matrix Market (also .gz), or Parquet")
    parser.add_argument("workspace", metavar="WORKSPACE", help="directory to make; must not exist")
    parser.add_argument("--columns", metavar="A,B[,VALUE]", help="names in the header, or positions from 1")
    parser.add_argument("--kind", choices=KINDS, default="distance", help="what the value is (default: %(default)s)")
    parser.add_argument(
        "--duplicates", choices=POLICIES, help="what becomes of repeated pairs (default: mean; sum if signed)"
    )
    parser.add_argument(
        "--bad-lines", choices=BAD_LINES, default="error", help="stop at a bad line, or skip it (default: %(default)s)"
    )
    parser.add_argument("--memory", default="1GB", metavar="SIZE", help="most memory to use (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


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


def _open_source(path: Path, columns: tuple[str, ...] | None, kind: str, skip_bad: bool, budget: int | None) -> Any:
    try:
        with open(path, "rb") as file:
            packed_columns = file.read(4) == b"PAR1"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    value = "weight" if kind == "signed" else "distance"
    if packed_columns:
        reader = ParquetSource(path, columns, value, skip_bad)
    else:
        reader = TextSource(path, columns, value, skip_bad, min(BLOCK_BYTES, (budget or 1 << 30) // 256))
    if kind == "signed" and not reader.has_value:
        raise InputError(
            f"{path.name} has no third column; a signed edge list needs a weight for every edge: "
            "name its column, or use kind='distance' (every distance is then 1)"
        )
    return reader


# -- reading --------------------------------------------------------------------------------------------------------


def _collect_rows(reader: Any, file: Path, kind: str, bar: "_Progress") -> dict[str, Any]:
    """Put all good rows aside in ``file``, and count."""
    try:
        counts = _write_rows(reader, file, kind, bar)
    except TextLabels:
        reader.text_labels = True
        counts = _write_rows(reader, file, kind, bar)
    counts["bad_lines_skipped"] = reader.bad
    counts["labels"] = "text" if reader.text_labels else "integer"
    if not counts["rows"]:
        raise InputError(f"{reader.path.name} holds no edges ({reader.bad} bad lines skipped)")
    return counts


def _write_rows(reader: Any, file: Path, kind: str, bar: "_Progress") -> dict[str, Any]:
    rows = loops = zeros = 0
    label = pa.string() if reader.text_labels else pa.int64()
    schema = pa.schema([("a", label), ("b", label), ("value", pa.float64()), ("position", pa.int64())])
    with parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=False, write_statistics=False) as writer:
        for table in reader.tables():
            if not len(table):
                continue
            writer.write_table(table.cast(schema))
            is_loop = pc.equal(table["a"], table["b"])
            rows += len(table)
            loops += pc.sum(is_loop).as_py()
            if kind == "signed":
                zeros += pc.sum(pc.and_not(pc.equal(table["value"], 0.0), is_loop)).as_py()
            bar.show("reading", reader.done)
    return {"rows": rows, "self_loops": loops, "zero_weights": zeros}


# -- sorting --------------------------------------------------------------------------------------------------------


class _Database:
    """DuckDB within a memory limit; every query can be watched and interrupted."""

    def __init__(self, scratch: Path, budget: int | None, bar: "_Progress"):
        settings = {
            "temp_directory": str(scratch / "spill"),
            "preserve_insertion_order": False,
            "enable_external_file_cache": False,
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        if budget is not None:
            limit = int((budget - _BESIDE_DUCKDB) * _DUCKDB_SHARE)
            # Each thread holds buffers of its own.
            settings |= {
                "memory_limit": f"{limit}B",
                "threads": max(1, min(os.cpu_count() or 1, limit // (50 * 10**6))),
            }
        self._budget, self._bar = budget, bar
        self._connection = duckdb.connect(":memory:", config=settings)
        self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def __enter__(self) -> "_Database":
        return self

    def __exit__(self, *_: Any) -> None:
        self._connection.interrupt()
        self._thread.shutdown()
        self._connection.close()

    def add_view(self, name: str, file: Path) -> None:
        """Make a Parquet file readable under a name."""
        # The path is taken as a pattern otherwise, and k=v in it as a column.
        self._connection.read_parquet(glob.escape(str(file)), hive_partitioning=False).create_view(name)

    def store(self, query: str, file: Path, stage: str) -> None:
        """Write what a query gives to a Parquet file."""
        quoted = str(file).replace("'", "''")
        command = f"COPY ({query}) TO '{quoted}' (FORMAT parquet, COMPRESSION lz4)"
        self._wait(lambda: self._connection.execute(command), stage)

    def stream(self, query: str, stage: str) -> Iterator[pa.RecordBatch]:
        """What a query gives, batch after batch."""
        reader = self._wait(lambda: self._connection.sql(query).to_arrow_reader(BATCH_ROWS), stage)
        while (batch := self._wait(lambda: next(reader, None), stage)) is not None:
            yield batch

    def _wait(self, work: Callable[[], Any], stage: str) -> Any:
        # The query runs in a thread, so that Ctrl-C reaches us here and can stop it.
        future = self._thread.submit(work)
        try:
            while not concurrent.futures.wait([future], timeout=0.2).done:
                self._bar.show(stage, self._connection.query_progress() / 100)
            return future.result()
        except (duckdb.Error, OSError) as error:
            if "Out of Memory" not in str(error):
                raise
            raise BudgetError(
                f"the memory of {self._budget} bytes, or the disk, was too small while {stage}: "
                f"{str(error).splitlines()[0]}; give more memory"
            ) from error
        except BaseException:
            self._connection.interrupt()
            raise


def _relabel(database: _Database, scratch: Path, group: Path, source: str) -> int:
    """Number the labels in sorted order, write them, and put the rows aside with numbers; returns the node count."""
    rows, nodes = scratch / "rows.parquet", scratch / "nodes.parquet"
    database.add_view("rows", rows)
    # Each step is a query of its own: together, the tables of one would leave the other no memory.
    database.store(
        "SELECT a AS label FROM rows UNION SELECT b FROM rows", scratch / "labels.parquet", "collecting nodes"
    )
    database.add_view("labels", scratch / "labels.parquet")
    labels = database.stream("SELECT label FROM labels ORDER BY label", "sorting nodes")
    count = _write_nodes(labels, nodes, group, source)
    database.add_view("nodes", nodes)
    half, numbered = scratch / "half.parquet", scratch / "numbered.parquet"
    database.store("SELECT id AS a, b, value, position FROM rows JOIN nodes ON a = label", half, "numbering nodes")
    rows.unlink()
    database.add_view("half", half)
    database.store("SELECT a, id AS b, value, position FROM half JOIN nodes ON b = label", numbered, "numbering nodes")
    half.unlink()
    database.add_view("numbered", numbered)
    return count


def _write_nodes(batches: Iterator[pa.RecordBatch], file: Path, group: Path, source: str) -> int:
    count, end = 0, 0
    with contextlib.ExitStack() as stack:
        table, writers = None, {}

        def write(name: str, values: np.ndarray) -> None:
            if name not in writers:
                writers[name] = stack.enter_context(ArrayWriter(group, name, values.dtype))
            writers[name].append(values)

        for batch in batches:
            labels = batch.column(0)
            ids = pa.array(np.arange(count, count + len(labels)), pa.int64())
            if table is None:
                schema = pa.schema([("label", labels.type), ("id", ids.type)])
                table = stack.enter_context(parquet.ParquetWriter(file, schema))
            table.write_batch(pa.record_batch([labels, ids], schema=schema))
            count += len(labels)
            if count > MAX_COUNT:
                raise InputError(f"{source}: more than {MAX_COUNT} nodes; a workspace cannot hold so many")
            if pa.types.is_integer(labels.type):
                write("labels", labels.to_numpy())
                continue
            ends, text = _text_of(labels)
            write("label_end", ends + end)
            write("label_text", text)
            end += len(text)
    return count


def _text_of(labels: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each label ends, and all their bytes."""
    labels = labels.cast(pa.large_string())
    _, offsets, text = labels.buffers()
    offsets = np.frombuffer(offsets, np.int64)[labels.offset : labels.offset + len(labels) + 1]
    return offsets[1:] - offsets[0], np.frombuffer(text, np.uint8)[offsets[0] : offsets[-1]]


# -- merging --------------------------------------------------------------------------------------------------------


def _write_edges(database: _Database, scratch: Path, group: Path, report: dict[str, Any], unit: str) -> dict[str, Any]:
    """Sort the rows, merge each pair's and write the edges; returns the counts."""
    signed, policy = report["kind"] == "signed", report["duplicates"]
    # The lowest bit of the position tells the direction; rows keep the order of the file.
    batches = database.stream(
        "SELECT least(a, b) AS u, greatest(a, b) AS v, value, 2 * position + (a > b)::BIGINT AS position "
        f"FROM numbered WHERE a <> b {'AND value <> 0' if signed else ''} ORDER BY u, v, position",
        "sorting",
    )
    merge = _Merge(policy)
    pairs = both = edges = 0
    low, high = np.inf, -np.inf
    with (
        ArrayWriter(group, "u", np.int32) as us,
        ArrayWriter(group, "v", np.int32) as vs,
        ArrayWriter(group, "value", np.float64) as values,
    ):
        for found in merge.pairs(batches):
            value = _merged_value(found, policy)
            keep = value != 0 if signed else np.ones(len(value), bool)
            pairs += len(value)
            both += np.count_nonzero(found["directions"] == 3)
            edges += np.count_nonzero(keep)
            if not np.isfinite(value).all():
                raise InputError(f"{report['file']}: the values of a repeated pair add up to more than a float holds")
            if edges > MAX_COUNT:
                raise InputError(f"{report['file']}: more than {MAX_COUNT} edges; a workspace cannot hold so many")
            low, high = min(low, value[keep].min(initial=np.inf)), max(high, value[keep].max(initial=-np.inf))
            for writer, column in ((us, found["u"]), (vs, found["v"]), (values, value)):
                writer.append(column[keep])
    if policy == "error" and merge.repeat:
        raise _repeat_error(database, report["file"], unit, *merge.repeat)
    rows = report["rows"] - report["self_loops"] - report["zero_weights"]
    if not edges:
        raise InputError(
            f"{report['file']}: no edge is left of {report['rows']} rows: {report['self_loops']} self loops, "
            f"{report['zero_weights']} zero weights, {pairs} pairs that cancel"
        )
    return {
        "repeated_rows": rows - pairs,
        "both_directions": int(both),
        "cancelled_pairs": int(pairs - edges),
        "edges": int(edges),
        "value_min": float(low),
        "value_max": float(high),
    }


def _merged_value(pairs: dict[str, np.ndarray], policy: str) -> np.ndarray:
    if policy == "mean":
        return pairs["total"] / pairs["rows"]
    if policy == "sign":
        return np.sign(pairs["total"])
    return pairs["total"] if policy == "sum" else pairs["first"]


class _Merge:
    """Merges sorted rows into pairs; a pair may reach over any number of batches.

    Rows and pairs have the same columns, so that the pair still open at the end of a batch goes before the next one.
    `repeat` becomes (second position, first position, u, v) of the first row in the file that repeats a pair.
    """

    def __init__(self, policy: str):
        self._signs = policy == "sign"
        self.repeat: tuple[int, ...] | None = None

    def pairs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, np.ndarray]]:
        """Pairs that are complete, batch after batch."""
        merged = None
        for batch in batches:
            rows = self._rows(batch)
            if merged is not None:
                rows = {name: np.concatenate((merged[name][-1:], rows[name])) for name in rows}
            merged = self._merge(rows)
            yield {name: column[:-1] for name, column in merged.items()}
        if merged is not None:
            yield {name: column[-1:] for name, column in merged.items()}

    def _rows(self, batch: pa.RecordBatch) -> dict[str, np.ndarray]:
        u, v, value, position = (column.to_numpy() for column in batch.columns)
        return {
            "u": u,
            "v": v,
            "position": position,
            "total": np.sign(value) if self._signs else value,
            "first": value,
            "rows": np.ones(len(u), np.int64),
            "directions": (1 + (position & 1)).astype(np.uint8),
        }

    def _merge(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        fresh = np.concatenate(([True], (np.diff(rows["u"]) != 0) | (np.diff(rows["v"]) != 0)))
        if fresh.all():
            return rows
        starts, pair_of = np.flatnonzero(fresh), np.cumsum(fresh) - 1
        self._note_repeat(rows, ~fresh, starts[pair_of])
        merged = {name: rows[name][starts] for name in ("u", "v", "position", "first")}
        # bincount adds one by one in the order of the rows, so where the batches end makes no difference.
        merged["total"] = np.bincount(pair_of, rows["total"])
        merged["rows"] = np.add.reduceat(rows["rows"], starts)
        merged["directions"] = np.bitwise_or.reduceat(rows["directions"], starts)
        return merged

    def _note_repeat(self, rows: dict[str, np.ndarray], again: np.ndarray, start_of: np.ndarray) -> None:
        at = np.flatnonzero(again)
        at = at[np.argmin(rows["position"][at])]
        start = start_of[at]
        found = tuple(int(x) for x in (rows["position"][at], rows["position"][start], rows["u"][at], rows["v"][at]))
        self.repeat = min(self.repeat or found, found)


def _repeat_error(database: _Database, file: str, unit: str, second: int, first: int, u: int, v: int) -> InputError:
    query = f"SELECT label FROM nodes WHERE id IN ({u}, {v}) ORDER BY id"
    labels = [label for batch in database.stream(query, "looking up a label") for label in batch.column(0).to_pylist()]
    a, b = (str(label)[:40] for label in labels)
    others = ", ".join(repr(policy) for policy in POLICIES if policy != "error")
    return InputError(
        f"{file} {unit} {second // 2}: the pair {a!r}, {b!r} was already given in {unit} {first // 2}; "
        f"remove one of them, or choose duplicates={others}"
    )


class _Progress:
    """A line on stderr that is written over, at most five times a second."""

    def __init__(self, enabled: bool):
        self._enabled, self._start, self._last, self._width = enabled, time.monotonic(), 0.0, 0

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def show(self, stage: str, done: float) -> None:
        """Show how much of a stage is done; a negative fraction is not known."""
        now = time.monotonic()
        if not self._enabled or now - self._last < 0.2:
            return
        filled = round(30 * min(max(done, 0.0), 1.0))
        share = f"{done:4.0%}" if done >= 0 else "   ?"
        text = f"{stage:<17}[{'#' * filled}{'.' * (30 - filled)}] {share} {now - self._start:6.0f} s"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._last, self._width = now, max(self._width, len(text))
