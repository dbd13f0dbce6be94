"""Arrays that do not fit the memory budget and wait in a scratch file until they are wanted again."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .vectors import Pool

ALIGNMENT = 8  # bytes; every array begins at a multiple of this; costs space only


def spilled_size(arrays: Mapping[str, np.ndarray]) -> int:
    """Bytes that the arrays take in a file."""
    return sum(_aligned(array.nbytes) for array in arrays.values())


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Spilled:
    """Named arrays in a file of a pool, one behind the other; make one with `Spilled.write`.

    Attributes
    ----------
    pool : Pool
    file, offset : int
        Where the first array begins.
    layout : dict
        (dtype, shape) of each array by name, in the order of the file.
    """

    pool: Pool
    file: int
    offset: int
    layout: dict[str, tuple[np.dtype, tuple[int, ...]]]

    @classmethod
    def write(cls, pool: Pool, file: int, offset: int, arrays: Mapping[str, np.ndarray]) -> "Spilled":
        """Write the arrays to a file, from ``offset`` on; `spilled_size` says how much of it they take."""
        spilled = cls(pool, file, offset, {name: (array.dtype, array.shape) for name, array in arrays.items()})
        spilled.update(arrays)
        return spilled

    def _places(self) -> Iterator[tuple[str, int]]:
        """(Name, offset) of the arrays that have anything in them."""
        at = self.offset
        for name, (dtype, shape) in self.layout.items():
            size = dtype.itemsize * math.prod(shape)
            if size:
                yield name, at
            at += _aligned(size)

    def update(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write some of the arrays again, with the dtypes and shapes they had."""
        for name, at in self._places():
            if name in arrays:
                self.pool.write(self.file, at, arrays[name])

    def read(self) -> dict[str, np.ndarray]:
        """All arrays, as they were last written."""
        found = {name: np.empty(shape, dtype) for name, (dtype, shape) in self.layout.items()}
        for name, at in self._places():
            dtype, shape = self.layout[name]
            found[name] = self.pool.read(self.file, at, math.prod(shape), dtype).reshape(shape)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the file that the arrays take."""
        return sum(_aligned(dtype.itemsize * math.prod(shape)) for dtype, shape in self.layout.values())

    def expect(self) -> None:
        """Say that these arrays will be read next."""
        self.pool.expect(self.file, self.offset, self.nbytes)
