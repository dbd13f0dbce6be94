"""Metric learning: the loss of pairs and its derivative, and exact projections in the LogDet divergence."""

from typing import NamedTuple

import numpy as np

from . import kernel

_HUGE, _TINY = 1e100, 1e-100


class Terms(NamedTuple):
    """What a pair costs: ``near * phi(max(1, p / upper))`` if similar, ``far * phi(min(1, p / lower))`` if dissimilar.

    ``p`` is the squared distance and phi(t) = t - log t - 1.
    """

    upper: float
    lower: float
    near: float
    far: float


@kernel
def weigh(p, sign, terms, weight):
    """Derivative of the loss of each pair by its squared distance.

    Parameters
    ----------
    p : float64[n]
        Squared distances.
    sign : int8[n]
        1 similar, -1 dissimilar, 0 no pair at all.
    terms : Terms
    weight : float64[n]
        Out: not negative for similar pairs, not positive for dissimilar ones; their sizes are multipliers.

    Returns
    -------
    linear, logs : float
        Sums of g (t - 1) and of g log t: the loss is their difference, and the conjugate at the multipliers is the
        second.
    """
    upper, lower, near, far = terms
    linear_near, linear_far, logs_near, logs_far = 0.0, 0.0, 0.0, 0.0
    for k in range(len(p)):
        weight[k] = 0.0
        if sign[k] > 0 and p[k] > upper:
            weight[k] = near * (1.0 / upper - 1.0 / p[k])
            linear_near += p[k] / upper - 1.0
            logs_near += np.log(p[k] / upper)
        elif sign[k] < 0 and p[k] < lower:
            weight[k] = far * (1.0 / lower - 1.0 / p[k])
            linear_far += p[k] / lower - 1.0
            logs_far += np.log(p[k] / lower)
    return near * linear_near + far * linear_far, near * logs_near + far * logs_far


@kernel
def weigh_tile(gram, left, right, points, classes, groups, root, terms, close, gradient, row, column):
    """`weigh` for all pairs of a tile.

    Parameters
    ----------
    gram : float64[rows, columns]
        In: inner products of the transformed points ``z = points @ root``. Out: weights of the pairs.
    left, right : float64[rows], float64[columns]
        Squared norms of z.
    points, classes, groups : pairs of arrays
        Of the rows and of the columns: the points, their classes, and a number that only equal points share. Pairs of
        equal points are left out.
    root : float64[d, d]
    terms : Terms
    close : float
        Pairs with a squared distance below this part of their norms are measured by their difference.
    gradient : float64[d, d]
        The outer products of the transformed differences of such pairs, times their weights, are added here; ``gram``
        is zero for them.
    row, column : float64[rows], float64[columns]
        Out: sums of the weights.

    Returns
    -------
    linear, logs : float
        As of `weigh`.
    """
    upper, lower, near, far = terms
    (a, b), (class_a, class_b), (group_a, group_b) = points, classes, groups
    d = a.shape[1]
    difference = np.empty(d)
    per_upper, per_lower = 1.0 / upper, 1.0 / lower
    linear_near, linear_far, logs_near, logs_far = 0.0, 0.0, 0.0, 0.0
    column[:] = 0.0
    for i in range(len(a)):
        product_near, product_far, in_row = 1.0, 1.0, 0.0
        for j in range(len(b)):
            if group_a[i] == group_b[j]:
                gram[i, j] = 0.0
                continue
            norms = left[i] + right[j]
            p = norms - 2.0 * gram[i, j]
            near_by = p < close * norms
            if near_by:
                p = 0.0
                for m in range(d):
                    total = 0.0
                    for k in range(d):
                        total += (a[i, k] - b[j, k]) * root[k, m]
                    difference[m] = total
                    p += total * total
            w = 0.0
            if class_a[i] == class_b[j]:
                t = p * per_upper
                if t > 1.0:
                    w = near * (per_upper - 1.0 / p)
                    linear_near += t - 1.0
                    if t > _HUGE:
                        logs_near += np.log(t)
                    else:
                        product_near *= t
                        if product_near > _HUGE:
                            logs_near += np.log(product_near)
                            product_near = 1.0
            else:
                t = p * per_lower
                if t < 1.0:
                    w = far * (per_lower - 1.0 / p)
                    linear_far += t - 1.0
                    if t < _TINY:
                        logs_far += np.log(t)
                    else:
                        product_far *= t
                        if product_far < _TINY:
                            logs_far += np.log(product_far)
                            product_far = 1.0
            if near_by and w != 0.0:
                for k in range(d):
                    for m in range(d):
                        gradient[k, m] += w * difference[k] * difference[m]
                w = 0.0
            gram[i, j] = w
            in_row += w
            column[j] += w
        row[i] = in_row
        logs_near += np.log(product_near)
        logs_far += np.log(product_far)
    return near * linear_near + far * linear_far, near * logs_near + far * logs_far


@kernel
def project_pairs(matrix, difference, sign, dual, terms, stop):
    """Project onto each pair in turn: Bregman's method with the LogDet divergence, rank-one updates, slack.

    The slack of a pair follows from its multiplier: xi = 1 / (1 / bound - sign * dual / weight).

    Parameters
    ----------
    matrix : float64[d, d]
        Changed in place; stays positive definite.
    difference : float64[n, d]
        Of the two points of each pair, not zero.
    sign : int8[n]
        1 similar, -1 dissimilar.
    dual : float64[n]
        Multipliers, changed in place, not negative.
    terms : Terms
    stop : uint8[1]
        Set from outside to end the sweep.

    Returns
    -------
    changed : int
        Pairs whose multiplier changed.
    largest : float
        The largest |alpha| p: by how much, relatively, a projection changed a squared distance.
    """
    upper, lower, near, far = terms
    d = len(matrix)
    product = np.empty(d)
    changed, largest = 0, 0.0
    for k in range(len(sign)):
        if stop[0]:
            break
        p = 0.0
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += matrix[i, j] * difference[k, j]
            product[i] = total
            p += total * difference[k, i]
        if not p > 0.0:
            continue
        delta = float(sign[k])
        bound, gamma = (upper, near) if sign[k] > 0 else (lower, far)
        per_slack = 1.0 / bound - delta * dual[k] / gamma
        # In the units of the multipliers, gamma times those of the slack: weight 1 for the matrix, gamma for the slack.
        alpha = min(dual[k], delta * gamma / (gamma + 1.0) * (1.0 / p - per_slack))
        if alpha == 0.0:
            continue
        dual[k] -= alpha
        beta = delta * alpha / (1.0 - delta * alpha * p)
        for i in range(d):
            step = beta * product[i]
            for j in range(d):
                matrix[i, j] += step * product[j]
        changed += 1
        largest = max(largest, abs(alpha) * p)
    return changed, largest
