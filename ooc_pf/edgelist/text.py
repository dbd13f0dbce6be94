"""Edge lists in text files, read as checked columns, block after block.

A block of text is parsed by Arrow in one go. If anything in it is odd, the same block is read again line by line, by
code that can say what is wrong and where. Whatever Arrow accepts, that code reads the same.
"""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import BadLine, InputError
from .delimiters import delimiter_name
from .fields import (
    BLANKS,
    COMMENTS,
    INTEGER,
    MAX_LINE,
    PLAIN_INTEGER,
    TAB,
    holds_data,
    is_number,
    line_error,
    not_a_number,
    opened,
    read_chunks,
    shown,
    split_line,
    squeeze_blanks,
    too_long,
    trim_lines,
)
from .layout import Asked, Layout, find_layout

# Cost only: lines read one by one that make a table, and bytes that Arrow parses at once.
EXACT_LINES = 1 << 15
ARROW_BYTES = 1 << 20
LONGEST_INTEGER = 100  # bytes; a longer field is text in any case, and slow to convert

_NEWLINE, _TEN, _ZERO, _POINT, _MINUS = np.frombuffer(b"\n\x0a0.-", np.uint8)
_EXPONENT, _SIGNS = tuple(b"eE"), tuple(b"+-")
_PLAIN = r"^\s*(0|-?[1-9][0-9]*)\s*$"  # as `PLAIN_INTEGER`, with the blanks that Arrow leaves
_INDENTS = tuple(b" \t\v\f")


class TextLabels(Exception):
    """A node id is not a 64-bit integer written the one plain way, so all of them must be read as text.

    Integers would make one node of ``7``, ``007`` and ``+7``. The message names the id.
    """


def row_schema(text_labels: bool) -> pa.Schema:
    """The columns in which a source gives its rows; ``position`` is where in the file a row stands."""
    label = pa.string() if text_labels else pa.int64()
    return pa.schema([("a", label), ("b", label), ("value", pa.float64()), ("position", pa.int64())])


