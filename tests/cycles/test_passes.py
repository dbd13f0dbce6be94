"""What a search does next."""

from types import SimpleNamespace

import numpy as np

from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.passes import draw_roots
from ooc_pf.storage.vectors import Pool
from tests.gallery import random_graph


def test_roots_are_drawn_where_the_multipliers_are(rng):
    u, v = random_graph(rng, 30, 120)
    graph, load = build_graph(u, v, 30), np.zeros(len(u))

    def draw(seed):
        parts = [(np.ones(len(u)), load)]
        program = SimpleNamespace(graph=graph, size=len(u), cost_and_load=lambda y, unit: parts)
        return draw_roots(SimpleNamespace(program=program, y=None, pool=Pool()), 4, np.random.default_rng(seed))

    assert len(draw(0)) == 4  # before there are any, anywhere
    loaded = graph.arc_edge.whole[:3]
    load[loaded] = [1.0, 1000.0, 1.0]
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    ends = {int(node) for node in tail[np.isin(graph.arc_edge.whole, loaded)]}
    heavy = {int(node) for node in tail[graph.arc_edge.whole == loaded[1]]}
    for seed in range(20):
        roots = draw(seed).tolist()
        assert len(set(roots)) == len(roots) == min(4, len(ends))
        assert set(roots) <= ends and heavy <= set(roots)
