"""The kernels of support vector machines against the textbook."""

import numpy as np
import pytest
from scipy import sparse

from ooc_pf.kernels.svm import ascend_dense, ascend_sparse
from ooc_pf.svm import settings as numbers
from ooc_pf.svm.inputs import read_table
from ooc_pf.svm.program import Program, Sums, add_search, best_part, bound_at
from tests.gallery import labelled_rows
from tests.naive import svm as naive
from tests.naive.svm import signs


def test_the_line_search_is_exact(rng):
    X, y = labelled_rows(rng, 200, 4)
    table, s = read_table(X), rng.uniform(0.5, 1.5, 200)
    program = Program(table, y.astype(np.int8), s, np.ones(2), (1,), 7.0, False)
    for length in (0.1, 1.0, 10.0, 1000.0):
        base = rng.normal(size=(1, 4))
        gradient = base[0] - 7.0 * X.T @ (s * signs(y) * np.maximum(0.0, 1.0 - signs(y) * (X @ base[0])))
        w, found = base - length * gradient / np.linalg.norm(gradient), np.zeros((1, 2, numbers.BINS + 2))
        add_search(program, found, base, w, [0], 1.0, 0, X)
        exact = naive.best_part(X, signs(y), s, 7.0, base[0], w[0] - base[0])
        assert best_part(base[0], w[0], False, found[0]) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("size", [1.0, 1e100, 1e153, 1e155, 1e200])
def test_bounds_do_not_overflow(size):
    """The best multiple of z is the same for any multiple of z, where it can be computed at all."""
    mass, square, pull = np.array([[300.0, 200.0]]), np.array([[4.0, 5.0]]), np.array([[[0.1], [0.2]]])
    with np.errstate(over="ignore"):
        plain, large = (
            Sums(k * mass, k * k * square, k * pull, np.zeros((1, 2), int), [None], np.zeros((1, 2)))
            for k in (1.0, size)
        )
        found, truth = (bound_at(np.zeros(2), True, sums, 0) for sums in (large, plain))
    assert truth > 1e3 and 0.0 <= found <= truth * (1.0 + 1e-12)
    assert found == pytest.approx(truth) or size > 1e153


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("border", [False, True])
def test_projections_are_those_of_the_textbook(rng, thin, border):
    X, y = labelled_rows(rng, 40, 7)
    s, order = rng.uniform(0.5, 2.0, 40), rng.integers(0, 40, 200)
    full = np.hstack((X, np.ones((40, 1)))) if border else X
    w, late, z, twin = np.zeros(full.shape[1]), np.zeros(full.shape[1]), np.zeros(40), np.zeros(40)
    iterates = naive.ascend(full, signs(y), s, 3.0, order, w, twin)
    rest = order, y.astype(np.int8), 1, s, np.ones(2), 3.0, border, w, late, z, 0
    if thin:
        made = sparse.csr_array(X)
        changed = ascend_sparse(made.indptr, made.indices, made.data, *rest)
    else:
        changed = ascend_dense(X, *rest)
    assert 0 < changed <= 200
    assert np.allclose(w, iterates[-1]) and np.allclose(z, twin)
    assert np.allclose((200 * w - late) / 200, np.mean(iterates, axis=0))
