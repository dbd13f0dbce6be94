"""The rows of an edge list to the arrays of a workspace: number the nodes, sort, merge repeated pairs.

DuckDB does what needs more than memory: a hash aggregation collects the labels, hash joins number them, and an external
merge sort brings the rows of each pair together. The sorted rows are then merged in one pass, batch after batch.
"""

import concurrent.futures
import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ..errors import BudgetError, InputError
from ..storage.arrays import ArrayWriter
from .choices import POLICIES

MAX_COUNT = 2**31 - 1  # nodes and edges are numbered in 32 bits
BATCH_ROWS = 1 << 17  # cost only: rows merged at once
WAIT = 0.2  # seconds between two looks at a query's progress

# How the budget is shared out; cost only. Measured: beside its limit the process holds up to 240 MB (DuckDB's own,
# Arrow's and the blocks being read).
BESIDE_DUCKDB = 260 * 10**6
DUCKDB_SHARE = 0.75
BYTES_PER_THREAD = 50 * 10**6

# Queries; each is run on its own, since together the tables of one would leave the other no memory.
LABELS = "SELECT a AS label FROM rows UNION SELECT b FROM rows"
SORTED_LABELS = "SELECT label FROM labels ORDER BY label"
NUMBER_A = "SELECT id AS a, b, value, position FROM rows JOIN nodes ON a = label"
NUMBER_B = "SELECT a, id AS b, value, position FROM half JOIN nodes ON b = label"
# The lowest bit of the position tells the direction; rows of a pair keep the order of the file.
SORTED_ROWS = (
    "SELECT least(a, b) AS u, greatest(a, b) AS v, value, 2 * position + (a > b)::BIGINT AS position "
    "FROM numbered WHERE a <> b {more} ORDER BY u, v, position"
)


class Database:
    """DuckDB within a memory limit, on the Parquet files of one directory; Ctrl-C stops a query.

    Parameters
    ----------
    directory : Path
        Where ``<name>.parquet`` is the table called ``name``.
    budget : int or None
        Bytes of memory for everything, not only DuckDB.
    show : callable
        Called now and then with the stage and the fraction of it that is done.
    """

    def __init__(self, directory: Path, budget: int | None, show: Callable[[str, float], None]):
        self._directory, self._budget, self._show = directory, budget, show
        self._connection = duckdb.connect(":memory:", config=_settings(directory, budget))
        with contextlib.suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets: no fractions then
            self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: Any) -> None:
        self._connection.interrupt()
        self._thread.shutdown()
        self._connection.close()

    def path(self, name: str) -> Path:
        """The file of a table."""
        return self._directory / f"{name}.parquet"

    def add(self, name: str) -> None:
        """Let queries use the table ``name``, whose file exists."""
        # The path is taken as a pattern otherwise, and a folder value=9 in it as a column.
        file = glob.escape(str(self.path(name)))
        self._connection.read_parquet(file, hive_partitioning=False).create_view(name)

    def store(self, name: str, query: str, stage: str) -> None:
        """Make a table of what a query gives."""
        file = str(self.path(name))
        self._wait(lambda: self._connection.sql(query).write_parquet(file, compression="lz4"), stage)
        self.add(name)

    def stream(self, query: str, stage: str) -> Iterator[pa.RecordBatch]:
        """What a query gives, batch after batch."""
        reader = self._wait(lambda: self._connection.sql(query).to_arrow_reader(BATCH_ROWS), stage)
        while (batch := self._wait(lambda: next(reader, None), stage)) is not None:
            yield batch

    def _wait(self, work: Callable[[], Any], stage: str) -> Any:
        # The query runs in a thread, so that Ctrl-C is raised here; leaving the database then interrupts the query.
        future = self._thread.submit(work)
        try:
            while not concurrent.futures.wait([future], timeout=WAIT).done:
                self._show(stage, self._connection.query_progress() / 100)
            return future.result()
        except (duckdb.Error, OSError) as error:  # Arrow passes on what DuckDB raised as an OSError
            if "Out of Memory" not in str(error):
                raise OSError(f"the conversion failed while {stage}: {error}") from error
            raise BudgetError(
                f"the memory of {self._budget} bytes, or the disk, was too small while {stage}: "
                f"{str(error).splitlines()[0]}; give more memory"
            ) from error


