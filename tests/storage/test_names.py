"""Every function that takes a workspace knows ``~`` and ``file://``."""

import json

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.storage.files import local_path
from ooc_pf.storage.objectstore import is_url

D = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
TRIANGLE = (np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 5.0]))


@pytest.fixture(params=["~/{}", "file://{}/home/my%20{}"])
def named(request, tmp_path, monkeypatch):
    """A function from a short name to what a user may type, and one to the path that is meant."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    yield lambda name: request.param.format(*([name] if "~" in request.param else [tmp_path, name]))
    assert not list(here.iterdir()), "nothing is made under the name as it was typed"


def test_python(named):
    run, copy = named("run.pf"), named("copy.pf")
    first = pf.metric_nearness(TRIANGLE, workspace=run, max_iter=1)
    assert first.workspace == local_path(run) and local_path(run).is_dir()
    for done in (pf.metric_nearness(run, workspace=local_path(run)), pf.resume(run), pf.solve(run), pf.open(run)):
        assert done.converged
    assert pf.verify(run)["status"] == "converged"
    assert pf.report(run).startswith("# nearness")
    assert pf.export(run, named("answer.csv")) == 3
    assert local_path(named("answer.csv")).is_file()
    pf.metric_nearness(D, workspace=copy)
    pf.metric_nearness(D, workspace=copy)
    with pytest.raises(pf.InputError, match="cannot be"):
        pf.metric_nearness(run, workspace=copy)


def test_problems_of_your_own(named):
    objective, rows = pf.objectives.quadratic([2.0, 2.0]), (np.ones((1, 2)), [1.0])
    pf.project_and_forget(objective, rows, workspace=named("rows.pf"))
    pf.project_onto_sets(objective, [pf.sets.ball([0.0, 0.0], 1.0)], workspace=named("sets.pf"))
    pf.LinearSVM(workspace=named("svm.pf")).fit(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
    for name in ("rows.pf", "sets.pf", "svm.pf"):
        assert pf.open(named(name)).converged


def test_the_command_line(named, capsys):
    local_path(named("links.txt")).write_text("1 2 1\n2 3 1\n1 3 5\n")
    run = named("run.pf")
    assert main(["convert", named("links.txt"), run, "--quiet"]) == 0
    for command in (["solve", run, "--quiet"], ["resume", run, "--quiet"], ["verify", run], ["report", run]):
        assert main(command) == 0, command
    capsys.readouterr()
    assert main(["status", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workspace"] == str(local_path(run))
    assert main(["export", run, named("answer.csv")]) == 0


def test_a_file_elsewhere_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ask in (pf.open, pf.verify, pf.resume, pf.report, pf.metric_nearness):
        with pytest.raises(pf.InputError, match="elsewhere"):
            ask("file://elsewhere/run.pf")
    assert not list(tmp_path.iterdir())


def test_addresses_of_stores_are_not_paths():
    assert is_url("s3://bucket/run.pf") and is_url("memory://x")
    assert not is_url("file:///run.pf") and not is_url("run.pf") and not is_url("~/run.pf")
