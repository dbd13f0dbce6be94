"""Clusters from fractional solutions: against all partitions, textbook twins, and planted answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.errors import InputError
from ooc_pf.kernels import clusters
from ooc_pf.problems import rounding
from ooc_pf.problems.rounding import clustering_cost, round_clusters
from tests import naive, naive_clusters

seeds = st.integers(0, 2**32 - 1)
bases = st.sampled_from([None, 0.0, -1, -0.3])


def signed_graph(rng, nodes, edges, *, whole=False):
    """(u, v, weight): weights +-1 or continuous, never zero."""
    u, v = naive.random_graph(rng, nodes, edges)
    weight = rng.choice([-1.0, 1.0], len(u)) * (1.0 if whole else rng.uniform(0.1, 1.0, len(u)))
    return u, v, weight


def laid_out(u, v, weight, nodes, base):
    """(Level, edge of each arc) as the package lays the graph out."""
    ends = np.asarray(u, np.int32), np.asarray(v, np.int32)
    return rounding._whole(*ends, weight, nodes, 0.0 if base is None else base)


def groups_of(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def assert_rounded(nodes, u, v, weight, base, labels, cost):
    """The labels are well numbered and cost what is said, by counting every pair."""
    assert labels.dtype == np.int32 and labels.shape == (nodes,)
    assert np.array_equal(labels, rounding._numbered(labels))
    assert cost == pytest.approx(naive_clusters.cost(naive_clusters.table(nodes, u, v, weight, base), labels), abs=1e-9)


@given(seeds, bases, st.booleans())
@settings(max_examples=60, deadline=None)
def test_never_below_the_optimum(seed, base, whole):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 8))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 22)), whole=whole)
    reduced = rng.normal(size=len(u)) if rng.random() < 0.5 else None
    labels, cost = round_clusters(u, v, weight, rng.uniform(-0.1, 1.1, len(u)), nodes, base=base, reduced=reduced)
    assert_rounded(nodes, u, v, weight, base, labels, cost)
    assert cost >= naive_clusters.least_cost(naive_clusters.table(nodes, u, v, weight, base)) - 1e-9


def test_mostly_optimal_on_small_graphs(rng):
    hits = 0
    for k in range(100):
        base, whole = (None, -0.5)[k % 2], k % 4 < 2
        u, v, weight = signed_graph(rng, 7, 15, whole=whole)
        _, cost = round_clusters(u, v, weight, rng.random(len(u)), 7, base=base)
        hits += cost <= naive_clusters.least_cost(naive_clusters.table(7, u, v, weight, base)) + 1e-9
    assert hits >= 97


@given(seeds, bases)
@settings(max_examples=40, deadline=None)
def test_cost_counts_every_pair(seed, base):
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 12, int(rng.integers(0, 40)))
    labels = rng.integers(0, 5, 12)
    expected = naive_clusters.cost(naive_clusters.table(12, u, v, weight, base), labels)
    assert clustering_cost(u, v, weight, labels, base=base) == pytest.approx(expected, abs=1e-12)


def test_cost_of_one_huge_cluster_needs_no_pairs():
    nodes = 3_000_000
    cost = clustering_cost(np.array([0]), np.array([1]), np.array([2.0]), np.zeros(nodes, np.int32), base=-1.0)
    assert cost == nodes * (nodes - 1) / 2 - 1


@pytest.mark.parametrize("base", [None, 0.0])
def test_without_repulsion_components(base):
    u, v = np.array([0, 1, 4]), np.array([1, 2, 5])
    labels, cost = round_clusters(u, v, np.ones(3), np.full(3, 0.9), 7, base=base)
    assert labels.tolist() == [0, 0, 0, 1, 2, 2, 3] and cost == 0.0


@pytest.mark.parametrize("base", [None, -1.0])
def test_without_attraction_singletons(base):
    labels, cost = round_clusters(np.array([0, 1]), np.array([1, 2]), -np.ones(2), np.zeros(2), 4, base=base)
    assert labels.tolist() == [0, 1, 2, 3] and cost == 0.0


@pytest.mark.parametrize("nodes", [1, 3])
def test_without_edges_singletons(nodes):
    empty = np.array([], np.int64)
    labels, cost = round_clusters(empty, empty, empty.astype(float), empty.astype(float), nodes, base=-1.0)
    assert labels.tolist() == list(range(nodes)) and cost == 0.0


def test_isolated_nodes_stay_alone(rng):
    u, v, weight = signed_graph(rng, 6, 12)
    labels, _ = round_clusters(u, v, weight, rng.random(len(u)), 9)
    assert np.count_nonzero(np.isin(labels, labels[6:])) == 3


def test_bad_input_is_named():
    u, v = np.array([0]), np.array([1])
    with pytest.raises(InputError, match="base"):
        round_clusters(u, v, np.ones(1), np.ones(1), 2, base=0.5)
    with pytest.raises(InputError, match="length"):
        round_clusters(u, v, np.ones(1), np.ones(2), 2)
    with pytest.raises(InputError, match="length"):
        round_clusters(u, v, np.ones(1), np.ones(1), 2, reduced=np.ones(3))
    with pytest.raises(InputError, match="nodes"):
        round_clusters(u, v, np.ones(1), np.ones(1), 0)


def test_same_seed_same_bits(rng):
    u, v, weight = signed_graph(rng, 60, 400)
    x = rng.random(len(u))
    runs = [round_clusters(u, v, weight, x, 60, seed=seed, reduced=weight / 2) for seed in (3, 3, 4)]
    assert np.array_equal(runs[0][0], runs[1][0]) and runs[0][1] == runs[1][1]
    assert runs[2][1] == pytest.approx(runs[0][1], rel=0.05)


@pytest.mark.parametrize("base", [None, -0.2])
def test_planted_clusters_are_found(rng, base):
    nodes = 2000
    planted = rng.integers(0, 40, nodes)
    members = [np.flatnonzero(planted == c) for c in range(40)]
    u = rng.integers(0, nodes, 60_000)
    mate = np.array([rng.choice(members[planted[i]]) for i in u])
    v = np.where(rng.random(len(u)) < 0.6, mate, rng.integers(0, nodes, len(u)))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    u, v = pairs.T
    together = planted[u] == planted[v]
    noisy = rng.random(len(u)) < 0.05
    weight = np.where(together ^ noisy, 1.0, -1.0)
    x = np.clip(np.where(together, 0.3, 0.7) + rng.normal(0, 0.3, len(u)), 0, 1)
    labels, cost = round_clusters(u, v, weight, x, nodes, base=base)
    assert cost <= clustering_cost(u, v, weight, planted, base=base) + 1e-9
    assert len(groups_of(labels) & groups_of(planted)) == 40


# Kernels against their textbook twins. --------------------------------------------------------------------------------


@given(seeds, bases)
@settings(max_examples=100, deadline=None)
def test_greedy_joins(seed, base):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 16))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(0, 80)))  # continuous weights: no ties
    shift = 0.0 if base is None else base
    leaders = clusters.join_greedily(u.astype(np.int32), v.astype(np.int32), weight - shift, np.ones(nodes), shift)
    expected = naive_clusters.join_greedily(naive_clusters.table(nodes, u, v, weight, base))
    assert groups_of(leaders) == {frozenset(map(int, group)) for group in expected}


def test_greedy_joins_refill_the_table(rng):
    """Hubs that join as a tree hang their leaves over again and again: stale pairs must make room in the hash table."""
    hubs, leaves = 8, 36
    tree = [(i, i + step, 80.0 / step + i / 10) for step in (1, 2, 4) for i in range(0, hubs, 2 * step)]
    links = [(h, hubs + leaf, rng.normal()) for leaf in range(leaves) for h in rng.choice(hubs, 2, replace=False)]
    u, v, weight = map(np.array, zip(*tree, *links, strict=True))
    size = np.ones(hubs + leaves)
    leaders = clusters.join_greedily(u.astype(np.int32), v.astype(np.int32), weight, size, 0.0)
    expected = naive_clusters.join_greedily(naive_clusters.table(len(size), u, v, weight, None))
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
    assert groups_of(labels) == set(map(frozenset, naive_clusters.pivot(12, takes, order.tolist())))


@given(seeds, bases, st.booleans())
@settings(max_examples=60, deadline=None)
def test_moves_save_what_they_say_and_end_where_none_saves(seed, base, whole):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 60)), whole=whole)
    w = naive_clusters.table(nodes, u, v, weight, base)
    level, _ = laid_out(u, v, weight, nodes, base)
    labels = rng.integers(0, nodes, nodes).astype(np.int32)
    order = np.arange(nodes, dtype=np.int32)
    saved = 1.0
    while saved > 0:
        before = naive_clusters.cost(w, labels)
        saved = clusters.move_nodes(*level, labels, order)
        assert saved >= 0
        assert naive_clusters.cost(w, labels) == pytest.approx(before - saved, abs=1e-9)
    assert naive_clusters.best_move(w, labels.tolist()) <= 1e-9
    settled = rounding._improve(level, labels, rng)
    assert naive_clusters.best_move(w, settled.tolist()) <= 1e-9
    assert naive_clusters.best_join(w, settled.tolist()) <= 1e-9
    assert naive_clusters.cost(w, settled) <= naive_clusters.cost(w, labels) + 1e-9


@given(seeds, bases, st.sampled_from([1, 2, 200]))
@settings(max_examples=60, deadline=None)
def test_shakes_save_what_they_say(seed, base, depth):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 60)), whole=True)
    w = naive_clusters.table(nodes, u, v, weight, base)
    level, _ = laid_out(u, v, weight, nodes, base)
    labels = rng.integers(0, nodes, nodes).astype(np.int32)
    arcs = rng.integers(0, len(level.node), 100)
    near = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(level.start))[arcs]
    before = naive_clusters.cost(w, labels)
    saved = clusters.shake(*level, labels, near, arcs, depth)
    assert saved >= -1e-9
    assert naive_clusters.cost(w, labels) == pytest.approx(before - saved, abs=1e-9)


@given(seeds, bases)
@settings(max_examples=40, deadline=None)
def test_contraction_keeps_savings(seed, base):
    """Joining groups of groups saves on the contracted graph what it saves on the whole one."""
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 12, 40)
    w = naive_clusters.table(12, u, v, weight, base)
    level, _ = laid_out(u, v, weight, 12, base)
    groups = rounding._numbered(rng.integers(0, 6, 12))
    coarse = rounding._contracted(level, groups)
    one, other = (rng.integers(0, 3, len(coarse.size)) for _ in range(2))
    drop = naive_clusters.cost(w, one[groups]) - naive_clusters.cost(w, other[groups])
    assert rounding._saved(coarse, other) - rounding._saved(coarse, one) == pytest.approx(drop, abs=1e-9)
