"""The formats of an exported answer."""

from pathlib import Path

from ..errors import InputError

FORMATS = ("csv", "parquet", "npz")


def format_of(target: Path, named: str | None) -> str:
    """The format a file is to have: the one named, or that of its ending."""
    found = named or target.suffix.lstrip(".").lower()
    if found not in FORMATS:
        raise InputError(f"cannot export to {found or target.name!r}; name a file ending in .csv, .parquet or .npz")
    return found
