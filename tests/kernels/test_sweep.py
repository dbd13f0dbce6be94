"""Projections onto cycle rows against their textbook twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.kernels.sweep import gather, project_rows
from tests import naive

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([(1.0, 0.0), (-1.0, -1.0)]))
@settings(max_examples=60, deadline=None)
def test_projections_are_exact(seed, shape):
    closing, rhs = shape
    rng = np.random.default_rng(seed)
    edges = int(rng.integers(4, 12))
    rows = [rng.choice(edges, size=int(rng.integers(2, 5)), replace=False) for _ in range(int(rng.integers(1, 8)))]
    target = rng.normal(0.2, 1.0, edges) if closing > 0 else rng.uniform(-1.0, 0.2, edges)
    inverse = rng.uniform(0.2, 3.0, edges)
    start = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    index = np.concatenate(rows).astype(np.int32)
    dual, y = np.zeros(len(rows)), target.copy()
    twin_dual, twin_y = dual.copy(), y.copy()
    everything = np.arange(edges, dtype=np.int32)
    for _ in range(5):
        local = gather(everything, y, inverse)
        project_rows(start, index, dual, local, closing, rhs)
        y[:] = local[:, 0]
        naive.cycles.project_rows(rows, twin_dual, twin_y, inverse, closing, rhs, 1)
        assert dual == pytest.approx(twin_dual, abs=1e-8)
        assert y == pytest.approx(twin_y, abs=1e-8)
    load = np.zeros(edges)
    for row, z in zip(rows, dual, strict=True):
        load[row[0]] += closing * z
        load[row[1:]] -= z
    assert y == pytest.approx(target - inverse * load, abs=1e-12)
