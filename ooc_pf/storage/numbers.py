"""Numbers in files that somebody else wrote: arrays in .npy and .zarr, tables in .parquet."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .arrays import open_foreign
from .files import local_path

ENDINGS = (".npy", ".zarr", ".parquet")
BUFFER_BYTES = 1 << 16  # for each column of a Parquet file; costs time and memory only


def open_numbers(path: str | Path) -> Any:
    """What a file holds, nothing of it read: a memory map, a Zarr array, or a ``pyarrow.parquet.ParquetFile``."""
    place = local_path(path)
    ending = place.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"cannot read numbers from {path}; name a file ending in {', '.join(ENDINGS[:-1])} or .parquet"
        )
    if not place.exists():
        raise InputError(f"{path} is not there")
    if ending == ".zarr":
        return open_foreign(place)
    try:
        return np.load(place, mmap_mode="r", allow_pickle=False) if ending == ".npy" else _open_parquet(place)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read: {str(error).splitlines()[0][:200]}") from error


def _open_parquet(place: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    # Read through a buffer, or a whole row group would be held at once.
    return ParquetFile(place, buffer_size=BUFFER_BYTES, pre_buffer=False)
