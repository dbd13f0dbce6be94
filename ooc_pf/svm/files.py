"""Rows and labels in files, and workspaces made from them.

A workspace holds the labels, and where the rows are. Rows of a Parquet file, which can only be read in order, are
unpacked into it: a run reads rows several times, and samples of them.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..edgelist.columns import are_positions, locate, locate_positions
from ..edgelist.kinds import is_number, is_text, plain_type
from ..errors import InputError, WorkspaceError
from ..storage.arrays import read_array, read_labels, write_array, write_labels
from ..storage.files import check_own, local_path, new_file
from ..storage.manifest import EDGES
from ..storage.numbers import open_numbers
from ..storage.records import check_fields, require
from ..storage.workspace import Workspace, building, create_manifest
from . import settings
from .data import SvmData
from .inputs import Table, cut, let_go, read_table, stride_of
from .labels import encode_labels
from .program import NONE, Program

MOST_CLASSES = 1000
LARGEST_EXACT = float(1 << 53)  # beyond it not every whole number is a float
ROWS = "rows.npy"  # of a workspace: what was unpacked
SOURCE = {"file": str, "labels": str | None, "columns": list, "features": list, "unpacked": bool, "digest": str}


# -- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayFile:
    """An array; its columns are called 1, 2 ..."""

    name: str
    array: Any

    @property
    def rows(self) -> int:
        return int(self.array.shape[0])

    @property
    def names(self) -> list[str]:
        return [str(k + 1) for k in range(self.array.shape[1] if len(self.array.shape) == 2 else 1)]

    def column(self, at: int) -> Iterator[np.ndarray]:
        """One column, a part at a time."""
        for first, last in cut(self.rows, stride_of(1, len(self.names))):
            part = np.asarray(self.array[first:last])
            yield part if part.ndim == 1 else np.array(part[:, at])
            let_go(part)

    def table(self, columns: list[int]) -> Table:
        """The rows, with some of the columns."""
        if len(self.array.shape) != 2:
            raise InputError(f"{self.name} must have two dimensions, rows and features; found {self.array.shape}")
        whole = columns == list(range(self.array.shape[1]))
        return read_table(self.array if whole else PickedColumns(self.array, columns))


@dataclass(frozen=True)
class PickedColumns:
    """Some columns of an array, for `read_table`."""

    array: Any
    columns: list[int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], len(self.columns)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def chunks(self) -> Any:
        return getattr(self.array, "chunks", None)

    @property
    def _chunk(self) -> int:
        return (self.chunks or (16,))[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        first, last, _ = rows.indices(self.shape[0])
        picked = np.empty((last - first, len(self.columns)), self.dtype)
        # A few rows at a time, as they may be much wider than what is picked.
        for low, high in cut(last - first, max(settings.TILE_ENTRIES // self.array.shape[1], self._chunk)):
            part = np.asarray(self.array[first + low : first + high])
            picked[low:high] = part[:, self.columns]
            let_go(part)
        return picked


@dataclass(frozen=True)
class ParquetRows:
    """A table in a Parquet file."""

    name: str
    file: Any

    @property
    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    @property
    def names(self) -> list[str]:
        return list(self.file.schema_arrow.names)

    def kind(self, at: int) -> pa.DataType:
        return plain_type(self.file.schema_arrow.field(at).type)

    def column(self, at: int) -> Iterator[np.ndarray]:
        """One column, a part at a time."""
        kind, first = self.kind(at), 0
        if not (is_number(kind) or is_text(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"{self.name}: column {self.names[at]!r} has type {kind}, expected numbers or text")
        for (values,) in self._batches([at], 1 << 16):
            self._refuse_missing(values, at, first)
            found = values.cast(kind).to_numpy(zero_copy_only=False)
            yield found.astype(np.str_) if is_text(kind) else found
            first += len(found)

    def dtype(self, columns: list[int]) -> np.dtype:
        """What rows of some columns are made of: float32 where all of them are."""
        for at in columns:
            kind = self.kind(at)
            if not (is_number(kind) or pa.types.is_boolean(kind)):
                raise InputError(
                    f"{self.name}: column {self.names[at]!r} has type {kind}, expected numbers; leave it out with "
                    "--columns"
                )
        return np.dtype(np.float32 if all(pa.types.is_float32(self.kind(at)) for at in columns) else np.float64)

    def blocks(self, columns: list[int], dtype: Any, entries: int) -> Iterator[np.ndarray]:
        """Rows in their order, with some of the columns, about so many entries at a time."""
        first = 0
        for batch in self._batches(columns, max(1, entries // len(columns))):
            block = np.empty((len(batch[0]), len(columns)), dtype)
            for k, values in enumerate(batch):
                self._refuse_missing(values, columns[k], first)
                block[:, k] = values.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)
            yield block
            first += len(block)

    def _batches(self, columns: list[int], rows: int) -> Iterator[list[pa.Array]]:
        names = [self.names[at] for at in columns]
        locate(self.name, tuple(names), self.names, "in its schema")  # columns are read by name
        try:
            for batch in self.file.iter_batches(rows, columns=names, use_threads=False):
                yield [batch.column(name) for name in names]
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0][:200]
            raise InputError(f"{self.name}: not a readable Parquet file ({reason}); get it again") from None

    def _refuse_missing(self, values: pa.Array, at: int, first: int) -> None:
        if values.null_count:
            row = first + int(np.argmin(values.is_valid().to_numpy(zero_copy_only=False)))
            raise InputError(f"{self.name}: column {self.names[at]!r} has no value at row {row}; drop such rows")

    def table(self, columns: list[int]) -> Table:
        """The rows, in one order only."""
        dtype, count = self.dtype(columns), len(columns)
        spans = cut(self.rows, stride_of(count, count))

        def blocks() -> Iterator[np.ndarray]:
            return self.blocks(columns, dtype, settings.PART_ENTRIES)

        return Table(self.rows, count, count, dtype.itemsize, True, spans, stream=blocks)


def open_file(path: str | Path) -> ArrayFile | ParquetRows:
    """A file of rows or labels."""
    found, name = open_numbers(path), Path(path).name
    return ParquetRows(name, found) if hasattr(found, "iter_batches") else ArrayFile(name, found)


# -- rows and labels --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files:
    """Which rows, which labels.

    Attributes
    ----------
    rows : path
    labels : path or None
        A file of labels; None: ``label`` is a column of the rows.
    columns : tuple of str or None
        The features, by name or by position from 1; None: all but the label.
    label : str or None
        The column of the label; None: the only one of ``labels``.
    """

    rows: str
    labels: str | None = None
    columns: tuple[str, ...] | None = None
    label: str | None = None

    def opened(self) -> tuple[ArrayFile | ParquetRows, list[int]]:
        """The file of the rows and the places of its features."""
        source = open_file(self.rows)
        if self.labels is None and self.label is None:
            raise InputError(f"where are the labels of {source.name}? Name a second file, or a column with --label")
        label = _places(source, (self.label,)) if self.labels is None and self.label is not None else []
        places = list(range(len(source.names))) if self.columns is None else _places(source, self.columns)
        if self.columns is not None and set(label) & set(places):
            raise InputError(f"{source.name}: column {self.label!r} is both the label and a feature")
        places = [at for at in places if at not in label]
        if not places:
            raise InputError(f"{source.name} has no features beside the label")
        return source, places

    def classes(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes, and the number of the class of each row."""
        source = open_file(self.rows if self.labels is None else self.labels)
        if source.rows != rows:
            raise InputError(f"{Path(self.rows).name} has {rows:,} rows and {source.name} {source.rows:,} labels")
        if self.label is None and len(source.names) > 1:
            raise InputError(f"{source.name} has {len(source.names)} columns; name that of the labels with --label")
        at = 0 if self.label is None else _places(source, (self.label,))[0]
        classes = _find_classes(source, at)
        parts = [encode_labels(_plain_labels(part, source.name, 0), classes) for part in source.column(at)]
        return classes, np.concatenate(parts)


