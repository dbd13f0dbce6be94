"""Biconnected components, beside those that igraph finds."""

import igraph
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ooc_pf.kernels.biconnected import BRIDGE, find_components
from tests.gallery import random_graph


def components_of_igraph(u, v, nodes):
    """The component of each edge, numbered by first edge; -1 for a bridge."""
    members = [set(part) for part in igraph.Graph(nodes, list(zip(u, v, strict=True))).biconnected_components()]
    ends = [{a, b} for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    found = [next(at for at, part in enumerate(members) if pair <= part) for pair in ends]
    number = {}
    return [number.setdefault(at, len(number)) if len(members[at]) > 2 else BRIDGE for at in found]


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(0.3, 2.5))
@example(0, 2, 0.3)
@settings(max_examples=150, deadline=None)
def test_components_are_those_of_igraph(seed, nodes, degree):
    u, v = random_graph(np.random.default_rng(seed), nodes, max(1, int(degree * nodes)))
    assert find_components(u, v, nodes).tolist() == components_of_igraph(u, v, nodes)


def test_the_order_of_ends_and_edges_changes_nothing_but_the_numbers(rng):
    u, v = random_graph(rng, 200, 260)
    order, swap = rng.permutation(len(u)), rng.random(len(u)) < 0.5
    again = find_components(np.where(swap, v, u)[order], np.where(swap, u, v)[order], 200)
    before = find_components(u, v, 200)[order]
    both = {*zip(before.tolist(), again.tolist(), strict=True)}
    assert len(both) == len({*before.tolist()}) == len({*again.tolist()})


def test_a_long_path_and_a_long_ring_need_no_recursion():
    nodes = 300_000
    u = np.arange(nodes - 1)
    assert (find_components(u, u + 1, nodes) == BRIDGE).all()
    u, v = np.append(u, 0), np.append(u + 1, nodes - 1)
    assert (find_components(u, v, nodes) == 0).all()


def test_no_edges_no_components():
    none = np.empty(0, np.int64)
    assert len(find_components(none, none, 0)) == len(find_components(none, none, 3)) == 0
