"""Records dealt out into buckets whose sizes are known, to be taken out again one bucket after the other."""

from collections.abc import Iterator

import numpy as np

from .vectors import Pool


class Buckets:
    """One room for all buckets: an array, or a scratch file if the vectors of the pool are in pages.

    Parameters
    ----------
    sizes : int64[buckets]
        How many records each will get.
    dtype : numpy.dtype
        Of a record.
    pool : Pool or None
        None: in memory.
    """

    def __init__(self, sizes: np.ndarray, dtype: np.dtype, pool: Pool | None):
        self._begin = np.concatenate(([0], np.cumsum(sizes)))
        self._free, self._dtype = self._begin[:-1].copy(), dtype
        self._array: np.ndarray | None = None
        self._home: tuple[Pool, int] | None = None
        if pool is None or pool.whole:
            self._array = np.empty(self._begin[-1], dtype)
        else:
            self._home = pool, pool.open_file()

    def add(self, bucket: int, records: np.ndarray) -> None:
        """Put records behind those that the bucket has."""
        at = int(self._free[bucket])
        self._free[bucket] += len(records)
        if self._array is not None:
            self._array[at : at + len(records)] = records
        elif self._home is not None:
            pool, file = self._home
            pool.write(file, at * self._dtype.itemsize, records)

    def take(self, bucket: int, most: int) -> Iterator[np.ndarray]:
        """The records of a bucket in the order in which they came, at most so many at a time; not to be changed."""
        begin, end = int(self._begin[bucket]), int(self._begin[bucket + 1])
        for first in range(begin, end, most):
            yield self._read(first, min(first + most, end))

    def _read(self, first: int, last: int) -> np.ndarray:
        if self._array is not None:
            return self._array[first:last]
        assert self._home is not None, "the buckets were closed"
        pool, file = self._home
        return pool.read(file, first * self._dtype.itemsize, last - first, self._dtype)

    def close(self) -> None:
        """Give up the room."""
        if self._home is not None:
            pool, file = self._home
            pool.close_file(file)
        self._home = self._array = None
