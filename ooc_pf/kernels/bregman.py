"""Exact Bregman projections onto general rows, one after the other, for separable functions chosen by a code.

The problem is min sum_j h_j(x_j - shift_j) - <t, x> over rows ``<a, x> <= rhs`` (or ``=``). For duals z the minimiser
is x = shift + g(y) with y = t - A'z and g the inverse of the gradient of h, so y is what is kept. A projection changes
one dual by the root of a decreasing function of one variable.
"""

import numpy as np

from ..kernels import kernel

QUADRATIC, ENTROPY, POWER, FERMI_DIRAC, HELLINGER, ABSOLUTE = 0, 1, 2, 3, 4, 5
_LARGEST = 690.0  # exp of more leaves too little room for sums
SHORTEST = 1e-12  # of the size of steps: no search for a bracket begins with less
STEEPEST = 1e12  # times the slope at the largest y: what counts for more


@kernel
def _invert(code, y, weight, ridge, power):
    """The point whose gradient is y, and how fast it moves with y."""
    scaled = y / weight
    if code == QUADRATIC:
        return scaled, 1.0 / weight
    if code == ENTROPY:
        point = np.exp(min(scaled, _LARGEST))
        return point, point / weight
    if code == POWER:
        root = 1.0 / (power - 1.0)
        size = abs(scaled)
        if size == 0.0:
            return 0.0, (np.inf if root < 1.0 else (0.0 if root > 1.0 else 1.0 / weight))
        point = size**root
        return (point if scaled > 0.0 else -point), root * point / (size * weight)
    if code == FERMI_DIRAC:
        small = np.exp(-min(abs(scaled), _LARGEST))
        point = 1.0 / (1.0 + small)
        return (point if scaled > 0.0 else small * point), small * point * point / weight
    if code == HELLINGER:
        length = np.hypot(1.0, scaled)
        return scaled / length, 1.0 / (weight * length * length * length)
    if y > weight:
        return (y - weight) / ridge, 1.0 / ridge
    if y < -weight:
        return (y + weight) / ridge, 1.0 / ridge
    return 0.0, 0.0


@kernel
def invert_gradient(code, y, weight, shift, ridge, power):
    """x of y; all float64 by variable."""
    x = np.empty_like(y)
    for j in range(len(y)):
        x[j] = shift[j] + _invert(code, y[j], weight[j], ridge[j], power)[0]
    return x


@kernel
def find_slope(code, y, weight, shift, ridge, power):
    """How fast x moves with y, kept finite; all float64 by variable.

    The x of a power above two moves infinitely fast where y is zero. It counts as at most STEEPEST times as fast as
    where y is as large as the largest; as not moving, where all are zero and none of them has a size.
    """
    slope, largest = np.empty_like(y), 0.0
    for j in range(len(y)):
        slope[j] = _invert(code, y[j], weight[j], ridge[j], power)[1]
        largest = max(largest, abs(y[j]))
    if code == POWER and power > 2.0:
        for j in range(len(y)):
            fastest = STEEPEST * _invert(code, largest, weight[j], ridge[j], power)[1] if largest > 0.0 else 0.0
            slope[j] = min(slope[j], fastest)
    return slope


@kernel
def find_gradient(code, x, weight, shift, ridge, power):
    """A y of x; all float64 by variable."""
    y = np.empty_like(x)
    for j in range(len(x)):
        d, w = x[j] - shift[j], weight[j]
        if code == QUADRATIC:
            y[j] = w * d
        elif code == ENTROPY:
            y[j] = w * np.log(d)
        elif code == POWER:
            y[j] = w * np.sign(d) * abs(d) ** (power - 1.0)
        elif code == FERMI_DIRAC:
            y[j] = w * (np.log(d) - np.log1p(-d))
        elif code == HELLINGER:
            y[j] = w * d / np.sqrt((1.0 - d) * (1.0 + d))
        else:
            y[j] = ridge[j] * d + w * np.sign(d)
    return y


