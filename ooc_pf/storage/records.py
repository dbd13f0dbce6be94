"""Plain values from JSON, checked before anyone relies on them."""

import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ..errors import WorkspaceError

LARGEST_INTEGER = 1 << 62  # larger ones count nothing that there is
DEEPEST = 12  # of lists and dicts within each other
RESTART = "`ooc-pf solve --restart` starts again"

Record = TypeVar("Record")


def parse_json(text: str | bytes, where: Any, *, finite: bool = True) -> Any:
    """The value that ``text`` stands for; refuses what is not JSON, nested too deep or, with ``finite``, not finite.

    Parameters
    ----------
    text : str or bytes
    where
        Names the file in the message.
    finite : bool
        Whether infinity and nan are refused.

    Returns
    -------
    object
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant if finite else None)
        _check_depth(value, finite)
    except (ValueError, RecursionError) as error:
        raise WorkspaceError(f"{where} is damaged: {error or type(error).__name__}") from error
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _check_depth(value: Any, finite: bool) -> None:
    level = [value]
    for _ in range(DEEPEST):
        if finite and any(isinstance(each, float) and not math.isfinite(each) for each in level):
            raise ValueError("a number is too large")
        for text in (each for each in level if isinstance(each, str)):
            text.encode()  # half a character of two can be written in JSON, and nowhere else
        level = [part for each in level for part in _parts(each)]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def _parts(value: Any) -> Iterable[Any]:
    return (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


def fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of the kind an annotation names: plain types, None, object, and unions of them."""
    if kind is object:
        return True
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return any(fits(value, each) for each in typing.get_args(kind))
    if kind is None or kind is type(None):
        return value is None
    if kind is int:
        return type(value) is int and abs(value) <= LARGEST_INTEGER
    if kind is float:
        return type(value) is float or fits(value, int)
    return type(value) is kind


def check_fields(stored: Mapping[str, Any], kinds: Mapping[str, Any], where: Any, prefix: str = "") -> None:
    """Refuse a dict in which an entry is missing or not of the kind it must be.

    Parameters
    ----------
    stored : dict
        May have other entries too.
    kinds : dict
        The annotation of each entry there must be.
    where
        Names the file in the message; ``prefix`` is put before the name of an entry.
    prefix : str
    """
    for name, kind in kinds.items():
        if name not in stored:
            raise WorkspaceError(f"{where} is damaged: it lacks {prefix}{name}")
        if not fits(stored[name], kind):
            raise WorkspaceError(f"{where} is damaged: {prefix}{name} is {shown(stored[name])}")


def shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_record(cls: type[Record], stored: Any, where: Any, what: str, **made: Any) -> Record:
    """A dataclass of plain values from what was stored of it; refuses unknown, missing and mistyped fields.

    Parameters
    ----------
    cls : dataclass
        Its annotations say what each field may be. A field with a default may be missing.
    stored : dict
    where
        Names the file in the message.
    what : str
        What the record is called there.
    **made
        Fields that are no plain values, made by the caller.

    Returns
    -------
    cls
    """
    if not isinstance(stored, dict):
        raise WorkspaceError(f"{where} is damaged: {what} is {shown(stored)}; {RESTART}")
    hints = typing.get_type_hints(cls)
    known = {field.name: field for field in fields(cls) if field.name not in made}  # type: ignore[arg-type]
    unknown = sorted(stored.keys() - known.keys())
    if unknown:
        raise WorkspaceError(f"{where} is damaged: {what} has an entry {shown(unknown[0])}, which means nothing here")
    needed = {
        name: hints[name]
        for name, field in known.items()
        if name in stored or (field.default is MISSING and field.default_factory is MISSING)
    }
    check_fields(stored, needed, where, f"{what}.")
    return cls(**stored, **made)


def require(holds: bool, where: Any, problem: str) -> None:
    """Refuse what was stored unless a condition ``holds``."""
    if not holds:
        raise WorkspaceError(f"{where} is damaged: {problem}; {RESTART}")
