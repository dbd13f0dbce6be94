"""Kernels of clusters against their textbook twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.kernels import clusters
from ooc_pf.problems import rounding
from tests import naive
from tests.gallery import groups_of, signed_graph
from tests.parts import laid_out

seeds = st.integers(0, 2**32 - 1)
bases = st.sampled_from([None, 0.0, -1, -0.3])


@given(seeds, bases)
@settings(max_examples=100, deadline=None)
def test_greedy_joins(seed, base):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 16))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(0, 80)))  # continuous weights: no ties
    shift = 0.0 if base is None else base
    leaders = clusters.join_greedily(u.astype(np.int32), v.astype(np.int32), weight - shift, np.ones(nodes), shift)
    expected = naive.clusters.join_greedily(naive.clusters.table(nodes, u, v, weight, base))
    assert groups_of(leaders) == {frozenset(map(int, group)) for group in expected}


def test_greedy_joins_refill_the_table(rng):
    """Hubs that join as a tree hang their leaves over again and again: stale pairs must make room in the hash table."""
    hubs, leaves = 8, 36
    tree = [(i, i + step, 80.0 / step + i / 10) for step in (1, 2, 4) for i in range(0, hubs, 2 * step)]
    links = [(h, hubs + leaf, rng.normal()) for leaf in range(leaves) for h in rng.choice(hubs, 2, replace=False)]
    u, v, weight = map(np.array, zip(*tree, *links, strict=True))
    size = np.ones(hubs + leaves)
    leaders = clusters.join_greedily(u.astype(np.int32), v.astype(np.int32), weight, size, 0.0)
    expected = naive.clusters.join_greedily(naive.clusters.table(len(size), u, v, weight, None))
    assert groups_of(leaders) == {frozenset(map(int, group)) for group in expected}


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_pivots(seed):
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 12, int(rng.integers(0, 60)))
    level, arc_edge = laid_out(u, v, weight, 12, None)
    take, order = rng.random(len(arc_edge)) < 0.5, rng.permutation(12).astype(np.int32)
    tail = np.repeat(np.arange(12), np.diff(level.start))
    takes = set(zip(tail[take].tolist(), level.node[take].tolist(), strict=True))
    labels = clusters.pivot(level.start, level.node, take, order)
    assert groups_of(labels) == set(map(frozenset, naive.clusters.pivot(12, takes, order.tolist())))


@given(seeds, bases, st.booleans())
@settings(max_examples=60, deadline=None)
def test_moves_save_what_they_say_and_end_where_none_saves(seed, base, whole):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 60)), whole=whole)
    w = naive.clusters.table(nodes, u, v, weight, base)
    level, _ = laid_out(u, v, weight, nodes, base)
    labels = rng.integers(0, nodes, nodes).astype(np.int32)
    order = np.arange(nodes, dtype=np.int32)
    saved = 1.0
    while saved > 0:
        before = naive.clusters.cost(w, labels)
        saved = clusters.move_nodes(*level, labels, order)
        assert saved >= 0
        assert naive.clusters.cost(w, labels) == pytest.approx(before - saved, abs=1e-9)
    assert naive.clusters.best_move(w, labels.tolist()) <= 1e-9
    settled = rounding.improve(level, labels, rng)
    assert naive.clusters.best_move(w, settled.tolist()) <= 1e-9
    assert naive.clusters.best_join(w, settled.tolist()) <= 1e-9
    assert naive.clusters.cost(w, settled) <= naive.clusters.cost(w, labels) + 1e-9


@given(seeds, bases, st.sampled_from([1, 2, 200]), st.sampled_from([0, 3, 100]))
@settings(max_examples=60, deadline=None)
def test_shakes_save_what_they_say(seed, base, depth, hub):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 60)), whole=True)
    w = naive.clusters.table(nodes, u, v, weight, base)
    level, _ = laid_out(u, v, weight, nodes, base)
    labels = rng.integers(0, nodes, nodes).astype(np.int32)
    arcs = rng.integers(0, len(level.node), 100)
    near = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(level.start))[arcs]
    before = naive.clusters.cost(w, labels)
    saved = clusters.shake(*level, labels, near, arcs, depth, hub)
    assert saved >= -1e-9
    assert naive.clusters.cost(w, labels) == pytest.approx(before - saved, abs=1e-9)
