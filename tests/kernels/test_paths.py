"""The search for paths against its textbook twin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.graph import build_graph
from ooc_pf.kernels import paths
from ooc_pf.kernels.ragged import row_keys
from ooc_pf.storage.vectors import Pool
from tests import naive
from tests.gallery import random_graph

seeds = st.integers(0, 2**32 - 1)


def search(graph, x, limit, *, hops=paths.UNLIMITED, keep_paths=1, pool=None, slots=None, buffers=(64, 512)):
    """Run the path kernel over all sources; with ``slots`` only that many arc pages are resident at a time."""
    scratch = Scratch(graph.nodes, slots)
    order = scratch.order(graph.closers)
    scratch._make_rows(*buffers)
    reach, state = np.empty(len(limit)), scratch.labels.state
    arcs = Arcs(graph, pool, spare=slots or 0)
    arcs.set_lengths(x.__getitem__)
    scratch.hold(arcs, 0)
    node, edge = graph.closer_node.whole, graph.closer_edge.whole
    need = limit - arcs.shortest[node]
    closers = paths.Closers(graph.sources, graph.closer_start, node, edge, limit, need, reach)
    best, stop = paths.make_best(keep_paths), np.zeros(1, np.uint8)
    rows, gaps, loads, code = [], [], 0, paths.FULL
    while code != paths.DONE:
        code = paths.advance(closers, hops, 1e-12, scratch.pages, scratch.labels, order, best, scratch.rows, stop)
        count, used = state[paths.ROWS], state[paths.ENTRIES]
        ends, entries = scratch.rows.end[:count], scratch.rows.entries[:used]
        rows += [row.copy() for row in np.split(entries, ends[:-1])] if count else []
        gaps += scratch.rows.violation[:count].tolist()
        if code == paths.FULL and count == 0:
            scratch.grow_rows()
        state[paths.ROWS] = state[paths.ENTRIES] = 0
        if code >= 0:
            scratch.load(code)
            loads += 1
    return rows, np.array(gaps), reach, loads


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_complete_search_gives_distances_and_shortest_cycles(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 9))
    u, v = random_graph(rng, nodes, int(rng.integers(3, 20)))
    x = np.round(rng.random(len(u)), 1)  # coarse, so that lengths tie and vanish
    graph = build_graph(u, v, nodes)
    rows, gaps, reach, _ = search(graph, x, x[graph.closer_edge.whole])
    dist = naive.graphs.distances(nodes, u, v, x)
    edge = graph.closer_edge.whole
    assert reach == pytest.approx(np.minimum(x[edge], dist[u[edge], v[edge]]), abs=1e-12)
    violated = {int(e) for e in edge if x[e] - dist[u[e], v[e]] > 1e-9}
    assert {int(row[0]) for row in rows} == violated
    for row, gap in zip(rows, gaps, strict=True):
        assert x[row[0]] - x[row[1:]].sum() == pytest.approx(gap, abs=1e-12)
        ends = np.concatenate((u[row], v[row]))
        assert np.all(np.bincount(ends)[np.unique(ends)] == 2)  # a cycle
        assert gap == pytest.approx(x[row[0]] - dist[u[row[0]], v[row[0]]], abs=1e-12)


@given(seeds, st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_bounded_search_finds_short_cycles_only(seed, hops):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(4, 9))
    u, v = random_graph(rng, nodes, int(rng.integers(4, 20)))
    x = rng.random(len(u))
    graph = build_graph(u, v, nodes)
    rows, gaps, _, _ = search(graph, x, x[graph.closer_edge.whole], hops=hops, keep_paths=2)
    for row, gap in zip(rows, gaps, strict=True):
        assert gap > 0
        assert gap == pytest.approx(x[row[0]] - x[row[1:]].sum(), abs=1e-12)
    if hops == 1:  # then every violated triangle must be seen
        closed = {int(row[0]) for row in rows}
        for e in graph.closer_edge.whole:
            best = naive.graphs.shortest_with_hops(nodes, u, v, x, u[e], v[e], e, 2)
            assert (int(e) in closed) == (best < x[e] - 1e-12)


def test_several_paths_are_the_best_entering_ones(rng):
    u, v = random_graph(rng, 12, 60)
    x = rng.random(len(u))
    graph = build_graph(u, v, 12)
    one, _, _, _ = search(graph, x, x[graph.closer_edge.whole], keep_paths=1)
    many, gaps, _, _ = search(graph, x, x[graph.closer_edge.whole], keep_paths=4)
    assert len(many) > len(one)
    best = {}
    for row, gap in zip(many, gaps, strict=True):
        assert gap <= best.setdefault(row[0], gap)  # best first
        ends = np.concatenate((u[row], v[row]))
        assert np.all(np.bincount(ends)[np.unique(ends)] == 2)
    keys = row_keys(np.cumsum([0, *map(len, many)]), np.concatenate(many))
    assert len(set(keys.tolist())) == len(many)


def test_paged_search_does_the_same_work(rng, tmp_path):
    """With one page resident at a time the kernel asks for pages, and finds the same rows bit for bit."""
    nodes = 3000
    u = rng.integers(0, nodes, 90_000)
    v = (u + rng.integers(1, 60, len(u))) % nodes
    pairs = np.unique(np.sort(np.column_stack((u, v)), axis=1), axis=0)
    u, v = pairs.T
    x = rng.random(len(u))
    graph = build_graph(u, v, nodes)
    assert len(graph.arc_node.whole) > 2 << paths.PAGE_SHIFT
    part = slice(0, 40)
    few = replace(graph, sources=graph.sources[part], closer_start=graph.closer_start[: part.stop + 1])
    limit = x[graph.closer_edge.whole]
    whole = search(few, x, limit, keep_paths=3)
    paged = search(few, x, limit, keep_paths=3, pool=Pool(1 << 20, tmp_path), slots=1)
    assert paged[3] > 3 and whole[3] == 0
    assert np.array_equal(np.concatenate(whole[0]), np.concatenate(paged[0]))
    assert np.array_equal(whole[1], paged[1])
    seen = slice(0, graph.closer_start[part.stop])
    assert np.array_equal(whole[2][seen], paged[2][seen])


def test_arcs_of_a_node_are_not_read_where_the_shortest_leads_too_far(tmp_path):
    """Node 3 is nearer than the search has to go, but what is behind it is not; its arcs fill pages of their own."""
    leaves = 5 + np.arange(2 << paths.PAGE_SHIFT)
    ends = (
        [(0, 1), (1, 2), (0, 2), (0, 3), (1, 4)],
        *(np.column_stack((np.full_like(leaves, k), leaves)) for k in (3, 4)),
    )
    u, v = np.concatenate(ends).T
    x = np.concatenate(([0.2, 0.3, 0.9, 0.45], np.full(len(u) - 4, 10.0)))
    graph = build_graph(u, v, len(leaves) + 5, closing=np.arange(len(u)) == 2)
    _, gaps, reach, loads = search(graph, x, np.array([0.9]), pool=Pool(1 << 20, tmp_path), slots=1)
    assert reach == pytest.approx([0.5]) and gaps == pytest.approx([0.4])
    assert loads == 1
