"""Workspaces of problems given by functions: what can be asked of them without the functions."""

import json
import shutil

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.storage.arrays import read_array, write_array
from ooc_pf.storage.workspace import Workspace


@pytest.fixture(params=["rows", "sets"])
def solved(request, tmp_path):
    """A workspace with a finished run of either kind."""
    objective, path = pf.objectives.quadratic([2.0, 1.0]), tmp_path / "own.pf"
    if request.param == "rows":
        pf.project_and_forget(objective, (np.array([[1.0, 1.0]]), [1.0]), workspace=path)
    else:
        pf.project_onto_sets(objective, [pf.sets.halfspace([1.0, 1.0], 1.0)], workspace=path)
    return path


def test_it_opens_with_its_answer(solved):
    result = pf.open(solved)
    assert result.converged and result.nodes is None
    assert np.allclose(result.x, [1.0, 0.0])
    assert list(result.duals) == [0]


def test_the_command_line_says_what_it_is(solved, tmp_path, capsys):
    assert main(["status", str(solved)]) == 0
    said = capsys.readouterr().out
    assert "2 variables" in said and "converged" in said and "nodes" not in said
    assert main(["status", str(solved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] in ("rows", "sets")
    assert main(["verify", str(solved)]) == 0
    assert "rows 1" in capsys.readouterr().out
    for command in (["resume", str(solved)], ["export", str(solved), str(tmp_path / "x.csv")]):
        assert main(command) == 1
        assert "Python objects" in (said := capsys.readouterr().err) or "no graph to export" in said
    assert main(["solve", str(solved)]) == 1


def test_what_does_not_belong_together_is_found(solved):
    generation = Workspace(solved).generation
    y = read_array(generation, "y")
    for wrong, says in ((y + 1e-3, "does not follow from the duals"), (y[:1], "an entry for each variable")):
        shutil.rmtree(generation / "y")
        write_array(generation, "y", wrong)
        with pytest.raises(pf.WorkspaceError, match=says):
            pf.verify(solved)
