"""Exact projections onto remembered rows, one after the other (Hildreth's method with bounds in closed form).

The problem is min 1/2 sum h (x - t)^2 with x >= 0 and rows ``closing * x_0 - sum_path x <= rhs``. With duals z >= 0
the minimiser is x = max(y, 0), y = t - A'z / h, so y is what is kept and the bound costs nothing. A projection changes
one dual by the root of a decreasing piecewise-linear function, which makes the dual objective rise as far as that one
dual can take it.
"""

import numpy as np

from ..kernels import kernel

ROUNDING = 1e-15  # of the terms of a row, and of its step
AT_REST = 1e-14  # of the terms of a row: one that holds and is so near to equality stays as it is


@kernel
def _excess_and_slope(value, inverse, sign, count, rhs, step):
    """``<a, x> - rhs`` of one row after its dual has grown by ``step``, and how fast it falls there."""
    excess, slope = -rhs, 0.0
    for k in range(count):
        moved = value[k] - sign[k] * step * inverse[k]
        if moved > 0.0:
            excess += sign[k] * moved
            slope += inverse[k]
    return excess, slope


@kernel
def _exact_step(value, inverse, sign, count, rhs, dual, excess, slope, size):
    """The change of the dual that makes the row hold with equality, or the dual zero: Newton kept inside a bracket.

    The excess falls with the step, in pieces that bend where an x meets its bound. ``excess`` and ``slope`` are those
    at step 0, ``size`` is that of the terms; of all steps that do, the one that leaves the smallest dual is taken.
    """
    if excess <= 0.0:
        left, right, step = -dual, 0.0, 0.0
        if _excess_and_slope(value, inverse, sign, count, rhs, left)[0] <= 0.0:
            return left
    else:
        # One falling term alone, taken as far as can be asked for, satisfies the row.
        enough = max(sign[0] * value[0], 0.0) - rhs
        left, right, step = 0.0, np.inf, 0.0
        for k in range(count):
            if sign[k] < 0.0:
                right = min(right, (enough - value[k]) / inverse[k])
    here, width = excess, np.inf
    for _ in range(200):
        if slope > 0.0:
            better = step + here / slope
            # The function is neither convex nor concave, so Newton may jump to and fro: then halve the bracket.
            if not left < better < right or right - left > 0.5 * width:
                better = 0.5 * (left + right)
        else:
            better = right if here > 0.0 else 0.5 * (left + right)
        width = right - left
        if abs(better - step) <= ROUNDING * (abs(step) + abs(better)):
            break
        step = better
        here, slope = _excess_and_slope(value, inverse, sign, count, rhs, step)
        if here > 0.0:
            left = step
        else:
            right = step
        if abs(here) <= ROUNDING * size and slope > 0.0:
            break
    return step


@kernel
def gather(table, y, inverse):
    """y and 1 / h of the edges in ``table``, side by side: float64[edges, 2].

    What a projection needs of an edge then comes from memory together.
    """
    local = np.empty((len(table), 2))
    for k in range(len(table)):
        local[k, 0] = y[table[k]]
        local[k, 1] = inverse[table[k]]
    return local


@kernel
def project_rows(row_start, index, dual, local, closing, rhs):
    """Project onto every row in turn.

    Parameters
    ----------
    row_start : int32[rows + 1], index : int32[entries]
        Ragged rows over the local edges, the closing edge first.
    dual : float64[rows]
        In and out.
    local : float64[edges, 2]
        y, in and out, and 1 / h, of the local edges.
    closing, rhs : float
        The row is ``closing * x_0 - sum of the others <= rhs``.

    Returns
    -------
    float
        The largest correction of ``<a, x>`` that was made: zero where every row holds and no dual is idle.
    """
    longest = 0
    for row in range(len(dual)):
        longest = max(longest, row_start[row + 1] - row_start[row])
    value, share, sign = np.empty(longest), np.empty(longest), np.full(longest, -1.0)
    sign[:1] = closing
    largest = 0.0
    for row in range(len(dual)):
        start = row_start[row]
        count = row_start[row + 1] - start
        excess, slope, size = -rhs, 0.0, abs(rhs)
        for k in range(count):
            edge = index[start + k]
            value[k] = local[edge, 0]
            share[k] = local[edge, 1]
            if value[k] > 0.0:
                excess += sign[k] * value[k]
                slope += share[k]
                size += value[k]
        if excess <= 0.0 and (dual[row] == 0.0 or (excess >= -AT_REST * size and slope > 0.0)):
            continue
        # Where no x meets its bound or leaves it, which is nearly always so, the function is linear.
        bends, step = slope <= 0.0, 0.0
        if not bends:
            step = max(excess / slope, -dual[row])
            for k in range(count):
                bends = bends or (value[k] - sign[k] * step * share[k] > 0.0) != (value[k] > 0.0)
        if bends:
            step = _exact_step(value, share, sign, count, rhs, dual[row], excess, slope, size)
        for k in range(count):
            local[index[start + k], 0] = value[k] - sign[k] * step * share[k]
        dual[row] = max(dual[row] + step, 0.0)
        largest = max(largest, abs(step) * slope)
    return largest


@kernel
def exceeding_load(y, target, inverse, unit, scale):
    """What ``scale`` times the load exceeds the cost by, as a sum that is never positive, and the load where it does.

    The cost is ``unit / inverse`` and the load ``(y - target) / inverse``, all float64[edges].
    """
    short, load = 0.0, 0.0
    for edge in range(len(y)):
        moved = y[edge] - target[edge]
        if scale * moved > unit:
            short += (unit - scale * moved) / inverse[edge]
            load += moved / inverse[edge]
    return short, load


@kernel
def add_load(row_start, index, dual, closing, load):
    """Add ``A'z`` of the rows to ``load`` over the local edges."""
    for row in range(len(dual)):
        if dual[row] != 0.0:
            load[index[row_start[row]]] += closing * dual[row]
            for k in range(row_start[row] + 1, row_start[row + 1]):
                load[index[k]] -= dual[row]
