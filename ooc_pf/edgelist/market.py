"""The head of a Matrix Market file."""

from io import BufferedReader
from pathlib import Path

from ..errors import InputError
from .fields import line_error, shown

BANNER = b"%%matrixmarket"
# The words after the banner that are understood.
WORDS = ((b"matrix",), (b"coordinate",), (b"real", b"integer", b"pattern"), (b"general", b"symmetric"))


def has_banner(path: Path, text: BufferedReader) -> bool:
    """Whether the file begins as Matrix Market does; one that only has the name of such a file is refused."""
    if text.peek(len(BANNER))[: len(BANNER)].lower() == BANNER:
        return True
    if ".mtx" in path.suffixes[-2:]:
        raise line_error(path, 1, "a Matrix Market file must begin with %%MatrixMarket", "add the banner or rename it")
    return False


def read_banner(path: Path, line: bytes, asked: dict[str, object]) -> bool:
    """Check the banner, and that nothing was asked for that has no meaning here; returns whether there are values."""
    words = line.lower().split()
    known = len(words) == 5 and all(word in kind for word, kind in zip(words[1:], WORDS, strict=True))
    if not known:
        problem = f"{shown(b' '.join(words))} is not readable here"
        wanted = "matrix coordinate real|integer|pattern general|symmetric"
        raise line_error(path, 1, problem, f"expected %%MatrixMarket {wanted}")
    for option, value in asked.items():
        if value is not None:
            raise InputError(f"{path.name}: a Matrix Market file has no named columns; leave `{option}` out")
    return words[3] != b"pattern"


def read_size(path: Path, number: int, line: bytes) -> tuple[int, int]:
    """The size line: the greatest index, and how many entries follow."""
    fields = line.split()
    if len(fields) != 3 or not all(field.isdigit() for field in fields):
        raise line_error(path, number, f"{shown(line.strip())} is not a size line", "expected: rows columns entries")
    height, width, entries = map(int, fields)
    if height != width:
        raise line_error(path, number, f"the matrix is {height} x {width}", "a graph needs a square matrix")
    return height, entries
