"""Clusters made by passes over edges: as good as in memory, and the same bits whatever is in memory."""

import itertools
import os
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.errors import SearchStopped
from ooc_pf.kernels.clusters import number_clusters
from ooc_pf.problems import streaming
from ooc_pf.problems.rounding import Level, clustering_cost, guided, round_clusters
from ooc_pf.problems.streaming import EdgeStream, contracted, round_in_passes
from ooc_pf.storage.vectors import Pool, Vector, spans
from tests import naive
from tests.gallery import random_signed, signed_graph, social_network
from tests.settings import changed_settings

seeds = st.integers(0, 2**32 - 1)


def stream(u, v, weight, nodes, pool=None):
    vectors = [Vector.filled([values], len(u), values.dtype, pool) for values in (u, v, weight)]
    return EdgeStream(lambda: spans(*vectors), nodes, pool, np.zeros(1, np.uint8))


@given(seeds, st.booleans(), st.sampled_from([0, 30]))
@examples(max_examples=60, deadline=None)
def test_clusters_cost_what_they_say_and_no_more_than_trivial_ones(seed, whole, few):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 8))
    u, v, weight = signed_graph(rng, nodes, int(rng.integers(0, 22)), whole=whole)
    edges, other = stream(u, v, weight, nodes), stream(u, v, rng.normal(size=len(u)), nodes)
    agreed = stream(u, v, np.where(rng.random(len(u)) < 0.5, weight, 0.0), nodes) if whole else None
    with changed_settings() as settings:
        settings.small_levels(few=few, bucket=5, block=4)
        labels = round_in_passes(edges, [edges, other], seed=seed, agreed=agreed, rounds=2)
    table = naive.clusters.table(nodes, u, v, weight, None)
    cost = naive.clusters.cost(table, labels)
    assert labels.dtype == np.int32 and np.array_equal(labels, number_clusters(labels))
    assert streaming.cost(edges, labels) == pytest.approx(cost, abs=1e-9)
    assert cost >= naive.clusters.least_cost(table) - 1e-9
    together = np.maximum(-weight, 0.0).sum()  # components cost no more than that
    assert cost <= min(np.maximum(weight, 0.0).sum(), together) + 1e-9


@given(seeds)
@examples(max_examples=20, deadline=None)
def test_known_clusters_become_no_worse(seed):
    rng = np.random.default_rng(seed)
    u, v, weight = signed_graph(rng, 40, 200)
    known = rng.integers(0, 40, 40).astype(np.int32)
    with changed_settings() as settings:
        settings.small_levels()
        edges = stream(u, v, weight, 40)
        labels = round_in_passes(edges, [edges], known=known)
    assert clustering_cost(u, v, weight, labels) <= clustering_cost(u, v, weight, known) + 1e-9


@pytest.mark.parametrize("few", [0, 1 << 12])
def test_as_good_as_in_memory(few, settings):
    """Within two percent on graphs like those of trust between people; measured, one."""
    settings.small_levels(few=few, bucket=1 << 12, block=1 << 12)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        u, v, weight = social_network(rng, 1500, 8000)
        x = np.clip(np.where(weight > 0, 0.3, 0.7) + rng.normal(0.0, 0.3, len(u)), 0.0, 1.0)
        _, near = round_clusters(u, v, weight, x, 1500)
        edges = stream(u, v, weight, 1500)
        far = streaming.cost(edges, round_in_passes(edges, [edges, stream(u, v, guided(weight, x), 1500)], rounds=8))
        assert far <= 1.02 * near


@pytest.mark.parametrize("few", [0, 1 << 14])
def test_memory_and_disk_give_the_same_bits(few, rng, tmp_path, settings):
    settings.small_levels(few=few, bucket=1 << 13, block=1 << 13)
    graph = social_network(rng, 8000, 50_000)
    assert len(graph[0]) > 1 << 15  # more than a page
    pool, found = Pool(1 << 19, tmp_path), []
    for place in (None, pool):
        edges = stream(*graph, 8000, place)
        found.append(round_in_passes(edges, [edges, stream(*graph[:2], graph[2] + 0.5, 8000, place)], rounds=1))
    assert pool.take_counts()["read_bytes"] > 0
    assert np.array_equal(*found)
    pool.close()


def test_small_graphs_are_searched_in_memory(rng):
    edges = stream(*random_signed(rng, 30, 100), 30)
    level = contracted(edges, np.arange(30, dtype=np.int32))
    assert isinstance(level, Level) and len(level.node) == 200


def test_a_cluster_with_more_arcs_than_a_bucket_is_merged_in_parts(rng, settings):
    """One hub, and every other node twice a neighbour of its cluster."""
    settings.small_levels(bucket=10)
    leaves = np.arange(2, 202)
    u, v = np.repeat([0, 1], 200), np.tile(leaves, 2)
    level = contracted(stream(u, v, np.arange(1.0, 401.0), 202), np.maximum(np.arange(202, dtype=np.int32) - 1, 0))
    assert level.start[1] == 200 and level.start[-1] == 400
    assert np.array_equal(level.weight.read(0, 200), np.arange(1.0, 201.0) + np.arange(201.0, 401.0))


