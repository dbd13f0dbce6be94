"""How a text file is laid out, as its first lines show it: delimiter, header, columns; or Matrix Market, or MULTICUT.

Where the lines leave it open, nothing is guessed: the error says what was found and what to type.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadLine, InputError
from .columns import (
    Unclear,
    are_positions,
    choose_columns,
    find_pairs,
    locate,
    locate_positions,
    propose,
    propose_positions,
)
from .delimiters import NAMES, can_split, delimiter_name, find_delimiter
from .fields import (
    BLANKS,
    INTEGER,
    TAB,
    holds_data,
    is_number,
    line_error,
    not_a_number,
    opened,
    read_lines,
    shown,
    split_line,
)
from .market import has_banner, read_banner, read_size
from .multicut import check_asked, has_word

# How far ahead the first lines are looked at: they decide about delimiter and header.
SAMPLE_LINES = 50
SAMPLE_BYTES = 1 << 18

Line = tuple[int, bytes]


@dataclass(frozen=True)
class Asked:
    """What the user says about a file; None: find it out.

    Attributes
    ----------
    columns : tuple of str or None
        Names, or positions from 1, of node, node and perhaps value.
    delimiter : bytes or None
        One of `delimiters.NAMES`.
    header : bool or None
        Whether the first data line holds the names of the columns.
    """

    columns: tuple[str, ...] | None = None
    delimiter: bytes | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Layout:
    """Where the columns of a text file are.

    Attributes
    ----------
    name : str
        What to call it in a report.
    delimiter : bytes
        What separates fields; `BLANKS` is any number of spaces and tabs.
    positions : tuple of int
        Columns of node, node and perhaps value, from 0.
    start : int
        Lines before the data.
    header : tuple of str or None
        Names of the columns.
    width : int or None
        How many columns there are; lines with more are counted.
    size, entries : int or None
        Of Matrix Market: ids are 1..size, and there are so many entries.
    """

    name: str
    delimiter: bytes
    positions: tuple[int, ...]
    start: int = 0
    header: tuple[str, ...] | None = None
    width: int | None = None
    size: int | None = None
    entries: int | None = None


def find_layout(path: Path, asked: Asked, value: str, skip_bad: bool) -> Layout:
    """Find the layout from the first lines of a file.

    Parameters
    ----------
    path : Path
    asked : Asked
        What the user says about it.
    value : str
        What to call the value in messages.
    skip_bad : bool
        Pass over lines that cannot be split.
    """
    with opened(path) as (text, _):
        is_market, is_multicut = has_banner(path, text), has_word(text)
        lines = read_lines(path, text)
        if is_multicut:
            check_asked(path, value, vars(asked))
            return Layout("MULTICUT", BLANKS, (0, 1, 2), next(lines)[0], width=3)
        if is_market:
            return _market_layout(path, next(lines)[1], lines, asked)
        sample = _take_sample(lines, lambda line: not skip_bad or can_split(line, asked.delimiter))
    if not sample:
        raise InputError(f"{path.name} holds no edges: no usable line of two or more fields was found in it")
    return _TableHead(path, asked, value, skip_bad, sample).layout()


def _take_sample(lines: Iterator[Line], usable: Callable[[bytes], bool]) -> list[Line]:
    """The first data lines that are usable."""
    sample: list[Line] = []
    held = 0
    for number, line in lines:
        if not holds_data(line) or not usable(line):
            continue
        sample.append((number, line))
        held += len(line)
        if len(sample) > SAMPLE_LINES or held > SAMPLE_BYTES:
            break
    return sample


def _market_layout(path: Path, banner: bytes, lines: Iterator[Line], asked: Asked) -> Layout:
    has_value = read_banner(path, banner, vars(asked))
    for number, line in lines:
        if holds_data(line):
            size, entries = read_size(path, number, line)
            positions = (0, 1, 2) if has_value else (0, 1)
            return Layout("Matrix Market", BLANKS, positions, number, width=None, size=size, entries=entries)
    raise InputError(f"{path.name} holds no edges: it ends before its size line")


# -- tables ---------------------------------------------------------------------------------------------------------


class _TableHead:
    """The first data lines of a table; the very first may be its header."""

    def __init__(self, path: Path, asked: Asked, value: str, skip_bad: bool, sample: list[Line]):
        self.path, self.asked, self.value, self.skip_bad = path, asked, value, skip_bad
        self.number, first = sample[0]
        try:
            self.delimiter = asked.delimiter or find_delimiter([line for _, line in sample])
            self.fields = split_line(first, self.delimiter)
        except BadLine as bad:
            raise line_error(path, self.number, str(bad)) from None
        except Unclear as unclear:
            remedy = "say which with delimiter= (--delimiter), as in --delimiter semicolon"
            raise line_error(path, self.number, str(unclear), remedy) from None
        if len(self.fields) < 2:
            raise line_error(path, self.number, self._one_field(first))
        self.body = list(_split_all(sample[1:], self.delimiter))
        self.names = [_unquoted(field).decode("utf-8", "backslashreplace") for field in self.fields]

    def _one_field(self, line: bytes) -> str:
        wanted = "spaces, tabs, commas, semicolons or pipes"
        if self.asked.delimiter:
            wanted = f"{delimiter_name(self.asked.delimiter)}s, as delimiter= (--delimiter) says"
        return f"{shown(line.strip())} has one field, expected two or more separated by {wanted}"

    def layout(self) -> Layout:
        """Delimiter, header and columns, or an error that says what is open."""
        columns = self.asked.columns
        if columns is None:
            has_header = self._has_header()
            positions = self._by_names() if has_header else self._by_order()
        elif are_positions(columns):
            has_header, positions = self._has_header(), locate_positions(self.path.name, columns, len(self.fields))
        elif self.asked.header is False:
            told = f"columns {', '.join(columns)} are names, but header=False (--no-header) says there are none"
            raise InputError(f"{self.path.name}: {told}; give positions from 1")
        else:
            has_header = True
            where = f"in its header, line {self.number}"
            if any(is_number(name.encode()) for name in self.names):
                where = f"in line {self.number}, which looks like data: without a header give positions from 1,"
            positions = locate(self.path.name, columns, self.names, where)
        if has_header and not are_positions(columns):
            self._check_width()
        self._check_values(positions, has_header)
        name, width = NAMES[self.delimiter], len(self.fields)
        if not has_header:
            return Layout(name, self.delimiter, positions, width=width)
        width = max([width, *(len(fields) for _, fields in self.body[:1])])
        return Layout(name, self.delimiter, positions, self.number, tuple(self.names), width)

    # -- header -------------------------------------------------------------------------------------------------------

    def _has_header(self) -> bool:
        """Whether the first line holds names.

        Names of nodes say so, if they can hardly be labels. Otherwise a line without numbers is a header if a column
        that is no node has numbers below it. Text above integer nodes may be either, which the user has to say.
        """
        if self.asked.header is not None:
            return self.asked.header
        pairs = find_pairs(self.names)
        if any(pair.sure for pair in pairs):
            return True
        if any(is_number(field) or not field for field in self.fields):
            return False
        nodes = (pairs[0].first, pairs[0].second) if pairs else self._likely_nodes()
        if any(self._has_numbers(k, is_number) for k in range(len(self.fields)) if k not in nodes):
            return True
        integers = [self._has_numbers(k, INTEGER.fullmatch) for k in nodes]
        if pairs and all(integers):
            return True
        labels = {field for _, fields in self.body for k, field in enumerate(fields) if k in nodes}
        if not labels.isdisjoint(self.fields[k] for k in nodes) or not (pairs or any(integers)):
            return False
        problem = f"{', '.join(shown(self.fields[k]) for k in nodes)} may be names of columns or an edge"
        remedy = "say which with header=True (--header) or header=False (--no-header)"
        raise line_error(self.path, self.number, problem, remedy)

    def _likely_nodes(self) -> tuple[int, ...]:
        if self.asked.columns is not None and are_positions(self.asked.columns):
            return locate_positions(self.path.name, self.asked.columns, len(self.fields))[:2]
        return 0, 1

    def _has_numbers(self, column: int, matches: Callable[[bytes], object]) -> bool:
        """Whether all lines below the first have a number in this column."""
        below = [fields[column] for _, fields in self.body if column < len(fields)]
        return bool(below) and all(matches(field) for field in below)

    # -- columns ------------------------------------------------------------------------------------------------------

    def _by_names(self) -> tuple[int, ...]:
        try:
            return choose_columns(self.names)
        except Unclear as unclear:
            problem = f"the header names the columns {', '.join(self.names[:20])}, and {unclear}"
            raise line_error(self.path, self.number, problem, propose(self.names)) from None

    def _by_order(self) -> tuple[int, ...]:
        width = len(self.fields)
        if width > 3:
            hint = "; or say --header if the first line holds names" if self.asked.header is None else ""
            if self.delimiter == TAB and b"" in self.fields:
                hint += "; or --delimiter space if any number of tabs is meant as one"
            problem = f"{width} columns ({self._some()}) and no header that is known"
            raise line_error(self.path, self.number, problem, propose_positions() + hint)
        return tuple(range(width))

    def _check_width(self) -> None:
        """A line with more fields than there are names does not stand below them."""
        for number, fields in self.body[:1]:
            while fields and not fields[-1]:
                fields = fields[:-1]
            if len(fields) > len(self.names):
                problem = f"{len(fields)} fields, but the header names only {len(self.names)}"
                remedy = "give positions instead of names with columns= (--columns), for example --columns 2,3,4"
                raise line_error(self.path, number, problem, remedy)

    def _check_values(self, positions: tuple[int, ...], has_header: bool) -> None:
        """Refuse a column of values in which there is no number at all: it is the wrong one."""
        if len(positions) < 3:
            return
        rows, place = self.body if has_header else [(self.number, self.fields), *self.body], positions[2]
        found = [(number, fields[place]) for number, fields in rows if place < len(fields)]
        if not found or not all(field and not is_number(field) for _, field in found):
            return
        if self.asked.columns is not None and self.skip_bad:
            return
        number, field = found[0]
        column = f"column {place + 1}" + (f" ({self.names[place]})" if has_header else "")
        problem = f"{not_a_number(self.value, field)}, nor is any in {column} up to line {found[-1][0]}"
        nodes = ",".join(self.names[k] if has_header else str(k + 1) for k in positions[:2])
        remedy = f"name other columns with columns= (--columns), or only the nodes, as in --columns {nodes!r}"
        raise line_error(self.path, number, problem, remedy)

    def _some(self) -> str:
        return ", ".join(shown(field) for field in self.fields[:6]) + (", ..." if len(self.fields) > 6 else "")


def _split_all(lines: list[Line], delimiter: bytes) -> Iterator[tuple[int, list[bytes]]]:
    for number, line in lines:
        try:
            fields = split_line(line, delimiter)
        except BadLine:
            continue
        if len(fields) > 1:
            yield number, fields


def _unquoted(field: bytes) -> bytes:
    return field[1:-1] if len(field) > 1 and field[:1] == field[-1:] == b'"' else field
