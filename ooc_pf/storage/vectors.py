"""Vectors by edge under a memory budget: whole in memory while they fit, else in pages of scratch files.

Either way a vector is read and written through the same few calls, and everything that adds numbers up goes through
`spans`, whose cuts are fixed. So an answer has the same bits whatever was in memory.
"""

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import BudgetError, WorkspaceError
from .arrays import open_array, read_array, read_parts, write_parts
from .files import check_own, gone, remove

PAGE = 1 << 15  # elements; shapes the bits: sums over edges are cut here, in memory too


class Pool:
    """What vectors share: whether they are whole, and if not, the resident pages, replaced least recently used first.

    Parameters
    ----------
    memory : int or None
        Bytes for resident pages; None: vectors are whole.
    folder : Path or None
        Where pages wait; it must be ours alone.
    """

    def __init__(self, memory: int | None = None, folder: Path | None = None):
        if memory is not None and folder is None:
            raise BudgetError("the vectors over edges do not fit the memory given; name a workspace= for them")
        self.whole = memory is None
        self._memory, self._folder = memory or 0, folder
        self._pages: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._dirty: set[tuple[int, int]] = set()
        self._files: dict[int, int] = {}
        self._resident = self._made = 0
        self._lock = threading.RLock()  # searches in threads gather from one vector
        self.read_bytes = self.written_bytes = 0

    def take_counts(self) -> dict[str, int]:
        """Bytes read from and written to scratch files since the last call."""
        counts = {"read_bytes": self.read_bytes, "written_bytes": self.written_bytes}
        self.read_bytes = self.written_bytes = 0
        return counts

    @property
    def has_room(self) -> bool:
        """Whether there is a place for files."""
        return self._folder is not None

    def open_file(self) -> int:
        """A new scratch file, without a name, that vanishes with us."""
        if self._folder is None:
            raise BudgetError("there is no place for scratch files; name a workspace= for them")
        self._made += 1
        path = self._folder / f"{self._made:06d}.pages"
        try:
            if not check_own(self._folder, directory=True):
                os.mkdir(self._folder)
            remove(path)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            raise gone(self._folder.parent) from None
        os.unlink(path)
        self._files[self._made] = handle
        return self._made

    def close(self) -> None:
        """Drop all pages and files."""
        for handle in self._files.values():
            os.close(handle)
        self._files = {}
        self._pages = OrderedDict()
        self._dirty = set()
        self._resident = 0

    def close_file(self, file: int) -> None:
        """Drop a file and its pages."""
        with self._lock:
            for key in [key for key in self._pages if key[0] == file]:
                self._resident -= self._pages.pop(key).nbytes
                self._dirty.discard(key)
            os.close(self._files.pop(file))

    def page(self, file: int, number: int, count: int, dtype: np.dtype, *, change: bool) -> np.ndarray:
        """A resident page; with ``change`` it is written back when it leaves."""
        key = (file, number)
        with self._lock:
            held = self._pages.get(key)
            if held is None:
                held = self.read(file, number * PAGE * dtype.itemsize, count, dtype)
                self._pages[key] = held
                self._resident += held.nbytes
                while self._resident > self._memory and len(self._pages) > 1:
                    self._drop_oldest()
            else:
                self._pages.move_to_end(key)
            if change:
                self._dirty.add(key)
            return held

    def holds(self, file: int, number: int) -> bool:
        """Whether a page is resident."""
        return (file, number) in self._pages

    def _drop_oldest(self) -> None:
        key, page = self._pages.popitem(last=False)
        self._resident -= page.nbytes
        if key in self._dirty:
            self._dirty.discard(key)
            self.write(key[0], key[1] * PAGE * page.dtype.itemsize, page)

    def read(self, file: int, offset: int, count: int, dtype: np.dtype) -> np.ndarray:
        """Elements of a file; what was never written is zero."""
        values = np.zeros(count, dtype)
        self.read_into(file, offset, values)
        return values

    def read_into(self, file: int, offset: int, values: np.ndarray) -> None:
        """Fill ``values`` from a file; past its end they stay as they are."""
        data, at = values.view(np.uint8).data, 0
        while at < len(data):  # the system reads two gigabytes at most in one go
            got = os.preadv(self._files[file], [data[at:]], offset + at)
            if not got:
                break
            at += got
        with self._lock:
            self.read_bytes += at

    def expect(self, file: int, offset: int, size: int) -> None:
        """Say that so many bytes will be read next: the system fetches them meanwhile, into memory of its own."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._files[file], offset, size, os.POSIX_FADV_WILLNEED)

    def write(self, file: int, offset: int, values: np.ndarray) -> None:
        """Write values to a file, from byte ``offset`` on."""
        data = np.ascontiguousarray(values).ravel().view(np.uint8).data
        while data:
            done = os.pwrite(self._files[file], data, offset)
            data, offset = data[done:], offset + done
            with self._lock:
                self.written_bytes += done

    @property
    def lock(self) -> threading.RLock:
        """To be held while the content of a page is used."""
        return self._lock


class Vector:
    """A vector, whole or in pages. ``whole`` is the array itself, None if it is in pages."""

    def __init__(self, size: int, dtype: Any = np.float64, pool: Pool | None = None):
        self.size, self.dtype = size, np.dtype(dtype)
        self.whole: np.ndarray | None = None
        self._home: tuple[Pool, int] | None = None
        if pool is None or pool.whole:
            self.whole = np.zeros(size, dtype)
        else:
            self._home = pool, pool.open_file()

    @classmethod
    def of(cls, array: np.ndarray) -> "Vector":
        """An array in memory as a vector; it is not copied."""
        vector = cls.__new__(cls)
        vector.size, vector.dtype = len(array), array.dtype
        vector.whole, vector._home = array, None
        return vector

    @classmethod
    def constant(cls, size: int, value: float) -> "Vector":
        """The same number everywhere, without the memory; read only."""
        return cls.of(np.broadcast_to(np.float64(value), (size,)))

    @classmethod
    def filled(cls, parts: Iterable[np.ndarray], size: int, dtype: Any, pool: Pool | None) -> "Vector":
        """A vector from its consecutive parts."""
        vector, at = cls(size, dtype, pool), 0
        for part in parts:
            vector.write(at, part)
            at += len(part)
        return vector

    def __len__(self) -> int:
        return self.size

    def close(self) -> None:
        """Give up a vector that is not needed any more."""
        if self._home is not None:
            pool, file = self._home
            pool.close_file(file)
        self._home = self.whole = None

    def _paged(self) -> tuple[Pool, int]:
        """The pool of a vector in pages, and its file there."""
        if self._home is None:
            raise ValueError("the vector was closed")
        return self._home

    def _page(self, number: int, *, change: bool = False) -> np.ndarray:
        pool, file = self._paged()
        count = min(PAGE, self.size - number * PAGE)
        return pool.page(file, number, count, self.dtype, change=change)

    def _expect(self, number: int) -> None:
        """Say that this page will be wanted next."""
        if self.whole is not None or number * PAGE >= self.size:
            return
        pool, file = self._paged()
        if not pool.holds(file, number):
            size = PAGE * self.dtype.itemsize
            pool.expect(file, number * size, size)

    def spans(self) -> Iterator[tuple[int, np.ndarray]]:
        """(First index, values) of consecutive parts, cut the same way whether whole or not; for reading."""
        for first in range(0, self.size, PAGE):
            self._expect(first // PAGE + 1)
            yield first, self.read(first, min(first + PAGE, self.size))

    def read(self, first: int, last: int) -> np.ndarray:
        """Values ``first:last``; not to be changed."""
        if self.whole is not None:
            return self.whole[first:last]
        if first >= last:
            return np.empty(0, self.dtype)
        with self._paged()[0].lock:
            if first // PAGE == (last - 1) // PAGE:
                return self._page(first // PAGE)[first % PAGE : (last - 1) % PAGE + 1].copy()
            cuts = [first, *range((first // PAGE + 1) * PAGE, last, PAGE), last]
            return np.concatenate([self.read(a, b) for a, b in itertools.pairwise(cuts)])

    def write(self, first: int, values: np.ndarray) -> None:
        """Set the values from ``first`` on."""
        if self.whole is not None:
            self.whole[first : first + len(values)] = values
            return
        at = 0
        with self._paged()[0].lock:
            while at < len(values):
                number, inside = divmod(first + at, PAGE)
                count = min(PAGE - inside, len(values) - at)
                self._page(number, change=True)[inside : inside + count] = values[at : at + count]
                at += count

    def take(self, index: np.ndarray) -> np.ndarray:
        """Values at ``index``, in any order."""
        if self.whole is not None:
            return self.whole[index]
        values = np.empty(len(index), self.dtype)

        def copy(page: np.ndarray, inside: np.ndarray, where: Any) -> None:
            values[where] = page[inside]

        self._visit(index, copy, change=False)
        return values

    def put(self, index: np.ndarray, values: np.ndarray) -> None:
        """Set the values at ``index``, in any order, each once."""
        if self.whole is not None:
            self.whole[index] = values
            return

        def copy(page: np.ndarray, inside: np.ndarray, where: Any) -> None:
            page[inside] = values[where]

        self._visit(index, copy, change=True)

    def _visit(self, index: np.ndarray, copy: Callable[[np.ndarray, np.ndarray, Any], None], *, change: bool) -> None:
        """Call ``copy`` once for each page that ``index`` touches, in the order of the pages."""
        if not len(index):
            return
        order: Any = slice(None)
        number = index // PAGE
        if len(index) > 1 and np.any(number[1:] < number[:-1]):
            # Numbers of 16 bits are sorted by radix, in time proportional to how many there are.
            few = self.size <= PAGE << 16
            order = np.argsort(number.astype(np.uint16) if few else number, kind="stable")
            index, number = index[order], number[order]
        first = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
        with self._paged()[0].lock:
            for a, b in zip(first, [*first[1:], len(index)], strict=True):
                if b < len(index):
                    self._expect(int(number[b]))
                where = slice(a, b) if isinstance(order, slice) else order[a:b]
                copy(self._page(int(number[a]), change=change), index[a:b] % PAGE, where)


def spans(*vectors: Vector) -> Iterator[tuple[np.ndarray, ...]]:
    """Consecutive parts of several vectors of one length, cut alike."""
    for together in zip(*(vector.spans() for vector in vectors), strict=True):
        yield tuple(part for _, part in together)


def read_vector(group: Path, name: str, pool: Pool | None = None, dtype: Any = np.float64) -> Vector:
    """``group/name`` as a vector, whole or in pages; refuses one whose elements are not of ``dtype``."""
    if pool is None or pool.whole:
        return Vector.of(read_array(group, name, dtype=dtype))
    return Vector.filled(read_parts(group, name, dtype), open_array(group, name).shape[0], dtype, pool)


def check_vector(group: Path, name: str, vector: Vector, size: int) -> None:
    """Refuse a stored vector that cannot be right."""
    if vector.size != size or not all(np.isfinite(part).all() for _, part in vector.spans()):
        raise WorkspaceError(f"{group}: {name} is damaged; `ooc-pf solve --restart` starts again")


class Spanned(Protocol):
    """What comes in consecutive parts, as a vector does."""

    dtype: np.dtype

    def spans(self) -> Iterator[tuple[int, np.ndarray]]: ...


def write_vector(group: Path, name: str, vector: Spanned) -> None:
    """Write a vector as ``group/name``."""
    write_parts(group, name, (part for _, part in vector.spans()), vector.dtype)


def flat(point: Spanned) -> np.ndarray:
    """All values of what comes in spans, as one array; that of a vector in memory is not copied."""
    if isinstance(point, Vector) and point.whole is not None:
        return point.whole
    return np.concatenate([np.empty(0), *(part for _, part in point.spans())])
