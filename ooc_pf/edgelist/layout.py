"""How a text file is laid out, as its first lines show it: separator, header, columns; or Matrix Market."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import BadLine, InputError
from .fields import (
    INTEGER,
    MAX_LINE,
    NOT_FINITE,
    NUMBER,
    check_columns,
    holds_data,
    line_error,
    opened,
    shown,
    split_line,
    too_long,
)

BANNER = b"%%matrixmarket"
# The words after the banner that are understood.
MARKET_WORDS = ((b"matrix",), (b"coordinate",), (b"real", b"integer", b"pattern"), (b"general", b"symmetric"))
# Two columns of text may be labels, so only these pairs of names are taken as a header.
HEADER_PAIRS = {
    (b"from", b"to"),
    (b"source", b"target"),
    (b"src", b"dst"),
    (b"u", b"v"),
    (b"node1", b"node2"),
    (b"fromnodeid", b"tonodeid"),
}
_TWO_INTEGERS = re.compile(rb"\s*[+-]?\d+\s+[+-]?\d+\s")


@dataclass(frozen=True)
class Layout:
    """Where the columns of a text file are.

    Attributes
    ----------
    name : str
        What to call it in a report.
    comma : bool
        Separated by commas, not by blanks.
    positions : tuple of int
        Columns of node, node and perhaps value, from 0.
    start : int
        Lines before the data.
    header : tuple of str or None
        Names of the columns.
    size, entries : int or None
        Of Matrix Market: ids are 1..size, and there are so many entries.
    """

    name: str
    comma: bool
    positions: tuple[int, ...]
    start: int = 0
    header: tuple[str, ...] | None = None
    size: int | None = None
    entries: int | None = None


def find_layout(path: Path, columns: tuple[str, ...] | None, skip_bad: bool) -> Layout:
    """Read a file as far as its first data line.

    Parameters
    ----------
    path : Path
    columns : tuple of str or None
        Names or positions from 1 of the columns to read.
    skip_bad : bool
        Pass over lines that cannot be split.
    """
    with opened(path) as (text, _):
        lines = enumerate(iter(lambda: text.readline(MAX_LINE + 1), b""), 1)
        banner = _market_banner(path, lines, text)
        for number, line in lines:
            if len(line) > MAX_LINE:
                raise too_long(path, number)
            if not holds_data(line):
                continue
            if banner is not None:
                return _market_layout(path, number, line, banner, columns)
            try:
                return _table_layout(path, number, line, columns)
            except BadLine as bad:
                if not skip_bad:
                    raise line_error(path, number, str(bad)) from None
    raise InputError(f"{path.name} holds no edges: no usable line of two or more fields was found in it")


# -- Matrix Market --------------------------------------------------------------------------------------------------


def _market_banner(path: Path, lines: Iterator[tuple[int, bytes]], text: BinaryIO) -> list[bytes] | None:
    """The words of the banner, if the file begins with one."""
    if text.peek(len(BANNER))[: len(BANNER)].lower() == BANNER:
        return next(lines)[1].lower().split()
    if ".mtx" in path.suffixes[-2:]:
        raise line_error(path, 1, "a Matrix Market file must begin with %%MatrixMarket", "add the banner or rename it")
    return None


def _market_layout(path: Path, number: int, line: bytes, banner: list[bytes], columns: object) -> Layout:
    """The layout of a Matrix Market file, whose first data line tells its size."""
    known = len(banner) == 5 and all(word in kind for word, kind in zip(banner[1:], MARKET_WORDS, strict=True))
    if not known:
        problem = f"{shown(b' '.join(banner))} is not readable here"
        wanted = "matrix coordinate real|integer|pattern general|symmetric"
        raise line_error(path, 1, problem, f"expected %%MatrixMarket {wanted}")
    if columns is not None:
        raise InputError(f"{path.name}: a Matrix Market file has no named columns; leave `columns` out")
    fields = line.split()
    if len(fields) != 3 or not all(field.isdigit() for field in fields):
        raise line_error(path, number, f"{shown(line.strip())} is not a size line", "expected: rows columns entries")
    height, width, entries = map(int, fields)
    if height != width:
        raise line_error(path, number, f"the matrix is {height} x {width}", "a graph needs a square matrix")
    positions = (0, 1) if banner[3] == b"pattern" else (0, 1, 2)
    return Layout("Matrix Market", False, positions, start=number, size=height, entries=entries)


# -- tables ---------------------------------------------------------------------------------------------------------


def _table_layout(path: Path, number: int, line: bytes, columns: tuple[str, ...] | None) -> Layout:
    """The layout as the first data line shows it.

    A comma means comma-separated, unless the line reads as two integers and more (a decimal comma, say). With named
    columns the line is the header. Otherwise `_is_header` decides.
    """
    comma = b"," in line and not _TWO_INTEGERS.match(line)
    name = "comma-separated text" if comma else "text separated by spaces or tabs"
    fields = split_line(line, comma)
    if len(fields) < 2:
        raise BadLine(f"{shown(line.strip())} has one field, expected two or more separated by spaces, tabs or commas")
    names = [field.decode("utf-8", "backslashreplace") for field in fields]
    if columns is not None and not all(column.isdigit() for column in columns):
        check_columns(path.name, columns, names, f"in its header, line {number}")
        return Layout(name, comma, tuple(map(names.index, columns)), number, tuple(names))
    positions = _positions(path, columns, len(fields))
    if _is_header([fields[position] for position in positions]):
        return Layout(name, comma, positions, number, tuple(names))
    return Layout(name, comma, positions)


def _positions(path: Path, columns: tuple[str, ...] | None, width: int) -> tuple[int, ...]:
    """The columns asked for by number, or else the first three, as positions from 0."""
    if columns is None:
        return tuple(range(min(width, 3)))
    positions = tuple(int(column) - 1 for column in columns)
    if not all(0 <= position < width for position in positions):
        raise InputError(f"{path.name}: columns {', '.join(columns)} asked for, it has 1 to {width}")
    return positions


def _is_header(fields: list[bytes]) -> bool:
    """Whether node, node and perhaps value of the first line are names.

    With a value: if it is no number at all while the nodes are not both integers. Without: if the two are one of a few
    usual pairs of names.
    """
    if len(fields) == 2:
        return (fields[0].lower(), fields[1].lower()) in HEADER_PAIRS
    number = NUMBER.fullmatch(fields[2]) or NOT_FINITE.fullmatch(fields[2]) or not fields[2]
    return not number and not all(INTEGER.fullmatch(field) for field in fields[:2])
