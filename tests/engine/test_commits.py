"""Commits that wait: what they cost is little against the run, and what is lost is little too."""

import itertools

import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import Workspace
from tests.properties import assert_same_run


class Stop(Exception):
    """Ends a run as a crash would, between two iterations."""


@pytest.fixture
def rarely(monkeypatch):
    """Commits only where there is no waiting."""
    monkeypatch.setattr("ooc_pf.engine.place.WORTH", 1e9)


def committed(path, graph, **limits):
    """The iteration that was committed, and the stage, after each iteration."""
    seen = []
    pf.metric_nearness(
        graph, tol=1e-8, workspace=path, callback=lambda record: seen.append(Workspace(path).manifest), **limits
    )
    return [manifest["iteration"] for manifest in seen], [manifest["plan"]["stage"] for manifest in seen]


def test_the_end_of_a_stage_is_committed_and_little_else(small, tmp_path, rarely):
    written, stage = committed(tmp_path / "run.pf", small)
    changes = sum(a != b for a, b in itertools.pairwise(stage))
    assert len(set(written)) <= changes + 3 < len(written)


def test_the_answer_and_the_history_are_those_of_a_run_that_commits_always(small, tmp_path, monkeypatch):
    often = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "often.pf")
    monkeypatch.setattr("ooc_pf.engine.place.WORTH", 1e9)
    seldom = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "seldom.pf")
    assert_same_run(often, seldom)
    pf.verify(tmp_path / "seldom.pf")


@pytest.mark.parametrize("limits", [{"max_iter": 4}, {"callback": lambda record: record["iteration"] == 4}])
def test_a_run_that_is_stopped_loses_no_iteration(small, tmp_path, rarely, limits):
    path = tmp_path / "run.pf"
    stopped = pf.metric_nearness(small, tol=1e-8, workspace=path, **limits)
    assert stopped.n_iter == 4 and len(stopped.history) == 4
    pf.verify(path)
    alone = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "alone.pf")
    assert_same_run(alone, pf.resume(path))


def test_a_run_that_dies_goes_on_from_its_last_commit(small, tmp_path, rarely):
    path = tmp_path / "run.pf"

    def die(record):
        if record["iteration"] == 2:
            raise Stop

    with pytest.raises(Stop):
        pf.metric_nearness(small, tol=1e-8, workspace=path, callback=die)
    held = Workspace(path)
    assert held.manifest["iteration"] == len(held.history()) < 2
    pf.verify(path)
    alone = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "alone.pf")
    assert_same_run(alone, pf.resume(path))


def test_processes_that_read_the_point_find_the_present_one(small, tmp_path, monkeypatch):
    often = pf.metric_nearness(small, tol=1e-6, oracle="igraph", workers=1, workspace=tmp_path / "often.pf")
    monkeypatch.setattr("ooc_pf.engine.place.WORTH", 1e9)
    seldom = pf.metric_nearness(small, tol=1e-6, oracle="igraph", workers=1, workspace=tmp_path / "seldom.pf")
    assert_same_run(often, seldom)


def test_with_little_time_left_every_iteration_is_committed(small, tmp_path, rarely):
    written, _ = committed(tmp_path / "run.pf", small, max_time=60.0)
    assert len(set(written)) == len(written)