def test_a_stop_is_heard_between_parts(rng):
    edges = stream(*random_signed(rng, 30, 100), 30)
    edges.stop[0] = 1
    with pytest.raises(SearchStopped):
        round_in_passes(edges, [edges])


def test_graphs_without_edges_and_without_conflict(rng):
    nothing = np.empty(0, np.int64)
    edges = stream(nothing, nothing, np.empty(0), 4)
    assert round_in_passes(edges, [edges]).tolist() == [0, 1, 2, 3]
    edges = stream(np.array([0, 1, 4]), np.array([1, 2, 5]), np.ones(3), 7)
    assert round_in_passes(edges, [edges]).tolist() == [0, 0, 0, 1, 2, 2, 3]
    edges = stream(np.array([0, 1]), np.array([1, 2]), -np.ones(2), 4)
    assert round_in_passes(edges, [edges]).tolist() == [0, 1, 2, 3]


# -- runs laid out for disk -------------------------------------------------------------------------------------------


@pytest.fixture
def camps():
    """Four camps; one vote in eight is wrong."""
    rng = np.random.default_rng(3)
    u, v = np.triu_indices(100, 1)
    chosen = rng.random(len(u)) < 0.15
    u, v = u[chosen], v[chosen]
    return u, v, np.where((u % 4 == v % 4) ^ (rng.random(len(u)) < 0.12), 1.0, -1.0) * rng.uniform(0.5, 1.5, len(u))


def on_disk(path, **more):
    return {"tol": 1e-9, "external": True, "workspace": path, **more}


@pytest.mark.long
def test_runs_on_disk_have_clusters_as_good_as_in_memory(tmp_path, settings):
    settings.small_levels(few=1 << 12, bucket=1 << 12, block=1 << 12)
    graph = social_network(np.random.default_rng(4), 1200, 6000)
    near = pf.correlation_clustering(graph, max_iter=12)
    far = pf.correlation_clustering(graph, max_iter=12, external=True, workspace=tmp_path / "run.pf")
    assert far.cost <= 1.02 * near.cost
    assert pf.verify(tmp_path / "run.pf")["cost"] == far.cost


def test_runs_on_disk_have_clusters_on_the_way(camps, tmp_path, settings):
    settings.small_levels()
    first = pf.correlation_clustering(camps, **on_disk(tmp_path / "run.pf", ratio=1.5))
    costs = [record["cost"] for record in first.history]
    assert costs == sorted(costs, reverse=True)
    assert first.status == "ratio_reached" and first.certified_ratio <= 1.5
    assert first.cost <= costs[-1]
    resumed = pf.resume(tmp_path / "run.pf", ratio=1.2)
    alone = pf.correlation_clustering(camps, **on_disk(tmp_path / "alone.pf", ratio=1.2))
    assert resumed.n_iter == alone.n_iter > first.n_iter
    assert np.array_equal(resumed.labels, alone.labels) and np.array_equal(resumed.x, alone.x)


def test_an_interrupted_run_on_disk_keeps_its_clusters(camps, tmp_path, settings, capsys):
    settings.every_commit_at_once()

    def interrupt(record):
        if record["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pf.interrupts_return():
        result = pf.correlation_clustering(camps, **on_disk(tmp_path / "run.pf", ratio=1.0, callback=interrupt))
    assert (result.status, result.n_iter) == ("interrupted", 2)
    assert result.cost == result.history[-1]["cost"]
    assert result.objective <= result.cost * (1 + 1e-9)  # the clusters are a feasible point
    assert main(["status", str(tmp_path / "run.pf")]) == 0
    assert f"{result.cost:.10g}" in capsys.readouterr().out


def test_a_stop_within_the_rounding_loses_one_iteration_and_no_bits(camps, tmp_path, settings, monkeypatch):
    settings.every_commit_at_once()
    settings.clusters_often()
    whole = pf.correlation_clustering(camps, **on_disk(tmp_path / "whole.pf", ratio=1.2))
    contract, count = streaming.contracted, itertools.count()

    def interrupting(*args):
        if next(count) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return contract(*args)

    with monkeypatch.context() as patch, pf.interrupts_return():
        patch.setattr(streaming, "contracted", interrupting)
        result = pf.correlation_clustering(camps, **on_disk(tmp_path / "run.pf", ratio=1.2))
    assert result.status == "interrupted" and 0 < result.n_iter < whole.n_iter
    again = pf.resume(tmp_path / "run.pf")
    assert np.array_equal(again.labels, whole.labels) and np.array_equal(again.x, whole.x)


def test_a_run_that_had_no_time_has_clusters_all_the_same(camps, tmp_path):
    result = pf.correlation_clustering(camps, **on_disk(tmp_path / "run.pf", max_time=0.0))
    assert result.status == "time_limit" and len(result.labels) == 100
