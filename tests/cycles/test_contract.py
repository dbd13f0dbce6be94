"""The contracted graph says of every closing edge what the whole graph does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles import settings as numbers
from ooc_pf.cycles.contract import contract
from ooc_pf.cycles.frozen import Frozen
from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.search import NumbaOracle
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.storage.vectors import Vector
from tests import naive
from tests.gallery import random_signed, signed_graph

NEVER = np.zeros(1, np.uint8)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_survey_gives_every_distance_and_the_worst_of_each_source(seed):
    rng = np.random.default_rng(seed)
    u, v, weight = random_signed(rng, int(rng.integers(3, 12)), int(rng.integers(3, 30)))
    nodes = int(v.max()) + 1
    x = np.round(rng.random(len(u)), 1) * rng.integers(0, 2, len(u))
    graph = build_graph(u, v, nodes, passable=weight > 0, closing=weight < 0)
    frozen = Frozen(graph, Vector.of(x), lambda part: 1.0 - 1.5 * part)
    distance = naive.graphs.distances(nodes, u[weight > 0], v[weight > 0], x[weight > 0])
    with worker_pool(1, processes=False) as pool:
        survey = NumbaOracle(graph, pool, 1)._survey_of(frozen, contract(frozen, 1000), lambda: True, NEVER)
    found = list(survey.batches())
    edge = np.concatenate([np.empty(0, np.int32), *(part.edge for part in found)])
    reach = np.concatenate([np.empty(0), *(part.reach for part in found)])
    limit = 1.0 - 1.5 * x[edge]
    assert sorted(edge.tolist()) == sorted(graph.closer_edge.whole.tolist())
    assert reach == pytest.approx(np.minimum(limit, distance[u[edge], v[edge]]), abs=1e-12)
    owner = np.repeat(np.arange(len(graph.sources)), np.diff(graph.closer_start))
    for source, peak in enumerate(survey.peak):
        assert peak == pytest.approx(max((limit - reach)[owner == source], default=0.0), abs=1e-12)


def test_a_graph_that_does_not_shrink_is_not_contracted(rng):
    u, v, weight = random_signed(rng, 40, 300)
    graph = build_graph(u, v, 40, passable=weight > 0, closing=weight < 0)
    frozen = Frozen(graph, Vector.of(rng.random(len(u)) * 0.1 + 0.01), lambda part: 1.0 - part)
    assert contract(frozen, 10) is None
    assert contract(frozen, 1000).graph.nodes == graph.nodes


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_answers_are_the_same_with_and_without_contraction(rng, gamma, monkeypatch):
    """What certifies a run proves as much either way."""
    graph = signed_graph(rng, 60, 500)
    results, seen, survey = [], [], NumbaOracle.survey
    monkeypatch.setattr(NumbaOracle, "survey", lambda *args, **how: seen.append(survey(*args, **how)) or seen[-1])
    for shrink in (1, 10**9):
        for name in ("LINEAR", "CLUSTERING"):
            monkeypatch.setattr(numbers, name, replace(getattr(numbers, name), shrink=shrink))
        seen.clear()
        results.append(pf.correlation_clustering(graph, gamma=gamma, tol=1e-4, ratio=1.0))
        assert seen and all((part is None) == (shrink > 1) for part in seen)
    one, other = results
    assert one.lower_bound == pytest.approx(other.objective, rel=3e-4)
    assert one.objective >= other.lower_bound * (1 - 1e-9) and other.objective >= one.lower_bound * (1 - 1e-9)
