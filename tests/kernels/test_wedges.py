"""Open wedges of a complete graph: real ones, without a common pair, and as many as there is room for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles import settings as numbers
from ooc_pf.cycles.passes import freeze
from ooc_pf.cycles.search import NumbaOracle
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.problems.clustering import clustering_program
from ooc_pf.storage.vectors import Pool, Vector
from tests.gallery import random_graph
from tests.parts import as_edges


@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_wedges_are_open_and_share_no_pair(seed, most):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 14))
    u, v = random_graph(rng, nodes, int(rng.integers(2, 40)))
    weight = rng.choice([1.0, 1.0, -1.0], len(u))
    program = clustering_program(None, -0.5, 8.0)(as_edges(u, v, weight, nodes), None, None, Pool())
    x = rng.choice([0.0, 0.0, 0.25, 0.625], len(u))
    with worker_pool(1, processes=False) as pool:
        oracle = NumbaOracle(program.graph, pool, 1)
        limits = {"slack": 0.125, "most": most, "seed": (0,), "tick": lambda: True, "stop": np.zeros(1, np.uint8)}
        found = oracle.find_disjoint(freeze(program, Vector.of(x)), hops=2, **limits)
    listed = {(int(a), int(b)) for a, b in zip(u, v)}
    ends = [tuple(pair) for pair in found.pairs.tolist()]
    assert len(found.rows) <= most and len(set(ends)) == len(ends) and not set(ends) & listed
    rows = found.rows.edges.reshape(-1, 3)
    assert (rows[:, 0] == -1 - np.arange(len(ends))).all()
    used = rows[:, 1:].ravel()
    assert len(np.unique(used)) == len(used) and (weight[used] > 0).all()
    for (a, b), (one, other), gap in zip(ends, rows[:, 1:], found.violation):
        assert {u[one], v[one]} ^ {u[other], v[other]} == {a, b}
        assert gap == 1.0 - x[one] - x[other] and gap > 0.125
    free = [e for e in np.flatnonzero(weight > 0) if e not in set(used.tolist())]
    for i, one in enumerate(free if len(ends) < most else ()):
        for other in free[i + 1 :]:
            pair = tuple(sorted({u[one], v[one]} ^ {u[other], v[other]}))
            assert len(pair) != 2 or pair in listed or pair in ends or x[one] + x[other] >= 0.875


def test_complete_graphs_begin_with_them():
    """A star has half as many as leaves, and no clustering costs less than all but one of its edges."""
    star = np.zeros(20, np.int64), np.arange(1, 21), np.ones(20)
    result = pf.correlation_clustering(star, base=-1.0, tol=1e-6, ratio=1.0, max_iter=1)
    assert result.history[0]["stage"] == numbers.DISJOINT and result.history[0]["found"] == 10
    assert result.lp_lower_bound == 10.0 and result.cost == 19.0
