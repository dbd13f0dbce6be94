"""Searches in lanes against all distances by the textbook, whole and a few arcs at a time."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ooc_pf.cycles import settings as numbers
from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.frozen import SearchRules
from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.lane_search import label_nodes, search_lanes
from ooc_pf.kernels import lanes
from ooc_pf.kernels.paths import UNLIMITED
from ooc_pf.storage.vectors import Pool
from tests import naive
from tests.gallery import random_graph

seeds = st.integers(0, 2**32 - 1)
KINDS = lanes.NARROW, lanes.WIDE


def drawn(seed):
    """A small graph whose lengths tie and vanish, laid out."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 9))
    u, v = random_graph(rng, nodes, int(rng.integers(3, 20)))
    x = rng.integers(0, 9, len(u)) / 8 * rng.integers(0, 2, len(u))
    return rng, nodes, u, v, x, build_graph(u, v, nodes)


def search(graph, x, width, keep=1, pool=None, held=0, coarse=False):
    """All sources, so many at a time: rows, violations and the reach of every closing edge."""
    rules = SearchRules(UNLIMITED, keep, 1e-12, coarse)
    arcs, scratch = Arcs(graph, pool, held), Scratch(graph.nodes, None if pool is None else 4, width)
    arcs.set_lengths(x.__getitem__)
    rows, violation, reach = [], [], []
    for at in range(0, len(graph.sources), width):
        start = graph.closer_start[at : at + width + 1]
        part = slice(start[0], start[-1])
        lane = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
        edge = graph.closer_edge.whole[part]
        ends = lanes.Ends(lane, graph.closer_node.whole[part], edge, x[edge])
        found = search_lanes(arcs, scratch, ends, graph.sources[at : at + width], rules, np.zeros(1, np.uint8))
        rows += [found[0].edges[a:b].tolist() for a, b in zip(found[0].start, found[0].start[1:], strict=False)]
        violation += found[1].tolist()
        reach += found[2].tolist()
    return rows, violation, np.array(reach)


@given(seeds, st.sampled_from([1, 2, 8]))
@settings(max_examples=60, deadline=None)
def test_lanes_give_distances_and_shortest_cycles(seed, width):
    _, nodes, u, v, x, graph = drawn(seed)
    rows, violation, reach = search(graph, x, width)
    dist = naive.graphs.distances(nodes, u, v, x)
    edge = graph.closer_edge.whole
    assert reach == pytest.approx(dist[u[edge], v[edge]], abs=1e-11)
    assert (reach <= dist[u[edge], v[edge]] + 1e-15).all()
    violated = set(edge[x[edge] - dist[u[edge], v[edge]] > 1e-10].tolist())
    assert violated <= {row[0] for row in rows}
    for row, gap in zip(rows, violation, strict=True):
        _, uses = np.unique(np.concatenate((u[row], v[row])), return_counts=True)
        assert (uses == 2).all()
        assert gap == pytest.approx(x[row[0]] - x[row[1:]].sum(), abs=1e-11)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_of_paths_of_one_length_the_one_with_fewest_arcs_is_found(seed):
    _, nodes, u, v, x, graph = drawn(seed)
    for row in search(graph, x, 4)[0]:
        ends = int(u[row[0]]), int(v[row[0]])
        paths = naive.graphs.simple_paths(nodes, u, v, *ends, row[0])
        best = min((round(sum(x[e] for e in path), 9), len(path)) for path in paths)
        assert (round(float(x[row[1:]].sum()), 9), len(row) - 1) == best


