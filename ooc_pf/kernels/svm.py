"""The squared hinge loss over a tile of rows, exact line searches along it, and randomised dual coordinate ascent.

Rows of class ``positive`` have the sign 1, all others -1. The slack of a row is m = 1 - sign * score, and its dual
z = C s max(0, m), where s is the weight of the row times that of its class. ``weight`` may be empty: ones.
"""

import numpy as np

from . import inlined, kernel

LEAST_PART = 1e-12  # of a step: the first point after 0 at which a line search knows the derivative


@inlined
def price_of(i, code, weight, by_class, C):
    """C s of a row."""
    s = C * by_class[code[i]]
    return s * weight[i] if len(weight) else s


@inlined
def raised_dual(z, score, norm, s):
    """The dual of a row after a projection onto it; ``score`` is positive on the right side."""
    theta = (score - 1.0 + z / s) / (norm + 1.0 / s)
    return max(z - theta, 0.0)


@kernel
def judge_rows(score, code, positive, weight, by_class, C, active, change, z):
    """The duals of a tile; sets ``active``, ``z``, and ``change`` (1 where a row becomes active, -1 where it stops).

    Returns the sums of z and of z^2 / (C s) over positive rows, the same over the others, and how many rows became
    active and how many stopped.
    """
    above = squares_above = below = squares_below = 0.0
    entered = left = 0
    for i in range(len(score)):
        sign = 1.0 if code[i] == positive else -1.0
        s = price_of(i, code, weight, by_class, C)
        m = 1.0 - sign * score[i]
        on = m > 0.0 and s > 0.0
        dual = s * m if on else 0.0
        if sign > 0.0:
            above += dual
            squares_above += dual * m if on else 0.0
        else:
            below += dual
            squares_below += dual * m if on else 0.0
        z[i] = dual
        change[i] = 0
        if on and not active[i]:
            change[i], entered = 1, entered + 1
        elif active[i] and not on:
            change[i], left = -1, left + 1
        active[i] = on
    return above, squares_above, below, squares_below, entered, left


@kernel
def add_breakpoints(before, after, code, positive, weight, by_class, C, constant, slope):
    """Add a tile to the derivative of the loss along a step, known at 0 and at points that grow by a factor up to 1.

    The slack of a row is a + t b at the part t of the step. While it is positive the row adds C s b (a + t b) to the
    derivative. ``constant`` and ``slope`` hold the differences of the two coefficients from one point to the next.
    """
    bins = len(constant) - 2
    for i in range(len(before)):
        sign = 1.0 if code[i] == positive else -1.0
        s = price_of(i, code, weight, by_class, C)
        a = 1.0 - sign * before[i]
        b = sign * (before[i] - after[i])
        if a <= 0.0 and a + b <= 0.0:
            continue
        first, last = 0, bins
        if a > 0.0 and a + b <= 0.0:
            last = max(int(np.floor(bins * (1.0 - np.log(-a / b) / np.log(LEAST_PART)))), 0)
        elif a < 0.0:
            first = max(int(np.ceil(bins * (1.0 - np.log(-a / b) / np.log(LEAST_PART)))), 1)
        constant[first] += s * a * b
        constant[last + 1] -= s * a * b
        slope[first] += s * b * b
        slope[last + 1] -= s * b * b


# -- sparse rows ------------------------------------------------------------------------------------------------------


@kernel
def score_sparse(start, index, value, w, intercept):
    """``X w + intercept`` of CSR rows."""
    score = np.empty(len(start) - 1)
    for i in range(len(score)):
        total = intercept
        for k in range(start[i], start[i + 1]):
            total += value[k] * w[index[k]]
        score[i] = total
    return score


@kernel
def pull_sparse(start, index, value, z, pull):
    """Add ``X' z`` of CSR rows to ``pull``."""
    for i in range(len(z)):
        if z[i] != 0.0:
            for k in range(start[i], start[i + 1]):
                pull[index[k]] += z[i] * value[k]


