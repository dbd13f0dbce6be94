"""A run goes on where it was left: with which options, and which it refuses."""

import numpy as np
import pytest

import ooc_pf as pf
from tests.properties import assert_same_bits


@pytest.mark.long
def test_resume_to_a_tighter_tolerance(small, tmp_path):
    loose = pf.metric_nearness(small, tol=0.3, workspace=tmp_path / "run.pf")
    tight = pf.resume(tmp_path / "run.pf", tol=1e-9)
    assert tight.n_iter > loose.n_iter
    assert tight.gap <= 1e-9 and tight.violation <= 1e-9
    with pytest.raises(pf.InputError, match="tol must be"):
        pf.resume(tmp_path / "run.pf", tol=-1.0)


def test_changed_options_are_refused_with_the_difference(small, solved):
    with pytest.raises(pf.WorkspaceError, match=r"tol: 1e-08 then, 0.001 now.*resume.*restart"):
        pf.metric_nearness(solved, tol=1e-3)
    with pytest.raises(pf.WorkspaceError, match=r"weights: None then"):
        pf.metric_nearness(solved, tol=1e-8, weights=np.full(240, 2.0))
    again = pf.metric_nearness(solved, tol=1e-8)
    assert again.converged
    fresh = pf.metric_nearness(solved, tol=0.1, restart=True)
    assert fresh.converged and fresh.n_iter < again.n_iter


def test_solve_continues_and_says_so(small, tmp_path, capsys):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=2)
    result = pf.solve(tmp_path / "run.pf", progress=True)
    assert "continuing" in capsys.readouterr().err
    assert result.converged and result.history[0]["iteration"] == 1


def test_another_graph_under_the_same_name_is_refused(small, solved):
    u, v, d = small
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.metric_nearness((u, v, d + 1), tol=1e-8, workspace=solved)


def test_a_looser_tolerance_that_is_met_already_counts(small, tmp_path):
    path = tmp_path / "run.pf"
    stopped = pf.metric_nearness(small, tol=1e-12, workspace=path, callback=lambda record: "gap" in record)
    assert stopped.status == "callback"
    assert pf.resume(path, tol=10.0).status == "converged"
    assert pf.open(path).status == "converged"


def test_a_lost_history_is_no_loss_of_the_run(small, tmp_path):
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=5)
    (path / "history.jsonl").unlink()
    result = pf.resume(path)
    assert result.converged
    assert result.history[0]["iteration"] == 6
    (path / "history.jsonl").write_text("rubbish\n" * 1000)
    with pytest.raises(pf.WorkspaceError, match=r"history.jsonl is damaged"):
        pf.open(path)


@pytest.mark.long
def test_resumed_with_igraph_equals_uninterrupted(small, tmp_path):
    options = {"tol": 1e-4, "oracle": "igraph", "workers": 2}
    whole = pf.metric_nearness(small, **options)
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=4, **options)
    assert_same_bits(whole, pf.resume(tmp_path / "run.pf", workers=1))
