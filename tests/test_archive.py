"""Workspaces written by every release since the first are opened for good."""

import zipfile
from pathlib import Path

import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import VERSION

ARCHIVE = Path(__file__).parent / "archive"
BOUNDS = {"nearness": 0.03627593135828815, "clustering": 7.494477774837804}


@pytest.mark.parametrize("file", sorted(ARCHIVE.glob("*.zip")), ids=lambda file: file.stem)
def test_an_old_workspace_opens_verifies_and_goes_on(file, tmp_path):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "run.pf"
    held = pf.open(path)
    assert held.status == "iteration_limit" and held.n_iter == 3
    assert held.lower_bound == pytest.approx(BOUNDS[file.stem.split("-")[1]], rel=0.05)
    assert pf.verify(path)["lower_bound"] == pytest.approx(held.lower_bound, rel=1e-12)
    result = pf.resume(path)
    assert result.converged
    assert result.lower_bound >= held.lower_bound
    assert pf.verify(path)["violation_of_x"] <= 1e-9


def test_every_version_is_in_the_archive():
    for version in range(1, VERSION + 1):
        assert {file.stem.split("-")[1] for file in ARCHIVE.glob(f"version{version}-*.zip")} >= set(BOUNDS)
