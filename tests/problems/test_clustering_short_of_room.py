"""Clustering of complete graphs of which more pairs come into conflict than fit the memory."""

import itertools

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.cycles.plan import CyclePlan
from ooc_pf.storage.memory import Budget
from ooc_pf.storage.records import read_record
from tests import naive
from tests.gallery import attractive_groups, random_signed
from tests.properties import assert_same_bits, assert_same_run

BASE = -1.0


@pytest.fixture
def groups(rng):
    return attractive_groups(rng, 30)


def cluster(groups, room=None, gamma=None, **options):
    """A run with room for so many pairs that are not listed."""
    memory = None if room is None else Budget(pairs=len(groups[0]) + room)
    return pf.correlation_clustering(groups, base=BASE, gamma=gamma, tol=1e-4, memory=memory, **options)


def most_pairs(result):
    return max(record.get("pairs", 0) for record in result.history)


def spelled_out(groups):
    """All pairs, the listed ones first."""
    u, v, weight = groups
    nodes = int(v.max()) + 1
    listed = set(zip(u.tolist(), v.tolist(), strict=True))
    rest = np.array([(a, b) for a in range(nodes) for b in range(a + 1, nodes) if (a, b) not in listed])
    return np.append(u, rest[:, 0]), np.append(v, rest[:, 1]), np.append(weight, np.full(len(rest), BASE))


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_too_many_pairs_for_the_memory_leave_a_valid_bound_and_clusters(groups, gamma, tmp_path):
    room, optimum = 40, cluster(groups).objective  # of the linear program over all pairs, from above
    assert most_pairs(cluster(groups, gamma=gamma)) > 2 * room
    result = cluster(groups, room, gamma, workspace=tmp_path / "run.pf")
    assert result.status == "stalled" and not result.converged
    assert most_pairs(result) == room
    assert 0.5 * room < result.lp_lower_bound <= optimum
    assert result.lower_bound <= result.objective < np.inf
    assert result.cost == pytest.approx(naive.clusters.clustering_cost(*spelled_out(groups), result.labels))
    assert result.certified_ratio == pytest.approx(result.cost / result.lp_lower_bound)
    for oracle in ("numba", "igraph"):
        report = pf.verify(tmp_path / "run.pf", oracle=oracle)
        assert report["lp_lower_bound"] == pytest.approx(result.lp_lower_bound)


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_more_room_proves_more(groups, gamma):
    enough = cluster(groups, gamma=gamma)
    rooms = (10, 40, 80, most_pairs(enough))
    bounds = [cluster(groups, room, gamma).lp_lower_bound for room in rooms]
    assert all(less <= more * (1 + 1e-4) for less, more in itertools.pairwise(bounds))
    assert bounds[0] < bounds[1] < bounds[2]
    assert bounds[-1] == pytest.approx(enough.lp_lower_bound, rel=1e-9)


@pytest.mark.parametrize("gamma", [1.0, None])
def test_room_that_is_never_short_does_not_change_the_bits(groups, gamma):
    enough = cluster(groups, gamma=gamma)
    assert_same_run(enough, cluster(groups, most_pairs(enough), gamma))


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_short_of_room_the_bits_do_not_depend_on_workers_or_stops(groups, gamma, tmp_path):
    alone = cluster(groups, 40, gamma, workers=1)
    assert_same_run(alone, cluster(groups, 40, gamma, workers=3))
    result = cluster(groups, 40, gamma, workspace=tmp_path / "run.pf", max_iter=1)
    while result.status == "iteration_limit":
        result = pf.resume(tmp_path / "run.pf", memory=Budget(pairs=len(groups[0]) + 40), max_iter=3)
    assert result.status == alone.status == "stalled"
    assert_same_bits(alone, result)


@pytest.mark.long
def test_a_run_that_was_short_of_room_goes_on_with_more(groups, tmp_path):
    enough, few = cluster(groups), Budget(pairs=len(groups[0]) + 40)
    stalled = cluster(groups, 40, workspace=tmp_path / "run.pf")
    again = pf.resume(tmp_path / "run.pf", memory=few)
    assert again.status == "stalled" and again.n_iter > stalled.n_iter
    assert again.lp_lower_bound >= stalled.lp_lower_bound * (1 - 1e-9)
    done = pf.resume(tmp_path / "run.pf")
    assert done.converged
    assert done.lp_lower_bound == pytest.approx(enough.lp_lower_bound, rel=1e-3)
    assert pf.verify(tmp_path / "run.pf", oracle="numba")["rows"] > 0


def test_less_memory_than_a_run_holds_already_is_refused_before_it_goes_on(groups, tmp_path):
    with pytest.raises(pf.BudgetError, match="least that will do"):
        pf.correlation_clustering(groups, base=BASE, memory="1MB")
    cluster(groups, workspace=tmp_path / "run.pf", max_iter=1)
    with pytest.raises(pf.BudgetError, match="resume it with more memory"):
        pf.resume(tmp_path / "run.pf", memory=Budget(pairs=len(groups[0]) + 1))
    assert_same_bits(cluster(groups), pf.resume(tmp_path / "run.pf"))


def test_without_any_room_a_run_ends_with_clusters(groups):
    result = cluster(groups, 0)
    assert result.status == "stalled"
    assert result.lp_lower_bound == 0.0 and result.certified_ratio is None
    assert len(result.labels) == 30


def test_a_plan_of_an_earlier_release_was_never_short_of_room():
    former = {"stage": "certify", "wave": 0, "worst": 0.0, "began": 0.0, "last": 1.0, "cold": 0.0, "idle": 0}
    plan = read_record(CyclePlan, former, "manifest.json", "plan")
    assert (plan.short, plan.crowded) == (False, 0)


@pytest.mark.long
@pytest.mark.parametrize("gamma", [1.0, None])
def test_the_bound_of_few_pairs_is_below_the_optimum_of_all(rng, gamma):
    for room in (1, 2, 4):
        u, v, weight = random_signed(rng, 7, 12, mean=0.8)
        graph = u, v, weight
        optimum = naive.cycles.clustering_lp(int(v.max()) + 1, *spelled_out(graph))
        result = cluster(graph, room, gamma)
        assert 0.0 <= result.lp_lower_bound <= optimum + 1e-7
        assert optimum - 1e-7 <= result.cost
