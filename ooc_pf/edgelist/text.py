"""Edge lists in text files, read as checked columns, block after block.

A block of text is parsed by Arrow in one go. If anything in it is odd, the same block is read again line by line, by
code that can say what is wrong and where. Whatever Arrow accepts, that code reads the same.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import BadLine, InputError
from .fields import (
    COMMENTS,
    INTEGER,
    MAX_LINE,
    NOT_FINITE,
    NUMBER,
    holds_data,
    line_error,
    opened,
    shown,
    split_line,
    squeeze_blanks,
    too_long,
)
from .layout import Layout, find_layout

# Cost only: lines read one by one that make a table, and bytes that Arrow parses at once.
EXACT_LINES = 1 << 15
ARROW_BYTES = 1 << 20
LONGEST_INTEGER = 100  # bytes; a longer field is text in any case, and slow to convert

_NEWLINE = ord("\n")
_INDENTED = re.compile(rb"(\A|\n)[ \t\v\f]")


class TextLabels(Exception):
    """A node id is not a 64-bit integer, so all of them must be read as text."""


def row_schema(text_labels: bool) -> pa.Schema:
    """The columns in which a source gives its rows; ``position`` is where in the file a row stands."""
    label = pa.string() if text_labels else pa.int64()
    return pa.schema([("a", label), ("b", label), ("value", pa.float64()), ("position", pa.int64())])


class TextSource:
    """One text file: spaces, tabs or commas, or Matrix Market; plain or gzip.

    Parameters
    ----------
    path : Path
    columns : tuple of str or None
        Names or positions of the columns to read.
    value : str
        What to call the value in messages.
    skip_bad : bool
        Count bad lines and leave them out instead of stopping.
    block_bytes : int
        Bytes of text read at once; cost only.

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
        self.layout: Layout = find_layout(path, columns, skip_bad)
        self.format, self.header = self.layout.name, self.layout.header
        self.has_value = len(self.layout.positions) == 3

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
                    raise too_long(self.path, line)
            if rest:
                yield line, rest + b"\n"

    # -- a block at once ----------------------------------------------------------------------------------------------

    def _parse_block(self, first: int, block: bytes) -> pa.Table | None:
        """The block as Arrow reads it, or None if anything about it calls for a closer look."""
        block = block.replace(b"\r\n", b"\n")
        if self._misleads_arrow(block):
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

    def _misleads_arrow(self, block: bytes) -> bool:
        """Whether Arrow might read the block, and wrongly."""
        if b"\r" in block or b"\0" in block:  # a line end to Arrow, and a character
            return True
        if not self.text_labels and (b"0x" in block or b"0X" in block):  # an integer to Arrow
            return True
        return self.layout.comma and _INDENTED.search(block) is not None  # what follows may be a comment

    def _drop_comments(self, first: int, block: bytes) -> tuple[bytes, np.ndarray]:
        """The data lines of a block, and their numbers."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE) + 1
        starts = np.concatenate(([0], ends[:-1]))
        numbers = np.arange(first, first + len(ends))
        keep = ~np.isin(data[starts], (_NEWLINE, *COMMENTS)) & (numbers > self.layout.start)
        return data[np.repeat(keep, ends - starts)].tobytes(), numbers[keep]

    def _read_columns(self, block: bytes) -> pa.Table:
        comma = self.layout.comma
        width = len(split_line(block[: block.index(b"\n")], comma))
        if width <= max(self.layout.positions):
            raise BadLine("too few fields")
        used = [str(position) for position in self.layout.positions]
        kinds = dict(zip(used, row_schema(self.text_labels).types, strict=False))
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=[str(position) for position in range(width)], block_size=ARROW_BYTES),
            arrow_csv.ParseOptions(delimiter="," if comma else " ", quote_char='"' if comma else False),
            arrow_csv.ConvertOptions(include_columns=used, column_types=kinds, null_values=[]),
        )

    def _checked(self, table: pa.Table, lines: np.ndarray) -> pa.Table | None:
        """The rows with their line numbers, or None if one of them is bad."""
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

    # -- line by line -------------------------------------------------------------------------------------------------

    def _parse_lines(self, first: int, block: bytes) -> Iterator[pa.Table]:
        """The same block line by line; raises on a bad line or counts it."""
        rows, schema = [], row_schema(self.text_labels)
        for number, line in enumerate(io.BytesIO(block), first):
            if number <= self.layout.start or not holds_data(line):
                continue
            try:
                rows.append((*self._parse_line(line), number))
            except BadLine as bad:
                if not self.skip_bad:
                    raise line_error(self.path, number, str(bad)) from None
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
        if not NUMBER.fullmatch(field) and not NOT_FINITE.fullmatch(field):
            raise BadLine(f"{self.value} {shown(field)} is not a number")
        number = float(field)
        if not np.isfinite(number):
            raise BadLine(f"{self.value} {shown(field)} is not a finite number")
        return number

    def _parse_label(self, field: bytes) -> int | str:
        if not field:
            raise BadLine("a node id is empty")
        integer = int(field) if INTEGER.fullmatch(field) and len(field) < LONGEST_INTEGER else None
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


def _within(a: pa.ChunkedArray, b: pa.ChunkedArray, size: int) -> bool:
    """Whether all ids are within 1..size."""
    ranges = [pc.min_max(column).as_py() for column in (a, b)]
    return all(found["min"] >= 1 and found["max"] <= size for found in ranges)
