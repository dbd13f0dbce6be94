"""Damage to the workspace of a table is found."""

import json
import shutil

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import arrays
from ooc_pf.storage.memory import Budget
from tests.gallery import LIMITED
from tests.settings import changed_settings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A workspace with a finished run, in small tiles."""
    path = tmp_path_factory.mktemp("dense") / "run.pf"
    upper = np.triu(np.random.default_rng(7).uniform(0.2, 3.0, (30, 30)), 1)
    with changed_settings() as settings:
        settings.small_tiles()
        pf.metric_nearness(upper + upper.T, tol=1e-9, workspace=path, weights=np.full(435, 2.0), **LIMITED)
    return path


@pytest.fixture
def solved(finished, tmp_path):
    """One to damage."""
    return shutil.copytree(finished, tmp_path / "run.pf")


def test_a_sound_workspace_verifies_by_both_engines(solved):
    for oracle in ("igraph", "numba"):
        report = pf.verify(solved, oracle=oracle)
        assert report["status"] == "converged" and report["drift"] < 1e-10 and report["violation_of_x"] < 1e-11


@pytest.mark.parametrize("array", ["x", "shift", "rows/dual", "rows/code", "rows/count"])
def test_a_flipped_byte_is_found(solved, array):
    chunk = next(iter(sorted((next((solved / "gen").iterdir()) / array / "c").iterdir())))
    data = bytearray(chunk.read_bytes())
    data[3] ^= 0x10
    chunk.write_bytes(data)
    for use in (pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match="damaged"):
            use(solved)


@pytest.mark.parametrize("array", ["x", "shift", "rows/dual"])
def test_a_wrong_value_with_a_right_checksum_is_found(solved, array):
    group = next((solved / "gen").iterdir())
    values = arrays.read_array(group, array)
    values[np.argmax(values)] += 1e-6
    shutil.rmtree(group / array)
    arrays.write_array(group, array, values)
    with pytest.raises(pf.WorkspaceError, match="does not follow from the duals"):
        pf.verify(solved)


def test_an_infeasible_answer_is_found(solved):
    group = next((solved / "feasible").iterdir())
    x = arrays.read_array(group, "x")
    shutil.rmtree(group / "x")
    arrays.write_array(group, "x", np.where(np.arange(len(x)) == np.argmax(x), x + 1e-3, x))
    manifest = json.loads((solved / "manifest.json").read_text())
    with pytest.raises(pf.WorkspaceError, match=r"objective"):
        pf.verify(solved)
    moved = {**manifest, "objective": manifest["objective"] + 0.0}
    (solved / "manifest.json").write_text(json.dumps(moved))
    with pytest.raises(pf.WorkspaceError, match=r"objective|feasible"):
        pf.verify(solved)


def test_verify_keeps_within_a_budget(table, tmp_path, settings):
    settings.small_tiles()
    pf.metric_nearness(table, tol=1e-9, workspace=tmp_path / "run.pf", **LIMITED)
    whole = pf.verify(tmp_path / "run.pf", oracle="numba")
    tight = Budget(rows=5000, vectors=0)
    assert pf.verify(tmp_path / "run.pf", oracle="numba", memory=tight) == whole