@given(seeds, st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_lanes_do_not_depend_on_how_many_there_are_or_where_the_arcs_are(seed, keep):
    _, _, _, _, x, graph = drawn(seed)
    whole = search(graph, x, 8, keep)
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(1 << 20, Path(folder) / "pages")
        for other in (search(graph, x, 1, keep), search(graph, x, 3, keep, pool)):
            assert other[:2] == whole[:2] and np.array_equal(other[2], whole[2])
        pool.close()


def test_arcs_that_are_read_a_few_at_a_time_give_the_same(rng, tmp_path, monkeypatch):
    """Nodes whose arcs go on in the next part, and parts that nothing changes in."""
    u, v = random_graph(rng, 300, 20_000)
    x = np.round(rng.random(len(u)), 2)
    graph = build_graph(u, v, 300)
    monkeypatch.setattr(numbers, "SCAN_PAGES", 1)
    pool = Pool(1 << 20, tmp_path / "pages")
    assert graph.arcs > 8 << 12
    whole = search(graph, x, 32, 2)
    for held in (0, 1, 3, 99):
        paged = search(graph, x, 32, 2, pool, held)
        assert paged[:2] == whole[:2] and np.array_equal(paged[2], whole[2])
    pool.close()


@given(seeds, st.sampled_from([1, 3]))
@settings(max_examples=60, deadline=None)
def test_narrow_labels_are_right_to_six_digits_and_never_above_the_distance(seed, width):
    rng, nodes, u, v, x, graph = drawn(seed)
    x = x * (1.0 + 1e-3 * rng.random(len(x)))
    rows, violation, reach = search(graph, x, width, 2, coarse=True)
    edge = graph.closer_edge.whole
    dist = naive.graphs.distances(nodes, u, v, x)[u[edge], v[edge]]
    assert (reach <= dist).all() and reach == pytest.approx(dist, abs=1e-5)
    assert set(edge[x[edge] - dist > 1e-5].tolist()) <= {row[0] for row in rows}
    for row, gap in zip(rows, violation, strict=True):
        _, uses = np.unique(np.concatenate((u[row], v[row])), return_counts=True)
        assert (uses == 2).all() and gap == pytest.approx(x[row[0]] - x[row[1:]].sum(), abs=1e-5)


@pytest.mark.parametrize("arcs", [lanes.NARROW_HOPS - 1, lanes.NARROW_HOPS, 3 * lanes.NARROW_HOPS])
def test_a_path_of_more_arcs_than_narrow_labels_count_is_found(arcs):
    """A ring of free arcs, closed by an edge; and the same with a little length, which counts."""
    u = np.arange(arcs + 1)
    v = (u + 1) % (arcs + 1)
    passable = u < arcs
    graph = build_graph(u, v, arcs + 1, passable=passable, closing=~passable)
    for length in (0.0, 0.5 / arcs):
        x = np.where(passable, length, 1.0)
        rows, violation, reach = search(graph, x, 4, 2, coarse=True)
        assert [sorted(row) for row in rows] == [u.tolist()] and rows[0][0] == arcs
        assert reach <= length * arcs and reach == pytest.approx(length * arcs, abs=1e-6 * arcs)
        assert violation == pytest.approx([1.0 - length * arcs], abs=1e-6 * arcs)


@given(seeds, st.integers(-1060, 1000), st.floats(0.0, 1e6), st.sampled_from([1, 3]), st.sampled_from(KINDS))
@settings(max_examples=80, deadline=None)
def test_trees_of_any_radius_and_penalty_are_trees(seed, power, penalty, width, kind):
    """No label overflows: where penalties are far above the radius the trees are small, and that is all."""
    rng, _, _, _, x, graph = drawn(seed)
    assume(graph.nodes)
    size = np.ldexp(1.0, power)
    arcs, scratch = Arcs(graph), Scratch(graph.nodes, None, width)
    arcs.set_lengths((x * size).__getitem__)
    radius, roots = size * rng.choice([0.1, 1.0, 2.0]), rng.integers(0, graph.nodes, width).astype(np.int32)
    made, measure = scratch.lanes(kind), lanes.tree_measure(radius, penalty * size, seed, kind)
    limit = np.full(width, lanes.limit_of(radius, measure), kind)
    label_nodes(arcs, made, roots, limit, measure, np.zeros(1, np.uint8))
    for first, part in arcs.parts():
        lanes.find_parents(arcs.start, first, part, measure, made)
    label, parent = made.label, made.parent
    for lane, root in enumerate(roots):
        reached = np.flatnonzero(label[:, lane] != lanes.far(label))
        assert root in reached and (label[reached, lane] >= 0).all() and (label[reached, lane] < limit[lane]).all()
        for node in reached[reached != root]:
            assert 0 <= label[parent[node, lane], lane] < label[node, lane]


@given(seeds, st.integers(-1022, -960) | st.integers(-960, 1000))
@settings(max_examples=40, deadline=None)
def test_distances_of_any_size_are_exact(seed, power):
    """Lengths with few digits, from the smallest number that is not rounded."""
    _, nodes, u, v, x, graph = drawn(seed)
    x = x * 8.0 * np.ldexp(1.0, power)
    edge = graph.closer_edge.whole
    assert np.array_equal(search(graph, x, 2)[2], naive.graphs.distances(nodes, u, v, x)[u[edge], v[edge]])


def test_lengths_beyond_the_radius_do_not_spoil_labels():
    """An arc much longer than the radius is cut off before it is a whole number."""
    u, v = np.array([0, 1, 0]), np.array([1, 2, 2])
    graph, x = build_graph(u, v, 3), np.array([1e-3, 1e200, 1e-3])
    arcs, scratch = Arcs(graph), Scratch(graph.nodes, None, 1)
    arcs.set_lengths(x.__getitem__)
    measure = lanes.exact_measure(1e-2, 3)
    limit = np.array([lanes.limit_of(1e-2, measure)])
    made = scratch.lanes(lanes.WIDE)
    label_nodes(arcs, made, np.zeros(1, np.int32), limit, measure, np.zeros(1, np.uint8))
    reached = np.sort((made.label[:, 0] >> measure.shift) / measure.per_unit)
    dist = naive.graphs.distances(3, u, v, x)
    assert any(reached == pytest.approx(np.sort(row)) for row in dist)
