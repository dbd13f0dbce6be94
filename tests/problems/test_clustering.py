"""Correlation clustering: right values, valid bounds, clusters worth their certificate."""

import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests import naive
from tests.gallery import random_signed
from tests.properties import assert_same_bits


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=30, deadline=None)
def test_agrees_with_independent_solvers_on_all_conflicted_cycles(seed, gamma):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    u, v, weight = random_signed(rng, nodes, int(rng.integers(3, 16)))
    result = pf.correlation_clustering((u, v, weight), gamma=gamma, tol=1e-8, workers=1)
    f, value = naive.cycles.clustering_qp(nodes, u, v, weight, gamma)
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert result.lower_bound <= value + 1e-6
    assert result.x == pytest.approx(np.clip(np.where(weight > 0, f, 1 - f), 0, 1), abs=1e-3)
    linear = naive.cycles.clustering_lp(nodes, u, v, weight)
    best = min(naive.clusters.clustering_cost(u, v, weight, labels) for labels in naive.clusters.partitions(nodes))
    assert result.lp_lower_bound <= linear + 1e-7
    assert linear <= best + 1e-7
    assert result.cost == pytest.approx(naive.clusters.clustering_cost(u, v, weight, result.labels))
    assert best - 1e-9 <= result.cost <= best * 1.05 + 1e-9
    if result.cost > 0:
        assert result.certified_ratio == pytest.approx(result.cost / result.lp_lower_bound)
        assert result.certified_ratio >= 1 - 1e-9
    # What the fractional solution costs in the linear program is within the a-priori ratio of its optimum.
    assert naive_linear_cost(result.x, weight) <= result.apriori_ratio * linear + 1e-5


@pytest.mark.parametrize("seed, gamma", [(262, 0.5), (351, 1.0)])
def test_nothing_violated_but_the_bound_behind_is_no_reason_to_go_round_in_circles(seed, gamma):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    graph = random_signed(rng, nodes, int(rng.integers(3, 16)))
    result = pf.correlation_clustering(graph, gamma=gamma, tol=1e-8, workers=1, max_iter=60)
    assert result.converged


def naive_linear_cost(x, weight):
    return float(np.where(weight > 0, weight * x, -weight * (1 - x)).sum())


@pytest.mark.parametrize("gamma", [None, 1.0])
@pytest.mark.parametrize("strong", [1.0, 1e3, 1e8])
def test_a_weak_edge_against_strong_ones_is_paid_for_at_once(tmp_path, gamma, strong):
    """After one sweep all that is left is tiny, and the penalty of the next trees is not."""
    u, v, weight = np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([strong, strong, -0.01])
    how = {"gamma": gamma, "tol": 1e-8, "ratio": 1.0, "external": True, "workspace": tmp_path / "run.pf"}
    result = pf.correlation_clustering((u, v, weight), **how)
    assert result.converged and result.optimal
    assert result.cost == 0.01 and result.labels.tolist() == [0, 0, 0]


@pytest.fixture
def signed(rng):
    return random_signed(rng, 60, 300)


@pytest.mark.long
def test_igraph_engine_agrees(signed):
    numba = pf.correlation_clustering(signed, gamma=1.0, tol=1e-6)
    igraph = pf.correlation_clustering(signed, gamma=1.0, tol=1e-6, oracle="igraph", workers=2)
    assert igraph.objective == pytest.approx(numba.objective, rel=1e-5)
    assert igraph.x == pytest.approx(numba.x, abs=1e-2)


def test_no_repulsion_gives_components_and_no_attraction_singletons():
    u, v = np.array([0, 1, 3]), np.array([1, 2, 4])
    together = pf.correlation_clustering((u, v, np.ones(3)))
    assert together.labels.tolist() == [0, 0, 0, 1, 1]
    assert (together.cost, together.certified_ratio, together.optimal) == (0.0, 1.0, True)
    apart = pf.correlation_clustering((u, v, -np.ones(3)))
    assert apart.labels.tolist() == [0, 1, 2, 3, 4]
    assert (apart.cost, apart.certified_ratio) == (0.0, 1.0)


def test_zero_weights_are_no_edges(signed):
    u, v, weight = signed
    holes = weight.copy()
    holes[::7] = 0.0
    result = pf.correlation_clustering((u, v, holes), tol=1e-6)
    kept = holes != 0
    alone = pf.correlation_clustering((u[kept], v[kept], holes[kept]), tol=1e-6)
    assert np.array_equal(result.x[kept], alone.x)
    assert np.isnan(result.x[~kept]).all()


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (None, {"gamma": 0}, "gamma must be"),
        (None, {"gamma": -1.0}, "gamma must be"),
        (None, {"gamma": np.nan}, "gamma must be"),
        (None, {"oracle": "none"}, "oracle must be"),
        ((np.array([0]), np.array([1]), np.array([np.nan])), {}, "not a finite number"),
        (np.zeros((1, 1)), {}, "needs two"),
    ],
)
def test_bad_input_is_named(signed, graph, options, words):
    with pytest.raises(pf.InputError, match=words):
        pf.correlation_clustering(signed if graph is None else graph, **options)


@pytest.mark.parametrize("gamma", [None, 1.0])
@pytest.mark.parametrize("base", [None, -0.4])
def test_a_weight_without_an_inverse_is_refused(signed, tmp_path, gamma, base):
    """Beside it the size of the others does not matter: sweeps would multiply infinity by zero."""
    u, v, w = signed
    for weights, small in ((np.where(np.arange(len(w)) == 3, 1e-320, w), base), (w, base and -1e-320)):
        if weights is w and not small:
            continue
        for place in (None, tmp_path / f"run{small}.pf"):
            with pytest.raises(pf.InputError, match="a weight is too small: the inverse it counts with is"):
                pf.correlation_clustering((u, v, weights), gamma=gamma, base=small, workspace=place)


def test_a_workspace_of_distances_is_refused(small, tmp_path):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=1)
    with pytest.raises(pf.WorkspaceError, match="needs kind='signed'"):
        pf.correlation_clustering(tmp_path / "run.pf")


@pytest.mark.long
def test_an_interrupted_run_has_bounds_and_the_clusters_known(signed, tmp_path):
    def interrupt(record):
        if record["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(pf.Interrupted) as caught:
        pf.correlation_clustering(signed, gamma=1.0, tol=1e-6, workspace=tmp_path / "run.pf", callback=interrupt)
    result = caught.value.result
    assert result.status == "interrupted"
    assert result.cost == result.history[-1]["cost"]
    assert result.lp_lower_bound > 0
    assert np.all((result.x >= 0) & (result.x <= 1))
    assert pf.export(tmp_path / "run.pf", tmp_path / "c.csv", clusters=True)
    assert_same_bits(pf.resume(tmp_path / "run.pf"), pf.correlation_clustering(signed, gamma=1.0, tol=1e-6))


@pytest.mark.long
def test_a_run_killed_before_its_answer_says_so_and_makes_it_later(signed, tmp_path, monkeypatch):
    path = tmp_path / "run.pf"
    with monkeypatch.context() as patch:
        patch.setattr("ooc_pf.engine.place._commit_answer", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            pf.correlation_clustering(signed, gamma=1.0, tol=1e-6, workspace=path)
    with pytest.raises(pf.WorkspaceError, match="no answer yet"):
        pf.open(path)
    with pytest.raises(pf.WorkspaceError, match="no answer yet"):
        pf.export(path, tmp_path / "a.csv")
    result = pf.resume(path)
    assert result.converged
    assert np.array_equal(result.labels, pf.correlation_clustering(signed, gamma=1.0, tol=1e-6).labels)
