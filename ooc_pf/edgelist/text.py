"""Edge lists in text files: find out how one is laid out, then read it as checked columns, block after block.

A block of text is parsed by Arrow in one go. Only when something in it is odd is it read again line by line, by code
that can say what is wrong and where; whatever Arrow accepts, that code reads the same.
"""

import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import BadLine, InputError

MAX_LINE = 1 << 20
EXACT_LINES = 1 << 15
HEADER_PAIRS = {
    (b"from", b"to"),
    (b"source", b"target"),
    (b"src", b"dst"),
    (b"u", b"v"),
    (b"node1", b"node2"),
    (b"fromnodeid", b"tonodeid"),
}
SKIP_REMEDY = "correct it, or leave out all such lines with bad_lines='skip' (--bad-lines skip)"
BANNER = b"%%matrixmarket"

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_BLANKS_TO_SPACE = bytes.maketrans(b"\t\v\f", b"   ")
_INDENTED = re.compile(rb"(\A|\n)[ \t\v\f]")
_NEWLINE, _COMMENTS = 10, (35, 37)


class TextLabels(Exception):
    """A node id is not a 64-bit integer, so all of them must be read as text."""


@dataclass(frozen=True)
class Layout:
    """Where the columns are: positions of node, node and perhaps value; ``start`` lines come before the data."""

    name: str
    comma: bool
    positions: tuple[int, ...]
    start: int = 0
    header: tuple[str, ...] | None = None
    size: int | None = None  # Matrix Market: ids are 1..size, and there are so many entries
    entries: int | None = None


def row_schema(text_labels: bool) -> pa.Schema:
    """The columns in which a source gives its rows; ``position`` is where in the file a row stands."""
    label = pa.string() if text_labels else pa.int64()
    return pa.schema([("a", label), ("b", label), ("value", pa.float64()), ("position", pa.int64())])


