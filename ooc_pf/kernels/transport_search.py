"""Which pairs of points are worth a look: the most violated of every row and column, and those with an excess at all.

The excess of a pair is f_i + h_j - C_ij, in this order of operations. Points lie in blocks of `LEAF`, blocks in groups
of `FAN`, each with a bounding box; a block of pairs is skipped when the largest f and h and the distance of the boxes
show that no excess is above the limit. That holds with rounding too: every operation is monotone.
"""

from typing import NamedTuple

import numpy as np

from . import inlined, kernel

LEAF = 8  # points of a block
FAN = 8  # blocks of a group


class Side(NamedTuple):
    """The points of one side, in an order that keeps neighbours together.

    Attributes
    ----------
    points : float64[d, n]
    low, high : float64[blocks, d]
        Bounding boxes of the blocks.
    group_low, group_high : float64[groups, d]
    """

    points: np.ndarray
    low: np.ndarray
    high: np.ndarray
    group_low: np.ndarray
    group_high: np.ndarray


class Best(NamedTuple):
    """The largest excesses of each row or column, the largest first; -inf where there are none.

    Of equal excesses the one met first stays.
    """

    excess: np.ndarray
    other: np.ndarray


@kernel
def largest_of_blocks(potential):
    """The largest entry of each block, and of each group of blocks."""
    blocks = (len(potential) + LEAF - 1) // LEAF
    groups = (blocks + FAN - 1) // FAN
    block, group = np.full(blocks, -np.inf), np.full(groups, -np.inf)
    for i in range(len(potential)):
        block[i // LEAF] = max(block[i // LEAF], potential[i])
    for k in range(blocks):
        group[k // FAN] = max(group[k // FAN], block[k])
    return block, group


@inlined
def _box_cost(low, high, a, other_low, other_high, b, root):
    """The least cost between two boxes."""
    total = 0.0
    for k in range(low.shape[1]):
        apart = max(low[a, k] - other_high[b, k], other_low[b, k] - high[a, k])
        if apart > 0.0:
            total += apart * apart
    return np.sqrt(total) if root else total


@inlined
def _insert(excess, other, line, value, index):
    """Put a value among the largest of its line."""
    k = excess.shape[1] - 1
    while k > 0 and excess[line, k - 1] < value:
        excess[line, k] = excess[line, k - 1]
        other[line, k] = other[line, k - 1]
        k -= 1
    excess[line, k] = value
    other[line, k] = index


@inlined
def _excesses(x, y, f, h, i, first, last, root, found):
    """The excesses of row i in the columns of a block."""
    for j in range(first, last):
        found[j - first] = 0.0
    for k in range(x.shape[0]):
        at = x[k, i]
        for j in range(first, last):
            apart = at - y[k, j]
            found[j - first] += apart * apart
    if root:
        for j in range(first, last):
            found[j - first] = np.sqrt(found[j - first])
    for j in range(first, last):
        found[j - first] = (f[i] + h[j]) - found[j - first]


@kernel
def search_points(groups, rows, columns, f, h, root, limit, by_row, by_column, stop):
    """Find the largest excesses above ``limit`` among pairs of points.

    Parameters
    ----------
    groups : (int, int)
        The groups of rows to look at.
    rows, columns : Side
    f, h : float64[rows], float64[columns]
    root : bool
        Costs are distances; else their squares.
    limit : float
        Pairs up to here do not count.
    by_row, by_column : Best
        Updated.
    stop : uint8[1]

    Returns
    -------
    worst, skipped, looked : float, float, int
        The largest excess met, the largest bound of what was skipped, and how many pairs were looked at.
    """
    x, y = rows.points, columns.points
    f_block, f_group = largest_of_blocks(f)
    h_block, h_group = largest_of_blocks(h)
    row_excess, row_other = by_row
    column_excess, column_other = by_column
    low, high, group_low, group_high = rows.low, rows.high, rows.group_low, rows.group_high
    low2, high2, group_low2, group_high2 = columns.low, columns.high, columns.group_low, columns.group_high
    n, m, last = len(f), len(h), row_excess.shape[1] - 1
    found = np.empty(LEAF)
    worst, skipped, looked = -np.inf, -np.inf, 0
    for group in range(groups[0], groups[1]):
        if stop[0]:
            break
        for group2 in range(len(h_group)):
            bound = (f_group[group] + h_group[group2]) - _box_cost(
                group_low, group_high, group, group_low2, group_high2, group2, root
            )
            if bound <= limit:
                skipped = max(skipped, bound)
                continue
            for block in range(group * FAN, min(group * FAN + FAN, len(f_block))):
                for block2 in range(group2 * FAN, min(group2 * FAN + FAN, len(h_block))):
                    bound = (f_block[block] + h_block[block2]) - _box_cost(low, high, block, low2, high2, block2, root)
                    if bound <= limit:
                        skipped = max(skipped, bound)
                        continue
                    first2, last2 = block2 * LEAF, min(block2 * LEAF + LEAF, m)
                    for i in range(block * LEAF, min(block * LEAF + LEAF, n)):
                        looked += last2 - first2
                        _excesses(x, y, f, h, i, first2, last2, root, found)
                        for j in range(first2, last2):
                            value = found[j - first2]
                            worst = max(worst, value)
                            if value > limit:
                                if value > row_excess[i, last]:
                                    _insert(row_excess, row_other, i, value, j)
                                if value > column_excess[j, last]:
                                    _insert(column_excess, column_other, j, value, i)
    return worst, skipped, looked


@kernel
def search_block(cost, first_row, first_column, f, h, limit, by_row, by_column):
    """As `search_points` for a block of costs that is given; returns the largest excess."""
    row_excess, row_other = by_row
    column_excess, column_other = by_column
    last, worst = row_excess.shape[1] - 1, -np.inf
    for a in range(cost.shape[0]):
        i = first_row + a
        for b in range(cost.shape[1]):
            j = first_column + b
            value = (f[i] + h[j]) - cost[a, b]
            worst = max(worst, value)
            if value > limit:
                if value > row_excess[i, last]:
                    _insert(row_excess, row_other, i, value, j)
                if value > column_excess[j, last]:
                    _insert(column_excess, column_other, j, value, i)
    return worst


@kernel
def merge_best(into, more):
    """Add the largest excesses of a later part to those of earlier ones."""
    excess, other = into
    for line in range(len(excess)):
        for k in range(excess.shape[1]):
            value = more.excess[line, k]
            if value > excess[line, excess.shape[1] - 1]:
                _insert(excess, other, line, value, more.other[line, k])


@kernel
def collect_points(groups, rows, columns, f, h, root, stop):
    """All pairs of points with an excess above zero, in the rows of some groups.

    Parameters are those of `search_points`.

    Returns
    -------
    left, right, excess : int32[pairs], int32[pairs], float64[pairs]
    looked : int
        How many pairs were looked at.
    """
    x, y = rows.points, columns.points
    f_block, f_group = largest_of_blocks(f)
    h_block, h_group = largest_of_blocks(h)
    low, high, group_low, group_high = rows.low, rows.high, rows.group_low, rows.group_high
    low2, high2, group_low2, group_high2 = columns.low, columns.high, columns.group_low, columns.group_high
    n, m, count, looked = len(f), len(h), 0, 0
    left, right, excess = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024)
    found = np.empty(LEAF)
    for group in range(groups[0], groups[1]):
        if stop[0]:
            break
        for group2 in range(len(h_group)):
            bound = (f_group[group] + h_group[group2]) - _box_cost(
                group_low, group_high, group, group_low2, group_high2, group2, root
            )
            if bound <= 0.0:
                continue
            for block in range(group * FAN, min(group * FAN + FAN, len(f_block))):
                for block2 in range(group2 * FAN, min(group2 * FAN + FAN, len(h_block))):
                    bound = (f_block[block] + h_block[block2]) - _box_cost(low, high, block, low2, high2, block2, root)
                    if bound <= 0.0:
                        continue
                    first2, last2 = block2 * LEAF, min(block2 * LEAF + LEAF, m)
                    if count + LEAF * LEAF > len(left):
                        left, right = np.append(left, np.empty_like(left)), np.append(right, np.empty_like(right))
                        excess = np.append(excess, np.empty_like(excess))
                    for i in range(block * LEAF, min(block * LEAF + LEAF, n)):
                        looked += last2 - first2
                        _excesses(x, y, f, h, i, first2, last2, root, found)
                        for j in range(first2, last2):
                            if found[j - first2] > 0.0:
                                left[count], right[count], excess[count] = i, j, found[j - first2]
                                count += 1
    return left[:count].copy(), right[:count].copy(), excess[:count].copy(), looked
