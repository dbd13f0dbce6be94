"""Lines and fields of a text file that may hold anything: how to open, split and show them."""

import contextlib
import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ..errors import BadLine, InputError

MAX_LINE = 1 << 20  # bytes; a longer line is refused, as no edge list has one
SKIP_REMEDY = "correct it, or leave out all such lines with bad_lines='skip' (--bad-lines skip)"
NO_EDGE_LIST = "this does not look like an edge list"

INTEGER = re.compile(rb"[+-]?[0-9]+")
PLAIN_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")  # the one way to write an integer; any other is text
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DECIMAL_COMMA = re.compile(rb"[+-]?[0-9]+,[0-9]+")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
COMMENTS = tuple(b"#%")  # a line that begins with one of these bytes is a comment

BLANKS, TAB = b" ", b"\t"  # delimiters; BLANKS stands for any number of spaces and tabs

_BUFFER = 1 << 18  # bytes of unpacked text at hand
_LINES_BYTES = 1 << 16  # bytes read at once where single lines are wanted
_SHOWN = 40  # most bytes of a field in a message
_BLANKS_TO_SPACE = bytes.maketrans(b"\t\v\f", b"   ")
_TRAILING = re.compile(rb"[ \t\v\f]+\n")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[BufferedReader, BufferedReader]]:
    """The text of a plain or gzip file, and the file below it, whose position tells how far the reading is."""
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            text = BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER) if packed else raw
            if text.peek(3)[:3] == b"\xef\xbb\xbf":  # a byte order mark
                text.read(3)
            yield text, raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path.name}: the gzip data is cut off or damaged ({error}); get the file again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_chunks(text: BufferedReader, size: int) -> Iterator[bytes]:
    """The text in pieces of about ``size`` bytes; CR LF and CR, which end a line too, come as LF."""
    held = b""
    while chunk := text.read(size):
        chunk, held = held + chunk, b""
        if b"\r" in chunk:
            if chunk.endswith(b"\r"):  # the LF that belongs to it may come next
                chunk, held = chunk[:-1], b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield chunk
    if held:
        yield b"\n"


def read_lines(path: Path, text: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """The lines of a text without their ends, each with its number from 1."""
    rest, number = b"", 1
    for chunk in read_chunks(text, _LINES_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from enumerate(lines, number)
        number += len(lines)
        if len(rest) > MAX_LINE:
            raise too_long(path, number)
    if rest:
        yield number, rest


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


def split_line(line: bytes, delimiter: bytes) -> list[bytes]:
    """The fields of one line, without the blanks around them."""
    if b"\0" in line:
        raise BadLine("a NUL byte: this is not a text file, or not in an encoding like UTF-8")
    if delimiter == BLANKS:
        return line.split()
    line = line.rstrip() if delimiter == TAB else line.rstrip(b"\n")
    if b'"' not in line:
        return [field.strip() for field in line.split(delimiter)]
    try:
        # Latin-1 carries any bytes through the csv module unchanged.
        fields = next(csv.reader([line.decode("latin-1")], delimiter=delimiter.decode()), [])
    except csv.Error as error:
        raise BadLine(f"not readable as fields separated by {delimiter.decode()!r} ({error})") from None
    return [field.encode("latin-1").strip() for field in fields]


def squeeze_blanks(block: bytes) -> bytes:
    """One space where there are blanks between fields, and none at the ends of lines."""
    block = block.translate(_BLANKS_TO_SPACE)
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")


def trim_lines(block: bytes) -> bytes:
    """No blanks at the ends of lines."""
    return _TRAILING.sub(b"\n", block) if b"\t\n" in block or b" \n" in block else block


def is_number(field: bytes) -> bool:
    """Whether a field reads as a number, be it finite or not."""
    return (NUMBER.fullmatch(field) or NOT_FINITE.fullmatch(field)) is not None


def not_a_number(value: str, field: bytes) -> str:
    """What is wrong with a field that should be a number."""
    comma = " (decimals need a point)" if DECIMAL_COMMA.fullmatch(field) else ""
    return f"{value} {shown(field)} is not a number{comma}"


def shown(field: bytes) -> str:
    """A field of an untrusted file, short and printable."""
    return repr(field[:_SHOWN].decode("utf-8", "backslashreplace") + ("..." if len(field) > _SHOWN else ""))
