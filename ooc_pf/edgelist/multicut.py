"""The head of a MULTICUT file: that word on a line of its own, then an edge a line, as node, node and cost of a cut."""

from io import BufferedReader
from pathlib import Path

from ..errors import InputError
from .fields import opened

WORD = b"MULTICUT"
HEAD = 64  # bytes in which the line ends, with blanks behind the word


def has_word(text: BufferedReader) -> bool:
    """Whether the first line is the one of such files."""
    return text.peek(HEAD)[:HEAD].replace(b"\r", b"\n").split(b"\n")[0].rstrip() == WORD


def usual_kind(path: Path) -> str:
    """What the values of a file are if nobody says it: costs of cuts are signed weights, all others distances."""
    with opened(path) as (text, _):
        return "signed" if has_word(text) else "distance"


def check_asked(path: Path, value: str, asked: dict[str, object]) -> None:
    """Refuse what has no meaning here: costs are signed weights, and columns have no names."""
    if value != "weight":
        raise InputError(
            f"{path.name} is a MULTICUT file by its first line, and holds signed weights, not distances; leave kind= "
            "(--kind) out, or remove that line"
        )
    for option, given in asked.items():
        if given is not None:
            raise InputError(f"{path.name}: a MULTICUT file has three columns without names; leave `{option}` out")
