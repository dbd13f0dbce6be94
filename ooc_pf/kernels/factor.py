"""Sparse LDL' factors of symmetric positive definite matrices with a fixed pattern.

The upper triangle is given by columns: column k has the rows ``index[start[k]:start[k + 1]]``, all less than k. The
factor is found row by row (up-looking), along the elimination tree.
"""

from typing import NamedTuple

import numpy as np

from . import inlined, kernel


class Factor(NamedTuple):
    """A unit lower triangle L by columns, and the diagonal D.

    Attributes
    ----------
    parent : int64[n]
        The elimination tree; -1 for roots.
    start, index, value : int64[n + 1], int32[entries], float64[entries]
        Columns of L without the diagonal.
    diagonal : float64[n]
    """

    parent: np.ndarray
    start: np.ndarray
    index: np.ndarray
    value: np.ndarray
    diagonal: np.ndarray


@kernel
def elimination_tree(start, index):
    """Parents in the elimination tree, and how many entries each column of L has."""
    n = len(start) - 1
    parent, count, seen = np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
    for k in range(n):
        seen[k] = k
        for at in range(start[k], start[k + 1]):
            i = index[at]
            while seen[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                count[i] += 1
                seen[i] = k
                i = parent[i]
    return parent, count


@inlined
def _reach(k, start, index, parent, seen, row):
    """The columns that row k of L has entries in, in the order of the tree: they are ``row[top:]``."""
    n = len(parent)
    top = n
    seen[k] = k
    for at in range(start[k], start[k + 1]):
        i, length = index[at], 0
        while seen[i] != k:
            row[length] = i
            length += 1
            seen[i] = k
            i = parent[i]
        while length > 0:
            length -= 1
            top -= 1
            row[top] = row[length]
    return top


@kernel
def factorise(start, index, value, diagonal, factor):
    """Fill ``factor`` with L and D of the matrix with this upper triangle and diagonal.

    Returns whether every pivot is positive.
    """
    parent, l_start, l_index, l_value, pivots = factor
    n = len(diagonal)
    end, seen, row, work = l_start[:n].copy(), np.full(n, -1), np.empty(n, np.int64), np.zeros(n)
    for k in range(n):
        top = _reach(k, start, index, parent, seen, row)
        for at in range(start[k], start[k + 1]):
            work[index[at]] += value[at]
        pivot = diagonal[k]
        for place in range(top, n):
            i = row[place]
            y = work[i]
            work[i] = 0.0
            for at in range(l_start[i], end[i]):
                work[l_index[at]] -= l_value[at] * y
            entry = y / pivots[i]
            pivot -= entry * y
            l_index[end[i]] = k
            l_value[end[i]] = entry
            end[i] += 1
        if not pivot > 0.0:
            return False
        pivots[k] = pivot
    return True


@kernel
def solve_factored(factor, x):
    """Replace x by the solution of LDL' y = x."""
    _, start, index, value, diagonal = factor
    n = len(x)
    for k in range(n):
        for at in range(start[k], start[k + 1]):
            x[index[at]] -= value[at] * x[k]
    for k in range(n):
        x[k] /= diagonal[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for at in range(start[k], start[k + 1]):
            total -= value[at] * x[index[at]]
        x[k] = total
