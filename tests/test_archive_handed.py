"""Archived workspaces of transport and metric learning: bare ones, of a release that kept no input, and whole ones."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf

ARCHIVE = Path(__file__).parent / "archive" / "handed"
TRANSPORT = {"soft": {"gamma": 50.0}, "exact": {"marginals": "exact", "reg": 0.1}}


def unpacked(name, folder):
    with zipfile.ZipFile(ARCHIVE / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / "run.pf"


def points():
    return (np.arange(24.0) % 7 / 7)[:, None], (np.arange(20.0) * 3 % 11 / 11)[:, None]


@pytest.mark.parametrize("name", ["soft", "exact", "newton", "pairs"])
def test_a_whole_workspace_goes_on_by_itself(name, tmp_path):
    path = unpacked(f"held-{name}", tmp_path)
    held = pf.open(path)
    assert held.status == "iteration_limit" and pf.verify(path)["pairs_read"] > 0
    result = pf.resume(path)
    assert result.converged and held.lower_bound <= result.lower_bound <= result.objective <= held.objective
    if name in TRANSPORT:
        x, y = points()
        fresh = pf.quadratic_transport(np.full(24, 1 / 24), np.full(20, 1 / 20), (x, y), **TRANSPORT[name])
        assert np.isclose(result.objective, fresh.objective, rtol=1e-9)
    assert pf.verify(path)["status"] == "converged"


@pytest.mark.parametrize("name", ["soft", "exact", "newton", "pairs"])
def test_a_bare_workspace_opens_and_says_what_to_do(name, tmp_path):
    path = unpacked(f"bare-{name}", tmp_path)
    assert pf.open(path).status == "iteration_limit"
    assert "did not keep" in pf.verify(path)["why"]
    with pytest.raises(pf.WorkspaceError, match=r"did not keep .*; to go on call (quadratic_transport|ITML\.fit)"):
        pf.resume(path)
    if name in TRANSPORT:
        x, y = points()
        given = np.full(24, 1 / 24), np.full(20, 1 / 20), (x, y)
        assert pf.quadratic_transport(*given, workspace=path, **TRANSPORT[name]).converged
        assert pf.verify(path)["status"] == "converged"
