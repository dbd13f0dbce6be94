"""Kernels of Bregman functions against their textbook twins."""

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.engine.rows import RowBlock, Rows
from ooc_pf.general.program import RowProgram
from ooc_pf.kernels import bregman
from ooc_pf.storage.vectors import Vector
from tests import naive

CODES = {
    "quadratic": bregman.QUADRATIC,
    "entropy": bregman.ENTROPY,
    "p_norm": bregman.POWER,
    "fermi_dirac": bregman.FERMI_DIRAC,
    "hellinger": bregman.HELLINGER,
}


def random_rows(rng, rows, variables, reach=0.8):
    """Rows (index, a, rhs, equality) that every domain can satisfy near the middle of it."""
    for i in range(rows):
        index = rng.permutation(variables)[: rng.integers(1, 6)]
        a = rng.normal(size=len(index)) if i % 3 else np.ones(len(index))
        yield index, a, float(a @ rng.uniform(0.2, reach, len(index))), i % 5 == 0


def block_of(rows):
    start = np.cumsum([0, *(len(row[0]) for row in rows)], dtype=np.int64)
    index, a = (np.concatenate([row[k] for row in rows]) for k in (0, 1))
    rhs, equality = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    table = Rows(start, index.astype(np.int32), a.astype(float), rhs, equality)
    return RowBlock.build(table, np.zeros(len(rows)), table.keys())


@pytest.mark.parametrize("name", CODES)
def test_sweeps_are_those_of_the_textbook(name, rng):
    rows = list(random_rows(rng, 40, 12))
    w = rng.uniform(0.5, 2.0, 12) if name != "entropy" else np.repeat([0.7, 1.3], 6)
    objective = pf.objectives.Objective(name, CODES[name], np.zeros(12), w, np.zeros(12), np.zeros(12), power=3.0)
    block, y = block_of(rows), np.zeros(12)
    dual, twin = np.zeros(len(rows)), np.zeros(12)
    for _ in range(5):
        RowProgram.of(objective).project(block, Vector.of(y))
        naive.rows.project_rows(name, rows, dual, twin, w)
    assert np.allclose(y, twin, rtol=1e-9, atol=1e-9)
    assert np.allclose(block.dual, dual, rtol=1e-9, atol=1e-9)
    load = sum(z * np.bincount(row[0], row[1], 12) for z, row in zip(block.dual, rows, strict=True))
    assert np.allclose(y, -load, atol=1e-12)


@pytest.mark.parametrize("name", CODES)
def test_value_gradient_and_inverse_belong_together(name, rng):
    value, gradient, invert = naive.rows.FUNCTIONS[name]
    x, w = rng.uniform(0.1, 0.9, 50), rng.uniform(0.5, 2.0, 50)
    more = (np.zeros(50), np.zeros(50), 3.0)
    y = bregman.find_gradient(CODES[name], x, w, *more)
    assert np.allclose(y, gradient(x, w), rtol=1e-13)
    assert np.allclose(bregman.invert_gradient(CODES[name], y, w, *more), x, rtol=1e-12)
    assert np.allclose(invert(y, w), x, rtol=1e-12)
    assert bregman.sum_values(CODES[name], x, w, *more) == pytest.approx(value(x, w).sum(), rel=1e-13)
    moved = [bregman.invert_gradient(CODES[name], y + step, w, *more) for step in (1e-6, -1e-6)]
    assert np.allclose(bregman.find_slope(CODES[name], y, w, *more), (moved[0] - moved[1]) / 2e-6, rtol=1e-6)
