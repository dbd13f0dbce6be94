"""The worked example of the README: a new problem is one file and one entry."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf import workspaces
from ooc_pf.commands.cli import main

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def relative(tmp_path, monkeypatch):
    """The module of the README, and its entry while a test runs."""
    [code] = re.findall(r"<!-- new-problem -->\n```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "relative_problem.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(workspaces.FAMILIES)
    yield importlib.import_module("relative_problem")
    workspaces.FAMILIES.clear()
    workspaces.FAMILIES.update(before)
    del sys.modules["relative_problem"]


def test_it_is_nearness_with_the_weights_it_says(relative, small):
    result = relative.relative_nearness(small, tol=1e-8)
    same = pf.metric_nearness(small, weights=1.0 / small[2] ** 2, tol=1e-8)
    assert result.converged and result.problem == "relative"
    assert np.array_equal(result.x, same.x)


@pytest.mark.long
def test_it_is_solved_resumed_and_verified_from_a_workspace(relative, small, tmp_path, capsys):
    whole = relative.relative_nearness(small)
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{u} {v} {float(d)!r}\n" for u, v, d in zip(*small, strict=True)))
    place = tmp_path / "run.pf"
    pf.convert(edges, place)
    assert main(["solve", str(place), "--problem", "relative", "--max-iter", "2", "--quiet"]) == 3
    assert main(["resume", str(place), "--quiet"]) == 0
    assert main(["verify", str(place)]) == 0
    assert "relative" in pf.report(place)
    assert pf.open(place).objective == pytest.approx(whole.objective)
    capsys.readouterr()
