"""Workspaces written by every release since the first are opened for good, and their runs go on.

They were written before the arithmetic of sweeps and certificates changed, so that they end at the optimum of a run of
today, but not with its bits.
"""

import zipfile
from pathlib import Path

import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import VERSION
from tests.gallery import CASES, go_on

ARCHIVE = Path(__file__).parent / "archive"
# Written from other graphs than those of the gallery, by all versions.
BOUNDS = {"nearness": 0.03627593135828815, "clustering": 7.494477774837804}
FAMILIES = ("table", "table-limits", "complete", "linear", "external", "rows", "sets")


def unpacked(file, folder):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    return folder / "run.pf"


@pytest.mark.parametrize("file", sorted(ARCHIVE.glob("*.zip")), ids=lambda file: file.stem)
def test_an_old_workspace_opens_verifies_and_goes_on(file, tmp_path):
    path, name = unpacked(file, tmp_path), file.stem.split("-", 1)[1]
    held = pf.open(path)
    assert held.status == "iteration_limit" and held.n_iter == (1 if name == "rows" else 3)
    report = pf.verify(path)
    assert report["status"] == "iteration_limit" and report["rows"] == held.n_active > 0
    result = go_on(name, path)
    assert result.converged and result.n_iter > held.n_iter + 1
    assert result.lower_bound >= held.lower_bound
    report = pf.verify(path)
    assert report["drift"] <= 1e-10 and report.get("violation_of_x", 0.0) <= 1e-9
    if name in BOUNDS:
        assert held.lower_bound == pytest.approx(BOUNDS[name], rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_an_old_run_ends_at_the_same_optimum(name, tmp_path):
    """The bounds of either run hold for the answer of the other one."""
    path = unpacked(ARCHIVE / f"version2-{name}.zip", tmp_path)
    today, old = CASES[name](workspace=tmp_path / "today.pf"), go_on(name, path)
    for one, other in ((today, old), (old, today)):
        assert one.lower_bound <= other.objective * (1 + 1e-9)
        assert one.objective == pytest.approx(other.objective, rel=1e-7 + one.gap + other.gap)


def test_every_version_and_every_family_is_in_the_archive():
    for version in range(1, VERSION + 1):
        held = {file.stem.split("-", 1)[1] for file in ARCHIVE.glob(f"version{version}-*.zip")}
        assert held >= set(BOUNDS)
    assert held >= set(FAMILIES)
