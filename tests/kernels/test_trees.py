"""Random trees find short cycles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.graph import build_graph
from ooc_pf.kernels import trees
from tests import naive
from tests.gallery import random_graph


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
    arcs = Arcs(graph)
    arcs.set_lengths(x.__getitem__)
    scratch = Scratch(graph.nodes)
    near = np.repeat(graph.sources, np.diff(graph.closer_start))
    roots = rng.integers(0, graph.nodes, 3)
    forest = np.empty((3, graph.nodes, 3), np.int32)
    for k, root in enumerate(roots):
        trees.grow_tree(root, 100.0, 0.0, 1, graph.arc_start, arcs.whole, scratch.labels, forest[k])
    limit = np.full(len(near), 100.0)
    best, length = np.empty(len(near), np.int32), np.empty(len(near))
    trees.best_trees(near, graph.closer_node.whole, limit, 0.0, x, forest, best, length)
    start = np.empty(int((best >= 0).sum()) + 1, np.int64)
    trees.tree_rows(near, graph.closer_node.whole, graph.closer_edge.whole, best, forest, start, np.empty(0, np.int32))
    entries = np.empty(start[-1], np.int32)
    trees.tree_rows(near, graph.closer_node.whole, graph.closer_edge.whole, best, forest, start, entries)
    dist = naive.graphs.distances(nodes, u, v, x)
    hit = np.flatnonzero(best >= 0)
    for i, pair in enumerate(hit):
        row = entries[start[i] : start[i + 1]]
        a, b = u[row[0]], v[row[0]]
        assert length[pair] == pytest.approx(x[row[1:]].sum())
        assert length[pair] >= dist[a, b] - 1e-12
        ends = np.bincount(np.concatenate((u[row[1:]], v[row[1:]])), minlength=nodes)
        if len(row) > 2:  # a path between the ends of the closing edge; a tree may also hold that edge itself
            assert set(np.flatnonzero(ends % 2)) == {a, b}
        if roots[best[pair]] in (near[pair], graph.closer_node.whole[pair]):
            assert length[pair] == pytest.approx(dist[a, b])
