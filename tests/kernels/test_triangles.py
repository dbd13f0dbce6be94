"""Kernels over tiles of triangles against their textbook twins."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ooc_pf.kernels import triangles as tri
from ooc_pf.triangles.program import add_loads
from ooc_pf.triangles.store import TriangleRows, TriangleStore, as_row_block
from ooc_pf.triangles.tiles import Tiles, Tiling
from tests import naive
from tests.gallery import symmetric
from tests.parts import SIDE, as_tiles

NONE = np.ones((1, 1, 1))


def rows_of(tiling, block, rows):
    """[(row as the twins know it, dual)] in the order of the kernel."""
    ends = list(zip(*np.triu_indices(tiling.across), strict=True))
    for triple, (first, last) in zip(block.triples, itertools.pairwise(rows.start), strict=True):
        (one, two), three = ends[triple[0]], ends[triple[1]][1]
        for at in range(first, last):
            i, j, k, closing = tri.unpack_rows(rows.code[at : at + 1])[0]
            i, j, k = int(i + one * tiling.side), int(j + two * tiling.side), int(k + three * tiling.side)
            sides = [(i, j), (i, k), (j, k)]
            yield (sides[closing], [s for t, s in enumerate(sides) if t != closing]), rows.dual[at]


def scan(x, block, rows, inverse=NONE, slack=0.0):
    *kept, found, totals = tri.scan_triples(x.array, inverse, NONE, NONE, NONE, block.triples, rows.code, rows.dual,
                                            rows.start, slack)  # fmt: skip
    return TriangleRows(*kept), found, totals


def sweep(x, block, rows, inverse=NONE, momentum=0.0):
    arrays = rows.code, rows.dual, rows.speed, rows.start
    return tri.sweep_triples(x.array, inverse, NONE, NONE, NONE, block.triples, *arrays, momentum)


def empty(block):
    return TriangleRows(np.empty(0, np.int32), np.empty(0), np.zeros(len(block.triples) + 1, np.int64))


@pytest.mark.parametrize("weighted", [False, True])
def test_scan_and_sweep_do_what_the_textbook_does(rng, weighted):
    nodes = 11
    matrix, weight = symmetric(rng, nodes), symmetric(rng, nodes, 0.5, 2.0) + np.eye(nodes)
    x, plain, dual = as_tiles(matrix), np.triu(matrix, 1), {}
    inverse = 1.0 / weight if weighted else np.ones_like(matrix)
    tiles = as_tiles(inverse).array if weighted else NONE
    for block in x.tiling.blocks:
        rows, found, totals = scan(x, block, empty(block), tiles)
        listed = [(row, z) for row, z in rows_of(x.tiling, block, rows)]
        assert found == len(listed)
        worst, squares = 0.0, 0.0
        for row, z in listed:
            before = naive.triangles.excess(plain, row)
            naive.triangles.project_row(plain, dual, inverse, row)
            assert z == pytest.approx(dual[naive.triangles.row_key(row)], rel=1e-12)
            worst, squares = max(worst, before), squares + before**2
        assert totals == pytest.approx([worst, squares], rel=1e-12)
        assert x.square() == pytest.approx(plain + plain.T, abs=1e-13)
        sweep(x, block, rows.at_rest(), tiles)
        for row, _ in listed:
            naive.triangles.project_row(plain, dual, inverse, row)
        assert x.square() == pytest.approx(plain + plain.T, abs=1e-13)
        for row, z in rows_of(x.tiling, block, rows):
            assert z == pytest.approx(dual[naive.triangles.row_key(row)], abs=1e-13)


def test_a_scan_looks_at_every_triangle(rng):
    """It finds something just below the largest violation, wherever that is, and nothing just above."""
    for _ in range(30):
        matrix = symmetric(rng, 9, 1.0, 1.9)
        i, j = rng.choice(9, 2, replace=False)
        matrix[i, j] = matrix[j, i] = rng.choice([0.05, 4.0])
        worst = naive.triangles.largest_violation(matrix)
        for slack, some in ((0.999 * worst, True), (1.001 * worst, False)):
            x = as_tiles(matrix)
            assert any(scan(x, block, empty(block), slack=slack)[1] for block in x.tiling.blocks) == some


def test_a_row_found_again_adds_to_its_dual_and_an_idle_one_is_forgotten(rng):
    x = as_tiles(symmetric(rng, 4), side=4)
    block = x.tiling.blocks[0]
    rows, _, _ = scan(x, block, empty(block))
    x.array[0] += np.triu(rng.uniform(-0.3, 0.3, (4, 4)), 1)
    rows.dual[0] = 0.0
    before = dict(zip(rows.code.tolist(), rows.dual.tolist(), strict=True))
    again, found, _ = scan(x, block, rows)
    assert found > 0 and (np.diff(again.code) > 0).all() and (again.dual > 0).all()
    assert set(again.code.tolist()) - set(before) or any(
        again.dual[at] != before[code] for at, code in enumerate(again.code.tolist())
    )
    assert tri.rows_are_sound(block.triples, again.code, again.dual, again.start)


def test_a_projection_within_limits_is_exact(rng):
    """Against bisection: the row becomes an equality, or its dual zero, with x = y within the limits."""
    for _ in range(300):
        y = rng.normal(size=3)
        lower = rng.choice([-np.inf, -0.5, 0.2], 3)
        upper = lower + rng.choice([0.0, 0.3, np.inf], 3) if np.isfinite(lower).all() else np.full(3, np.inf)
        inverse, closing, dual = rng.uniform(0.3, 3.0, 3), int(rng.integers(3)), float(rng.choice([0.0, 0.3, 5.0]))
        sign = np.where(np.arange(3) == closing, 1.0, -1.0)

        def excess(step, y=y, sign=sign, inverse=inverse, lower=lower, upper=upper):
            return sign @ np.clip(y - step * sign * inverse, lower, upper)

        if excess(1e6) > 0 or (excess(0.0) <= 0 and dual == 0.0):
            continue  # nothing reaches the row, or nothing is to do
        low, high = -dual, 1e6
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        tiles = [values.reshape(3, 1, 1).copy() for values in (np.clip(y, lower, upper), y - np.clip(y, lower, upper))]
        limits = [values.reshape(3, 1, 1) for values in (lower, upper)]
        sides = [(side, 0, 0) for side in range(3)]
        step, moved = tri.project_within(*tiles, *limits, *sides, closing, *inverse, dual)
        # Where the row is flat several steps will do; x is what counts.
        assert step >= -dual
        assert tiles[0].ravel() == pytest.approx(np.clip(y - high * sign * inverse, lower, upper), abs=1e-9)
        assert (tiles[0] + tiles[1]).ravel() == pytest.approx(y - step * sign * inverse, abs=1e-12)
        assert moved == pytest.approx(abs(excess(0.0) - excess(step)), abs=1e-9)


def test_forgetting_keeps_the_rows_that_act(rng):
    code, dual = np.arange(9, dtype=np.int32), rng.choice([0.0, 1.0, 2.0], 9)
    start = np.array([0, 4, 4, 9])
    kept, values, begin = tri.forget_rows(code, dual, start)
    assert np.array_equal(kept, code[dual > 0]) and np.array_equal(values, dual[dual > 0])
    assert np.diff(begin).tolist() == [np.count_nonzero(part) for part in np.split(dual, start[1:-1])]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sweep_with_momentum_lets_duals_go_on_and_then_projects(rng, weighted):
    """The point has gone ahead with all duals, also below zero; the projection takes those back."""
    matrix, weight = symmetric(rng, 4), symmetric(rng, 4, 0.5, 2.0) + np.eye(4)
    x, inverse = as_tiles(matrix, side=4), 1.0 / weight if weighted else np.ones_like(matrix)
    tiles = as_tiles(inverse, side=4).array if weighted else NONE
    block = x.tiling.blocks[0]
    rows = scan(x, block, empty(block), tiles)[0]
    rows = replace(rows, speed=rng.normal(0.0, 3.0, len(rows.dual)) * rows.dual)
    plain, dual, listed = np.triu(x.square(), 1), {}, list(rows_of(x.tiling, block, rows))
    assert (rows.dual + 0.5 * rows.speed < 0.0).any()
    before = rows.dual.copy()
    for (row, z), speed in zip(listed, rows.speed, strict=True):
        naive.triangles.move_row(plain, inverse, row, 0.5 * speed)
        dual[naive.triangles.row_key(row)] = z + 0.5 * speed
    x.array[0] = plain
    course = 0.0
    for row, z in listed:
        key = naive.triangles.row_key(row)
        ahead = dual[key]
        naive.triangles.project_row(plain, dual, inverse, row)
        course += (dual[key] - ahead) * (dual[key] - z) * sum(inverse[side] for side in (row[0], *row[1]))
    assert sweep(x, block, rows, tiles, 0.5)[1] == pytest.approx(course, rel=1e-9)
    assert x.square() == pytest.approx(plain + plain.T, abs=1e-12)
    assert rows.dual == pytest.approx([dual[naive.triangles.row_key(row)] for row, _ in listed], abs=1e-12)
    assert (rows.dual >= 0.0).all() and rows.speed == pytest.approx(rows.dual - before, abs=1e-12)


def test_loads_and_row_blocks_say_the_same(rng):
    nodes = 10
    x = as_tiles(symmetric(rng, nodes))
    store, duals = TriangleStore(x.tiling), {}
    for at, block in enumerate(x.tiling.blocks):
        store.put(at, scan(x, block, store.get(at))[0])
        duals |= {naive.triangles.row_key(row): z for row, z in rows_of(x.tiling, block, store.get(at))}
    expected = naive.triangles.load(nodes, duals)
    assert add_loads(store, Tiles(x.tiling)).square() == pytest.approx(expected + expected.T, abs=1e-13)
    u, v = np.triu_indices(nodes, 1)
    by_edge = np.zeros(len(u))
    for at, block in enumerate(x.tiling.blocks):
        rows = as_row_block(x.tiling, block, store.get(at))
        for row, z in zip(rows.rows.edges.reshape(-1, 3), rows.dual, strict=True):
            by_edge[row] += z * np.array([1.0, -1.0, -1.0])
    assert by_edge == pytest.approx(expected[u, v], abs=1e-13)


def test_damaged_rows_are_recognised():
    tiling = Tiling(6, SIDE)
    block = next(block for block in tiling.blocks if block.triples[0].tolist()[3:5] == [1, 0])
    (triple,) = block.triples[:1].tolist()
    good = int(tri.pack_row(0, 1, 1, 2))
    start = np.array([0, 1])
    one = block.triples[:1]
    assert tri.rows_are_sound(one, np.array([good], np.int32), np.ones(1), start)
    lines = triple[5:]
    for wrong in ((0, 1, lines[2], 0), (1, 1, 0, 0), (2, 1, 0, 0), (0, 1, 1, 3)):
        code = np.array([tri.pack_row(*wrong)], np.int32)
        assert not tri.rows_are_sound(one, code, np.ones(1), start), wrong
    for dual in (-1.0, np.nan, np.inf):
        assert not tri.rows_are_sound(one, np.array([good], np.int32), np.array([dual]), start)
    assert not tri.rows_are_sound(one, np.array([good, good], np.int32), np.ones(2), np.array([0, 2]))
