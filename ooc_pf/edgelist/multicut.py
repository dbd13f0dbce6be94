"""The head of a MULTICUT file: that word on a line of its own, then an edge a line, as node, node and cost of a cut."""

from io import BufferedReader
from pathlib import Path

from ..errors import InputError

WORD = b"MULTICUT"


def has_word(text: BufferedReader) -> bool:
    """Whether the first line is the one of such files."""
    return text.peek(len(WORD) + 2)[: len(WORD) + 2].split(b"\n")[0].rstrip() == WORD


def check_asked(path: Path, value: str, asked: dict[str, object]) -> None:
    """Refuse what has no meaning here: costs are signed weights, and columns have no names."""
    if value != "weight":
        raise InputError(f"{path.name}: a MULTICUT file holds signed weights; give kind='signed' (--kind signed)")
    for option, given in asked.items():
        if given is not None:
            raise InputError(f"{path.name}: a MULTICUT file has three columns without names; leave `{option}` out")
