"""Workspaces written by every release since the first are opened for good.

Those of cases of the gallery also go on to the bits of a run that was never stopped, where numbers round as they did
when the archive was written: products and functions that do not touch the package tell.
"""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import VERSION
from tests.gallery import CASES, go_on
from tests.properties import assert_same_bits

ARCHIVE = Path(__file__).parent / "archive"
# Written from other graphs than those of the gallery, by all versions.
BOUNDS = {"nearness": 0.03627593135828815, "clustering": 7.494477774837804}
FAMILIES = ("table", "table-limits", "complete", "linear", "external", "rows", "sets")
# Since these were written the arithmetic of sweeps or certificates has changed: a run of today takes another way.
CHANGED = ("complete", "linear", "external", "rows", "sets")
ARITHMETIC = "2a22c57f4bfd4a9d"


def arithmetic():
    """A digest of how products, sums, functions and factorisations of numpy round here."""
    rng = np.random.default_rng(0)
    values = [rng.random(size) @ rng.random(size) for size in range(1, 600, 7)]
    values += [rng.random((40, size)) @ rng.random(size) for size in (3, 15, 40, 300)]
    values += [rng.random(1000).sum(), np.exp(rng.normal(size=500)), np.log(rng.random(500))]
    root = rng.normal(size=(40, 40))
    values += [np.linalg.cholesky(root @ root.T + np.eye(40)), np.linalg.eigvalsh(root + root.T)]
    return hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest()[:16]


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
@pytest.mark.skipif(arithmetic() != ARITHMETIC, reason="numbers round otherwise than in the archive")
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in CHANGED])
def test_an_old_run_ends_with_the_bits_of_one_of_today(name, tmp_path):
    path = unpacked(ARCHIVE / f"version2-{name}.zip", tmp_path)
    # Records of today say more, so that only what a run ends with is compared.
    assert_same_bits(CASES[name](workspace=tmp_path / "today.pf"), go_on(name, path))


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGED)
def test_an_old_run_that_went_another_way_ends_at_the_same_optimum(name, tmp_path):
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
