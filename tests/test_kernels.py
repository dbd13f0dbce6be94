"""Each kernel against its textbook twin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.search import Frozen
from ooc_pf.kernels import paths
from ooc_pf.kernels.ragged import keep_rows, row_keys
from ooc_pf.kernels.sweep import project_rows
from ooc_pf.storage.vectors import Pool, Vector
from tests import naive

seeds = st.integers(0, 2**32 - 1)


def frozen_at(graph, x):
    return Frozen(graph, Vector.of(x), lambda value: value)


def search(graph, x, limit, *, hops=paths.UNLIMITED, keep_paths=1, pool=None, slots=None, buffers=(64, 512)):
    """Run the path kernel over all sources; with ``slots`` only that many arc pages are resident at a time."""
    scratch = Scratch(graph.nodes, slots)
    order = scratch.order(graph.closers)
    scratch._make_rows(*buffers)
    reach, state = np.empty(len(limit)), scratch.labels.state
    arcs = Arcs(graph, pool)
    arcs.set_lengths(frozen_at(graph, x).x)
    scratch.hold(arcs)
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
    u, v = naive.random_graph(rng, nodes, int(rng.integers(3, 20)))
    x = np.round(rng.random(len(u)), 1)  # coarse, so that lengths tie and vanish
    graph = build_graph(u, v, nodes)
    rows, gaps, reach, _ = search(graph, x, x[graph.closer_edge.whole])
    dist = naive.distances(nodes, u, v, x)
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
    u, v = naive.random_graph(rng, nodes, int(rng.integers(4, 20)))
    x = rng.random(len(u))
    graph = build_graph(u, v, nodes)
    rows, gaps, _, _ = search(graph, x, x[graph.closer_edge.whole], hops=hops, keep_paths=2)
    for row, gap in zip(rows, gaps, strict=True):
        assert gap > 0
        assert gap == pytest.approx(x[row[0]] - x[row[1:]].sum(), abs=1e-12)
    if hops == 1:  # then every violated triangle must be seen
        closed = {int(row[0]) for row in rows}
        for e in graph.closer_edge.whole:
            best = naive.shortest_with_hops(nodes, u, v, x, u[e], v[e], e, 2)
            assert (int(e) in closed) == (best < x[e] - 1e-12)


def test_several_paths_are_the_best_entering_ones(rng):
    u, v = naive.random_graph(rng, 12, 60)
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


class Pages:
    """Five pages of arcs, each with its number as the node of its arcs."""

    whole, pages, start = None, 5, np.zeros(6, np.int64)

    def read_into(self, page, slot):
        slot["node"] = page


def test_pages_of_arcs_in_use_stay():
    scratch = Scratch(5, slots=3)
    scratch.hold(Pages())

    def use(page):
        missing = scratch.pages.slot_of_page[page] < 0
        if missing:
            scratch.load(page)
        slot = scratch.pages.slot_of_page[page]
        assert scratch.pages.arcs[slot << paths.PAGE_SHIFT]["node"] == page
        scratch.pages.recent[slot] = 1
        return bool(missing)

    assert [use(page) for page in (0, 1, 2, 3, 1)] == [True, True, True, True, False]
    # Page 1 was loaded before page 2, but page 2 was not used since.
    assert [use(page) for page in (4, 1, 2)] == [True, False, True]


@given(seeds, st.sampled_from([(1.0, 0.0), (-1.0, -1.0)]))
@settings(max_examples=60, deadline=None)
def test_projections_are_exact(seed, shape):
    closing, rhs = shape
    rng = np.random.default_rng(seed)
    edges = int(rng.integers(4, 12))
    rows = [rng.choice(edges, size=int(rng.integers(2, 5)), replace=False) for _ in range(int(rng.integers(1, 8)))]
    target = rng.normal(0.2, 1.0, edges) if closing > 0 else rng.uniform(-1.0, 0.2, edges)
    inverse = rng.uniform(0.2, 3.0, edges)
    start = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    index = np.concatenate(rows).astype(np.int32)
    dual, y = np.zeros(len(rows)), target.copy()
    twin_dual, twin_y = dual.copy(), y.copy()
    for _ in range(5):
        project_rows(start, index, dual, y, inverse, closing, rhs, 1)
        naive.project_rows(rows, twin_dual, twin_y, inverse, closing, rhs, 1)
        assert dual == pytest.approx(twin_dual, abs=1e-8)
        assert y == pytest.approx(twin_y, abs=1e-8)
    load = np.zeros(edges)
    for row, z in zip(rows, dual, strict=True):
        load[row[0]] += closing * z
        load[row[1:]] -= z
    assert y == pytest.approx(target - inverse * load, abs=1e-12)


def test_row_keys_tell_rows_apart_but_not_path_orders():
    start = np.array([0, 3, 6, 9, 12])
    rows = np.array([5, 1, 2, 5, 2, 1, 1, 5, 2, 5, 1, 3])
    keys = row_keys(start, rows)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3


def test_keep_rows_packs():
    start, entries = np.array([0, 2, 5, 6]), np.array([7, 8, 1, 2, 3, 9])
    kept = keep_rows(start, entries, np.array([True, False, True]))
    assert kept[0].tolist() == [0, 2, 3]
    assert kept[1].tolist() == [7, 8, 9]


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_arcs_are_in_one_order_however_it_came_about(seed):
    """Sorted from the graph's order or from that of another x, by insertion or afresh: the same arcs, bit for bit."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 60))
    u, v = naive.random_graph(rng, nodes, int(rng.integers(3, 400)))
    graph = build_graph(u, v, nodes)
    x = np.round(rng.random(len(u)), 1)
    near = np.where(rng.random(len(u)) < 0.1, np.round(rng.random(len(u)), 1), x)
    arcs = Arcs(graph)
    arcs.set_lengths(frozen_at(graph, x).x)
    fresh = arcs.whole.copy()
    for other in (rng.random(len(u)), near, x):
        arcs.set_lengths(frozen_at(graph, other).x)
        arcs.set_lengths(frozen_at(graph, x).x)
        assert np.array_equal(fresh, arcs.whole)
    for node in range(graph.nodes):
        part = fresh[graph.arc_start[node] : graph.arc_start[node + 1]]
        assert part["length"].tolist() == sorted(part["length"])
        assert np.array_equal(part["length"], x[part["edge"]])
