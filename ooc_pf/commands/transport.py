"""Transport between masses in files."""

from typing import Any

import numpy as np

from ..engine.result import Result
from ..problems.transport import quadratic_transport
from ..storage.numbers import open_numbers


def read_numbers(path: str) -> Any:
    """What a file holds: an array that is mapped or read by chunks, or the columns of a table."""
    found = open_numbers(path)
    if not hasattr(found, "iter_batches"):
        return found
    return np.column_stack([column.to_numpy() for column in found.read().columns])


def read_masses(path: str) -> np.ndarray:
    """A vector; of a table, its only column."""
    found = np.asarray(read_numbers(path))
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def solve_files(a: str, b: str, points: list[str] | None, cost: str | None, **options: Any) -> Result:
    """`quadratic_transport` of what is in files."""
    given = read_numbers(cost) if cost is not None else tuple(np.asarray(read_numbers(path)) for path in points or ())
    return quadratic_transport(read_masses(a), read_masses(b), given, **options)
