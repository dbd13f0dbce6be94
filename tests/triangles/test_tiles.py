"""Tiles of a table: every triangle once, side by side, and in a file as in memory."""

import itertools

import numpy as np
import pytest

from ooc_pf.storage.vectors import Pool
from ooc_pf.triangles.program import Workers, close_tiles
from ooc_pf.triangles.tiles import Tiles, Tiling
from tests import naive
from tests.gallery import symmetric
from tests.parts import SIDE, as_tiles


@pytest.mark.parametrize("nodes", [0, 1, 2, 4, 5, 11, 16, 23])
def test_the_schedule_has_every_triangle_once_and_shares_no_tile_in_a_round(nodes):
    tiling = Tiling(nodes, SIDE)
    seen = []
    for blocks in tiling.rounds:
        used = [set(triple[:3].tolist()) for block in blocks for triple in block.triples]
        assert sum(map(len, used)) == len(set().union(*used)) if used else True
        for block in blocks:
            assert np.array_equal(block.tiles[block.local[:, :3]], block.triples[:, :3])
            seen += block.triples.tolist()
    ends = list(zip(*np.triu_indices(tiling.across), strict=True))
    triangles = set()
    for a, b, c, first, last, *lines in seen:
        (one, two), three = ends[a], ends[b][1]
        assert ends[c] == (two, three) and first == (one == two) and last == (two == three)
        for i, j, k in itertools.product(*map(range, lines)):
            triangle = (i + SIDE * one, j + SIDE * two, k + SIDE * three)
            if triangle[0] < triangle[1] < triangle[2]:
                assert triangle not in triangles
                triangles.add(triangle)
    assert triangles == set(itertools.combinations(range(nodes), 3))


@pytest.mark.parametrize("nodes", [1, 2, 3, 10, 17])
def test_closing_is_the_shortest_path_closure(rng, nodes):
    matrix = symmetric(rng, nodes, 0.0, 5.0)
    closed = close_tiles(as_tiles(matrix), Workers()).square()
    assert closed == pytest.approx(naive.triangles.close(matrix), abs=1e-13)
    assert naive.triangles.largest_violation(closed) <= 1e-15


@pytest.mark.parametrize("nodes", [1, 2, 4, 9, 20])
def test_tiles_in_a_file_are_those_in_memory(rng, tmp_path, nodes):
    matrix = symmetric(rng, nodes)
    held, filed = as_tiles(matrix), as_tiles(matrix, pool=Pool(0, tmp_path))
    assert np.array_equal(held.square(), matrix) and np.array_equal(filed.square(), matrix)
    assert np.array_equal(np.concatenate([part for _, part in filed.spans()]), matrix[np.triu_indices(nodes, 1)])
    which = np.arange(held.tiling.count)[::2]
    filed.put(which, 2.0 * filed.take(which))
    held.put(which, 2.0 * held.take(which))
    assert np.array_equal(held.square(), filed.square())
    held.write_tiles(tmp_path, "tiles")
    assert np.array_equal(Tiles(held.tiling).read_tiles(tmp_path, "tiles").array, held.array)
