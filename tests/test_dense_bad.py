"""Metric nearness on the complete graph: damage is found, and bad input is named."""

import json
import shutil

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import arrays
from tests.test_dense import LIMITED


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A workspace with a finished run, in small tiles."""
    path = tmp_path_factory.mktemp("dense") / "run.pf"
    upper = np.triu(np.random.default_rng(7).uniform(0.2, 3.0, (30, 30)), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ooc_pf.triangles.family.choose_side", lambda nodes: 8)
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


def changed(matrix, at, value):
    matrix = matrix.copy()
    matrix[at] = value
    return matrix


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda d: changed(d, (3, 5), np.nan), {}, r"entry \(3, 5\) is nan"),
        (lambda d: changed(d, (9, 2), np.inf), {}, r"entry \(9, 2\) is inf"),
        (lambda d: changed(d, (3, 5), 9.0), {}, r"entries \(3, 5\) = 9.0 and \(5, 3\)"),
        (lambda d: changed(d, (4, 4), 1.0), {}, r"entry \(4, 4\) is 1.0; the diagonal must be zero"),
        (lambda d: d * 1e200, {}, "too large"),
        (np.copy, {"weights": np.ones(7)}, r"weights must be one number an edge, 435 in all.*\(7,\)"),
        (np.copy, {"weights": np.zeros((30, 30))}, r"weight: entry \(0, 1\) is 0.0"),
        (np.copy, {"weights": changed(np.ones(435), 8, -1.0)}, r"weight 8 is -1.0"),
        (np.copy, {"lower": np.ones((3, 3))}, r"lower limits must be one number an edge.*\(3, 3\)"),
        (np.copy, {"upper": np.ones(3)}, r"upper limits must be one number an edge.*\(3,\)"),
        (np.copy, {"upper": changed(np.ones(435), 3, np.nan)}, r"upper limit 3 is nan"),
        (np.copy, {"upper": changed(np.ones((30, 30)), (3, 5), 2.0)}, r"upper limit: entries \(3, 5\) = 2.0"),
        (np.copy, {"lower": "low"}, "lower limits must be numbers"),
        (np.copy, {"lower": 2.0, "upper": 1.0}, r"pair \(0, 1\): the limits leave nothing"),
        (np.copy, {"upper": changed(np.ones(435), 2, -1.0)}, r"pair \(0, 3\): the limits leave nothing"),
        (
            np.copy,
            {"lower": changed(np.zeros(435), 2, 3.0), "upper": changed(np.ones(435), 2, 4.0)},
            r"pair \(0, 3\): no metric lies within the limits",
        ),
        (lambda d: d[:, :5], {}, "cannot read a graph"),
        (np.copy, {"tol": -1.0}, "tol must be"),
        (np.copy, {"seed": "x"}, "seed must be"),
        (np.copy, {"workers": 0}, "workers must be"),
    ],
)
def test_bad_input_is_named(table, change, options, words):
    with pytest.raises(pf.InputError, match=words):
        pf.metric_nearness(change(table), **options)


def test_limits_need_a_complete_graph(small):
    with pytest.raises(pf.InputError, match="complete graph"):
        pf.metric_nearness(small, upper=1.0)


def test_another_table_under_the_same_name_is_refused(table, tmp_path):
    pf.metric_nearness(table, workspace=tmp_path / "run.pf")
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.metric_nearness(2 * table, workspace=tmp_path / "run.pf")
