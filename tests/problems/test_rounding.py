"""Clusters from fractional solutions: against all partitions, textbook twins, and planted answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.errors import InputError
from ooc_pf.kernels.clusters import number_clusters
from ooc_pf.problems import rounding
from ooc_pf.problems.rounding import clustering_cost, round_clusters, round_quickly, round_weights
from tests import naive
from tests.gallery import groups_of, signed_graph
from tests.parts import laid_out

seeds = st.integers(0, 2**32 - 1)
bases = st.sampled_from([None, 0.0, -1, -0.3])


def assert_rounded(nodes, u, v, weight, base, labels, cost):
    """The labels are well numbered and cost what is said, by counting every pair."""
    assert labels.dtype == np.int32 and labels.shape == (nodes,)
    assert np.array_equal(labels, number_clusters(labels))
    assert cost == pytest.approx(naive.clusters.cost(naive.clusters.table(nodes, u, v, weight, base), labels), abs=1e-9)


@given(seeds, bases, st.booleans())
@settings(max_examples=60, deadline=None)
def test_never_below_the_optimum(seed, base, whole):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 8))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 22)), whole=whole)
    reduced = rng.normal(size=len(u)) if rng.random() < 0.5 else None
    labels, cost = round_clusters(u, v, weight, rng.uniform(-0.1, 1.1, len(u)), nodes, base=base, reduced=reduced)
    assert_rounded(nodes, u, v, weight, base, labels, cost)
    assert cost >= naive.clusters.least_cost(naive.clusters.table(nodes, u, v, weight, base)) - 1e-9


@given(seeds, bases)
@settings(max_examples=40, deadline=None)
def test_on_the_way_clusters_become_no_worse(seed, base):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 30))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 120)), whole=True)
    known = rng.integers(0, nodes, nodes).astype(np.int32)
    x, reduced = rng.choice([0.0, 0.5, 1.0], len(u)), rng.normal(size=len(u))
    point = (u, v, weight, x, nodes)

    def by_point():
        return round_quickly(*point, base=base, seed=seed, reduced=reduced, known=known)

    def by_weights():
        return round_weights(u, v, weight, nodes, base=base, seed=seed, known=known)

    for rounded in (by_point, by_weights):
        labels = rounded()
        cost = clustering_cost(u, v, weight, labels, base=base)
        assert_rounded(nodes, u, v, weight, base, labels, cost)
        assert cost <= clustering_cost(u, v, weight, known, base=base) + 1e-9
        assert np.array_equal(labels, rounded())


@pytest.mark.parametrize("close, cost", [(rounding.CLOSE, 2.0), (-1.0, 4.0)])
def test_what_the_point_keeps_together_moves_together(close, cost, monkeypatch):
    """A pair that belongs to the other cluster: neither of its nodes would go alone, and no move is forced here."""
    for name in ("AGREED_ROUNDS", "COARSE_ROUNDS"):
        monkeypatch.setattr(rounding, name, 0)
    monkeypatch.setattr(rounding, "CLOSE", close)
    # Nodes 0, 1 and 2, 3 are apart; the pair 4, 5 likes 2 more than 0.
    u, v = np.array([0, 2, 4, 0, 0, 2, 2, 0]), np.array([1, 3, 5, 4, 5, 4, 5, 2])
    weight = np.array([9.0, 9.0, 9.0, 1.0, 1.0, 2.0, 2.0, -9.0])
    best, known = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 0, 0], np.int32)
    x = (best[u] != best[v]).astype(float)
    level, arc_edge = laid_out(u, v, weight, 6, None)
    rng = np.random.default_rng(0)
    labels = rounding._by_agreement(u, v, weight, x, level, arc_edge, [], known, rng)
    assert clustering_cost(u, v, weight, labels) == cost


@pytest.mark.long
def test_mostly_optimal_on_small_graphs(rng):
    hits = 0
    for k in range(100):
        base, whole = (None, -0.5)[k % 2], k % 4 < 2
        u, v, weight = signed_graph(rng, 7, 15, whole=whole)
        _, cost = round_clusters(u, v, weight, rng.random(len(u)), 7, base=base)
        hits += cost <= naive.clusters.least_cost(naive.clusters.table(7, u, v, weight, base)) + 1e-9
    assert hits >= 97


@given(seeds, bases)
@settings(max_examples=40, deadline=None)
def test_cost_counts_every_pair(seed, base):
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 12, int(rng.integers(0, 40)))
    labels = rng.integers(0, 5, 12)
    expected = naive.clusters.cost(naive.clusters.table(12, u, v, weight, base), labels)
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


@given(seeds, bases)
@settings(max_examples=40, deadline=None)
def test_contraction_keeps_savings(seed, base):
    """Joining groups of groups saves on the contracted graph what it saves on the whole one."""
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 12, 40)
    w = naive.clusters.table(12, u, v, weight, base)
    level, _ = laid_out(u, v, weight, 12, base)
    groups = number_clusters(rng.integers(0, 6, 12))
    coarse = rounding._contracted(level, groups)
    one, other = (rng.integers(0, 3, len(coarse.size)) for _ in range(2))
    drop = naive.clusters.cost(w, one[groups]) - naive.clusters.cost(w, other[groups])
    assert rounding._saved(coarse, other) - rounding._saved(coarse, one) == pytest.approx(drop, abs=1e-9)