def _places(source: ArrayFile | ParquetRows, asked: tuple[str, ...]) -> list[int]:
    if are_positions(asked) and not set(asked) <= set(source.names):
        return list(locate_positions(source.name, asked, len(source.names)))
    return list(locate(source.name, asked, source.names, "in it"))


def _find_classes(source: ArrayFile | ParquetRows, at: int) -> np.ndarray:
    classes, first = None, 0
    for part in source.column(at):
        found = np.unique(_plain_labels(part, source.name, first))
        classes, first = found if classes is None else np.unique(np.concatenate([classes, found])), first + len(part)
        if len(classes) > MOST_CLASSES:
            raise InputError(f"{source.name} has more than {MOST_CLASSES:,} different labels; are they classes?")
    if classes is None:
        raise InputError(f"{source.name} has no rows")
    if len(classes) < 2:
        raise InputError(f"{source.name} has one class only, {classes[0]}; at least two are needed")
    return classes


def _plain_labels(part: np.ndarray, name: str, first: int) -> np.ndarray:
    """Labels as integers or text; numbers that are not whole are no classes."""
    if part.dtype.kind in "biu":
        return _as_integers(part, name, first)
    if part.dtype.kind == "U":
        return part
    if part.dtype.kind != "f":
        raise InputError(f"{name} has labels of type {part.dtype}, expected whole numbers or text")
    wrong = ~(np.isfinite(part) & (np.round(part) == part))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name} has the label {part[at]} at row {first + at}; labels are whole numbers or text")
    return _as_integers(part, name, first)


def _as_integers(part: np.ndarray, name: str, first: int) -> np.ndarray:
    """Labels as int64, of which none becomes another one."""
    limit = LARGEST_EXACT if part.dtype.kind == "f" else np.iinfo(np.int64).max
    wrong = part > limit if part.dtype.kind == "u" else np.abs(part) > limit if part.dtype.kind == "f" else None
    if wrong is not None and wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"{name} has the label {part[at]} at row {first + at}, which is too large for a number of a class"
        )
    return part.astype(np.int64)


