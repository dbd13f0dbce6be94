"""Exact projections onto remembered rows, one after the other (Hildreth's method with bounds in closed form).

The problem is min 1/2 sum h (x - t)^2 with x >= 0 and rows ``closing * x_0 - sum_path x <= rhs``. With duals z >= 0
the minimiser is x = max(y, 0), y = t - A'z / h, so y is what is kept and the bound costs nothing. A projection changes
one dual by the root of a decreasing piecewise-linear function, which makes the dual objective rise as far as that one
dual can take it.
"""

import numpy as np

from . import kernel


@kernel
def _excess_and_slope(y, inverse, index, start, stop, closing, rhs, step):
    """``<a, x> - rhs`` after the dual has grown by ``step``, and how fast it falls there."""
    edge = index[start]
    value = y[edge] - closing * step * inverse[edge]
    excess, slope = -rhs, 0.0
    if value > 0.0:
        excess += closing * value
        slope += inverse[edge]
    for k in range(start + 1, stop):
        edge = index[k]
        value = y[edge] + step * inverse[edge]
        if value > 0.0:
            excess -= value
            slope += inverse[edge]
    return excess, slope


@kernel
def _bounded_step(y, inverse, index, start, stop, closing, rhs, dual, excess):
    """The exact step when some x is at, or would fall below, its bound: Newton kept inside a bracket."""
    if excess > 0.0:
        # One path edge alone, raised to all that can be asked for, satisfies the row.
        enough = max(closing * y[index[start]], 0.0) - rhs
        left, right = 0.0, np.inf
        for k in range(start + 1, stop):
            right = min(right, (enough - y[index[k]]) / inverse[index[k]])
        if closing < 0:
            right = min(right, (enough - y[index[start]]) / inverse[index[start]])
    else:
        left, right = -dual, 0.0
        if _excess_and_slope(y, inverse, index, start, stop, closing, rhs, left)[0] <= 0.0:
            return left
    step, width = right, np.inf
    for _ in range(200):
        here, slope = _excess_and_slope(y, inverse, index, start, stop, closing, rhs, step)
        if here > 0.0:
            left = step
        else:
            right = step
        if right - left <= 1e-15 * (abs(left) + abs(right)) or (here == 0.0 and slope > 0.0):
            break
        better = step + here / slope if slope > 0.0 else left
        # The function is neither convex nor concave, so Newton may jump to and fro: then halve the bracket instead.
        if not left < better < right or right - left > 0.5 * width:
            better = 0.5 * (left + right)
        width = right - left
        if better == step:
            break
        step = better
    return step


@kernel
def project_rows(row_start, index, dual, y, inverse, closing, rhs, sweeps):
    """Project onto every row in turn, ``sweeps`` times over.

    Parameters
    ----------
    row_start : int32[rows + 1], index : int32[entries]
        Ragged rows over the local edges, the closing edge first.
    dual : float64[rows], y : float64[edges]
        In and out.
    inverse : float64[edges]
        1 / h.
    closing, rhs : float
        The row is ``closing * x_0 - sum of the others <= rhs``.

    Returns
    -------
    float
        The largest correction of ``<a, x>`` made in the last sweep: zero where every row holds and no dual is idle.
    """
    largest = 0.0
    for _ in range(sweeps):
        largest = 0.0
        for row in range(len(dual)):
            start, stop = row_start[row], row_start[row + 1]
            edge = index[start]
            lowest = y[edge]
            excess, norm = closing * y[edge] - rhs, inverse[edge]
            for k in range(start + 1, stop):
                edge = index[k]
                lowest = min(lowest, y[edge])
                excess -= y[edge]
                norm += inverse[edge]
            if lowest <= 0.0:
                excess = _excess_and_slope(y, inverse, index, start, stop, closing, rhs, 0.0)[0]
            if excess <= 0.0 and dual[row] == 0.0:
                continue
            step = max(excess / norm, -dual[row])
            # The plain step is exact as long as every x stays off its bound on the way.
            falls = -step * inverse[index[start]] * closing
            plain = lowest > 0.0 and y[index[start]] + falls >= 0.0
            if plain and step < 0.0:
                for k in range(start + 1, stop):
                    edge = index[k]
                    plain = plain and y[edge] + step * inverse[edge] >= 0.0
            if not plain:
                step = _bounded_step(y, inverse, index, start, stop, closing, rhs, dual[row], excess)
            edge = index[start]
            y[edge] -= closing * step * inverse[edge]
            for k in range(start + 1, stop):
                edge = index[k]
                y[edge] += step * inverse[edge]
            dual[row] = max(dual[row] + step, 0.0)
            largest = max(largest, abs(step) * norm)
    return largest