def shown(field: bytes) -> str:
    """A field of an untrusted file, short and printable."""
    return repr(field[:40].decode("utf-8", "backslashreplace") + ("..." if len(field) > 40 else ""))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The text of a plain or gzip file, and the file below it, whose position tells how far the reading is."""
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            text = io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 18) if packed else raw
            if text.peek(3)[:3] == b"\xef\xbb\xbf":
                text.read(3)
            yield text, raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path.name}: the gzip data is cut off or damaged ({error}); get the file again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


class TextSource:
    """One text file: spaces, tabs or commas, or Matrix Market; plain or gzip.

    Attributes
    ----------
    text_labels : bool
        Read node ids as text; set it after `tables` raised `TextLabels`, and read again.
    bad : int
        Bad lines skipped so far.
    done : float
        The fraction of the file that has been read.
    """

    unit = "line"

    def __init__(self, path: Path, columns: tuple[str, ...] | None, value: str, skip_bad: bool, block_bytes: int):
        self.path, self.value, self.skip_bad, self.block_bytes = path, value, skip_bad, block_bytes
        self.text_labels, self.bad, self.done = False, 0, 0.0
        self.layout = self._find_layout(columns)
        self.format, self.header = self.layout.name, self.layout.header
        self.has_value = len(self.layout.positions) == 3

    def _error(self, line: int, problem: str, remedy: str = SKIP_REMEDY) -> InputError:
        return InputError(f"{self.path.name} line {line}: {problem}; {remedy}")

    # -- the layout -------------------------------------------------------------------------------------------------

    def _find_layout(self, columns: tuple[str, ...] | None) -> Layout:
        with opened(self.path) as (text, _):
            lines = enumerate(iter(lambda: text.readline(MAX_LINE + 1), b""), 1)
            market = self._market_banner(lines, text)
            for number, line in lines:
                if len(line) > MAX_LINE:
                    raise self._error(number, f"longer than {MAX_LINE} bytes", "this does not look like an edge list")
                if not line.strip() or line.lstrip()[0] in _COMMENTS:
                    continue
                if market is not None:
                    return self._market_layout(number, line, market, columns)
                try:
                    return self._table_layout(number, line, columns)
                except BadLine as bad:
                    if not self.skip_bad:
                        raise self._error(number, str(bad)) from None
        raise InputError(f"{self.path.name} holds no edges: no usable line of two or more fields was found in it")

    def _market_banner(self, lines: Iterator[tuple[int, bytes]], text: BinaryIO) -> list[bytes] | None:
        if text.peek(len(BANNER))[: len(BANNER)].lower() == BANNER:
            return next(lines)[1].lower().split()
        if ".mtx" in self.path.suffixes[-2:]:
            raise self._error(1, "a Matrix Market file must begin with %%MatrixMarket", "add the banner or rename it")
        return None

    def _market_layout(self, number: int, line: bytes, banner: list[bytes], columns: object) -> Layout:
        kinds = (b"matrix",), (b"coordinate",), (b"real", b"integer", b"pattern"), (b"general", b"symmetric")
        if len(banner) != 5 or any(word not in kind for word, kind in zip(banner[1:], kinds, strict=True)):
            wanted = "matrix coordinate real|integer|pattern general|symmetric"
            raise self._error(
                1, f"{shown(b' '.join(banner))} is not readable here", f"expected %%MatrixMarket {wanted}"
            )
        if columns is not None:
            raise InputError(f"{self.path.name}: a Matrix Market file has no named columns; leave `columns` out")
        fields = line.split()
        if len(fields) != 3 or not all(field.isdigit() for field in fields):
            raise self._error(number, f"{shown(line.strip())} is not a size line", "expected: rows columns entries")
        height, width, entries = map(int, fields)
        if height != width:
            raise self._error(number, f"the matrix is {height} x {width}", "a graph needs a square matrix")
        positions = (0, 1) if banner[3] == b"pattern" else (0, 1, 2)
        return Layout("Matrix Market", False, positions, start=number, size=height, entries=entries)

    def _table_layout(self, number: int, line: bytes, columns: tuple[str, ...] | None) -> Layout:
        """The layout as the first data line shows it.

        A comma means comma-separated, unless the line reads as two integers and more (a decimal comma, say). With
        named columns the line is the header. Otherwise it is one if its value is no number at all while its nodes are
        not both integers, or, with no value column, if it is one of a few usual pairs of names.
        """
        comma = b"," in line and not re.match(rb"\s*[+-]?\d+\s+[+-]?\d+\s", line)
        name = "comma-separated text" if comma else "text separated by spaces or tabs"
        fields = split_line(line, comma)
        if len(fields) < 2:
            raise BadLine(
                f"{shown(line.strip())} has one field, expected two or more separated by spaces, tabs or commas"
            )
        if columns is None:
            positions = tuple(range(min(len(fields), 3)))
        elif all(column.isdigit() for column in columns):
            positions = tuple(int(column) - 1 for column in columns)
            if not all(0 <= position < len(fields) for position in positions):
                raise InputError(f"{self.path.name}: columns {', '.join(columns)} asked for, it has 1 to {len(fields)}")
        else:
            names = [field.decode("utf-8", "backslashreplace") for field in fields]
            check_columns(self.path.name, columns, names, f"in its header, line {number}")
            return Layout(name, comma, tuple(map(names.index, columns)), number, tuple(names))
        if not _is_header([fields[position] for position in positions]):
            return Layout(name, comma, positions)
        header = tuple(field.decode("utf-8", "backslashreplace") for field in fields)
        return Layout(name, comma, positions, number, header)

    # -- the rows ---------------------------------------------------------------------------------------------------

    def tables(self) -> Iterator[pa.Table]:
        """Columns a, b, value and position (the line number) of all good lines, in order."""
        self.bad, rows = 0, 0
        for first, block in self._blocks():
            table = self._parse_block(first, block)
            for part in [table] if table is not None else self._parse_lines(first, block):
                rows += len(part)
                yield part
        entries = self.layout.entries
        if entries is not None and rows + self.bad != entries:
            raise InputError(
                f"{self.path.name}: its size line announces {entries} entries but {rows + self.bad} follow; "
                "it may be cut off: get it again, or correct the size line"
            )

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Runs of whole lines, each with the number of its first line."""
        size = max(os.path.getsize(self.path), 1)
        line, rest = 1, b""
        with opened(self.path) as (text, raw):
            while chunk := text.read(self.block_bytes):
                self.done = raw.tell() / size
                cut = chunk.rfind(b"\n") + 1
                block, rest = (rest + chunk[:cut], chunk[cut:]) if cut else (b"", rest + chunk)
                if block:
                    yield line, block
                    line += block.count(b"\n")
                if len(rest) > MAX_LINE:
                    raise self._error(line, f"longer than {MAX_LINE} bytes", "this does not look like an edge list")
            if rest:
                yield line, rest + b"\n"

    def _parse_block(self, first: int, block: bytes) -> pa.Table | None:
        """The block as Arrow reads it, or None if anything about it calls for a closer look."""
        block = block.replace(b"\r\n", b"\n")
        # Arrow would end a line at a lone \r, take a NUL as a character, and read 0x10 as an integer.
        if b"\r" in block or b"\0" in block or (not self.text_labels and (b"0x" in block or b"0X" in block)):
            return None
        if self.layout.comma and _INDENTED.search(block):  # what follows may be a comment
            return None
        block, lines = self._drop_comments(first, block if self.layout.comma else squeeze_blanks(block))
        if not len(lines):
            return row_schema(self.text_labels).empty_table()
        try:
            table = self._read_columns(block)
        except (pa.ArrowInvalid, BadLine):
            return None
        if len(table) != len(lines):  # a quote has swallowed a line end
            return None
        return self._checked(table, lines)

    def _read_columns(self, block: bytes) -> pa.Table:
        comma = self.layout.comma
        width = len(split_line(block[: block.index(b"\n")], comma))
        if width <= max(self.layout.positions):
            raise BadLine("too few fields")
        used = [str(position) for position in self.layout.positions]
        kinds = dict(zip(used, row_schema(self.text_labels).types, strict=False))
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=[str(position) for position in range(width)], block_size=1 << 20),
            arrow_csv.ParseOptions(delimiter="," if comma else " ", quote_char='"' if comma else False),
            arrow_csv.ConvertOptions(include_columns=used, column_types=kinds, null_values=[]),
        )

    def _drop_comments(self, first: int, block: bytes) -> tuple[bytes, np.ndarray]:
        """The data lines of a block, and their numbers."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE) + 1
        starts = np.concatenate(([0], ends[:-1]))
        numbers = np.arange(first, first + len(ends))
        keep = ~np.isin(data[starts], (_NEWLINE, *_COMMENTS)) & (numbers > self.layout.start)
        return data[np.repeat(keep, ends - starts)].tobytes(), numbers[keep]

    def _checked(self, table: pa.Table, lines: np.ndarray) -> pa.Table | None:
        a, b = table.columns[:2]
        value = table.column(2).to_numpy() if self.has_value else np.ones(len(lines))
        if self.text_labels:
            a, b = pc.ascii_trim_whitespace(a), pc.ascii_trim_whitespace(b)
            good = all(pc.min(pc.binary_length(labels)).as_py() > 0 for labels in (a, b))
        else:
            good = self.layout.size is None or _within(a, b, self.layout.size)
        if not good or not np.isfinite(value).all():
            return None
        return pa.table([a, b, value, lines], schema=row_schema(self.text_labels))

    def _parse_lines(self, first: int, block: bytes) -> Iterator[pa.Table]:
        """The same block line by line; raises on a bad line or counts it."""
        rows, schema = [], row_schema(self.text_labels)
        for number, line in enumerate(io.BytesIO(block), first):
            stripped = line.strip()
            if number <= self.layout.start or not stripped or stripped[0] in _COMMENTS:
                continue
            try:
                rows.append((*self._parse_line(line), number))
            except BadLine as bad:
                if not self.skip_bad:
                    raise self._error(number, str(bad)) from None
                self.bad += 1
            if len(rows) == EXACT_LINES:
                yield pa.table(list(zip(*rows, strict=True)), schema=schema)
                rows = []
        if rows:
            yield pa.table(list(zip(*rows, strict=True)), schema=schema)

    def _parse_line(self, line: bytes) -> tuple[int | str, int | str, float]:
        fields = split_line(line, self.layout.comma)
        wanted = max(self.layout.positions) + 1
        if len(fields) < wanted:
            separated = "commas" if self.layout.comma else "spaces or tabs"
            missing = f"the {self.value} is missing: " if self.has_value and len(fields) == wanted - 1 else ""
            raise BadLine(f"{missing}{len(fields)} field(s), expected at least {wanted} separated by {separated}")
        used = [fields[position] for position in self.layout.positions]
        value = self._parse_value(used[2]) if self.has_value else 1.0
        return self._parse_label(used[0]), self._parse_label(used[1]), value

    def _parse_value(self, field: bytes) -> float:
        if not _NUMBER.fullmatch(field) and not _NOT_FINITE.fullmatch(field):
            raise BadLine(f"{self.value} {shown(field)} is not a number")
        number = float(field)
        if not np.isfinite(number):
            raise BadLine(f"{self.value} {shown(field)} is not a finite number")
        return number

    def _parse_label(self, field: bytes) -> int | str:
        if not field:
            raise BadLine("a node id is empty")
        integer = int(field) if _INTEGER.fullmatch(field) and len(field) < 100 else None
        if self.layout.size is not None and (integer is None or not 1 <= integer <= self.layout.size):
            raise BadLine(f"index {shown(field)} is not within 1 to {self.layout.size}")
        if not self.text_labels:
            if integer is None or not -(2**63) <= integer < 2**63:
                raise TextLabels
            return integer
        try:
            return field.decode()
        except UnicodeDecodeError:
            raise BadLine(f"node id {shown(field)} is not UTF-8 text") from None


def split_line(line: bytes, comma: bool) -> list[bytes]:
    """The fields of one line, without the blanks around them."""
    if b"\0" in line:
        raise BadLine("a NUL byte: this is not a text file, or not in an encoding like UTF-8")
    if not comma:
        return line.split()
    try:
        # Latin-1 carries any bytes through the csv module unchanged.
        fields = next(csv.reader([line.rstrip(b"\r\n").decode("latin-1")]), [])
    except csv.Error as error:
        raise BadLine(f"not readable as comma-separated values ({error})") from None
    return [field.encode("latin-1").strip() for field in fields]


def squeeze_blanks(block: bytes) -> bytes:
    """One space where there are blanks between fields, and none at the ends of lines."""
    block = block.translate(_BLANKS_TO_SPACE)
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")


def check_columns(file: str, columns: tuple[str, ...], names: list[str], where: str) -> None:
    """Refuse names that are not there, or there twice."""
    for column in columns:
        if names.count(column) != 1:
            problem = "twice" if column in names else "missing"
            raise InputError(f"{file}: column {column!r} is {problem} {where}; the columns are {', '.join(names[:20])}")


def _is_header(fields: list[bytes]) -> bool:
    if len(fields) == 2:
        return (fields[0].lower(), fields[1].lower()) in HEADER_PAIRS
    number = _NUMBER.fullmatch(fields[2]) or _NOT_FINITE.fullmatch(fields[2]) or not fields[2]
    return not number and not all(_INTEGER.fullmatch(field) for field in fields[:2])


def _within(a: pa.ChunkedArray, b: pa.ChunkedArray, size: int) -> bool:
    ranges = [pc.min_max(column).as_py() for column in (a, b)]
    return all(found["min"] >= 1 and found["max"] <= size for found in ranges)
