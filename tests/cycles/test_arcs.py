"""Arcs in pages: one order however it came about, and the pages in use stay."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.graph import build_graph
from ooc_pf.kernels import paths
from tests.gallery import random_graph

seeds = st.integers(0, 2**32 - 1)


class Pages:
    """Five pages of arcs, each with its number as the node of its arcs."""

    pages, held, start, shortest = 5, 0, np.zeros(6, np.int64), np.zeros(5)
    room = np.empty(3 << paths.PAGE_SHIFT, paths.ARC)

    def load(self, page, slot):
        self.room[slot << paths.PAGE_SHIFT : (slot + 1) << paths.PAGE_SHIFT]["node"] = page


def test_pages_of_arcs_in_use_stay():
    scratch = Scratch(5, slots=3)
    scratch.hold(Pages(), 0)

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


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_arcs_are_in_one_order_however_it_came_about(seed):
    """Sorted from the graph's order or from that of another x, by insertion or afresh: the same arcs, bit for bit."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 60))
    u, v = random_graph(rng, nodes, int(rng.integers(3, 400)))
    graph = build_graph(u, v, nodes)
    x = np.round(rng.random(len(u)), 1)
    near = np.where(rng.random(len(u)) < 0.1, np.round(rng.random(len(u)), 1), x)
    arcs = Arcs(graph)
    arcs.set_lengths(x.__getitem__)
    fresh = arcs.whole.copy()
    for other in (rng.random(len(u)), near, x):
        arcs.set_lengths(other.__getitem__)
        arcs.set_lengths(x.__getitem__)
        assert np.array_equal(fresh, arcs.whole)
    for node in range(graph.nodes):
        part = fresh[graph.arc_start[node] : graph.arc_start[node + 1]]
        assert part["length"].tolist() == sorted(part["length"])
        assert np.array_equal(part["length"], x[part["edge"]])
