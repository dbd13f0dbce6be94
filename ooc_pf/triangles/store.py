"""The remembered triangles: for every block of triples its rows and duals, in memory or waiting in a file."""

import threading
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..engine.rows import RowBlock, Rows
from ..errors import BudgetError, WorkspaceError
from ..kernels.ragged import row_keys
from ..kernels.triangles import forget_rows, rows_are_sound, unpack_rows
from ..storage.arrays import ArrayWriter, open_array, read_array
from ..storage.spill import Spilled, spilled_size
from ..storage.vectors import Pool
from .tiles import Block, Tiling


@dataclass(frozen=True)
class TriangleRows:
    """Rows of one block; those of its triple t are ``start[t]:start[t + 1]``.

    ``speed``, how much every dual grew in the last sweep, is there while sweeps have momentum, and no part of the
    stored state.
    """

    code: np.ndarray
    dual: np.ndarray
    start: np.ndarray
    speed: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def nbytes(self) -> int:
        return self.code.nbytes + self.dual.nbytes + self.start.nbytes + self.speed.nbytes

    def at_rest(self) -> "TriangleRows":
        """The same rows and duals, which have not moved yet."""
        return replace(self, speed=np.zeros(len(self.dual)))


class TriangleStore:
    """The rows of every block under a memory budget.

    Parameters
    ----------
    tiling : Tiling
    memory : int or None
        Bytes the rows may keep resident; None means no limit.
    pool : Pool or None
        Has a file in which rows beyond the budget wait. Without one running out is an error.
    """

    def __init__(self, tiling: Tiling, memory: int | None = None, pool: Pool | None = None):
        self.tiling = tiling
        self._memory, self._pool, self._resident = memory, pool, 0
        self._file: int | None = None
        self._used = 0
        self._places: dict[int, tuple[int, int]] = {}  # of a block: offset and size of its part of the file
        self._lock = threading.Lock()  # workers put rows back
        blocks = tiling.blocks
        empty = np.empty(0, np.int32), np.empty(0)
        self._held: list[TriangleRows | Spilled] = [
            TriangleRows(*empty, np.zeros(len(block.triples) + 1, np.int64)) for block in blocks
        ]

    def __len__(self) -> int:
        return sum(map(self.size, range(len(self._held))))

    def size(self, at: int) -> int:
        """Rows of block ``at``."""
        held = self._held[at]
        return len(held.code) if isinstance(held, TriangleRows) else held.layout["code"][1][0]

    def get(self, at: int) -> TriangleRows:
        """The rows of block ``at``. Changes count when they are `put` back."""
        held = self._held[at]
        return held if isinstance(held, TriangleRows) else TriangleRows(**held.read())

    def put(self, at: int, rows: TriangleRows, *, same_rows: bool = False) -> None:
        """Replace the rows of block ``at``; ``same_rows`` says that only duals and speeds changed."""
        held = self._held[at]
        if held is rows:
            return
        with self._lock:
            if isinstance(held, TriangleRows):
                self._resident -= held.nbytes
            if self._memory is None or self._resident + rows.nbytes <= self._memory:
                self._resident += rows.nbytes
                self._held[at] = rows
                return
        if self._pool is None or not self._pool.has_room:
            raise BudgetError(
                f"the remembered rows need more than the {self._memory:,} bytes left for them; "
                "give more memory=, or a workspace= where they can wait on disk"
            )
        arrays = {"speed": rows.speed, "dual": rows.dual, "start": rows.start, "code": rows.code}
        if same_rows and isinstance(held, Spilled) and held.nbytes == spilled_size(arrays):
            held.update({"speed": rows.speed, "dual": rows.dual})
            return
        file, offset = self._place(at, spilled_size(arrays))
        self._held[at] = Spilled.write(self._pool, file, offset, arrays)

    def _place(self, at: int, size: int) -> tuple[int, int]:
        """The file, and where block ``at`` has its part of it; one that has outgrown it gets another at the end."""
        with self._lock:
            if self._file is None:
                self._file = self._pool.open_file()
            if size > self._places.get(at, (0, 0))[1]:
                self._places[at] = self._used, size + size // 2
                self._used += size + size // 2
            return self._file, self._places[at][0]

    def close(self) -> None:
        """Give up the file."""
        if self._file is not None:
            self._pool.close_file(self._file)
        self._file, self._held = None, []

    def append(self, found: Sized) -> int:
        """Rows are remembered where they are found; this only counts them for the engine."""
        return len(found)

    def forget(self) -> int:
        """Drop the rows whose dual is zero; returns how many those were."""
        before = len(self)
        for at in range(len(self._held)):
            rows = self.get(at)
            if len(rows.speed) or not rows.dual.all():
                self.put(at, TriangleRows(*forget_rows(rows.code, rows.dual, rows.start)))
        return before - len(self)

    def write(self, group: Path) -> None:
        """Write all rows, and how many each triple has."""
        writers = [ArrayWriter(group, name, dtype) for name, dtype in (("code", np.int32), ("dual", np.float64))]
        counts = ArrayWriter(group, "count", np.int32)
        for at in range(len(self._held)):
            rows = self.get(at)
            writers[0].append(rows.code)
            writers[1].append(rows.dual)
            counts.append(np.diff(rows.start))
        for writer in (*writers, counts):
            writer.close()

    def read(self, group: Path) -> "TriangleStore":
        """Fill this store with what `write` wrote."""
        for at, rows in enumerate(read_rows(group, self.tiling)):
            self.put(at, rows)
        return self

    def blocks(self) -> Iterator[RowBlock]:
        """The rows as the rest of the package knows them, over edges."""
        for at, block in enumerate(self.tiling.blocks):
            rows = self.get(at)
            if len(rows.code):
                yield as_row_block(self.tiling, block, rows)


