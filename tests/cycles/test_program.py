"""Programs over cycles: bounds, and variables that come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.point import CyclePoint
from ooc_pf.cycles.program import linear_bound
from ooc_pf.engine.rows import Rows
from ooc_pf.engine.store import ConstraintStore
from ooc_pf.problems.clustering import clustering_program
from ooc_pf.storage.vectors import Pool, Vector
from tests.parts import as_edges


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_lp_bound_is_the_best_scaling(seed):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.1, 2.0, 12)
    load = np.where(rng.random(12) < 0.3, 0.0, rng.uniform(0.0, 3.0, 12))
    duals = float(rng.uniform(0.1, 1.0) * load.sum())

    def excess(scale):
        over = scale * load > weight
        return float((weight - scale * load)[over].sum()), float(load[over].sum())

    found = linear_bound(excess, duals)
    scales = np.linspace(0.0, 50.0, 20001)
    tried = scales * duals + np.minimum(0.0, weight[:, None] - scales * load[:, None]).sum(axis=0)
    assert found >= tried.max() - 1e-9
    assert found <= tried.max() + 0.01 * load.sum() + 1e-9


def test_pairs_lose_their_variable_with_their_last_row():
    u, v = np.arange(5), np.arange(1, 6)  # a path of attractive edges
    program = clustering_program(1.0, -0.3)(as_edges(u, v, np.ones(5), 6), None, None, Pool())
    rows, point = ConstraintStore(), CyclePoint(program, Vector.of(program.target.whole.copy()), Pool())
    point.admit(np.array([[0, 2], [1, 3], [2, 4], [0, 3]], np.int32))
    rows.append(Rows(np.array([0, 3, 6]), np.array([5, 0, 1, 7, 2, 3], np.int32)))
    for block in rows.blocks():
        block.dual[:] = [0.0, 0.25]
    point.adopt(point.rebuilt((block, block.dual) for block in rows.blocks()))
    before = point.bound(rows)
    rows.forget()
    point.dismiss(rows)
    assert point.program.pairs.unlisted.tolist() == [[2, 4]]
    assert point.y.size == point.program.size == 6
    (block,) = rows.blocks()
    assert block.rows.edges.tolist() == [5, 2, 3]
    assert np.array_equal(point.y.whole, point.rebuilt([(block, block.dual)]).whole)
    assert point.bound(rows) == pytest.approx(before)
    assert rows.append(Rows(np.array([0, 3]), np.array([5, 2, 3], np.int32))) == 0  # known under its new number