@kernel
def sum_values(code, x, weight, shift, ridge, power):
    """sum_j h_j(x_j - shift_j)."""
    total = 0.0
    for j in range(len(x)):
        d, w = x[j] - shift[j], weight[j]
        if code == QUADRATIC:
            total += 0.5 * w * d * d
        elif code == ENTROPY:
            total += w * (d * np.log(d) - d) if d > 0.0 else 0.0
        elif code == POWER:
            total += w / power * abs(d) ** power
        elif code == FERMI_DIRAC:
            total += w * d * np.log(d) if d > 0.0 else 0.0
            total += w * (1.0 - d) * np.log1p(-d) if d < 1.0 else 0.0
        elif code == HELLINGER:
            total -= w * np.sqrt(max((1.0 - d) * (1.0 + d), 0.0))
        else:
            total += w * abs(d) + 0.5 * ridge[j] * d * d
    return total


@kernel
def _excess_at(code, step, count, a, y, weight, shift, ridge, power, rhs):
    """``<a, x> - rhs`` of one row after its dual has grown by ``step``, and how fast it falls there."""
    excess, slope = -rhs, 0.0
    for k in range(count):
        point, speed = _invert(code, y[k] - step * a[k], weight[k], ridge[k], power)
        excess += a[k] * (shift[k] + point)
        slope += a[k] * a[k] * speed
    return excess, slope


@kernel
def _even_entropy_step(count, a, weight, rhs, excess):
    """The step for entropy where all coefficients and weights agree, or nan: a scaling, in closed form."""
    for k in range(1, count):
        if a[k] != a[0] or weight[k] != weight[0]:
            return np.nan
    if rhs / a[0] <= 0.0 or (excess + rhs) / a[0] <= 0.0:
        return np.nan
    return weight[0] / a[0] * np.log((excess + rhs) / rhs)


@kernel
def _unit_of_steps(code, count, a, y, weight):
    """A size of steps that goes with the numbers: y is measured by its weight, but that of a power by itself."""
    unit = by_weight = 0.0
    for k in range(count):
        unit = max(unit, abs(y[k]) / abs(a[k]))
        by_weight = max(by_weight, weight[k] / abs(a[k]))
    return unit if code == POWER and unit > 0.0 else by_weight


@kernel
def _find_bracket(code, count, a, y, weight, shift, ridge, power, rhs, excess, slope):
    """Two steps the root lies between, by doubling, then excess and slope at the far one.

    Where the domain ends before the row holds there is no root, and the excess at the far end keeps its sign.
    """
    unit = _unit_of_steps(code, count, a, y, weight)
    step = max(abs(excess) / slope, SHORTEST * unit) if 0.0 < slope < np.inf else unit
    near, step = 0.0, step if excess > 0.0 else -step
    here = excess
    for _ in range(60):
        here, slope = _excess_at(code, step, count, a, y, weight, shift, ridge, power, rhs)
        if here == 0.0 or (here > 0.0) != (excess > 0.0):
            break
        near, step = step, 2.0 * step
    return near, step, here, slope


@kernel
def _find_step(code, count, a, y, weight, shift, ridge, power, rhs, least, excess, slope):
    """The change of the dual, not below ``least``, that makes the row hold with equality, or ``least``.

    The excess falls with the step: in closed form, or Newton kept inside a bracket. Also returns the excess that is
    left, which at ``least`` need not be zero.
    """
    step = np.nan
    if code == QUADRATIC:
        step = excess / slope
    elif code == ENTROPY:
        step = _even_entropy_step(count, a, weight, rhs, excess)
    if step >= least:
        return step, 0.0
    if excess <= 0.0 and least > -np.inf:
        left_over = _excess_at(code, least, count, a, y, weight, shift, ridge, power, rhs)[0]
        if left_over <= 0.0:
            return least, left_over
        left, right, step, here = least, 0.0, 0.0, excess
    else:
        near, step, here, slope = _find_bracket(code, count, a, y, weight, shift, ridge, power, rhs, excess, slope)
        if here == 0.0 or (here > 0.0) == (excess > 0.0):
            return step, here
        left, right = min(near, step), max(near, step)
    width = np.inf
    for _ in range(300):
        better = step + here / slope if 0.0 < slope < np.inf else np.nan
        # The function is neither convex nor concave, so Newton may jump to and fro: then halve the bracket.
        if not left < better < right or right - left > 0.5 * width:
            better = 0.5 * (left + right)
        width = right - left
        if abs(better - step) <= 1e-15 * (abs(step) + abs(better)) or not left < better < right:
            break
        step = better
        here, slope = _excess_at(code, step, count, a, y, weight, shift, ridge, power, rhs)
        if here == 0.0:
            break
        if here > 0.0:
            left = step
        else:
            right = step
    return step, 0.0


