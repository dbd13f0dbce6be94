"""Vectors in pages behave like arrays, and files of the pool vanish with it."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.errors import BudgetError
from ooc_pf.storage.spill import Spilled, spilled_size
from ooc_pf.storage.vectors import PAGE, Pool, Vector, spans


def test_no_entries_of_a_paged_vector_can_be_read_and_set(tmp_path):
    pool = Pool(PAGE * 8, tmp_path)
    vector, nothing = Vector(3 * PAGE, np.float64, pool), np.empty(0, np.int64)
    vector.put(nothing, np.empty(0))
    assert vector.take(nothing).shape == (0,)
    pool.close()


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.int32]))
@settings(max_examples=25, deadline=None)
def test_a_paged_vector_behaves_like_an_array(seed, dtype):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4 * PAGE))
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(PAGE * 8, Path(folder))  # one page, so that the others have to go
        vector, twin = Vector(size, dtype, pool), np.zeros(size, dtype)
        other = Vector.filled([np.ones(size)], size, np.float64, pool)
        for _ in range(8):
            index = rng.permutation(size)[: int(rng.integers(0, size + 1))]
            values = rng.integers(0, 1000, len(index)).astype(dtype)
            vector.put(index, values)
            twin[index] = values
            first = int(rng.integers(0, size))
            part = rng.integers(0, 1000, int(rng.integers(0, size - first + 1))).astype(dtype)
            vector.write(first, part)
            twin[first : first + len(part)] = part
            asked = rng.integers(0, size, 50)
            assert np.array_equal(vector.take(asked), twin[asked])
            last = int(rng.integers(first, size + 1))
            assert np.array_equal(vector.read(first, last), twin[first:last])
        assert np.array_equal(np.concatenate([part for _, part in vector.spans()]), twin)
        for part, one in spans(vector, other):
            assert len(part) == len(one) and (one == 1).all()
        assert size <= 2 * PAGE or (pool.read_bytes > 0 and pool.written_bytes > 0)
        vector.close()
        pool.close()
        assert list(Path(folder).iterdir()) == []


def test_a_read_that_brings_a_part_is_gone_on_with(tmp_path, monkeypatch):
    """As the system does with more than two gigabytes; what is past the end is zero."""
    read, pool = os.preadv, Pool(PAGE, tmp_path)
    monkeypatch.setattr(os, "preadv", lambda file, parts, offset: read(file, [parts[0][:1000]], offset))
    file, values = pool.open_file(), np.arange(999.0)
    pool.write(file, 0, values)
    assert np.array_equal(pool.read(file, 0, 1200, values.dtype), np.append(values, np.zeros(201)))
    assert pool.read_bytes == values.nbytes
    pool.close()


def test_pages_need_a_place():
    with pytest.raises(BudgetError, match="workspace="):
        Pool(1000)


def test_spilled_arrays_come_back_as_they_were_last_written(tmp_path):
    pool = Pool(None, tmp_path)
    file = pool.open_file()
    arrays = {
        "trail": np.arange(6.0).reshape(2, 3),
        "code": np.array([7, 8, 9], np.int32),
        "flag": np.array([True, False, True]),
        "none": np.empty((0, 4)),
        "key": np.array([2**63], np.uint64),
    }
    spilled = Spilled.write(pool, file, 16, arrays)
    assert spilled.nbytes == spilled_size(arrays) == 48 + 16 + 8 + 0 + 8
    arrays["code"] = np.array([1, 2, 3], np.int32)
    spilled.update({"code": arrays["code"]})
    back = spilled.read()
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype and np.array_equal(back[name], array)
    pool.close()
