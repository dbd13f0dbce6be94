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