class TextSource:
    """One text file: fields between spaces or one of the signs of `delimiters`, or Matrix Market; plain or gzip.

    Parameters
    ----------
    path : Path
    asked : Asked
        What the user says about columns, delimiter and header.
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
    bad, extra, lines : int
        Bad lines skipped so far, good lines with more fields than the first, and lines of any kind.
    done : float
        The fraction of the file that has been read.
    """

    unit = "line"

    def __init__(self, path: Path, asked: Asked, value: str, skip_bad: bool, block_bytes: int):
        self.path, self.value, self.skip_bad, self.block_bytes = path, value, skip_bad, block_bytes
        self.text_labels, self.bad, self.extra, self.lines, self.done = False, 0, 0, 0, 0.0
        self.layout: Layout = find_layout(path, asked, value, skip_bad)
        self.format, self.header, self.positions = self.layout.name, self.layout.header, self.layout.positions
        self.delimiter: str | None = delimiter_name(self.layout.delimiter)
        self.width = self.layout.width or len(self.positions)
        self.has_value = len(self.positions) == 3

    def tables(self) -> Iterator[pa.Table]:
        """Columns a, b, value and position (the line number) of all good lines, in order."""
        self.bad = self.extra = rows = 0
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
            for chunk in read_chunks(text, self.block_bytes):
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
            self.lines = line - 1 + bool(rest)

    # -- a block at once ----------------------------------------------------------------------------------------------

    def _parse_block(self, first: int, block: bytes) -> pa.Table | None:
        """The block as Arrow reads it, or None if anything about it calls for a closer look."""
        if self._misleads_arrow(block):
            return None
        delimiter = self.layout.delimiter
        if delimiter in (BLANKS, TAB):
            block = squeeze_blanks(block) if delimiter == BLANKS else trim_lines(block)
        try:
            block, lines = self._drop_comments(first, block)
            if not len(lines):
                return row_schema(self.text_labels).empty_table()
            width = len(split_line(block[: block.index(b"\n")], delimiter))
            table = self._read_columns(block, width, self.text_labels)
            if len(table) != len(lines) or self._merges_labels(block, width):  # a quote has swallowed a line end
                return None
        except (pa.ArrowInvalid, BadLine):
            return None
        rows = self._checked(table, lines)
        if rows is not None and self._is_wide(width):
            self.extra += len(rows)
        return rows

    def _merges_labels(self, block: bytes, width: int) -> bool:
        """Whether two ways to write an integer became the same label."""
        if self.text_labels or self.layout.size is not None or not _may_hold_odd_integers(block):
            return False
        columns = self._read_columns(block, width, True).columns[:2]
        return not all(pc.all(pc.match_substring_regex(labels, _PLAIN)).as_py() for labels in columns)

    def _is_wide(self, width: int) -> bool:
        return self.layout.width is not None and width > self.layout.width

    def _misleads_arrow(self, block: bytes) -> bool:
        """Whether Arrow might read the block, and wrongly."""
        if b"\r" in block or b"\0" in block:  # a line end to Arrow, and a character
            return True
        return not self.text_labels and (b"0x" in block or b"0X" in block)  # an integer to Arrow

    def _drop_comments(self, first: int, block: bytes) -> tuple[bytes, np.ndarray]:
        """The data lines of a block, and their numbers; lines that need a closer look are refused."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE) + 1
        starts = np.concatenate(([0], ends[:-1]))
        numbers, begins = np.arange(first, first + len(ends)), data[starts]
        if self.layout.delimiter != BLANKS and np.isin(begins, _INDENTS).any():
            raise BadLine("what follows a blank may be a comment")
        keep = ~np.isin(begins, (_NEWLINE, *COMMENTS)) & (numbers > self.layout.start)
        if keep.all():
            return block, numbers
        return data[np.repeat(keep, ends - starts)].tobytes(), numbers[keep]

    def _read_columns(self, block: bytes, width: int, text_labels: bool) -> pa.Table:
        """The columns wanted, of ``width`` there are."""
        if width <= max(self.positions):
            raise BadLine("too few fields")
        used = [str(position) for position in self.positions]
        kinds = dict(zip(used, row_schema(text_labels).types, strict=False))
        quote = '"' if self.layout.delimiter != BLANKS and b'"' in block else False  # much faster without
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=[str(position) for position in range(width)], block_size=ARROW_BYTES),
            arrow_csv.ParseOptions(delimiter=self.layout.delimiter.decode(), quote_char=quote),
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
                rows.append((*self._parse_line(line, number), number))
            except BadLine as bad:
                if not self.skip_bad:
                    raise line_error(self.path, number, str(bad)) from None
                self.bad += 1
            if len(rows) == EXACT_LINES:
                yield pa.table(list(zip(*rows, strict=True)), schema=schema)
                rows = []
        if rows:
            yield pa.table(list(zip(*rows, strict=True)), schema=schema)

    def _parse_line(self, line: bytes, number: int) -> tuple[int | str, int | str, float]:
        fields = split_line(line, self.layout.delimiter)
        wanted = max(self.positions) + 1
        if len(fields) < wanted:
            separated = "spaces or tabs" if self.layout.delimiter == BLANKS else f"{self.delimiter}s"
            missing = f"the {self.value} is missing: " if self.has_value and len(fields) == wanted - 1 else ""
            raise BadLine(f"{missing}{len(fields)} field(s), expected at least {wanted} separated by {separated}")
        used = [fields[position] for position in self.positions]
        value = self._parse_value(used[2]) if self.has_value else 1.0
        row = self._parse_label(used[0], number), self._parse_label(used[1], number), value
        self.extra += self._is_wide(len(fields))
        return row

    def _parse_value(self, field: bytes) -> float:
        if not is_number(field):
            raise BadLine(not_a_number(self.value, field))
        number = float(field)
        if not np.isfinite(number):
            raise BadLine(f"{self.value} {shown(field)} is not a finite number")
        return number

    def _parse_label(self, field: bytes, number: int) -> int | str:
        if not field:
            raise BadLine("a node id is empty")
        if self.layout.size is not None:
            return _parse_index(field, self.layout.size)
        if not self.text_labels:
            if len(field) < LONGEST_INTEGER and PLAIN_INTEGER.fullmatch(field) and -(2**63) <= int(field) < 2**63:
                return int(field)
            raise TextLabels(f"{shown(field)} in line {number} is not a plain integer")
        try:
            return field.decode()
        except UnicodeDecodeError:
            raise BadLine(f"node id {shown(field)} is not UTF-8 text") from None


def _parse_index(field: bytes, size: int) -> int:
    """An index of a Matrix Market file."""
    index = int(field) if len(field) < LONGEST_INTEGER and INTEGER.fullmatch(field) else 0
    if not 1 <= index <= size:
        raise BadLine(f"index {shown(field)} is not within 1 to {size}")
    return index


def _may_hold_odd_integers(block: bytes) -> bool:
    """Whether a field may be an integer with a leading zero, or minus zero; 0.05 and 1e-05 are not.

    Every block is looked at, so this is a few passes over its bytes. Other columns, such as dates, may give a false
    alarm, never the reverse.
    """
    data = np.frombuffer(b"\n\n" + block, np.uint8)
    is_zero, is_digit = data == _ZERO, (data - _ZERO) < _TEN
    goes_on = is_digit | (data == _POINT)
    leads = is_zero[1:-1] & is_digit[2:]
    leads &= ~goes_on[:-2]
    at = np.flatnonzero(leads)  # one before the zero
    before, earlier = data[at], data[at - 1]
    exponent = np.isin(before, _EXPONENT) | (np.isin(before, _SIGNS) & np.isin(earlier, _EXPONENT))
    if not exponent.all():
        return True
    return b"-" in block and bool(((data[:-2] == _MINUS) & is_zero[1:-1] & ~goes_on[2:]).any())


def _within(a: pa.ChunkedArray, b: pa.ChunkedArray, size: int) -> bool:
    """Whether all ids are within 1..size."""
    ranges = [pc.min_max(column).as_py() for column in (a, b)]
    return all(found["min"] >= 1 and found["max"] <= size for found in ranges)