@kernel
def gram_sparse(start, index, value, scale, border, gram):
    """Add ``X' diag(scale) X`` of CSR rows to the upper triangle of ``gram``; ``border``: X has a column of ones."""
    last = len(gram) - 1
    for i in range(len(scale)):
        if scale[i] == 0.0:
            continue
        for a in range(start[i], start[i + 1]):
            part, row = scale[i] * value[a], index[a]
            for b in range(start[i], start[i + 1]):
                if index[b] >= row:
                    gram[row, index[b]] += part * value[b]
            if border:
                gram[row, last] += part
        if border:
            gram[last, last] += scale[i]


@kernel
def squares_sparse(start, index, value, scale, total):
    """Add the diagonal of ``X' diag(scale) X`` of CSR rows to ``total``."""
    for i in range(len(scale)):
        if scale[i] != 0.0:
            for k in range(start[i], start[i + 1]):
                total[index[k]] += scale[i] * value[k] * value[k]


# -- randomised dual coordinate ascent --------------------------------------------------------------------------------


@kernel
def ascend_dense(X, order, code, positive, weight, by_class, C, border, w, late, z, step):
    """Project onto the rows of a block in the order given, one class of many against the rest.

    ``late`` gathers each change of w times the number of the projection, from which the mean of the iterates follows;
    ``step`` is the number of the first one. Returns the number of projections that changed something, or -1 - i if the
    length of row i is not finite.
    """
    d, changed = X.shape[1], 0
    for at in range(len(order)):
        i = order[at]
        sign = 1.0 if code[i] == positive else -1.0
        s = price_of(i, code, weight, by_class, C)
        if s <= 0.0:
            continue
        # Four sums side by side: one alone would wait for each addition.
        a = b = c = e = 0.0
        aa = bb = cc = ee = 0.0
        for j in range(0, d - 3, 4):
            p, q, r, t = np.float64(X[i, j]), np.float64(X[i, j + 1]), np.float64(X[i, j + 2]), np.float64(X[i, j + 3])
            a += p * w[j]
            b += q * w[j + 1]
            c += r * w[j + 2]
            e += t * w[j + 3]
            aa += p * p
            bb += q * q
            cc += r * r
            ee += t * t
        for j in range(d - d % 4, d):
            a += X[i, j] * w[j]
            aa += np.float64(X[i, j]) * X[i, j]
        score, norm = (a + b) + (c + e), (aa + bb) + (cc + ee)
        if border:
            score += w[d]
            norm += 1.0
        if not np.isfinite(norm):
            return -1 - i
        dual = raised_dual(z[i], sign * score, norm, s)
        move = sign * (dual - z[i])
        if move != 0.0:
            z[i] = dual
            changed += 1
            when = move * (step + at)
            for j in range(d):
                w[j] += move * X[i, j]
                late[j] += when * X[i, j]
            if border:
                w[d] += move
                late[d] += when
    return changed


@kernel
def ascend_sparse(start, index, value, order, code, positive, weight, by_class, C, border, w, late, z, step):
    """`ascend_dense` for CSR rows."""
    d, changed = len(w) - 1 if border else len(w), 0
    for at in range(len(order)):
        i = order[at]
        sign = 1.0 if code[i] == positive else -1.0
        s = price_of(i, code, weight, by_class, C)
        if s <= 0.0:
            continue
        score, norm = (w[d], 1.0) if border else (0.0, 0.0)
        for k in range(start[i], start[i + 1]):
            score += value[k] * w[index[k]]
            norm += np.float64(value[k]) * value[k]
        if not np.isfinite(norm):
            return -1 - i
        dual = raised_dual(z[i], sign * score, norm, s)
        move = sign * (dual - z[i])
        if move != 0.0:
            z[i] = dual
            changed += 1
            when = move * (step + at)
            for k in range(start[i], start[i + 1]):
                w[index[k]] += move * value[k]
                late[index[k]] += when * value[k]
            if border:
                w[d] += move
                late[d] += when
    return changed
