"""Cycles without common edges against what they must be."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles import settings as numbers
from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.disjoint_search import DisjointSearch
from ooc_pf.cycles.frozen import Frozen
from ooc_pf.cycles.graph import build_graph
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.kernels import disjoint, paths
from ooc_pf.storage.vectors import Pool, Vector
from tests import naive
from tests.gallery import random_graph

seeds = st.integers(0, 2**32 - 1)


def drawn(seed):
    """A small signed graph with lengths that tie and vanish, laid out: walked over the positive edges."""
    rng = np.random.default_rng(seed)
    return signed(rng, int(rng.integers(3, 9)), int(rng.integers(3, 24)))


def large(seed=3):
    """Lengths and graph of one whose arcs take several pages."""
    return signed(np.random.default_rng(seed), 300, 6000)[-2:]


def signed(rng, nodes, edges):
    u, v = random_graph(rng, nodes, edges)
    sign = np.where(rng.random(len(u)) < 0.6, 1, -1)
    x = rng.integers(0, 9, len(u)) / 16 * rng.integers(0, 2, len(u))
    return nodes, u, v, sign, x, build_graph(u, v, nodes, passable=sign > 0, closing=sign < 0)


def find(graph, x, *, hops=5, most=1 << 20, workers=1, pool=None, slots=None, seed=(0, 0)):
    """Rows as lists of edges, and their violations, for rows ``x_closing + sum of the path >= 1``."""
    scratch = [Scratch(graph.nodes, slots) for _ in range(workers)]
    arcs = Arcs(graph, pool, spare=(slots or 0) * workers)
    arcs.set_lengths(x.__getitem__)
    for number, each in enumerate(scratch):
        each.hold(arcs, number)
    frozen = Frozen(graph, Vector.of(x), lambda closing: 1.0 - closing)
    with worker_pool(workers, processes=False) as threads:
        search = DisjointSearch(frozen, scratch, threads, 1e-9, seed, np.zeros(1, np.uint8))
        found = search.find(hops, most, lambda: True)
    rows = np.split(found.rows.edges, found.rows.start[1:-1]) if len(found.rows) else []
    return [row.tolist() for row in rows], found.violation


@given(seeds)
@settings(max_examples=80, deadline=None)
def test_rows_are_violated_cycles_without_common_edges(seed):
    _, u, v, sign, x, graph = drawn(seed)
    rows, violation = find(graph, x)
    used = [edge for row in rows for edge in row]
    assert len(used) == len(set(used))
    for row, by in zip(rows, violation, strict=True):
        assert sign[row[0]] < 0 and all(sign[edge] > 0 for edge in row[1:])
        assert len(row) <= 6 and naive.graphs.is_cycle(u[row], v[row])
        assert by == pytest.approx(1.0 - x[row].sum(), abs=1e-12) and by > 0.0


@given(seeds)
@settings(max_examples=80, deadline=None)
def test_what_is_left_has_no_short_violated_cycle_with_lengths_zero(seed):
    """Where all lengths vanish the search is a plain one from both ends: it must find whatever path there is."""
    nodes, u, v, sign, x, graph = drawn(seed)
    rows, _ = find(graph, 0.0 * x)
    free = np.ones(len(u), bool)
    free[[edge for row in rows for edge in row]] = False
    walked = free & (sign > 0)
    dist = naive.graphs.distances(nodes, u[walked], v[walked], np.ones(walked.sum()))
    left = free & (sign < 0)
    assert (dist[u[left], v[left]] > 5).all()


@pytest.mark.parametrize("seed", range(3))
def test_workers_and_pages_change_nothing(seed):
    x, graph = large(seed)
    assert graph.arcs > 1 << paths.PAGE_SHIFT
    whole = find(graph, x)
    for other in (find(graph, x, workers=3), find_in_pages(graph, x)):
        assert other[0] == whole[0] and np.array_equal(other[1], whole[1])


def find_in_pages(graph, x):
    """The same with one page of arcs resident at a time for each of two workers."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(1, Path(folder) / "scratch")
        found = find(graph, x, workers=2, pool=pool, slots=1)
        pool.close()
    return found


def test_no_more_rows_come_than_are_asked_for():
    x, graph = large()
    assert len(find(graph, x)[0]) > 4
    assert len(find(graph, x, most=4)[0]) == 4


def test_another_seed_gives_other_cycles():
    x, graph = large()
    assert find(graph, x, seed=(0, 1))[0] != find(graph, x)[0]


def test_marks_that_run_out_begin_again():
    _, graph = large()
    visits = disjoint.make_visits(graph.nodes, 64)
    visits.mark[0] = disjoint.MOST_MARK
    visits.node["mark"] = disjoint.MOST_MARK
    assert disjoint._next_mark(visits) == 2 and not visits.node["mark"].any()


def test_rounds_take_longer_and_longer_paths():
    assert [hops for hops, _ in numbers.rounds_of(5)] == [2, 3, 5]
    assert all(arcs <= numbers.MOST_VISITED for _, arcs in numbers.rounds_of(8))
