"""Buckets give back what was put into them, in its order, from memory and from a file."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.storage.buckets import Buckets
from ooc_pf.storage.vectors import Pool

RECORD = np.dtype([("value", np.float64), ("name", np.int32)])


@pytest.mark.parametrize("paged", [False, True])
@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_records_come_back_in_order(paged, seed, most):
    rng = np.random.default_rng(seed)
    records = np.zeros(60, RECORD)
    records["value"], records["name"] = rng.random(60), rng.integers(0, 5, 60)
    sizes = np.bincount(records["name"], minlength=5)
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(1 << 16, Path(folder)) if paged else None
        buckets = Buckets(sizes, RECORD, pool)
        for part in np.array_split(records, 7):
            for name in range(5):
                buckets.add(name, part[part["name"] == name])
        for name in range(5):
            parts = list(buckets.take(name, most))
            assert all(len(part) <= most for part in parts)
            assert np.array_equal(np.concatenate([records[:0], *parts]), records[records["name"] == name])
        buckets.close()
        if pool is not None:
            pool.close()
