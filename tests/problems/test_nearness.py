"""Metric nearness on sparse graphs: right answers and valid certificates."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests import naive
from tests.gallery import random_graph
from tests.properties import assert_certificate_holds, assert_is_metric


@given(st.integers(0, 2**32 - 1))
@example(1623588)  # an optimum so small that its bounds meet to rounding only
@settings(max_examples=40, deadline=None)
def test_agrees_with_an_interior_point_solver_on_all_cycles(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    u, v = random_graph(rng, nodes, int(rng.integers(3, 14)))
    d = rng.normal(0.3, 1.0, len(u))  # negative targets too
    w = rng.uniform(0.2, 3.0, len(u))
    result = pf.metric_nearness((u, v, d), weights=w, tol=1e-9, workers=1)
    x, value = naive.cycles.nearness(nodes, u, v, d, w)
    assert result.status == "converged"
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-7)
    assert result.x == pytest.approx(x, abs=1e-3)
    assert_is_metric(nodes, u, v, result.x)
    assert_certificate_holds(result, u, v, d, w)


def gaussian(n, kind=np.asarray):
    upper = np.triu(np.random.default_rng(0).standard_normal((n, n)), 1)
    return kind(upper + upper.T)


@pytest.mark.parametrize(("n", "objective"), [(50, 566.0743844), (100, 2283.945477), (200, 9173.142086)])
def test_known_objectives_of_gaussian_complete_graphs(n, objective):
    result = pf.metric_nearness(gaussian(n), tol=1e-9)
    assert result.objective == pytest.approx(objective, rel=3e-10)
    assert result.violation <= 1e-9 * np.abs(gaussian(n)).max()


@pytest.mark.parametrize(("n", "objective"), [(50, 84.87077823), (100, 344.4533336)])
def test_known_objectives_of_absolute_gaussians(n, objective):
    result = pf.metric_nearness(gaussian(n, np.abs), tol=1e-9)
    assert result.objective == pytest.approx(objective, rel=1e-9)


def test_a_four_cycle_needs_the_bound_that_no_cycle_implies():
    """Every cycle row of a square allows one negative side; a distance does not."""
    u, v, d = np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.array([-1.0, 1.0, 1.0, 1.0])
    result = pf.metric_nearness((u, v, d), tol=1e-10)
    assert result.x == pytest.approx([0.0, 1.0, 1.0, 1.0], abs=1e-9)


def test_bridges_isolated_nodes_and_several_parts():
    u, v, d = np.array([0, 1, 0, 5, 7]), np.array([1, 2, 2, 6, 8]), np.array([1.0, 1.0, 5.0, -3.0, 2.0])
    result = pf.metric_nearness((u, v, d), tol=1e-10)
    assert result.x == pytest.approx([2.0, 2.0, 4.0, 0.0, 2.0], abs=1e-9)
    assert result.objective == pytest.approx(1.5 + 4.5)
    assert result.lower_bound == pytest.approx(6.0)


@pytest.mark.parametrize(
    "graph",
    [
        (np.array([], np.int64), np.array([], np.int64), np.array([])),
        (np.array([0]), np.array([1]), np.array([3.0])),
        np.zeros((1, 1)),
        np.zeros((4, 4)),
    ],
)
def test_graphs_with_nothing_to_do(graph):
    result = pf.metric_nearness(graph)
    assert result.converged and result.objective == 0.0 and result.n_active == 0


def test_a_budget_too_small_names_the_least_that_will_do(small):
    with pytest.raises(pf.BudgetError, match=r"least that will do is [\d,]+ bytes") as caught:
        pf.metric_nearness(small, memory="1MB")
    least = int(str(caught.value).rsplit("is ", 1)[1].split(" ")[0].replace(",", ""))
    assert pf.metric_nearness(small, memory=least).converged


@pytest.mark.long
def test_igraph_engine_agrees(small, tmp_path):
    u, v, d = small
    numba = pf.metric_nearness(small, tol=1e-8)
    igraph = pf.metric_nearness(small, tol=1e-8, oracle="igraph", workers=2)
    assert igraph.workspace is None
    assert igraph.x == pytest.approx(numba.x, abs=1e-7)
    assert igraph.objective == pytest.approx(numba.objective, rel=1e-8)
    assert_certificate_holds(igraph, u, v, d)


def test_limits_still_give_a_feasible_point_with_its_bound(small):
    u, v, d = small
    best = pf.metric_nearness(small, tol=1e-9)
    for limit in ({"max_iter": 0}, {"max_iter": 3}, {"max_time": 0.0}):
        result = pf.metric_nearness(small, tol=1e-9, **limit)
        assert result.status == ("iteration_limit" if "max_iter" in limit else "time_limit")
        assert not result.converged
        assert_is_metric(60, u, v, result.x)
        assert_certificate_holds(result, u, v, d)
        assert result.lower_bound <= best.objective <= result.objective + 1e-9


def test_callback_sees_every_iteration_and_can_stop(small):
    seen = []
    result = pf.metric_nearness(small, callback=seen.append)
    assert [record["iteration"] for record in seen] == list(range(1, result.n_iter + 1))
    assert seen == result.history
    bounds = [record["lower_bound"] for record in seen]
    assert np.all(np.diff(bounds) >= -1e-12)  # the dual only rises
    assert {"oracle", "sweep"} <= set(seen[0]["seconds"])
    stopped = pf.metric_nearness(small, callback=lambda record: record["iteration"] == 2)
    assert (stopped.status, stopped.n_iter) == ("callback", 2)


def test_progress_goes_to_stderr_only_when_asked(small, capsys):
    pf.metric_nearness(small)
    assert capsys.readouterr() == ("", "")
    pf.metric_nearness(small, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "  it    1  " in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": 0}, "tol must be"),
        ({"tol": float("nan")}, "tol must be"),
        ({"oracle": "guess"}, "oracle must be"),
        ({"workers": 0}, "workers must be"),
        ({"max_iter": -1}, "max_iter must be"),
        ({"max_time": -1}, "max_time must be"),
        ({"memory": "lots"}, "is not a size"),
        ({"seed": "x"}, "seed must be"),
        ({"weights": np.ones(3)}, "one number an edge"),
        ({"weights": np.zeros(240)}, "weight 0 is 0.0"),
    ],
)
def test_bad_options_are_named(small, options, words):
    with pytest.raises(pf.InputError, match=words):
        pf.metric_nearness(small, **options)


def test_square_weights(rng):
    a = gaussian(8)
    w = rng.uniform(0.5, 2.0, (8, 8))
    w = w + w.T
    upper = np.triu_indices(8, 1)
    square = pf.metric_nearness(a, weights=w, tol=1e-10)
    vector = pf.metric_nearness((*upper, a[upper]), weights=w[upper], tol=1e-10)
    assert square.x[upper] == pytest.approx(vector.x)


def test_large_and_impossible_values(small):
    u, v, d = small
    assert pf.metric_nearness((u, v, d * 1e12), max_iter=500).converged
    with pytest.raises(pf.InputError, match="too large"):
        pf.metric_nearness((u, v, d * 1e200))
    for small_part in (1e-145, 1e-160, 1e-200, 1e-300):
        with pytest.raises(pf.InputError, match="too small"):
            pf.metric_nearness((u, v, d * small_part))
    assert pf.metric_nearness((u, v, d * 1e-130), max_iter=500).converged
    assert pf.metric_nearness((u, v, d * 0.0)).objective == 0.0
    with pytest.raises(pf.InputError, match="weight 0 is"):
        pf.metric_nearness(small, weights=np.full(240, 1e-310))


def test_numbers_may_be_of_numpy(small, tmp_path):
    result = pf.metric_nearness(
        small, tol=np.float32(1e-6), seed=np.int64(1), workers=np.int64(1), max_iter=np.int64(2),
        max_time=np.float64(60), workspace=tmp_path / "run.pf",
    )  # fmt: skip
    assert result.status == "iteration_limit"
    assert pf.resume(tmp_path / "run.pf").converged
