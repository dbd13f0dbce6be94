"""Nothing that a clustering claims is false, whatever the weights, and however it is run."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests import naive
from tests.gallery import random_graph

EACH = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WEIGHTS = {
    "all alike": lambda rng, count: np.ones(count),
    "whole": lambda rng, count: rng.integers(1, 6, count).astype(float),
    "tenths": lambda rng, count: rng.choice([0.1, 0.2, 0.3, 0.7], count),
    "of all sizes": lambda rng, count: 10.0 ** rng.uniform(-8, 8, count),
    "weak and strong": lambda rng, count: np.where(rng.random(count) < 0.3, 1e12, 1.0) * rng.integers(1, 4, count),
    "huge": lambda rng, count: 1e200 * rng.uniform(0.1, 1.0, count),
    "tiny": lambda rng, count: 1e-200 * rng.uniform(0.1, 1.0, count),
}
WAYS = ("memory", "disk", "after other weights", "after other signs")


def drawn(seed, weights):
    """A small signed graph: nodes, and (u, v, weight)."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 8))
    u, v = random_graph(rng, nodes, int(rng.integers(1, nodes * (nodes - 1) // 2 + 1)))
    sign = rng.choice([-1.0, 1.0], len(u), p=[0.4, 0.6])
    return rng, nodes, u, v, sign * WEIGHTS[weights](rng, len(u))


def solved(graph, way, rng, folder, **options):
    """The clustering of a graph, run in one of the ways; what is on disk verifies."""
    u, v, weight = graph
    if way == "disk":
        options |= {"external": True, "workspace": folder / "run.pf"}
    elif way != "memory":
        before = weight * rng.choice([1.0, 0.5, 3.0, 1e6, 1e-6] if "weights" in way else [1.0, -1.0], len(u))
        pf.correlation_clustering((u, v, before), **{**options, "max_iter": 30}, workspace=folder / "old.pf")
        options |= {"warm_start": folder / "old.pf", "workspace": folder / "run.pf"}
    result = pf.correlation_clustering(graph, workers=1, **options)
    if (folder / "run.pf").exists():
        pf.verify(folder / "run.pf", oracle="numba")
    return result


def check_clusters(result, nodes, u, v, weight, base=None):
    """Neither bound nor ratio nor ``optimal`` says more than is true of all clusterings."""
    best = naive.clusters.least_cost(naive.clusters.table(nodes, u, v, weight, base))
    rounding = 1e-9 * best + 1e-15 * np.abs(weight).sum()
    assert result.lp_lower_bound <= best + rounding
    assert result.cost >= best - rounding
    assert result.certified_ratio is None or result.certified_ratio >= 1.0 - 1e-9
    if result.optimal:
        assert result.cost <= best + rounding


@pytest.mark.long
@EACH
@given(
    seed=st.integers(0, 2**32 - 1), weights=st.sampled_from(list(WEIGHTS)), way=st.sampled_from(WAYS),
    gamma=st.sampled_from([None, 0.1, 1.0, 10.0]), iterations=st.sampled_from([0, 1, 3, 400]),
)  # fmt: skip
def test_of_listed_pairs(seed, weights, way, gamma, iterations, tmp_path_factory):
    rng, nodes, u, v, weight = drawn(seed, weights)
    size, tol = np.abs(weight).max(), 1e-4
    how = {"gamma": gamma, "tol": tol, "ratio": 1.0, "max_iter": iterations}
    result = solved((u, v, weight), way, rng, tmp_path_factory.mktemp("run"), **how)
    check_clusters(result, nodes, u, v, weight)
    if gamma is None:
        truth, rounding = size * naive.cycles.clustering_lp(nodes, u, v, weight / size), 1e-8 * size
    else:
        # An interior-point method is less exact.
        truth = size * naive.cycles.clustering_qp(nodes, u, v, weight / size, gamma)[1]
        rounding = 1e-6 * (truth + size * (1.0 + 1.0 / gamma))
    assert result.lower_bound <= truth + rounding and result.objective >= truth - rounding
    if result.status == "converged":
        assert result.objective <= truth * (1.0 + tol) + rounding
    f = np.where(weight > 0, result.x, 1.0 - result.x)
    for row in naive.cycles.conflicted_rows(nodes, u, v, weight):
        assert f[row].sum() >= 1.0 - 1e-9


@pytest.mark.long
@EACH
@given(
    seed=st.integers(0, 2**32 - 1), weights=st.sampled_from(list(WEIGHTS)), iterations=st.sampled_from([0, 1, 3, 400]),
    way=st.sampled_from([way for way in WAYS if way != "disk"]), gamma=st.sampled_from([None, 1.0]),
)  # fmt: skip
def test_of_all_pairs(seed, weights, way, gamma, iterations, tmp_path_factory):
    rng, nodes, u, v, weight = drawn(seed, weights)
    nodes = int(v.max()) + 1
    base = -float(np.median(np.abs(weight))) * rng.choice([0.1, 0.5, 1.0])
    how = {"gamma": gamma, "base": base, "tol": 1e-4, "ratio": 1.0, "max_iter": iterations}
    result = solved((u, v, weight), way, rng, tmp_path_factory.mktemp("run"), **how)
    check_clusters(result, nodes, u, v, weight, base)
