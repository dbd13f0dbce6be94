"""A real cluster of worker processes on loopback: the same bits, also when a worker dies or another one comes."""

import os
import signal

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.cycles import search_dask
from ooc_pf.engine import parallel
from ooc_pf.storage.memory import Budget
from tests.gallery import communities
from tests.properties import assert_same_bits

distributed = pytest.importorskip("dask.distributed")

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def graph():
    return communities(np.random.default_rng(3), 400, 8, signed=True)


@pytest.fixture
def sent(monkeypatch):
    """The tasks that go to the cluster."""
    calls = []

    def run_on_cluster(client, function, tasks):
        tasks = list(tasks)
        calls.extend(tasks)
        return parallel_run(client, function, tasks)

    parallel_run = parallel._run_on_cluster
    monkeypatch.setattr(parallel, "_run_on_cluster", run_on_cluster)
    return calls


def test_cluster_and_threads_give_the_same_bits(client, cluster, graph, sent, tmp_path):
    alone = pf.correlation_clustering(graph, gamma=1.0)
    assert not sent
    together = pf.correlation_clustering(graph, gamma=1.0, workspace=tmp_path / "a.pf", client=client)
    assert_same_bits(alone, together)
    once = len(sent)
    assert once > 0
    pf.correlation_clustering(graph, gamma=1.0, workspace=tmp_path / "b.pf", max_iter=2)
    assert_same_bits(alone, pf.resume(tmp_path / "b.pf", client=cluster.scheduler_address))
    assert len(sent) > once


def test_complete_graphs_too(client, sent, tmp_path):
    graph = communities(np.random.default_rng(4), 120, 8, signed=True)
    alone = pf.correlation_clustering(graph, base=-0.2, tol=1e-4)
    assert_same_bits(alone, pf.correlation_clustering(graph, base=-0.2, tol=1e-4, workspace=tmp_path / "a.pf",
                                                      client=client))  # fmt: skip
    assert sent


def pages_read():
    """Bytes that a worker has read back from its own scratch files."""
    return search_dask._cache[1].pool.read_bytes if search_dask._cache else 0


@pytest.mark.parametrize("problem", [pf.correlation_clustering, pf.metric_nearness])
def test_workers_page_what_does_not_fit(problem, client, sent, tmp_path, settings):
    settings.searches_on_disk()
    graph = communities(np.random.default_rng(5), 6000, 32, signed=problem is pf.correlation_clustering)
    options = {"external": True, "callback": lambda record: record["iteration"] >= 2}
    alone = problem(graph, workspace=tmp_path / "a.pf", **options)
    tight = Budget(rows=1 << 20, vectors=1 << 19, slots=2, build=1 << 16)
    assert_same_bits(alone, problem(graph, workspace=tmp_path / "b.pf", client=client, memory=tight, **options))
    assert sent
    assert min(client.run(pages_read).values()) > 0


@pytest.mark.slow
def test_one_two_and_four_workers_give_the_same_bits(graph, tmp_path):
    """The last run begins with two workers, gets two more, and loses one again."""
    alone = pf.correlation_clustering(graph, gamma=1.0)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for workers in (1, 2, 4):
            cluster.scale(workers)
            client.wait_for_workers(workers, timeout=60)
            run = tmp_path / f"{workers}.pf"
            assert_same_bits(alone, pf.correlation_clustering(graph, gamma=1.0, workspace=run, client=client))
        cluster.scale(2)

        def change(record):
            if record["iteration"] in (2, 5):
                cluster.scale(4 if record["iteration"] == 2 else 3)

        run = tmp_path / "changing.pf"
        result = pf.correlation_clustering(graph, gamma=1.0, workspace=run, client=client, callback=change)
        assert_same_bits(alone, result)


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_tasks_not_the_run(client, cluster, graph, sent, tmp_path):
    alone = pf.correlation_clustering(graph, gamma=1.0)
    killed = []

    def kill_one(record):
        if record["iteration"] in (2, 4):
            process = client.run(os.getpid)
            victim = sorted(process.values())[0]
            os.kill(victim, signal.SIGKILL)  # the cluster starts another one in its place
            killed.append(victim)

    result = pf.correlation_clustering(graph, gamma=1.0, workspace=tmp_path / "a.pf", client=client, callback=kill_one)
    assert len(killed) == 2 and sent
    cluster.scale(3)
    assert_same_bits(alone, result)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_leaves_a_run_to_resume(graph, tmp_path):
    alone = pf.correlation_clustering(graph, gamma=1.0)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    client = distributed.Client(cluster)

    def close(record):
        if record["iteration"] == 3:
            client.close()
            cluster.close()

    with pytest.raises(pf.ClusterError, match="resume it"):
        pf.correlation_clustering(graph, gamma=1.0, workspace=tmp_path / "a.pf", client=client, callback=close)
    assert pf.verify(tmp_path / "a.pf", oracle="numba")["rows"] > 0
    assert_same_bits(alone, pf.resume(tmp_path / "a.pf"))


def test_what_a_cluster_cannot_do_is_said(client, graph, tmp_path, settings):
    settings.impatient()
    with pytest.raises(pf.InputError, match="workspace="):
        pf.correlation_clustering(graph, client=client)
    with pytest.raises(pf.InputError, match="no dask scheduler answers"):
        pf.correlation_clustering(graph, workspace=tmp_path / "a.pf", client="tcp://127.0.0.1:1")
