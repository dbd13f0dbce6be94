"""Random trees find short cycles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.arcs import Arcs
from ooc_pf.cycles.frozen import Frozen, TreeRules
from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.tree_search import Forest
from ooc_pf.kernels import lanes
from ooc_pf.storage.vectors import Vector
from tests import naive
from tests.gallery import random_graph

NEVER = np.zeros(1, np.uint8)


def find(graph, x, roots, width, most=1 << 20):
    """Rows through trees from ``roots``, so many at a time, each below the length 100."""
    arcs = Arcs(graph)
    arcs.set_lengths(x.__getitem__)
    frozen = Frozen(graph, Vector.of(x), lambda part: np.full(len(part), 100.0))
    forest = Forest(frozen, arcs, TreeRules(penalty=1e-9, slack=0.0, most=most, seed=1))
    for at in range(0, len(roots), width):
        made = lanes.make_lanes(graph.nodes, width, lanes.NARROW)
        forest.grow(made, roots[at : at + width], NEVER)
        forest.climb(made, at, None)
    return forest.best.rows().found


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_trees_find_real_short_cycles(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(4, 14))
    u, v = random_graph(rng, nodes, int(rng.integers(5, 40)))
    x = rng.random(len(u)) * 0.3
    graph = build_graph(u, v, nodes)
    if not len(graph.sources):
        return
    roots = rng.integers(0, graph.nodes, 3).astype(np.int32)
    found = find(graph, x, roots, 3)
    near = dict(zip(graph.closer_edge.whole.tolist(), np.repeat(graph.sources, np.diff(graph.closer_start)).tolist()))
    far = dict(zip(graph.closer_edge.whole.tolist(), graph.closer_node.whole.tolist()))
    dist = naive.graphs.distances(nodes, u, v, x)
    for i in range(len(found.rows)):
        row = found.rows.edges[found.rows.start[i] : found.rows.start[i + 1]]
        a, b = u[row[0]], v[row[0]]
        length = 100.0 - found.violation[i]
        assert length == pytest.approx(x[row[1:]].sum(), abs=1e-5)
        assert length >= dist[a, b] - 1e-5
        ends = np.bincount(np.concatenate((u[row[1:]], v[row[1:]])), minlength=nodes)
        if len(row) > 2:  # a path between the ends of the closing edge; a tree may also hold that edge itself
            assert set(np.flatnonzero(ends % 2)) == {a, b}
        if {near[row[0]], far[row[0]]} & set(roots.tolist()):
            assert length == pytest.approx(dist[a, b], abs=1e-5)
    few = find(graph, x, roots, 1)
    assert np.array_equal(few.rows.edges, found.rows.edges) and np.array_equal(few.violation, found.violation)
    kept = find(graph, x, roots, 2, most=3)
    assert len(kept.rows) <= 3 and set(kept.violation) <= set(found.violation)
    assert np.array_equal(kept.rows.edges, find(graph, x, roots, 1, most=3).rows.edges)


def test_ways_that_cost_the_same_are_shared_out():
    """Between all leaves there are ways of one length through every hub: no hub has most of them."""
    hubs, leaves = 8, 60
    u = np.repeat(np.arange(hubs), leaves)
    v = np.tile(np.arange(hubs, hubs + leaves), hubs)
    a, b = (ends + hubs for ends in np.triu_indices(leaves, 1))
    passable = np.arange(len(u) + len(a)) < len(u)
    u, v = np.concatenate((u, a)), np.concatenate((v, b))
    graph = build_graph(u, v, hubs + leaves, passable=passable, closing=~passable)
    number = {tuple(pair): k for k, pair in enumerate(zip(u.tolist(), v.tolist()))}
    degree = np.diff(graph.arc_start)
    roots = np.flatnonzero(degree == leaves).astype(np.int32)
    found = find(graph, np.zeros(len(u)), roots, 8)
    assert len(found.rows) == len(a) and (np.diff(found.rows.start) == 3).all() and len(number) == len(u)
    through = u[found.rows.edges[1::3]]
    assert np.array_equal(through, u[found.rows.edges[2::3]])
    assert np.bincount(through, minlength=hubs).max() < 2 * len(a) / hubs


def test_of_ways_of_one_length_the_one_with_fewest_arcs_is_taken():
    """A hub next to both leaves, and one that a chain leads to."""
    u, v = np.array([0, 0, 3, 4, 5, 1]), np.array([1, 2, 4, 1, 2, 2])
    u, v = np.concatenate((u, [3])), np.concatenate((v, [5]))
    passable = np.array([True, True, True, True, True, False, True])
    graph = build_graph(u, v, 6, passable=passable, closing=~passable)
    for order in (slice(None), slice(None, None, -1)):
        roots = np.arange(graph.nodes, dtype=np.int32)[order]
        found = find(graph, np.zeros(len(u)), roots, 2)
        assert found.rows.edges.tolist()[0] == 5 and sorted(found.rows.edges.tolist()[1:]) == [0, 1]
