"""Tables, weights and limits that make no sense are named."""

import numpy as np
import pytest
import zarr

import ooc_pf as pf
from tests.properties import assert_same_bits


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
        (lambda d: d * 1e-160, {}, "too small"),
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


@pytest.mark.long
def test_another_table_under_the_same_name_is_refused(table, tmp_path):
    pf.metric_nearness(table, workspace=tmp_path / "run.pf")
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.metric_nearness(2 * table, workspace=tmp_path / "run.pf")


@pytest.mark.long
def test_a_zarr_array_is_a_table_like_any_other(table, tmp_path):
    def stored(name, matrix):
        return zarr.create_array(tmp_path / name, data=matrix, chunks=(7, 7))

    distances, weights = stored("d.zarr", table), stored("w.zarr", 1.0 + table)
    result = pf.metric_nearness(distances, weights=weights, workspace=tmp_path / "run.pf")
    assert_same_bits(pf.metric_nearness(table, weights=1.0 + table), result)
    distances[0, 1] = distances[1, 0] = 7.0
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.metric_nearness(distances, weights=weights, workspace=tmp_path / "run.pf")