def _settings(directory: Path, budget: int | None) -> dict[str, Any]:
    """Options of DuckDB: spill into the directory, keep to the budget, and fetch nothing from elsewhere."""
    settings: dict[str, Any] = {
        "temp_directory": str(directory / "spill"),
        "preserve_insertion_order": False,
        "enable_external_file_cache": False,
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if budget is not None:
        limit = int((budget - BESIDE_DUCKDB) * DUCKDB_SHARE)
        settings["memory_limit"] = f"{limit}B"
        # Each thread holds buffers of its own.
        settings["threads"] = max(1, min(os.cpu_count() or 1, limit // BYTES_PER_THREAD))
    return settings


# -- nodes ----------------------------------------------------------------------------------------------------------


def number_nodes(database: Database, group: Path, file: str) -> int:
    """Number the labels of the table ``rows`` in sorted order and write them; make the table ``numbered``.

    Parameters
    ----------
    database : Database
        Holds the file of ``rows``: a and b (labels), value, position. It is removed.
    group : Path
        Where the arrays of labels go.
    file : str
        The name of the source, for messages.

    Returns
    -------
    int
        How many nodes there are.
    """
    database.add("rows")
    database.store("labels", LABELS, "collecting nodes")
    label_type = parquet.read_schema(database.path("rows")).field("a").type
    batches = database.stream(SORTED_LABELS, "sorting nodes")
    count = _write_nodes(batches, label_type, database.path("nodes"), group, file)
    database.add("nodes")
    database.store("half", NUMBER_A, "numbering nodes")
    database.path("rows").unlink()
    database.store("numbered", NUMBER_B, "numbering nodes")
    database.path("half").unlink()
    return count


def _write_nodes(batches: Iterator[pa.RecordBatch], kind: pa.DataType, table: Path, group: Path, file: str) -> int:
    """Number sorted labels as they come: into ``table`` for the joins, and into the arrays of the workspace."""
    integers = pa.types.is_integer(kind)
    arrays = {"labels": np.int64} if integers else {"label_end": np.int64, "label_text": np.uint8}
    schema = pa.schema([("label", kind), ("id", pa.int64())])
    count = text_end = 0
    with contextlib.ExitStack() as stack:
        nodes = stack.enter_context(parquet.ParquetWriter(table, schema))
        writers = [stack.enter_context(ArrayWriter(group, name, dtype)) for name, dtype in arrays.items()]
        for batch in batches:
            labels = batch.column(0)
            nodes.write_batch(pa.record_batch([labels, np.arange(count, count + len(labels))], schema=schema))
            count += len(labels)
            if count > MAX_COUNT:
                raise InputError(f"{file}: more than {MAX_COUNT} nodes; a workspace cannot hold so many")
            columns = [labels.to_numpy()] if integers else _ends_and_text(labels, text_end)
            for writer, column in zip(writers, columns, strict=True):
                writer.append(column)
            text_end += len(columns[-1])
    return count


def _ends_and_text(labels: pa.Array, text_end: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each label ends if the first begins at ``text_end``, and the bytes of all."""
    labels = labels.cast(pa.large_string())
    _, offsets, text = labels.buffers()
    offsets = np.frombuffer(offsets, np.int64)[labels.offset : labels.offset + len(labels) + 1]
    return text_end + offsets[1:] - offsets[0], np.frombuffer(text, np.uint8)[offsets[0] : offsets[-1]]


# -- edges ----------------------------------------------------------------------------------------------------------


def write_edges(database: Database, group: Path, kind: str, policy: str, file: str, unit: str) -> dict[str, Any]:
    """Sort the table ``numbered``, merge the rows of each pair and write the edges.

    Parameters
    ----------
    database : Database
        As `number_nodes` left it.
    group : Path
        Where the arrays of edges go.
    kind, policy : str
        ``kind`` and ``duplicates`` of `convert`.
    file, unit : str
        The name of the source, and what its positions count, for messages.

    Returns
    -------
    dict
        How many pairs, pairs in both directions and edges there are, and the least and greatest value.
    """
    signed = kind == "signed"
    rows = database.stream(SORTED_ROWS.format(more="AND value <> 0" if signed else ""), "sorting")
    merge = Merge(policy)
    counts = _write_pairs(merge.pairs(rows), group, signed, policy, file)
    if policy == "error" and merge.repeat:
        raise _repeat_error(database, file, unit, *merge.repeat)
    return counts


def _write_pairs(
    batches: Iterable[dict[str, np.ndarray]], group: Path, signed: bool, policy: str, file: str
) -> dict[str, Any]:
    """Write the merged pairs, except those of weight zero, and count them."""
    pairs = both = edges = 0
    low, high = np.inf, -np.inf
    with (
        ArrayWriter(group, "u", np.int32) as us,
        ArrayWriter(group, "v", np.int32) as vs,
        ArrayWriter(group, "value", np.float64) as values,
    ):
        for found in batches:
            value = _merged_value(found, policy)
            if not np.isfinite(value).all():
                raise InputError(f"{file}: the values of a repeated pair add up to more than a float holds")
            keep = value != 0 if signed else np.full(len(value), True)
            us.append(found["u"][keep])
            vs.append(found["v"][keep])
            values.append(value[keep])
            pairs += len(value)
            both += int(np.count_nonzero(found["directions"] == 3))
            edges += int(np.count_nonzero(keep))
            if edges > MAX_COUNT:
                raise InputError(f"{file}: more than {MAX_COUNT} edges; a workspace cannot hold so many")
            low, high = value.min(initial=low, where=keep), value.max(initial=high, where=keep)
    return {
        "pairs": pairs,
        "both_directions": both,
        "edges": edges,
        "value_min": float(low),
        "value_max": float(high),
    }


def _merged_value(pairs: dict[str, np.ndarray], policy: str) -> np.ndarray:
    """The value of each pair; under "error" there is one row of each, unless the run ends with that error."""
    if policy == "mean":
        return pairs["total"] / pairs["rows"]
    if policy == "sign":
        return np.sign(pairs["total"])
    return pairs["total"] if policy == "sum" else pairs["first"]


class Merge:
    """Merges sorted rows into pairs in one pass; a pair may reach over any number of batches.

    Rows and pairs have the same columns. So the pair that is still open at the end of a batch can be put before the
    rows of the next one.

    Attributes
    ----------
    repeat : tuple or None
        (second position, first position, u, v) of the first row in the file that repeats a pair.
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
        """Each row as a pair of its own."""
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
        """One entry for each run of rows with the same ends."""
        fresh = np.concatenate(([True], (np.diff(rows["u"]) != 0) | (np.diff(rows["v"]) != 0)))
        starts = np.flatnonzero(fresh)
        pair_of = np.cumsum(fresh) - 1
        self._note_repeat(rows, np.flatnonzero(~fresh), starts[pair_of])
        merged = {name: rows[name][starts] for name in ("u", "v", "position", "first")}
        # bincount adds one by one in the order of the rows, so where the batches end makes no difference.
        merged["total"] = np.bincount(pair_of, rows["total"])
        merged["rows"] = np.add.reduceat(rows["rows"], starts)
        merged["directions"] = np.bitwise_or.reduceat(rows["directions"], starts)
        return merged

    def _note_repeat(self, rows: dict[str, np.ndarray], repeats: np.ndarray, start_of: np.ndarray) -> None:
        """Keep the repeated row that comes first in the file."""
        if not len(repeats):
            return
        again = repeats[np.argmin(rows["position"][repeats])]
        first = rows["position"][start_of[again]]
        found = tuple(int(x) for x in (rows["position"][again], first, rows["u"][again], rows["v"][again]))
        self.repeat = min(self.repeat or found, found)


def _repeat_error(database: Database, file: str, unit: str, second: int, first: int, u: int, v: int) -> InputError:
    query = f"SELECT label FROM nodes WHERE id IN ({u}, {v}) ORDER BY id"
    labels = [label for batch in database.stream(query, "looking up a label") for label in batch.column(0).to_pylist()]
    a, b = (str(label)[:40] for label in labels)
    others = ", ".join(repr(policy) for policy in POLICIES if policy != "error")
    return InputError(
        f"{file} {unit} {second // 2}: the pair {a!r}, {b!r} was already given in {unit} {first // 2}; "
        f"remove one of them, or choose duplicates={others} (--duplicates)"
    )
