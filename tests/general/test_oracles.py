"""The forms in which rows are accepted."""

import numpy as np
import pytest
import zarr
from scipy import sparse

import ooc_pf as pf
from tests import naive
from tests.gallery import feasible_rows


@pytest.fixture
def table(rng):
    return feasible_rows(rng)


def as_zarr(A, b, folder):
    store = zarr.create_array(folder / "A", shape=A.shape, chunks=(50, A.shape[1]), dtype=A.dtype)
    store[:] = A
    return store, b


def as_memmap(A, b, folder):
    values = np.memmap(folder / "A", np.float64, "w+", shape=A.shape)
    values[:] = A
    return values, b


def as_csr_arrays(A, b, folder):
    matrix = sparse.csr_array(A)
    return (matrix.indptr, matrix.indices, matrix.data), b


@pytest.mark.parametrize("form", [as_zarr, as_memmap, as_csr_arrays, lambda A, b, _: (sparse.coo_array(A), list(b))])
def test_a_table_may_be_kept_in_any_form(form, table, tmp_path, settings):
    A, b, center = table
    settings.small_scans()
    dense = pf.project_and_forget(pf.objectives.quadratic(center), (A, b), tol=1e-9)
    other = pf.project_and_forget(pf.objectives.quadratic(center), form(A, b, tmp_path), tol=1e-9)
    assert np.allclose(dense.x, naive.rows.nearest(*table), atol=1e-7)
    assert np.allclose(other.x, dense.x, atol=1e-9)
    assert other.duals.keys() == dense.duals.keys()


def test_rows_from_functions_lists_and_blocks(table):
    A, b, center = table

    def worst(x):
        row = int(np.argmax(A @ x - b))
        return [(np.arange(15), A[row], b[row])]

    def some(x):
        order = np.argsort(b - A @ x)[:20]
        return A[order], b[order]

    blocks = [(A[i : i + 40], b[i : i + 40]) for i in range(0, 300, 40)]
    for oracle in (worst, some, blocks, pf.oracles.from_function(some, complete=False, check=(A, b))):
        result = pf.project_and_forget(pf.objectives.quadratic(center), oracle, tol=1e-8)
        assert result.converged
        assert np.allclose(result.x, naive.rows.nearest(*table), atol=1e-6)


# -- keys of one's own ------------------------------------------------------------------------------------------------


def test_multipliers_go_by_the_keys_that_a_function_gives(rng, tmp_path):
    A, b = rng.normal(size=(30, 5)), np.full(30, 0.3)
    objective = pf.objectives.quadratic(2.0 * rng.normal(size=5))
    plain = pf.project_and_forget(objective, (A, b), tol=1e-9)

    def one_by_one(x):
        return [(np.arange(5), A[k], b[k], False, 1000 + k) for k in np.flatnonzero(A @ x > b)]

    def at_once(x):
        return A, b, False, np.arange(1000, 1030)

    for oracle in (one_by_one, at_once, [at_once(None)]):
        result = pf.project_and_forget(objective, oracle, tol=1e-9)
        assert {key - 1000 for key in result.duals} == set(plain.duals)
        assert all(np.isclose(result.duals[1000 + key], dual, atol=1e-6) for key, dual in plain.duals.items())
    path = tmp_path / "run.pf"
    pf.project_and_forget(objective, one_by_one, tol=1e-9, workspace=path, max_iter=1)
    again = pf.project_and_forget(objective, one_by_one, tol=1e-9, workspace=path)
    assert set(again.duals) == set(pf.open(path).duals) and min(again.duals) >= 1000
    assert pf.verify(path)["rows"] == again.n_active


def test_some_rows_may_have_keys():
    def oracle(x):
        return [([0], [1.0], 1.0, False, 7), ([1], [1.0], 1.0)]

    duals = pf.project_and_forget(pf.objectives.quadratic([2.0, 3.0]), oracle).duals
    assert duals[7] == 1.0 and sorted(duals.values()) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([([0], [1.0], 1.0, False, -1)], "whole number from 0"),
        ([([0], [1.0], 1.0, False, 1.5)], "text or a whole number from 0 to .*, found 1.5"),
        ([([0], [1.0], 1.0, False, "")], "1 to 4096 bytes, found 0"),
        ([([0], [1.0], 1.0, False, "a" * 5000)], "found 5000"),
        ([([0], [1.0], 1.0, False, "\ud800")], "half of a character"),
        ([([0], [1.0], 1.0, False, "a"), ([1], [1.0], 1.0, False, "a")], "the key 'a' to two rows"),
        ([([0], [1.0], 1.0, False, 2**63)], "2.63 - 1"),
        ([([0], [1.0], 1.0, False, 4), ([1], [1.0], 1.0, False, 4)], "the key 4 to two rows"),
        ((np.eye(2), np.ones(2), False, [1]), "2 rows and 1 keys"),
    ],
)
def test_keys_that_are_none_are_refused(rows, words):
    with pytest.raises(pf.InputError, match=words):
        pf.project_and_forget(pf.objectives.quadratic([2.0, 3.0]), lambda x: rows)
