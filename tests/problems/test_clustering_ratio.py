"""Clusters on the way, and runs that end when these are proven good enough."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.commands.explain import outcome
from ooc_pf.kernels.sweep import exceeding_load
from tests.gallery import signed_graph


@pytest.fixture
def graph():
    """Four camps; one vote in eight is wrong."""
    rng = np.random.default_rng(3)
    u, v = np.triu_indices(120, 1)
    chosen = rng.random(len(u)) < 0.15
    u, v = u[chosen], v[chosen]
    return u, v, np.where((u % 4 == v % 4) ^ (rng.random(len(u)) < 0.12), 1.0, -1.0) * rng.uniform(0.5, 1.5, len(u))


def cheapest(u, v, weight, nodes):
    """The least cost of any clustering, by trying all."""

    def cost(labels):
        together = labels[u] == labels[v]
        return weight[~together & (weight > 0)].sum() - weight[together & (weight < 0)].sum()

    # Each node joins the cluster of an earlier one, or its own.
    every = itertools.product(*(range(k + 1) for k in range(nodes)))
    return min(cost(np.array(labels)) for labels in every)


def test_every_iteration_says_what_is_known_of_the_clusters(graph):
    result = pf.correlation_clustering(graph, tol=1e-6, ratio=1.0)
    costs = [record["cost"] for record in result.history if "cost" in record]
    assert len(costs) >= result.n_iter - 1
    assert costs == sorted(costs, reverse=True)
    assert all(record["bound_of_clusterings"] <= result.cost * (1 + 1e-9) for record in result.history[:-1])


def test_the_quadratic_program_has_clusters_on_the_way_too(graph):
    result = pf.correlation_clustering(graph, gamma=1.0, ratio=1.3)
    assert result.status == "ratio_reached"
    assert result.certified_ratio <= 1.3
    assert not any("gap" in record for record in result.history)


@pytest.mark.parametrize("ratio", [1.5, 1.2])
def test_a_run_ends_as_soon_as_its_clusters_are_proven(graph, ratio, tmp_path):
    result = pf.correlation_clustering(graph, tol=1e-9, ratio=ratio, workspace=tmp_path / "run.pf")
    assert (result.status, result.converged) == ("ratio_reached", True)
    assert outcome(result) == f"clusters as good as asked for after {result.n_iter} iterations"  # tol was not met
    assert result.history[-1]["ratio"] <= ratio
    assert all(record.get("ratio", np.inf) > ratio for record in result.history[:-1])
    assert result.certified_ratio <= ratio
    assert pf.verify(tmp_path / "run.pf")["cost"] == result.cost


def test_resuming_goes_on_to_a_better_ratio_with_the_same_bits(graph, tmp_path):
    first = pf.correlation_clustering(graph, tol=1e-9, ratio=1.5, workspace=tmp_path / "run.pf")
    again = pf.resume(tmp_path / "run.pf")
    assert (again.n_iter, again.status) == (first.n_iter, "ratio_reached")
    resumed = pf.resume(tmp_path / "run.pf", ratio=1.2)
    alone = pf.correlation_clustering(graph, tol=1e-9, ratio=1.2)
    assert resumed.n_iter == alone.n_iter > first.n_iter
    assert np.array_equal(resumed.x, alone.x)
    assert np.array_equal(resumed.labels, alone.labels)


def test_what_is_known_is_kept_when_time_is_up(graph, tmp_path):
    result = pf.correlation_clustering(graph, tol=1e-12, max_time=0.0, workspace=tmp_path / "run.pf")
    assert result.status == "time_limit"
    assert len(result.labels) == 120
    assert result.certified_ratio is None or result.certified_ratio >= 1.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_optimal_is_said_of_the_cheapest_clusters_only(seed):
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(6, 1)
    chosen = rng.random(len(u)) < 0.7
    u, v, weight = u[chosen], v[chosen], rng.choice([-3.0, -1.0, 1.0, 2.0], np.count_nonzero(chosen))
    if not len(u) or max(u.max(), v.max()) < 2:
        return
    result = pf.correlation_clustering((u, v, weight * 0.7), tol=1e-6)
    least = cheapest(u, v, weight * 0.7, int(v.max()) + 1)
    assert result.lp_lower_bound <= least * (1 + 1e-9) + 1e-9
    assert result.cost >= least * (1 - 1e-9)
    if result.optimal:
        assert result.cost == pytest.approx(least)


@pytest.mark.parametrize("ratio", [0.99, np.nan, np.inf, "1.1"])
def test_a_ratio_that_cannot_be_is_refused(graph, ratio, tmp_path):
    with pytest.raises(pf.InputError, match="ratio must be a number from 1 on"):
        pf.correlation_clustering(graph, ratio=ratio)
    pf.correlation_clustering(graph, max_iter=1, workspace=tmp_path / "run.pf")
    with pytest.raises(pf.InputError, match="ratio must be a number from 1 on"):
        pf.resume(tmp_path / "run.pf", ratio=ratio)


def test_other_problems_have_no_ratio(tmp_path):
    u, v = np.triu_indices(5, 1)
    pf.metric_nearness((u, v, np.arange(10.0)), workspace=tmp_path / "run.pf")
    with pytest.raises(pf.InputError, match="ratio= is for clusters"):
        pf.resume(tmp_path / "run.pf", ratio=1.1)


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 10.0), st.floats(0.1, 10.0))
def test_exceeding_load_is_what_its_definition_says(seed, scale, unit):
    rng = np.random.default_rng(seed)
    y, target, inverse = rng.normal(size=9), rng.normal(size=9), rng.uniform(0.1, 3.0, 9)
    cost, load = unit / inverse, (y - target) / inverse
    over = scale * load > cost
    short, total = exceeding_load(y, target, inverse, unit, scale)
    assert short == pytest.approx(float((cost - scale * load)[over].sum()), abs=1e-12)
    assert total == pytest.approx(float(load[over].sum()), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_ends_by_another_ratio_without_an_iteration_shows_its_own_point(tmp_path, seed):
    """The answer of the stop before was made from another point, and must not stay."""
    graph = signed_graph(np.random.default_rng(seed), 30, 120)
    path = tmp_path / "run.pf"
    pf.correlation_clustering(graph, gamma=1.0, tol=1e-4, workspace=path, external=True, max_iter=2)
    result = pf.resume(path, ratio=50.0)
    assert (result.status, result.n_iter) == ("ratio_reached", 2)
    assert pf.verify(path)["cost"] == result.cost
