"""Data of the paper's experiments follows its formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests import naive
from tests.gallery import random_graph
from tests.properties import assert_kkt


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_wang_weights_follow_the_formula(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 25))
    u, v = random_graph(rng, nodes, int(rng.integers(2, 60)))
    (a, b), weight, base = pf.wang_weights(v, u, nodes)
    expected = naive.graphs.wang_weights(nodes, u, v)
    assert base == pytest.approx(np.log(0.95 / 1.05))
    assert {(int(i), int(j)) for i, j in zip(a, b, strict=True)} == set(expected)
    assert weight == pytest.approx([expected[i, j] for i, j in zip(a.tolist(), b.tolist(), strict=True)])
    with pytest.raises(pf.InputError, match="n must be larger"):
        pf.wang_weights(u, v, int(v.max()))


def test_the_three_types_of_data():
    for kind, values in (("II", {0.0, 1.0}), ("I", None), ("III", None)):
        d = pf.random_dissimilarities(60, kind, seed=3)
        assert np.array_equal(d, d.T) and not np.diag(d).any()
        assert values is None or set(d.ravel()) == values
        assert np.array_equal(d, pf.random_dissimilarities(60, kind, seed=3))
        assert not np.array_equal(d, pf.random_dissimilarities(60, kind, seed=4))
        result = pf.metric_nearness(d, tol=1e-9)
        assert result.converged
        assert naive.triangles.largest_violation(result.x) <= 1e-14 * d.max()
        assert_kkt(result, d, 1e-8 * max(1.0, d.max()))
    assert np.array_equal(d, np.round(d)) and d.max() > 100
    for wrong in ({"n": 0}, {"n": 5, "kind": "IV"}, {"n": 5, "seed": "x"}):
        with pytest.raises(pf.InputError):
            pf.random_dissimilarities(**wrong)
