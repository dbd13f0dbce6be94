"""Clustering of complete graphs that are never listed, and the linear program."""

from pathlib import Path

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests import naive
from tests.gallery import attractive_groups, random_signed
from tests.properties import assert_same_bits

GRAPHS = Path(__file__).parents[3] / "shared" / "data" / "cc_lp"


def spelled_out(u, v, weight, nodes, base):
    """All pairs, the listed ones first."""
    listed = {(int(a), int(b)) for a, b in zip(u, v, strict=True)}
    rest = np.array([(a, b) for a in range(nodes) for b in range(a + 1, nodes) if (a, b) not in listed], np.int64)
    rest = rest.reshape(-1, 2)
    return np.append(u, rest[:, 0]), np.append(v, rest[:, 1]), np.append(weight, np.full(len(rest), base))


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, None]), st.sampled_from([-0.1, -1.0]))
@settings(max_examples=30, deadline=None)
def test_implicit_pairs_count_as_if_they_were_listed(seed, gamma, base):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    u, v, weight = random_signed(rng, nodes, int(rng.integers(2, 14)), mean=0.4)
    nodes = int(v.max()) + 1
    result = pf.correlation_clustering((u, v, weight), gamma=gamma, base=base, tol=1e-8, workers=1)
    whole = spelled_out(u, v, weight, nodes, base)
    linear = naive.cycles.clustering_lp(nodes, *whole)
    value = linear if gamma is None else naive.cycles.clustering_qp(nodes, *whole, gamma)[1]
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert result.lower_bound <= value + 1e-6
    assert result.lp_lower_bound <= linear + 1e-7
    best = min(naive.clusters.clustering_cost(*whole, labels) for labels in naive.clusters.partitions(nodes))
    assert result.cost == pytest.approx(naive.clusters.clustering_cost(*whole, result.labels))
    assert best - 1e-9 <= result.cost <= best * 1.05 + 1e-9


@pytest.fixture
def groups(rng):
    return attractive_groups(rng)


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_igraph_engine_agrees(groups, gamma):
    options = {"gamma": gamma, "base": -0.4, "tol": 1e-6}
    igraph = pf.correlation_clustering(groups, oracle="igraph", workers=2, **options)
    numba = pf.correlation_clustering(groups, **options)
    assert igraph.objective == pytest.approx(numba.objective, rel=1e-5)


def test_a_run_that_stops_at_once_has_a_valid_answer(groups):
    result = pf.correlation_clustering(groups, base=-0.4, max_time=0)
    assert result.status == "time_limit"
    assert result.lower_bound <= result.objective < np.inf
    done = pf.correlation_clustering(groups, base=-0.4, max_iter=0)
    assert done.status == "iteration_limit"
    assert np.isfinite(done.violation)


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_more_new_pairs_than_a_pass_takes_up_come_later(groups, gamma, tmp_path, settings):
    every = pf.correlation_clustering(groups, base=-0.4, gamma=gamma, tol=1e-6)
    settings.few_rows_at_once(100)
    few = pf.correlation_clustering(groups, base=-0.4, gamma=gamma, tol=1e-6, workspace=tmp_path / "run.pf")
    assert few.converged
    assert few.history[0]["found"] <= 100 < every.history[0]["found"]
    assert few.n_iter > every.n_iter
    assert few.objective == pytest.approx(every.objective, rel=2e-6)
    assert pf.verify(tmp_path / "run.pf", oracle="igraph")["violation_of_x"] <= 1e-9


@pytest.mark.parametrize("gamma", [1.0, None])
def test_passes_that_leave_rows_out_prove_something_too(groups, gamma, settings):
    """Near the end every remembered row is violated by a little, and these alone may be too many to take up."""
    every = pf.correlation_clustering(groups, base=-0.4, gamma=gamma, tol=1e-3)
    settings.few_rows_at_once(40)
    few = pf.correlation_clustering(groups, base=-0.4, gamma=gamma, tol=1e-3, ratio=1.0, max_iter=300)
    assert few.converged
    assert few.lower_bound <= every.objective * (1 + 1e-9) and every.lower_bound <= few.objective * (1 + 1e-9)
    cut = [record for record in few.history if record["found"] == 40 and "gap" in record]
    assert cut and all(record["objective"] >= every.lower_bound for record in cut)


@pytest.mark.parametrize("base", [0.5, np.nan, -np.inf, "x"])
def test_bad_base_is_named(groups, base):
    with pytest.raises(pf.InputError, match="base must be a finite number that is not positive"):
        pf.correlation_clustering(groups, base=base)


def test_base_zero_is_no_base(groups):
    assert_same_bits(pf.correlation_clustering(groups, base=0), pf.correlation_clustering(groups))


def test_zero_weights_are_counted_and_get_the_base(groups):
    u, v, weight = groups
    with_zero = weight.copy()
    with_zero[:5] = 0.0
    result = pf.correlation_clustering((u, v, with_zero), base=-0.4)
    assert result.zeros == 5
    alone = pf.correlation_clustering((u[5:], v[5:], weight[5:]), base=-0.4)
    assert result.objective == alone.objective


def test_the_karate_club_has_its_known_optima():
    club = igraph.Graph.Famous("Zachary")
    u, v = np.array(club.get_edgelist()).T
    plain = pf.correlation_clustering((u, v, np.ones(len(u))), base=-1.0, gamma=None, tol=1e-6)
    assert plain.lower_bound <= 38.5 + 1e-9 <= plain.objective + 2e-9
    assert plain.objective == pytest.approx(38.5, rel=1e-6)
    (a, b), weight, base = pf.wang_weights(u, v)
    wang = pf.correlation_clustering((a, b, weight), base=base, gamma=None, tol=1e-8)
    assert wang.objective == pytest.approx(20.140386596299, rel=1e-7)
    assert wang.lower_bound == pytest.approx(20.140386596299, rel=1e-7)


KNOWN = {"dolphinsA": 79.5, "lesmisA": 91.5, "footballA": 273.0}


@pytest.mark.skipif(not GRAPHS.exists(), reason="public graphs not at hand")
@pytest.mark.parametrize("name", KNOWN)
def test_known_optima_of_the_linear_program(name):
    pairs = np.loadtxt(GRAPHS / f"{name}.txt", dtype=np.int64, comments="#")[:, :2]
    _, pairs = np.unique(pairs, return_inverse=True)
    pairs = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0)
    u, v = pairs[pairs[:, 0] < pairs[:, 1]].T
    result = pf.correlation_clustering((u, v, np.ones(len(u))), base=-1.0, gamma=None, tol=1e-6)
    assert result.lower_bound <= KNOWN[name] + 1e-9 <= result.objective + 2e-9
    assert result.gap <= 1e-6