def make_program(table: Table, code: np.ndarray, classes: int, C: float, border: bool) -> Program:
    """A program without weights."""
    positive = (1,) if classes == 2 else tuple(range(classes))
    return Program(table, code, NONE, np.ones(classes), positive, C, border)


# -- workspaces -------------------------------------------------------------------------------------------------------


def make_workspace(path: Any, files: Files, border: bool) -> None:
    """A workspace for a fit: its labels, where its rows are, and those that are not arrays."""
    source, columns = files.opened()
    classes, code = files.classes(source.rows)
    with building(path) as directory:
        group = directory / EDGES
        write_labels(group, classes)
        write_array(group, "code", code.view(np.uint8) if code.dtype == np.int8 else code)
        if isinstance(source, ParquetRows):
            _unpack(source, columns, directory / ROWS)
        made = {
            **_named(files),
            "columns": columns,
            "features": [source.names[at] for at in columns],
            "unpacked": isinstance(source, ParquetRows),
        }
        table = _held_table(made, directory)
        data = SvmData(make_program(table, code, len(classes), 1.0, border))
        made["digest"] = data.fingerprint
        create_manifest(directory, kind="svm", nodes=0, edges=data.size.edges, source=made)


def _unpack(source: ParquetRows, columns: list[int], target: Path) -> None:
    """Write the rows of a table as an array.

    A reader holds two pages of every column that it reads. So a few columns are read at a time, to files of their own,
    which are then put beside each other.
    """
    dtype, strips = source.dtype(columns), cut(len(columns), settings.STRIP)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, contextlib.ExitStack() as stack:
        files = [Path(folder, str(first)) for first, _ in strips]
        for path, (first, last) in zip(files, strips, strict=True):
            with open(path, "wb") as file:
                for block in source.blocks(columns[first:last], dtype, settings.TILE_ENTRIES):
                    file.write(block.data)
            pa.default_memory_pool().release_unused()
        parts = [stack.enter_context(open(path, "rb")) for path in files]
        shape = source.rows, len(columns)
        whole = stack.enter_context(new_file(target))
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(whole, header)
        for low, high in cut(source.rows, stride_of(1, len(columns))):
            found = [
                np.fromfile(part, dtype, (high - low) * (b - a)) for part, (a, b) in zip(parts, strips, strict=True)
            ]
            whole.write(np.hstack([part.reshape(high - low, -1) for part in found]).data)


def _named(files: Files) -> dict[str, str | None]:
    labels = None if files.labels is None else str(local_path(files.labels).resolve())
    return {"file": str(local_path(files.rows).resolve()), "labels": labels}


def holds_rows(workspace: Workspace) -> bool:
    """Whether a workspace knows its rows: it was made from files."""
    return (
        workspace.manifest["graph"]["kind"] == "svm" and workspace.manifest["graph"]["source"].get("file") is not None
    )


def held_source(workspace: Workspace) -> dict[str, Any]:
    """Where the rows of a workspace came from."""
    source = workspace.manifest["graph"]["source"]
    check_fields(source, SOURCE, workspace.record, "graph.source.")
    whole = all(type(at) is int and at >= 0 for at in source["columns"])
    named = len(source["features"]) == len(source["columns"]) > 0
    named = named and all(isinstance(each, str) for each in source["features"])
    require(whole and named, workspace.record, "graph.source.columns are not those of a file")
    return source


def require_files(workspace: Workspace, files: Files) -> None:
    """Refuse a workspace that was made from other files or columns."""
    if not holds_rows(workspace):
        raise WorkspaceError(f"{workspace.name} was not made from files of rows; name a new workspace")
    held, (_, columns) = held_source(workspace), files.opened()
    same = _named(files) == {name: held[name] for name in ("file", "labels")} and columns == held["columns"]
    if not same:
        raise WorkspaceError(
            f"{workspace.name} holds {len(held['columns'])} columns of {held['file']}, and not what is named now; name "
            "a new workspace"
        )


def open_program(workspace: Workspace, C: float, border: bool) -> Program:
    """The program that a workspace was made for; nothing of its rows is read yet."""
    source, group = held_source(workspace), workspace.edges
    code, classes = read_array(group, "code"), len(read_labels(group))
    code = code.view(np.int8) if code.dtype == np.uint8 else code
    held = (
        code.dtype.kind == "i" and classes >= 2 and len(code) > 0 and 0 <= int(code.min()) <= int(code.max()) < classes
    )
    require(held, group, "code is not that of the labels")
    table = _held_table(source, workspace.path)
    if table.rows != len(code):
        raise InputError(f"{source['file']} has {table.rows:,} rows, and had {len(code):,} when the run began")
    return make_program(table, code, classes, C, border)


def _held_table(source: dict[str, Any], directory: Path) -> Table:
    path, columns = (Path(source["file"]), source["columns"])
    if source["unpacked"]:
        path, columns = directory / ROWS, list(range(len(columns)))
        check_own(path, directory=False)
    if not path.exists():
        raise InputError(f"the rows of this run are in {path}, which is not there; put it back")
    found = open_file(path)
    if not isinstance(found, ArrayFile) or max(columns) >= len(found.names):
        raise InputError(f"{path} is not the array of rows that the run began with")
    return found.table(columns)
