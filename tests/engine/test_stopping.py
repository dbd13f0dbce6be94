"""Requests to stop act inside a long pass, and leave a state that resumes to the same bits."""

import itertools
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

import ooc_pf as pf
from ooc_pf.cycles import program
from ooc_pf.cycles.search import NumbaOracle, join_or_stop
from ooc_pf.general.program import RowProgram
from ooc_pf.general.set_schedule import SetSchedule
from tests.gallery import communities
from tests.properties import assert_same_bits


@pytest.fixture(scope="module")
def slow_graph():
    """Nothing costs anything at the start, so a complete search walks everywhere from everywhere."""
    graph = communities(np.random.default_rng(5), 4000, 24, signed=True)
    pf.correlation_clustering(communities(np.random.default_rng(6), 300, 8, signed=True), oracle="numba")
    return graph


@pytest.mark.long
@pytest.mark.parametrize("way", ["sigint", "sigterm", "max_time"])
def test_a_complete_search_is_left_at_once(way, slow_graph, tmp_path, monkeypatch, settings):
    settings.one_complete_search()
    searched = []
    monkeypatch.setattr(
        "ooc_pf.cycles.search.join_or_stop", lambda parts: searched.extend(parts) or join_or_stop(parts)
    )
    limits = {"max_time": 1.0} if way == "max_time" else {}
    if way != "max_time":
        lay_out = NumbaOracle.lay_out

        def signal_soon(self, frozen):
            lay_out(self, frozen)
            number = signal.SIGINT if way == "sigint" else signal.SIGTERM
            threading.Timer(0.3, os.kill, (os.getpid(), number)).start()

        monkeypatch.setattr(NumbaOracle, "lay_out", signal_soon)
    with pf.interrupts_return():
        result = pf.correlation_clustering(slow_graph, gamma=1.0, workspace=tmp_path / "run.pf", workers=1, **limits)
    assert result.status == ("time_limit" if way == "max_time" else "interrupted")
    assert result.n_iter == 0
    assert searched == [None]  # the only block was begun and not searched to its end
    assert pf.open(tmp_path / "run.pf").status == result.status


def interrupting(project):
    """The same function, during which Ctrl-C is pressed now and then."""
    calls = itertools.count(1)

    def called(*args):
        if next(calls) % 37 == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return project(*args)

    return called


@pytest.mark.long
def test_stopping_within_sweeps_loses_one_iteration_and_no_bits(rng, tmp_path, monkeypatch):
    graph = communities(rng, 300, 10, signed=True)
    whole = pf.correlation_clustering(graph, tol=1e-4)
    path = tmp_path / "run.pf"
    with monkeypatch.context() as patch, pf.interrupts_return():
        patch.setattr(program, "project_rows", interrupting(program.project_rows))
        result = pf.correlation_clustering(graph, tol=1e-4, workspace=path)
        assert result.status == "interrupted"
        assert pf.verify(path)["rows"] == result.n_active
        stops = 1
        while not result.converged and stops < 40:
            result, stops = pf.resume(path), stops + 1
    assert stops > 1
    result = pf.resume(path)
    assert_same_bits(whole, result)


@pytest.mark.parametrize("kind", ["rows", "sets"])
def test_stopping_within_general_sweeps_loses_no_bits(kind, rng, tmp_path, monkeypatch, settings):
    settings.small_blocks(4)  # many moments to stop at
    A, b = rng.normal(size=(60, 8)), np.full(60, 0.4)
    objective, path = pf.objectives.quadratic(2 * rng.normal(size=8)), tmp_path / "run.pf"

    def solve(**options):
        if kind == "rows":
            return pf.project_and_forget(objective, (A, b), tol=1e-9, forget="never", **options)
        sets = [pf.sets.halfspace(a, h) for a, h in zip(A, b, strict=True)]
        return pf.project_onto_sets(objective, sets, tol=1e-9, **options)

    whole = solve()
    owner, name = (RowProgram, "project") if kind == "rows" else (SetSchedule, "step")
    pressed = interrupting(getattr(owner, name))
    with monkeypatch.context() as patch, pf.interrupts_return():
        patch.setattr(owner, name, pressed)
        result, stops = solve(workspace=path), 1
        while result.status == "interrupted" and stops < 5:
            assert pf.verify(path)["rows"] == result.n_active
            result, stops = solve(workspace=path), stops + 1
    assert stops > 1
    result = solve(workspace=path)
    assert result.converged
    assert np.array_equal(result.x, whole.x)
    assert (result.lower_bound, result.n_iter) == (whole.lower_bound, whole.n_iter)


def press_at_three(record):
    if record["iteration"] == 3:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_commits_raises_and_can_be_resumed(small, tmp_path):
    with pytest.raises(KeyboardInterrupt, match=r"run\.pf holds it, and can be resumed") as caught:
        pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf", callback=press_at_three)
    result = caught.value.result
    assert (result.status, result.n_iter) == ("interrupted", 3)
    assert pf.open(tmp_path / "run.pf").status == "interrupted"
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(tmp_path / "run.pf"))


@pytest.mark.long
def test_a_stop_is_prompt_inside_a_long_pass(tmp_path, rng):
    nodes = 4000
    u, v = rng.integers(0, nodes, (2, 60_000))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    graph = (pairs[:, 0], pairs[:, 1], rng.random(len(pairs)))
    result = pf.metric_nearness(graph, max_time=1.0, workspace=tmp_path / "run.pf")
    assert result.status == "time_limit"
    assert not any("gap" in record for record in result.history)  # a complete pass alone takes many times longer


def test_what_ctrl_c_leaves_has_the_form_of_the_input(small):
    u, v, d = small
    names = np.array([f"n{k}" for k in range(60)], object)
    frame = pd.DataFrame({"source": names[u], "target": names[v], "weight": d})
    with pytest.raises(pf.Interrupted) as caught:
        pf.metric_nearness(frame, tol=1e-8, callback=press_at_three)
    assert isinstance(caught.value.result.x, pd.Series)
    with pytest.raises(pf.Interrupted) as caught:
        pf.metric_nearness(small, tol=1e-8, oracle="igraph", workers=1, callback=press_at_three)
    assert caught.value.result.n_active == len(caught.value.result.duals.values)


def test_it_can_be_asked_otherwise(small):
    with pf.interrupts_return():
        assert pf.metric_nearness(small, tol=1e-8, callback=press_at_three).status == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        pf.metric_nearness(small, tol=1e-8, callback=press_at_three)
