"""The remembered rows: ragged CSR blocks with their duals, appended, visited block by block, and forgotten.

A block holds rows over local edge numbers and the sorted table of the edges they stand for, so a visit gathers the
block's part of y once, works on small contiguous arrays, and scatters it back. Blocks that do not fit the memory
budget wait on disk between visits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .arrays import ArrayWriter, read_array, write_array
from .errors import BudgetError, WorkspaceError
from .kernels.ragged import keep_rows, row_keys
from .pages import Pool

BLOCK_ROWS = 1 << 15
TRAIL = 6  # duals of this many sweeps are at hand for extrapolation


@dataclass(frozen=True)
class Rows:
    """Ragged rows over edge ids, the closing edge first; row i is ``edges[start[i]:start[i + 1]]``."""

    start: np.ndarray
    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def empty(cls) -> "Rows":
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32))

    @classmethod
    def join(cls, parts: list["Rows"]) -> "Rows":
        if not parts:
            return cls.empty()
        length = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate(([0], np.cumsum(length, dtype=np.int64)))
        return cls(start, np.concatenate([part.edges for part in parts]))

    def select(self, keep: np.ndarray) -> "Rows":
        return Rows(*keep_rows(self.start, self.edges, keep))


@dataclass(frozen=True)
class RowBlock:
    """Rows over the edges ``table[index]``, with a dual and an identifying key each.

    Only ``dual`` and ``trail``, the duals of recent sweeps, ever change; the trail is not part of the stored state.
    """

    table: np.ndarray
    start: np.ndarray
    index: np.ndarray
    dual: np.ndarray
    key: np.ndarray
    trail: np.ndarray

    FIELDS = ("table", "start", "index", "dual", "key")
    DTYPES = (np.int32, np.int32, np.int32, np.float64, np.uint64)

    @classmethod
    def build(cls, rows: Rows, dual: np.ndarray, key: np.ndarray) -> "RowBlock":
        table, index = np.unique(rows.edges, return_inverse=True)
        return cls.of(table.astype(np.int32), rows.start.astype(np.int32), index.astype(np.int32), dual, key)

    @classmethod
    def of(cls, *fields: np.ndarray) -> "RowBlock":
        """A block from its stored fields."""
        return cls(*fields, trail=np.zeros((TRAIL, len(fields[3]))))

    @property
    def rows(self) -> Rows:
        return Rows(self.start.astype(np.int64), self.table[self.index])

    @property
    def nbytes(self) -> int:
        return self.trail.nbytes + sum(getattr(self, field).nbytes for field in self.FIELDS)

    def check(self, edges: int, where: str) -> "RowBlock":
        """Refuse a block whose numbers cannot be right, before a kernel follows them."""
        sound = (
            len(self.start) == len(self.dual) + 1 == len(self.key) + 1
            and (len(self.start) == 0 or self.start[0] == 0)
            and self.start[-1] == len(self.index)
            and (np.diff(self.start) >= 2).all()
            and (self.index >= 0).all()
            and (self.index < len(self.table)).all()
            and (self.table >= 0).all()
            and (self.table < edges).all()
            and (self.dual >= 0).all()
            and np.isfinite(self.dual).all()
        )
        if not sound:
            raise WorkspaceError(f"{where}: the stored rows are damaged; `ooc-pf solve --restart` starts again")
        return self


@dataclass(frozen=True)
class Spilled:
    """Where a block waits: a file of the pool, an offset, and the lengths of its fields, those that change first."""

    file: int
    offset: int
    lengths: tuple[int, ...]

    ORDER = ("dual", "table", "start", "index", "key")

    def write(self, pool: Pool, block: RowBlock) -> int:
        """Write all of the block; returns how many bytes that took."""
        self.write_changes(pool, block)
        at = self.offset + block.trail.nbytes + block.dual.nbytes
        for field in self.ORDER[1:]:
            values = getattr(block, field)
            pool.write(self.file, at, values)
            at += -(-values.nbytes // 8) * 8
        return at - self.offset

    def write_changes(self, pool: Pool, block: RowBlock) -> None:
        pool.write(self.file, self.offset, block.trail)
        pool.write(self.file, self.offset + block.trail.nbytes, block.dual)

    def read(self, pool: Pool) -> RowBlock:
        rows = self.lengths[0]
        trail = pool.read(self.file, self.offset, TRAIL * rows, np.dtype(np.float64)).reshape(TRAIL, rows)
        at, found = self.offset + trail.nbytes, {}
        for field, length in zip(self.ORDER, self.lengths, strict=True):
            dtype = np.dtype(RowBlock.DTYPES[RowBlock.FIELDS.index(field)])
            found[field] = pool.read(self.file, at, length, dtype)
            at += -(-found[field].nbytes // 8) * 8
        return RowBlock(**found, trail=trail)


class ConstraintStore:
    """An ordered list of row blocks under a memory budget.

    Parameters
    ----------
    memory : int or None
        Bytes the blocks may keep resident; None means no limit.
    pool : Pool or None
        Has files in which blocks beyond the budget wait. Without one running out is an error.
    """

    def __init__(self, memory: int | None = None, pool: Pool | None = None):
        self._memory, self._pool = memory, pool
        self._blocks: list[RowBlock | Spilled] = []
        self._file: int | None = None
        self._resident = self._used = self.n_rows = 0

    def __len__(self) -> int:
        return self.n_rows

    def blocks(self) -> Iterator[RowBlock]:
        """Every block in order; duals changed during the visit are kept."""
        for at in range(len(self._blocks)):
            held = self._blocks[at]
            if isinstance(held, RowBlock):
                yield held
            else:
                block = held.read(self._pool)
                yield block
                held.write_changes(self._pool, block)

    def _put(self, blocks: Iterator[RowBlock]) -> None:
        """Replace the content by ``blocks``, which may be drawn from the present content."""
        stale, self._file = self._file, None
        fresh: list[RowBlock | Spilled] = []
        self._resident = self._used = self.n_rows = 0
        for block in blocks:
            self.n_rows += len(block.dual)
            fresh.append(self._hold(block))
        self._blocks = fresh
        if stale is not None:
            self._pool.close_file(stale)

    def _hold(self, block: RowBlock) -> "RowBlock | Spilled":
        if self._memory is None or self._resident + block.nbytes <= self._memory:
            self._resident += block.nbytes
            return block
        if self._pool is None or not self._pool.has_room:
            raise BudgetError(
                f"the remembered rows need more than the {self._memory:,} bytes left for them; "
                "give more memory=, or a workspace= where they can wait on disk"
            )
        if self._file is None:
            self._file = self._pool.open_file()
        held = Spilled(self._file, self._used, tuple(len(getattr(block, field)) for field in Spilled.ORDER))
        self._used += held.write(self._pool, block)
        return held

    def append(self, rows: Rows) -> int:
        """Remember the rows that are not here yet, with dual 0; returns how many those were."""
        if not len(rows):
            return 0
        key = row_keys(rows.start, rows.edges)
        _, first = np.unique(key, return_index=True)
        fresh = np.zeros(len(key), bool)
        fresh[first] = True
        for block in self.blocks():
            fresh &= ~np.isin(key, block.key)
        added = int(fresh.sum())
        if added:
            rows, key = rows.select(fresh), key[fresh]
            self._put(_packed(self.blocks(), rows, key))
        return added

    def forget(self) -> int:
        """Drop the rows whose dual is zero; returns how many those were."""
        before = self.n_rows
        self._put(_packed((_without_zeros(block) for block in self.blocks()), Rows.empty(), np.empty(0, np.uint64)))
        return before - self.n_rows

    def renumber(self, number: np.ndarray) -> None:
        """Give every edge e the new number ``number[e]``."""

        def renumbered() -> Iterator[RowBlock]:
            for block in self.blocks():
                rows = Rows(block.start.astype(np.int64), number[block.table[block.index]])
                yield RowBlock.build(rows, block.dual, row_keys(rows.start, rows.edges))

        self._put(renumbered())

    def write(self, group: Path) -> None:
        """Write all rows as one set of arrays, with a directory of the blocks."""
        ends = []
        writers = [ArrayWriter(group, f, t) for f, t in zip(RowBlock.FIELDS, RowBlock.DTYPES, strict=True)]
        for block in self.blocks():
            for field, writer in zip(RowBlock.FIELDS, writers, strict=True):
                writer.append(getattr(block, field))
            ends.append([len(getattr(block, field)) for field in RowBlock.FIELDS])
        for writer in writers:
            writer.close()
        write_array(group, "block_end", np.cumsum(np.array(ends, np.int64).reshape(-1, 5), axis=0).ravel())

    def read(self, group: Path, edges: int) -> "ConstraintStore":
        """Fill this store with what `write` wrote; row entries must be below ``edges``."""
        self._put(read_blocks(group, edges))
        return self


def read_blocks(group: Path, edges: int) -> Iterator[RowBlock]:
    """The written blocks, one at a time, checked."""
    begin = np.zeros(len(RowBlock.FIELDS), np.int64)
    for end in read_array(group, "block_end").reshape(-1, len(RowBlock.FIELDS)):
        parts = [read_array(group, f, a, b) for f, a, b in zip(RowBlock.FIELDS, begin, end, strict=True)]
        yield RowBlock.of(*parts).check(edges, str(group))
        begin = end


def _without_zeros(block: RowBlock) -> RowBlock:
    keep = block.dual > 0
    if keep.all():
        return block
    start, index = keep_rows(block.start, block.index, keep)
    # The table stays: an edge no row uses is gathered and scattered unchanged, and costs less than renumbering.
    return RowBlock.of(block.table, start, index, block.dual[keep], block.key[keep])


def _packed(blocks: Iterator[RowBlock], rows: Rows, key: np.ndarray) -> Iterator[RowBlock]:
    """The blocks with the new rows behind them; neighbours that fit into one block are merged."""
    held: RowBlock | None = None
    for block in _chain(blocks, rows, key):
        if held is not None and len(held.dual) + len(block.dual) <= BLOCK_ROWS:
            merged = Rows.join([held.rows, block.rows])
            dual = np.concatenate((held.dual, block.dual))
            held = RowBlock.build(merged, dual, np.concatenate((held.key, block.key)))
            continue
        if held is not None and len(held.dual):
            yield held
        held = block
    if held is not None and len(held.dual):
        yield held


def _chain(blocks: Iterator[RowBlock], rows: Rows, key: np.ndarray) -> Iterator[RowBlock]:
    yield from blocks
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        span = slice(rows.start[first], rows.start[last])
        part = Rows(rows.start[first : last + 1] - rows.start[first], rows.edges[span])
        yield RowBlock.build(part, np.zeros(last - first), key[first:last])
