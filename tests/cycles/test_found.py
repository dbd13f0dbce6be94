"""What a search found: rows over edges and over pairs that are still to get a number."""

import numpy as np

from ooc_pf.cycles.found import Found
from ooc_pf.engine.rows import Rows


def test_pairs_of_rows_left_out_go_and_the_others_close_ranks():
    rows = Rows(np.array([0, 3, 6]), np.array([-1, 4, 5, -3, 7, -2], np.int32))
    pairs = np.array([[0, 9], [1, 8], [2, 7]], np.int32)
    found = Found(rows, np.array([0.1, 0.6]), np.empty(0), np.array([-1, -2, -3], np.int32), np.arange(3.0), pairs, 0)
    kept = found.worst_rows(1)
    assert kept.rows.edges.tolist() == [-2, 7, -1]  # what was -3 and -2
    assert kept.edge.tolist() == [-1, -2]
    assert kept.pairs.tolist() == [[1, 8], [2, 7]]
    assert kept.reach.tolist() == [1.0, 2.0]
    assert kept.numbered(20).rows.edges.tolist() == [21, 7, 20]


def test_new_pairs_that_fit_are_those_of_the_worst_rows_and_of_equals_those_that_share_no_edge():
    edges = np.array([[-1, 4, 5], [-2, 5, 6], [-3, 7, 8], [-4, 9, 10], [3, 4, 9]], np.int32)
    pairs = np.array([[0, 9], [1, 8], [2, 7], [3, 6]], np.int32)
    violation = np.array([0.5, 0.5, 0.5, 0.9, 0.1])
    rows = Rows(np.arange(0, 16, 3), edges.ravel())
    found = Found(rows, violation, np.empty(0), -1 - np.arange(4, dtype=np.int32), np.arange(4.0), pairs, 0)
    assert found.fitting(4) is found
    assert found.fitting(1).pairs.tolist() == [[3, 6]]
    kept = found.fitting(3)
    assert kept.pairs.tolist() == [[0, 9], [2, 7], [3, 6]]
    assert kept.rows.edges.reshape(-1, 3).tolist() == [[-1, 4, 5], [-2, 7, 8], [-3, 9, 10], [3, 4, 9]]
    assert kept.violation.tolist() == [0.5, 0.5, 0.9, 0.1] and kept.reach.tolist() == [0.0, 2.0, 3.0]
    assert found.fitting(0).rows.edges.tolist() == [3, 4, 9]  # a row that needs no new pair
