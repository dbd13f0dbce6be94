"""Lines and fields of a text file that may hold anything: how to open, split and show them."""

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import BadLine, InputError

MAX_LINE = 1 << 20  # bytes; a longer line is refused, as no edge list has one
SKIP_REMEDY = "correct it, or leave out all such lines with bad_lines='skip' (--bad-lines skip)"
NO_EDGE_LIST = "this does not look like an edge list"

INTEGER = re.compile(rb"[+-]?[0-9]+")
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
COMMENTS = tuple(b"#%")  # a line that begins with one of these bytes is a comment

_BUFFER = 1 << 18  # bytes of unpacked text at hand
_SHOWN = 40  # most bytes of a field in a message
_BLANKS_TO_SPACE = bytes.maketrans(b"\t\v\f", b"   ")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The text of a plain or gzip file, and the file below it, whose position tells how far the reading is."""
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            text = io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER) if packed else raw
            if text.peek(3)[:3] == b"\xef\xbb\xbf":  # a byte order mark
                text.read(3)
            yield text, raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path.name}: the gzip data is cut off or damaged ({error}); get the file again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def line_error(path: Path, line: int, problem: str, remedy: str = SKIP_REMEDY) -> InputError:
    """What is wrong with a file, and in which line."""
    return InputError(f"{path.name} line {line}: {problem}; {remedy}")


def too_long(path: Path, line: int) -> InputError:
    """The error for a line above `MAX_LINE`."""
    return line_error(path, line, f"longer than {MAX_LINE} bytes", NO_EDGE_LIST)


def holds_data(line: bytes) -> bool:
    """Whether a line is neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and stripped[0] not in COMMENTS


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


def shown(field: bytes) -> str:
    """A field of an untrusted file, short and printable."""
    return repr(field[:_SHOWN].decode("utf-8", "backslashreplace") + ("..." if len(field) > _SHOWN else ""))


def check_columns(file: str, columns: tuple[str, ...], names: list[str], where: str) -> None:
    """Refuse names that are not there, or there twice."""
    for column in columns:
        if names.count(column) != 1:
            problem = "twice" if column in names else "missing"
            raise InputError(f"{file}: column {column!r} is {problem} {where}; the columns are {', '.join(names[:20])}")
