"""Rows of different lengths, one after the other."""

import numpy as np

from ooc_pf.kernels.ragged import keep_rows, row_keys, take_rows


def test_row_keys_tell_rows_apart_but_not_path_orders():
    start = np.array([0, 3, 6, 9, 12])
    rows = np.array([5, 1, 2, 5, 2, 1, 1, 5, 2, 5, 1, 3])
    keys = row_keys(start, rows)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3


def test_keep_rows_packs():
    start, entries = np.array([0, 2, 5, 6]), np.array([7, 8, 1, 2, 3, 9])
    kept = keep_rows(start, entries, np.array([True, False, True]))
    assert kept[0].tolist() == [0, 2, 3]
    assert kept[1].tolist() == [7, 8, 9]


def test_take_rows_goes_by_the_order_given():
    start, entries = np.array([0, 2, 5, 6]), np.array([7, 8, 1, 2, 3, 9])
    taken = take_rows(start, entries, np.array([2, 1, 2]))
    assert taken[0].tolist() == [0, 1, 4, 5]
    assert taken[1].tolist() == [9, 1, 2, 3, 9]
