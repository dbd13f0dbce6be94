"""Rows of numbers by blocks: arrays, memory maps, zarr arrays, CSR matrices, sequences and iterables of blocks."""

import hashlib
import math
import mmap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from . import settings

AROUND = 1 << 16  # bytes
Span = tuple[int, int]  # the first row, and the one after the last
Load = Callable[[], "Block"]


@dataclass(frozen=True)
class Sparse:
    """CSR rows; ``start`` begins with 0."""

    start: np.ndarray
    index: np.ndarray
    value: np.ndarray
    width: int

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.start, self.index, self.value


Block = np.ndarray | Sparse


@dataclass(frozen=True)
class Table:
    """Rows that can be read by blocks, as often as needed.

    Attributes
    ----------
    rows, columns : int
    entries : float
        Stored numbers of a row, on average.
    itemsize : int
        Bytes of one.
    copies : bool
        Whether reading a block takes memory of its own.
    parts : list of (first, last)
        How the rows are cut into tasks.
    read : function or None
        ``read(first, last)`` of rows within one part; None where blocks come in one order only.
    stream : function or None
        All blocks in order, where there is no ``read``.
    """

    rows: int
    columns: int
    entries: float
    itemsize: int
    copies: bool
    parts: list[Span]
    read: Callable[[int, int], Block] | None = None
    stream: Callable[[], Iterator[Any]] | None = None

    @property
    def part_bytes(self) -> int:
        """Bytes of the largest part, as it is read."""
        largest = max((last - first for first, last in self.parts), default=0)
        return int(largest * self.entries) * (self.itemsize + (4 if self.entries < self.columns else 0))

    def tasks(self, spans: list[list[Span]]) -> Iterator[list[tuple[int, Load]]]:
        """For each task its pieces, as first row and a function that reads them."""
        if self.read is not None:
            for task in spans:
                yield [(first, partial(self.read, first, last)) for first, last in task]
            return
        assert self.stream is not None
        at = 0
        for block in self.stream():
            found = _checked_block(block, self.columns, at)
            for first, last in cut(len(found), stride_of(self.columns, self.entries)):
                yield [(at + first, partial(slice_block, found, first, last))]
            at += len(found)
        if at != self.rows:
            raise InputError(f"the blocks of X had {self.rows:,} rows at first, {at:,} now; they must stay the same")

    def fingerprint(self) -> str:
        """Of the shape and of a few rows: enough to recognise other data, not to recognise every change."""
        total = hashlib.blake2b(repr((self.rows, self.columns, self.itemsize)).encode(), digest_size=16)
        if self.read is not None:
            for first, last in self.parts[:: max(1, len(self.parts) // 16)]:
                block = self.read(first, min(first + 4, last))
                for array in (block,) if isinstance(block, np.ndarray) else block.arrays:
                    total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()


def cut(rows: int, stride: int) -> list[Span]:
    """The spans of ``stride`` rows that ``rows`` are cut into."""
    return [(first, min(first + stride, rows)) for first in range(0, rows, stride)]


def stride_of(columns: int, entries: float) -> int:
    """Rows of a part: as many as make its size, but where the Hessian is larger than that, as many as it has."""
    return max(int(settings.PART_ENTRIES // max(entries, 1.0)), min(columns, 4096), 1)


def sample(table: Table, fraction: float, seed: int, level: int) -> list[list[Span]]:
    """Random runs of rows from every part, about so many of all rows, put together to tasks."""
    rng = np.random.default_rng([seed, level])
    tasks: list[list[Span]] = [[]]
    held, stride = 0, max(last - first for first, last in table.parts)
    for first, last in table.parts:
        runs = min(settings.RUNS, last - first)
        cuts = np.linspace(first, last, runs + 1).astype(np.int64)
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            count = max(1, math.ceil(fraction * (high - low)))
            at = low + int(rng.integers(0, high - low - count + 1))
            if held and held + count > stride:
                tasks.append([])
                held = 0
            tasks[-1].append((at, at + count))
            held += count
    return tasks


# -- what may be handed over ------------------------------------------------------------------------------------------


def is_blocks(X: Any) -> bool:
    """Whether X is a sequence or iterable of blocks rather than one table."""
    if hasattr(X, "shape") or hasattr(X, "__array__") or sparse.issparse(X) or isinstance(X, str | bytes):
        return False
    if isinstance(X, list | tuple):
        return bool(len(X)) and _is_block(X[0])
    return isinstance(X, Iterable)


def _is_block(block: Any) -> bool:
    return sparse.issparse(block) or len(getattr(block, "shape", ())) == 2


def read_table(X: Any) -> Table:
    """X as rows by blocks; nothing is copied as a whole, but for sparse matrices that are not CSR."""
    if is_blocks(X):
        return _table_of_blocks(X)
    if sparse.issparse(X):
        return _sparse_table(X if X.format == "csr" else X.tocsr())
    A = X if hasattr(X, "shape") else np.asarray(X)
    if len(A.shape) != 2:
        raise InputError(f"X must have two dimensions, found shape {tuple(A.shape)}")
    _check_kind(A.dtype)
    rows, columns = (int(size) for size in A.shape)
    _check_size(rows, columns)
    stride = stride_of(columns, columns)
    chunk = (getattr(A, "chunks", None) or (1,))[0]
    if chunk > 1:
        stride = max(stride // chunk, 1) * chunk  # a part of a chunk costs as much to read
    whole = isinstance(A, np.ndarray) and A.dtype in (np.float64, np.float32) and A.flags.c_contiguous
    itemsize = 4 if A.dtype == np.float32 else 8
    copies = not whole or isinstance(A, np.memmap)
    return Table(rows, columns, columns, itemsize, copies, cut(rows, stride), partial(_read_dense, A))


def _check_size(rows: int, columns: int) -> None:
    # The words are those of scikit-learn, whose checks look for them.
    if rows == 0:
        raise InputError(f"X has 0 sample(s) (shape=(0, {columns})) while a minimum of 1 is required.")
    if columns == 0:
        raise InputError(f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")


def _check_kind(dtype: Any) -> None:
    kind = np.dtype(dtype).kind
    if kind == "c":
        raise InputError("Complex data not supported: X must be real")
    if kind not in "fiub":
        raise InputError(f"X must be numbers, found elements of type {np.dtype(dtype)}")


def _as_rows(part: Any) -> np.ndarray:
    """Rows in the form the kernels take; float32 stays float32."""
    found = np.asarray(part)
    if found.dtype not in (np.float64, np.float32):
        found = found.astype(np.float64)
    return np.ascontiguousarray(found)


def _read_dense(A: Any, first: int, last: int) -> np.ndarray:
    return _as_rows(A[first:last])


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def release(table: Table, block: Block) -> None:
    """Let go of a block that has been worked on."""
    if table.copies and isinstance(block, np.ndarray):
        let_go(block)


def let_go(block: np.ndarray) -> None:
    """Let go of the pages of a mapped file, which the system would else count as ours until it needs them."""
    source: Any = block
    while isinstance(getattr(source, "base", None), np.ndarray):
        source = source.base
    mapped = getattr(source, "base", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") and not source.flags.writeable:
        begin = _address(block) - _address(np.frombuffer(mapped, np.uint8))
        # With what the system maps around a page that is asked for; a neighbour that needs it gets it again.
        low = max(begin - AROUND, 0) // mmap.PAGESIZE * mmap.PAGESIZE
        high = min(begin + block.nbytes + AROUND, len(mapped))
        mapped.madvise(mmap.MADV_DONTNEED, low, high - low)


def _sparse_table(X: Any) -> Table:
    _check_kind(X.dtype)
    rows, columns = X.shape
    _check_size(rows, columns)
    entries = max(X.nnz / rows, 1.0)
    # The most entries of a part are held to twice the mean by cutting where they are.
    spans, first = [], 0
    limit = max(stride_of(columns, entries) * entries, 1.0)
    while first < rows:
        last = int(np.searchsorted(X.indptr, X.indptr[first] + limit, side="right")) - 1
        last = min(max(last, first + 1), rows)
        spans.append((first, last))
        first = last
    return Table(rows, columns, entries, 8 if X.dtype != np.float32 else 4, True, spans, partial(_read_sparse, X))


def _read_sparse(X: Any, first: int, last: int) -> Sparse:
    start = np.asarray(X.indptr[first : last + 1], np.int64)
    span = slice(int(start[0]), int(start[-1]))
    value = X.data[span]
    value = value if value.dtype in (np.float64, np.float32) else value.astype(np.float64)
    return Sparse(start - start[0], X.indices[span], value, X.shape[1])


def slice_block(block: Block, first: int, last: int) -> Block:
    """Some rows of a block."""
    if isinstance(block, np.ndarray):
        return block[first:last]
    span = slice(int(block.start[first]), int(block.start[last]))
    start = block.start[first : last + 1] - block.start[first]
    return Sparse(start, block.index[span], block.value[span], block.width)


def _checked_block(block: Any, columns: int | None, at: int) -> Block:
    if not _is_block(block):
        raise InputError(f"blocks of X must have two dimensions; the one at row {at} is {type(block).__name__}")
    _check_kind(block.dtype)
    if columns is not None and block.shape[1] != columns:
        raise InputError(f"the block at row {at} has {block.shape[1]} columns, those before it {columns}")
    if sparse.issparse(block):
        made = block.tocsr()
        return _read_sparse(made, 0, made.shape[0])
    return _as_rows(block)


def _table_of_blocks(X: Any) -> Table:
    if iter(X) is X:
        raise InputError(
            "X can be read only once; give a list of blocks, or an object whose __iter__ begins again every time"
        )
    sizes: list[int] = []
    columns, entries, itemsize = None, 0, 4
    for block in X:
        if not _is_block(block):
            raise InputError(f"blocks of X must have two dimensions; number {len(sizes)} is {type(block).__name__}")
        _check_kind(block.dtype)
        if columns is not None and block.shape[1] != columns:
            raise InputError(f"block {len(sizes)} of X has {block.shape[1]} columns, those before it {columns}")
        columns = block.shape[1]
        sizes.append(block.shape[0])
        entries += block.nnz if sparse.issparse(block) else block.shape[0] * block.shape[1]
        itemsize = max(itemsize, 4 if block.dtype == np.float32 else 8)
    rows = sum(sizes)
    _check_size(rows, columns or 0)
    assert columns is not None
    mean = max(entries / rows, 1.0)
    stride, ends = stride_of(columns, mean), np.cumsum([0, *sizes]).tolist()
    spans = [(at + a, at + b) for at, size in zip(ends[:-1], sizes, strict=True) for a, b in cut(size, stride)]
    if not (hasattr(X, "__getitem__") and hasattr(X, "__len__")):
        return Table(rows, columns, mean, itemsize, True, spans, stream=lambda: iter(X))

    def read(first: int, last: int) -> Block:
        number = int(np.searchsorted(ends, first, side="right")) - 1
        block = X[number]
        if isinstance(block, np.ndarray):
            return _as_rows(block[first - ends[number] : last - ends[number]])
        return slice_block(_checked_block(block, columns, ends[number]), first - ends[number], last - ends[number])

    return Table(rows, columns, mean, itemsize, True, spans, read)
