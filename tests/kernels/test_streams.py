"""Kernels over arcs that come in parts, against their textbook twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.kernels import clusters, streams
from tests import naive
from tests.gallery import groups_of, signed_graph
from tests.parts import laid_out

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_arcs_are_dealt_and_merged(seed, ranges):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(0, 60)))
    labels = clusters.number_clusters(rng.integers(0, nodes, nodes))
    count = labels.max() + 1
    degree = np.zeros(count, np.int64)
    streams.count_across(u, v, labels, degree)
    ends = np.unique(np.append(rng.integers(1, count + 1, ranges), count))
    arcs = np.empty(2 * len(u), streams.ARC)
    begin = streams.deal_arcs(u, v, weight, labels, ends, arcs)
    assert begin[-1] == degree.sum()
    found, seen = {}, rng.integers(0, nodes, count).astype(np.int32)
    for k, last in enumerate(ends):
        first = ends[k - 1] if k else 0
        some, own = arcs[begin[k] : begin[k + 1]], degree[first:last]
        node, sums = np.empty(len(some), np.int32), np.empty(len(some))
        used = streams.merge_arcs(some, first, own, seen, node, sums)
        assert used == own.sum()
        tails = np.repeat(np.arange(first, last), own)
        for tail, head, total in zip(tails, node[:used], sums[:used], strict=True):
            assert head not in found.setdefault(tail, {})
            found[tail][head] = pytest.approx(total, abs=1e-12)
    assert found == naive.clusters.contract(zip(u, v, weight, strict=True), labels)


@given(seeds, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_tail_is_merged_in_parts_as_at_once(seed, parts):
    rng = np.random.default_rng(seed)
    arcs = np.zeros(30, streams.ARC)
    arcs["head"], arcs["weight"] = rng.integers(0, 8, 30), rng.normal(size=30)
    seen, node, weight = rng.integers(0, 8, 8).astype(np.int32), np.full(8, 7, np.int32), np.empty(8)
    used = 0
    for part in np.array_split(arcs, parts):
        used = streams.merge_tail(part, seen, node, weight, 0, used)
    assert dict(zip(node[:used].tolist(), weight[:used].tolist(), strict=True)) == pytest.approx(
        {head: arcs["weight"][arcs["head"] == head].sum() for head in set(arcs["head"].tolist())}
    )


@given(seeds, st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_nodes_move_in_order(seed, passes):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 14))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(1, 60)))  # continuous weights: no ties
    w = naive.clusters.table(nodes, u, v, weight, None)
    level, _ = laid_out(u, v, weight, nodes, None)
    labels = clusters.number_clusters(rng.integers(0, nodes, nodes))
    expected = naive.clusters.move_in_order(w, labels.tolist(), passes)
    *counts, _ = clusters.count_members(labels, level.size)
    waiting, cut = np.ones(nodes, bool), int(rng.integers(0, nodes + 1))
    for _ in range(passes):
        for first, last in ((0, cut), (cut, nodes)):
            a, b = level.start[first], level.start[last]
            arcs = level.start[first : last + 1] - a, level.node[a:b], level.weight[a:b]
            streams.move_in_order(first, *arcs, level.size, level.least, labels, *counts, waiting)
    assert groups_of(labels) == groups_of(np.array(expected))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_meet_keeps_together_what_both_do(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 20))
    one, other = rng.integers(0, nodes, (2, nodes), np.int32)
    assert groups_of(clusters.meet(one, other)) == naive.clusters.meet(one.tolist(), other.tolist())
    numbered = clusters.number_clusters(one)
    assert groups_of(numbered) == groups_of(one)
    _, first = np.unique(numbered, return_index=True)
    assert np.array_equal(np.sort(first), first)  # by first appearance
