"""A symmetric matrix in square tiles, in memory or in a file, and the order in which its triangles are visited.

Of the tiles (I, J) only those with I <= J are kept; what they hold below the diagonal and past the last line is padding
that no kernel touches. A vector over edges has the entries above the diagonal, line by line.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import WorkspaceError
from ..storage.arrays import open_array, read_array, write_parts
from ..storage.vectors import Pool

# These shape the last bits of sums, and the order in which rows are stored.
PASS = 32  # tiles at a time where every entry is treated alike
BLOCK_TRIPLES = 32  # most triples in a block, and so, times three, the most tiles a worker has at hand
LEAST_BLOCKS = 4  # in a round, so that a few workers have something to do


@dataclass(frozen=True)
class Block:
    """Triples to be visited one after the other; ``tiles`` are the tiles they use, ``local`` counts among those."""

    triples: np.ndarray
    tiles: np.ndarray
    local: np.ndarray


@dataclass(frozen=True)
class Tiling:
    """How n lines are cut into tiles of ``side`` lines."""

    nodes: int
    side: int

    @property
    def across(self) -> int:
        return -(-self.nodes // self.side)

    @property
    def count(self) -> int:
        return self.across * (self.across + 1) // 2

    @property
    def nbytes(self) -> int:
        """Of one matrix."""
        return 8 * self.count * self.side**2

    @property
    def edges(self) -> int:
        return self.nodes * (self.nodes - 1) // 2

    def position(self, i, j):
        """Where tile (i, j), i <= j, is; arrays too."""
        return i * self.across - i * (i - 1) // 2 + j - i

    def lines(self, i: int) -> slice:
        return slice(i * self.side, min((i + 1) * self.side, self.nodes))

    @functools.cached_property
    def rounds(self) -> list[list[Block]]:
        """Every triple of tiles once, in rounds of blocks.

        A round has the triples whose sum leaves one remainder. Two of its tile numbers then determine the third, so no
        two triples of a round share a tile: they can be visited side by side, and in any order, with the same result.
        """
        return [_blocks(self, remainder) for remainder in range(self.across)]

    @functools.cached_property
    def blocks(self) -> list[Block]:
        return [block for blocks in self.rounds for block in blocks]

    def inside(self, first: int, last: int) -> np.ndarray:
        """Which entries of the tiles ``first:last`` are above the diagonal of the matrix: bool[tiles, side, side]."""
        tile_i, tile_j = (ends[first:last, None, None] * self.side for ends in np.triu_indices(self.across))
        i, j = tile_i + np.arange(self.side)[:, None], tile_j + np.arange(self.side)
        return (i < j) & (j < self.nodes)

    def edge_of(self, i, j):
        """Position of the edge between nodes i < j in a vector over edges."""
        return i * (2 * self.nodes - i - 1) // 2 + j - i - 1


def _blocks(tiling: Tiling, remainder: int) -> list[Block]:
    across = tiling.across
    i, j = np.triu_indices(across)
    k = (remainder - i - j) % across
    keep = k >= j
    i, j, k = i[keep], j[keep], k[keep]
    used = np.array([tiling.lines(t).stop - tiling.lines(t).start for t in range(across)])
    where = [tiling.position(i, j), tiling.position(i, k), tiling.position(j, k)]
    triples = np.column_stack([*where, i == j, j == k, used[i], used[j], used[k]]).astype(np.int32)
    parts = max(-(-len(triples) // BLOCK_TRIPLES), min(LEAST_BLOCKS, len(triples)))
    return [_block(part) for part in np.array_split(triples, parts)]


def _block(triples: np.ndarray) -> Block:
    tiles, local = np.unique(triples[:, :3], return_inverse=True)
    return Block(triples, tiles, np.column_stack((local.reshape(-1, 3), triples[:, 3:])).astype(np.int32))


class Tiles:
    """One matrix, float64[count, side, side] in memory, or the same numbers in a file of a pool."""

    dtype = np.dtype(np.float64)

    def __init__(self, tiling: Tiling, pool: Pool | None = None):
        self.tiling, self._pool = tiling, pool
        whole = pool is None or pool.whole
        self.array = np.zeros((tiling.count, tiling.side, tiling.side)) if whole else None
        self._file = None if whole else pool.open_file()

    def close(self) -> None:
        """Give up tiles that are not needed any more."""
        if self._file is not None:
            self._pool.close_file(self._file)
        self._file = self.array = None

    def read(self, first: int, last: int) -> np.ndarray:
        """Tiles ``first:last``: a view if they are in memory."""
        if self.array is not None:
            return self.array[first:last]
        side = self.tiling.side
        tiles = self._pool.read(self._file, first * side**2 * 8, (last - first) * side**2, self.dtype)
        return tiles.reshape(-1, side, side)

    def write(self, first: int, tiles: np.ndarray) -> None:
        """Replace the tiles from ``first`` on."""
        if self.array is not None:
            self.array[first : first + len(tiles)] = tiles
        else:
            self._pool.write(self._file, first * self.tiling.side**2 * 8, tiles)

    def take(self, which: np.ndarray) -> np.ndarray:
        """Copies of the tiles named."""
        return np.concatenate([self.read(at, at + 1) for at in which])

    def put(self, which: np.ndarray, tiles: np.ndarray) -> None:
        """Replace the tiles named."""
        for at, tile in zip(which, tiles, strict=True):
            self.write(at, tile[None])

    def passes(self) -> Iterator[tuple[int, int]]:
        """Runs of tiles to treat together; the same whatever is in memory, so that sums are too."""
        for first in range(0, self.tiling.count, PASS):
            yield first, min(first + PASS, self.tiling.count)

    def copy_from(self, other: "Tiles") -> "Tiles":
        for first, last in self.passes():
            self.write(first, other.read(first, last))
        return self

    # -- other forms ---------------------------------------------------------------------------------------------------

    def fill_lines(self, lines: Iterable[np.ndarray]) -> "Tiles":
        """Take the entries above the diagonal from the full lines of tile row 0, 1, ..., as arrays [lines, n]."""
        tiling = self.tiling
        for i, stripe in enumerate(lines):
            here = tiling.lines(i).start
            stripe = np.where(np.arange(tiling.nodes) > here + np.arange(len(stripe))[:, None], stripe, 0.0)
            for j in range(i, tiling.across):
                part = stripe[:, tiling.lines(j)]
                tile = np.zeros((1, tiling.side, tiling.side))
                tile[0, : part.shape[0], : part.shape[1]] = part
                self.write(tiling.position(i, j), tile)
        return self

    def lines(self) -> Iterator[np.ndarray]:
        """The entries right of the tile row's first column, for every tile row, as arrays [lines, n - first]."""
        tiling = self.tiling
        for i in range(tiling.across):
            row = self.read(tiling.position(i, i), tiling.position(i, i) + tiling.across - i)
            own = tiling.lines(i)
            yield np.concatenate(list(row), axis=1)[: own.stop - own.start, : tiling.nodes - own.start]

    def spans(self) -> Iterator[tuple[int, np.ndarray]]:
        """The entries above the diagonal as a vector over edges, like a `vectors.Vector`: (first edge, values)."""
        first = 0
        for stripe in self.lines():
            part = stripe[np.arange(stripe.shape[1]) > np.arange(len(stripe))[:, None]]
            yield first, part
            first += len(part)

    def write_tiles(self, group: Path, name: str) -> None:
        """Write all tiles to disk, as they are."""
        write_parts(group, name, (self.read(*span).ravel() for span in self.passes()), self.dtype)

    def read_tiles(self, group: Path, name: str) -> "Tiles":
        """Fill with what `write_tiles` wrote."""
        size = self.tiling.side**2
        if open_array(group, name).shape != (self.tiling.count * size,):
            raise WorkspaceError(f"{group / name} is damaged: it has not the size it should")
        for first, last in self.passes():
            tiles = read_array(group, name, first * size, last * size, np.float64)
            if np.isnan(tiles).any():
                raise WorkspaceError(f"{group / name} is damaged: it holds what is not a number")
            self.write(first, tiles.reshape(-1, self.tiling.side, self.tiling.side))
        return self

    def square(self) -> np.ndarray:
        """The whole symmetric matrix."""
        matrix = np.zeros((self.tiling.nodes, self.tiling.nodes))
        for i, stripe in enumerate(self.lines()):
            own = self.tiling.lines(i)
            stripe = np.where(np.arange(stripe.shape[1]) > np.arange(len(stripe))[:, None], stripe, 0.0)
            matrix[own, own.start :] = stripe
            matrix[own.start :, own] += stripe.T
        return matrix
