"""What separates the fields of a text file, as its first lines show it."""

from ..errors import BadLine, InputError
from .choices import DELIMITERS
from .columns import Unclear
from .fields import BLANKS, DECIMAL_COMMA, INTEGER, NUMBER, TAB, is_number, shown, split_line

NAMES = {
    BLANKS: "text separated by spaces or tabs",
    TAB: "tab-separated text",
    b",": "comma-separated text",
    b";": "semicolon-separated text",
    b"|": "pipe-separated text",
}
_SIGNS = tuple(delimiter for delimiter in NAMES if delimiter != BLANKS)


def parse_delimiter(text: str | None) -> bytes | None:
    r"""The delimiter a user asked for: its name, itself, or ``\t``."""
    if text is None:
        return None
    found = DELIMITERS.get(text, "\t" if text == r"\t" else text)
    if found not in DELIMITERS.values():
        names = ", ".join(f"{name} ({sign!r})" for name, sign in DELIMITERS.items())
        raise InputError(f"delimiter {text!r} is unknown here; choose one of {names}")
    return found.encode()


def delimiter_name(delimiter: bytes) -> str:
    """What to call a delimiter in a report and after ``--delimiter``."""
    return next(name for name, sign in DELIMITERS.items() if sign.encode() == delimiter)


def can_split(line: bytes, delimiter: bytes | None) -> bool:
    """Whether a line has two fields or more, with this delimiter or with any."""
    return any(_count(line, each) > 1 for each in ([delimiter] if delimiter else NAMES))


def find_delimiter(lines: list[bytes]) -> bytes:
    """The delimiter of the first data lines of a file.

    A sign counts if it splits most of the lines into as many fields as the first. Of several, the one wins that leaves
    the others out of the first two fields; tab wins where none does. A tab wins over spaces, so that labels may hold
    spaces, unless the line is nothing but numbers.

    Raises
    ------
    Unclear
        There is more than one way to read the first line.
    """
    first = lines[0]
    if _is_spaced(first):
        return BLANKS
    signs = [sign for sign in _SIGNS if _count(first, sign) > 1 and _fits(sign, lines)]
    clean = [sign for sign in signs if not _holds_others(first, sign, signs)]
    if not signs and _count(first, b",") > 1:
        return b","
    if len(signs) < 2 or clean or TAB in signs:
        found = (clean or [sign for sign in signs if sign == TAB] or signs or [BLANKS])[0]
        if found in (BLANKS, TAB):
            return found
        return _rather_blanks(found, lines)
    raise _ambiguous(first, signs)


def _count(line: bytes, delimiter: bytes) -> int:
    try:
        return len(split_line(line.strip(), delimiter))
    except BadLine:
        return 0


def _fits(sign: bytes, lines: list[bytes]) -> bool:
    if sign == TAB:
        return _tab_rather_than_blanks(lines)
    width = _count(lines[0], sign)
    return 2 * sum(_count(line, sign) == width for line in lines) >= len(lines)


def _tab_rather_than_blanks(lines: list[bytes]) -> bool:
    """Whether tabs alone separate: there are spaces within fields, or all lines have tabs and no spaces between."""
    tabbed = [line.strip() for line in lines if TAB in line.strip()]
    mixed = [line for line in tabbed if [field.strip() for field in line.split(TAB)] != line.split()]
    if any(not _is_spaced(line) for line in mixed):
        return True
    return not mixed and len(tabbed) == len(lines)


def _is_spaced(line: bytes) -> bool:
    """Whether a line is numbers with blanks between them, be it with decimal commas; or text with such a value."""
    line = line.strip()
    pieces = line.split()
    if TAB in line:
        parts = [part.strip() for part in line.split(TAB)]
        numbers = all(NUMBER.fullmatch(piece) or DECIMAL_COMMA.fullmatch(piece) for piece in pieces)
        return numbers and all(parts) and parts != pieces
    if len(pieces) > 2 and all(INTEGER.fullmatch(piece) for piece in pieces[:2]):
        return True
    return len(pieces) == 3 and line.count(b",") == 1 and DECIMAL_COMMA.fullmatch(pieces[2]) is not None


def _holds_others(line: bytes, sign: bytes, signs: list[bytes]) -> bool:
    """Whether one of the first two fields holds another of the signs."""
    nodes = split_line(line, sign)[:2]
    return any(other in field for field in nodes for other in (*signs, TAB) if other != sign)


def _rather_blanks(sign: bytes, lines: list[bytes]) -> bytes:
    """The sign, unless it stands within labels that blanks separate, as in ``sp|P1 sp|P2 0.9``."""
    if not any(b" " in field for field in split_line(lines[0].strip(), sign)[:2]) or _count(lines[0], BLANKS) < 2:
        return sign
    by_sign, by_blanks = (sum(_ends_in_number(line, each) for line in lines) for each in (sign, BLANKS))
    if by_blanks > by_sign:
        return BLANKS
    if by_sign or sign == b",":
        return sign
    raise _ambiguous(lines[0], [sign, BLANKS])


def _ends_in_number(line: bytes, delimiter: bytes) -> bool:
    try:
        fields = split_line(line.strip(), delimiter)
    except BadLine:
        return False
    return len(fields) > 2 and is_number(fields[-1])


def _ambiguous(line: bytes, signs: list[bytes]) -> Unclear:
    names = " or ".join(f"{delimiter_name(sign)}s" for sign in signs)
    return Unclear(f"{shown(line.strip())} may be separated by {names}")