def read_rows(group: Path, tiling: Tiling) -> Iterator[TriangleRows]:
    """The written rows, block by block, checked."""
    count = read_array(group, "count", dtype=np.int32)
    blocks = tiling.blocks
    total = int(count.sum(dtype=np.int64))
    sizes_fit = len(count) == sum(len(block.triples) for block in blocks) and (count >= 0).all()
    if not sizes_fit or any(open_array(group, name).shape != (total,) for name in ("code", "dual")):
        raise _damaged(group)
    row = triple = 0
    for block in blocks:
        own = count[triple : triple + len(block.triples)]
        start = np.concatenate(([0], np.cumsum(own, dtype=np.int64)))
        span = row, row + int(start[-1])
        code, dual = read_array(group, "code", *span, np.int32), read_array(group, "dual", *span, np.float64)
        if not rows_are_sound(block.triples, code, dual, start):
            raise _damaged(group)
        yield TriangleRows(code, dual, start)
        row, triple = row + int(start[-1]), triple + len(block.triples)


def _damaged(group: Path) -> WorkspaceError:
    return WorkspaceError(f"{group}: the stored rows are damaged; `ooc-pf solve --restart` starts again")


def as_row_block(tiling: Tiling, block: Block, rows: TriangleRows) -> RowBlock:
    """The rows of a block over edges, the closing edge first."""
    triple = np.repeat(np.arange(len(block.triples)), np.diff(rows.start))
    tile_i, tile_j = tile_ends(tiling)
    i, j, k, closing = unpack_rows(rows.code).astype(np.int64).T
    i += tile_i[block.triples[triple, 0]] * tiling.side
    j += tile_j[block.triples[triple, 0]] * tiling.side
    k += tile_j[block.triples[triple, 1]] * tiling.side
    sides = np.column_stack((tiling.edge_of(i, j), tiling.edge_of(i, k), tiling.edge_of(j, k)))
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[closing]
    edges = np.take_along_axis(sides, order, axis=1).ravel().astype(np.int32)
    start = np.arange(0, len(edges) + 1, 3)
    return RowBlock.build(Rows(start, edges), rows.dual.copy(), row_keys(start, edges))


def tile_ends(tiling: Tiling) -> tuple[np.ndarray, np.ndarray]:
    """I and J of every tile, in the order they are kept."""
    return np.triu_indices(tiling.across)
