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
