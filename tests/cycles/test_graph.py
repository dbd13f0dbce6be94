"""The split graph keeps what cycles are made of."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.graph import build_graph
from ooc_pf.kernels.biconnected import find_components
from tests import naive
from tests.gallery import random_graph


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_split_keeps_every_cycle_and_drops_every_bridge(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 10))
    u, v = random_graph(rng, nodes, int(rng.integers(1, 14)))
    component = find_components(u, v, nodes)
    bridges = {e for e in range(len(u)) if naive.graphs.is_bridge(nodes, u, v, e)}
    assert set(np.flatnonzero(component < 0).tolist()) == bridges
    for e, path in naive.graphs.cycle_rows(nodes, u, v):  # a cycle lies in one component
        assert len({component[e], *component[path]}) == 1
    graph = build_graph(u, v, nodes)
    assert sorted(graph.closer_edge.whole.tolist()) == sorted(set(range(len(u))) - bridges)
    assert sorted(graph.arc_edge.whole.tolist()) == sorted(2 * [e for e in range(len(u)) if e not in bridges])
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    source = np.repeat(graph.sources, np.diff(graph.closer_start))
    ends = {e: {int(a), int(b)} for e, a, b in zip(graph.arc_edge.whole, tail, graph.arc_node.whole, strict=True)}
    for e, a, b in zip(graph.closer_edge.whole, source, graph.closer_node.whole, strict=True):
        assert ends[e] == {int(a), int(b)}


def test_two_triangles_at_a_cut_vertex_get_two_copies_of_it():
    u, v = np.array([0, 1, 0, 2, 3, 2]), np.array([1, 2, 2, 3, 4, 4])
    graph = build_graph(u, v, 5)
    assert graph.nodes == 6