@kernel
def project_general(code, row_start, index, coefficient, rhs, equality, dual, y, weight, shift, ridge, power):
    """Project onto every row in turn.

    Parameters
    ----------
    code : int
        Which function.
    row_start : int32[rows + 1], index : int32[entries], coefficient : float64[entries]
        Ragged rows over the local variables, none twice in a row; a row without entries is passed over.
    rhs : float64[rows], equality : bool[rows]
    dual : float64[rows], y : float64[variables]
        In and out.
    weight, shift, ridge : float64[variables], power : float
        Parameters of the function.

    Returns
    -------
    float
        The largest correction of ``<a, x>`` made: zero where every row holds and no dual is idle.
    """
    longest = 0
    for row in range(len(dual)):
        longest = max(longest, row_start[row + 1] - row_start[row])
    here, w, s, r = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    largest = 0.0
    for row in range(len(dual)):
        start = row_start[row]
        count = row_start[row + 1] - start
        if count == 0:
            continue
        a = coefficient[start : start + count]
        for k in range(count):
            at = index[start + k]
            here[k], w[k], s[k], r[k] = y[at], weight[at], shift[at], ridge[at]
        excess, slope = _excess_at(code, 0.0, count, a, here, w, s, r, power, rhs[row])
        if excess == 0.0 or (excess < 0.0 and not equality[row] and dual[row] == 0.0):
            continue
        least = -np.inf if equality[row] else -dual[row]
        step, left_over = _find_step(code, count, a, here, w, s, r, power, rhs[row], least, excess, slope)
        for k in range(count):
            y[index[start + k]] = here[k] - step * a[k]
        dual[row] = 0.0 if step == least else dual[row] + step
        largest = max(largest, abs(excess - left_over))
    return largest


@kernel
def project_dense(row_start, index, coefficient, rhs, equality, dual, y, x, inverse):
    """Project onto every row in turn where the function is quadratic with any positive definite matrix.

    As `project_general`, but over all variables: ``x`` follows ``y`` through ``inverse``, the float64[n, n] inverse of
    the matrix.
    """
    largest = 0.0
    move = np.empty(len(x))
    for row in range(len(dual)):
        excess, slope = -rhs[row], 0.0
        move[:] = 0.0
        for k in range(row_start[row], row_start[row + 1]):
            excess += coefficient[k] * x[index[k]]
            for j in range(len(x)):
                move[j] += coefficient[k] * inverse[index[k], j]
        if excess == 0.0 or (excess < 0.0 and not equality[row] and dual[row] == 0.0):
            continue
        for k in range(row_start[row], row_start[row + 1]):
            slope += coefficient[k] * move[index[k]]
        if slope <= 0.0:
            continue
        step = excess / slope
        if not equality[row] and step <= -dual[row]:
            step = -dual[row]
            dual[row] = 0.0
        else:
            dual[row] += step
        for k in range(row_start[row], row_start[row + 1]):
            y[index[k]] -= step * coefficient[k]
        for j in range(len(x)):
            x[j] -= step * move[j]
        largest = max(largest, abs(step) * slope)
    return largest


@kernel
def add_general_load(row_start, index, coefficient, dual, load):
    """Add ``A'z`` of the rows to ``load`` over the local variables."""
    for row in range(len(dual)):
        if dual[row] != 0.0:
            for k in range(row_start[row], row_start[row + 1]):
                load[index[k]] += coefficient[k] * dual[row]
