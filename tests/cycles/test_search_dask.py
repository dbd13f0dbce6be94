"""A real cluster of worker processes on loopback: the same bits, also when a worker dies or another one comes."""

import os
import signal
from itertools import count

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.cycles import search_dask
from ooc_pf.engine import parallel
from ooc_pf.storage.memory import Budget
from tests.gallery import communities
from tests.properties import assert_same_bits, assert_same_run

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


@pytest.fixture
def trees_sent(monkeypatch):
    """The tasks that grow trees on the cluster."""
    calls = []

    def submit(client, function, call):
        assert function is search_dask.grow_trees
        calls.append(call)
        return parallel_submit(client, function, call)

    parallel_submit = parallel._submit
    monkeypatch.setattr(parallel, "_submit", submit)
    return calls


@pytest.fixture(scope="module")
def large():
    """A graph whose linear program is solved by trees, nearly all of it."""
    return communities(np.random.default_rng(5), 2000, 16, signed=True)


def solve_by_trees(graph, path, **options):
    """The linear program of a graph laid out for disk; most of its passes grow trees."""
    result = pf.correlation_clustering(graph, tol=1e-4, external=True, workspace=path, **options)
    assert sum(record["stage"] == "trees" for record in result.history) > len(result.history) / 2
    return result


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


def test_trees_grown_on_a_cluster_give_the_same_bits(client, large, trees_sent, tmp_path):
    alone = solve_by_trees(large, tmp_path / "a.pf")
    assert not trees_sent
    assert_same_run(alone, solve_by_trees(large, tmp_path / "b.pf", client=client))
    passes = sum(record["stage"] == "trees" for record in alone.history)
    assert len(trees_sent) >= 2 * passes  # several tasks in each


def test_trees_on_workers_keep_to_their_budget_and_to_the_room_for_rows(client, large, trees_sent, tmp_path, settings):
    """Arcs and vectors are read from files again and again, and only some of the closing edges are looked at."""
    settings.few_rows_at_once(400)
    alone = solve_by_trees(large, tmp_path / "a.pf", max_iter=18)
    assert max(record["found"] for record in alone.history) <= 400
    tight = Budget(rows=1 << 20, vectors=1 << 17, slots=2, build=1 << 16, lanes=8)
    together = solve_by_trees(large, tmp_path / "b.pf", max_iter=18, client=client, memory=tight)
    assert_same_bits(alone, together)
    assert {len(roots) for _, _, roots, _ in trees_sent} == {8}
    assert min(client.run(pages_read).values()) > 0


def test_trees_after_a_survey_are_grown_on_the_cluster_too(client, large, trees_sent, tmp_path, settings):
    settings.surveys_on_disk()
    options = {"external": True, "tol": 1e-4, "max_iter": 4}
    alone = pf.correlation_clustering(large, workspace=tmp_path / "a.pf", **options)
    assert {record["stage"] for record in alone.history} == {"certify"} and alone.history[0]["found"] > 0
    assert_same_run(alone, pf.correlation_clustering(large, workspace=tmp_path / "b.pf", client=client, **options))
    assert trees_sent


def test_a_worker_that_dies_growing_trees_costs_its_task_not_the_run(client, large, tmp_path, monkeypatch):
    alone = solve_by_trees(large, tmp_path / "a.pf")
    submit, take_first, number, killed = parallel._submit, parallel._take_first, count(), []

    def submit_to_a_standstill(*task):
        """Workers stand still from the fifth task on, so that they surely have some when one is killed."""
        if next(number) == 4:
            stop_workers(signal.SIGSTOP)
        return submit(*task)

    def kill_one(client, under_way):
        if standing:
            busy = [address for address, tasks in client.processing().items() if tasks]
            assert any(under_way[0].key in tasks for tasks in client.processing().values())
            killed.append(standing.pop(busy[0]))
            os.kill(killed[-1], signal.SIGKILL)  # the cluster starts another one in its place
            for process in standing.values():
                os.kill(process, signal.SIGCONT)
            standing.clear()
        return take_first(client, under_way)

    def stop_workers(with_signal):
        standing.update(client.run(os.getpid))
        for process in standing.values():
            os.kill(process, with_signal)

    standing = {}
    monkeypatch.setattr(parallel, "_submit", submit_to_a_standstill)
    monkeypatch.setattr(parallel, "_take_first", kill_one)
    together = solve_by_trees(large, tmp_path / "b.pf", client=client)
    assert len(killed) == 1 and killed[0] not in client.run(os.getpid).values()
    assert_same_run(alone, together)


@pytest.mark.slow
def test_trees_on_one_three_and_five_workers_give_the_same_bits(large, trees_sent, tmp_path):
    """The more workers there are, the fewer trees a task grows."""
    alone, widths = solve_by_trees(large, tmp_path / "alone.pf"), []
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for workers in (1, 3, 5):
            cluster.scale(workers)
            client.wait_for_workers(workers, timeout=120)
            assert_same_run(alone, solve_by_trees(large, tmp_path / f"{workers}.pf", client=client))
            widths.append(len(trees_sent[-1][2]))
            trees_sent.clear()
    assert len(set(widths)) == 3


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
