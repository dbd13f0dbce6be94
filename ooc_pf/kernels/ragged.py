"""Ragged rows: keys, and the compaction that forgets."""

import numpy as np

from ..kernels import kernel


@kernel
def mix_bits(value):
    """A 64-bit scrambler (splitmix64)."""
    value = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def row_keys(row_start, entries):
    """One uint64 a row, the same for the same closing edge and the same set of path edges in any order."""
    keys = np.empty(len(row_start) - 1, np.uint64)
    for row in range(len(keys)):
        key = mix_bits(mix_bits(entries[row_start[row]]))
        for k in range(row_start[row] + 1, row_start[row + 1]):
            key += mix_bits(entries[k])
        keys[row] = key
    return keys


@kernel
def general_keys(row_start, entries, coefficient, rhs, equality):
    """One uint64 a row, the same for the same terms in any order, right-hand side and kind.

    ``coefficient`` and ``rhs`` are the bits of the numbers, as uint64.
    """
    keys = np.empty(len(row_start) - 1, np.uint64)
    for row in range(len(keys)):
        key = mix_bits(mix_bits(rhs[row]) + np.uint64(equality[row]))
        for k in range(row_start[row], row_start[row + 1]):
            key += mix_bits(mix_bits(entries[k]) ^ coefficient[k])
        keys[row] = key
    return keys


@kernel
def measure_rows(row_start, entries, coefficient, rhs, x):
    """``<a, x> - rhs`` of every row, and the sum of the sizes of its terms, by which rounding is judged."""
    excess, size = np.empty(len(rhs)), np.empty(len(rhs))
    for row in range(len(rhs)):
        total, terms = -rhs[row], abs(rhs[row])
        for k in range(row_start[row], row_start[row + 1]):
            term = coefficient[k] * x[entries[k]]
            total += term
            terms += abs(term)
        excess[row], size[row] = total, terms
    return excess, size


@kernel
def row_norms(row_start, coefficient):
    """Euclidean norm of the coefficients of every row, however large or small they are."""
    norm = np.empty(len(row_start) - 1)
    for row in range(len(norm)):
        largest = 0.0
        for k in range(row_start[row], row_start[row + 1]):
            largest = max(largest, abs(coefficient[k]))
        total = 0.0
        for k in range(row_start[row], row_start[row + 1]) if largest > 0.0 else range(0):
            total += (coefficient[k] / largest) ** 2
        norm[row] = largest * np.sqrt(total)
    return norm


@kernel
def find_repeated(row_start, entries, mark):
    """The first row that has a variable twice, or -1; ``mark`` is int64 by variable, filled with -1."""
    for row in range(len(row_start) - 1):
        for k in range(row_start[row], row_start[row + 1]):
            if mark[entries[k]] == row:
                return row
            mark[entries[k]] = row
    return -1


@kernel
def keep_rows(row_start, entries, keep):
    """The rows marked in ``keep``, packed: ``(row_start, entries)``."""
    rows = entry = 0
    for row in range(len(keep)):
        if keep[row]:
            rows += 1
            entry += row_start[row + 1] - row_start[row]
    new_start = np.empty(rows + 1, row_start.dtype)
    new_entries = np.empty(entry, entries.dtype)
    rows = entry = 0
    new_start[0] = 0
    for row in range(len(keep)):
        if keep[row]:
            for k in range(row_start[row], row_start[row + 1]):
                new_entries[entry] = entries[k]
                entry += 1
            rows += 1
            new_start[rows] = entry
    return new_start, new_entries


@kernel
def take_rows(start, entries, order):
    """The rows ``order``, in that order: (int64[rows + 1], entries)."""
    taken = np.empty(len(order) + 1, np.int64)
    taken[0] = 0
    for k in range(len(order)):
        taken[k + 1] = taken[k] + start[order[k] + 1] - start[order[k]]
    found = np.empty(taken[-1], entries.dtype)
    for k in range(len(order)):
        found[taken[k] : taken[k + 1]] = entries[start[order[k]] : start[order[k] + 1]]
    return taken, found
