"""The transport problem restricted to some pairs: an interior-point method whose equations are over the nodes.

Nodes are the rows and, after them, the columns. Pair e joins ``left[e]`` and ``right[e]``, B is the matrix with a one
for each end of a pair. The problem is min c'p + r/2 |p|^2 + k/2 |z|^2 over p >= 0 with k z = d - B p, its conditions
s = c + r p - B'z >= 0 and p s = 0. Soft marginals have k = 1 and r = 0, exact ones k = 0. A step solves
(k I + B diag(p / (s + r p)) B') dz = rest.
"""

from typing import NamedTuple

import numpy as np

from . import inlined, kernel
from .factor import factorise, solve_factored

ROUNDING = 1e-6  # of the tolerance: with such a gap nothing gets better any more


class Pattern(NamedTuple):
    """How pairs fill the matrix over the nodes, whose rows and columns are permuted.

    Attributes
    ----------
    order : int64[nodes]
        The node at each place.
    place : int64[nodes]
        The place of each node.
    start, index, pair : int64[nodes + 1], int64[pairs], int64[pairs]
        The upper triangle by columns, and the pair each entry belongs to.
    """

    order: np.ndarray
    place: np.ndarray
    start: np.ndarray
    index: np.ndarray
    pair: np.ndarray


@kernel
def lay_out_pattern(left, right, order):
    """The `Pattern` of pairs under an order of the nodes."""
    n = len(order)
    place = np.empty(n, np.int64)
    for k in range(n):
        place[order[k]] = k
    start = np.zeros(n + 1, np.int64)
    for e in range(len(left)):
        start[max(place[left[e]], place[right[e]]) + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    end, index, pair = start[:n].copy(), np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    for e in range(len(left)):
        a, b = place[left[e]], place[right[e]]
        column = max(a, b)
        index[end[column]], pair[end[column]] = min(a, b), e
        end[column] += 1
    return Pattern(order, place, start, index, pair)


@inlined
def _solve_step(left, right, p, s, reg, z_rest, s_rest, c_rest, pattern, factor, dz, dp, ds, work):
    """The step that takes the three residuals to zero, to first order."""
    n = len(dz)
    for i in range(n):
        dz[i] = z_rest[i]
    for e in range(len(p)):
        pull = (c_rest[e] - p[e] * s_rest[e]) / (s[e] + reg * p[e])
        dz[left[e]] -= pull
        dz[right[e]] -= pull
    for k in range(n):
        work[k] = dz[pattern.order[k]]
    solve_factored(factor, work)
    for k in range(n):
        dz[pattern.order[k]] = work[k]
    for e in range(len(p)):
        pull = s_rest[e] - dz[left[e]] - dz[right[e]]
        dp[e] = (c_rest[e] - p[e] * pull) / (s[e] + reg * p[e])
        ds[e] = pull + reg * dp[e]


@inlined
def _longest_step(p, dp, s, ds):
    """The largest part of a step, at most 1, that leaves p and s positive or zero."""
    longest = 1.0
    for e in range(len(p)):
        if dp[e] < 0.0:
            longest = min(longest, -p[e] / dp[e])
        if ds[e] < 0.0:
            longest = min(longest, -s[e] / ds[e])
    return longest


class Terms(NamedTuple):
    """What beside the costs is in the objective, and how residuals are judged.

    Attributes
    ----------
    soft, reg : float
        k and r.
    ridge : float
        Added to the diagonal of the equations, so that they are regular where k = 0.
    node_size, pair_size : float
        What residuals of nodes and of pairs are relative to.
    """

    soft: float
    reg: float
    ridge: float
    node_size: float
    pair_size: float


@kernel
def _residuals(left, right, cost, target, z, p, s, terms, z_rest, s_rest):
    """What is missing of the conditions; returns p's, what the objective is a sum of, and the largest residual."""
    soft, reg, _, node_size, pair_size = terms
    for i in range(len(z)):
        z_rest[i] = target[i] - soft * z[i]
    product, worth, rest = 0.0, 0.0, 0.0
    for e in range(len(p)):
        z_rest[left[e]] -= p[e]
        z_rest[right[e]] -= p[e]
        s_rest[e] = cost[e] + reg * p[e] - z[left[e]] - z[right[e]] - s[e]
        product += p[e] * s[e]
        worth += (abs(cost[e]) + 0.5 * reg * p[e]) * p[e]
        rest = max(rest, abs(s_rest[e]) / pair_size)
    for i in range(len(z)):
        worth += 0.5 * soft * z[i] ** 2
        rest = max(rest, abs(z_rest[i]) / node_size)
    return product, worth, rest


@kernel
def follow_path(left, right, cost, target, z, p, s, terms, pattern, factor, tol, most, stop):
    """Mehrotra's predictor and corrector from any z and positive p, s, which are moved in place.

    It ends when the gap p's, relative to what the objective is a sum of, and the residuals are at most ``tol``; after
    ``most`` steps; when the equations cannot be solved any more; or when ``stop`` is set. Returns the steps taken and
    the last gap.
    """
    n, pairs = len(z), len(p)
    soft, reg, ridge = terms.soft, terms.reg, terms.ridge
    z_rest, s_rest, c_rest = np.empty(n), np.empty(pairs), np.empty(pairs)
    dz, dp, ds, work = np.empty(n), np.empty(pairs), np.empty(pairs), np.empty(n)
    diagonal, value = np.empty(n), np.empty(pairs)
    gap = np.inf
    for step in range(most):
        product, worth, rest = _residuals(left, right, cost, target, z, p, s, terms, z_rest, s_rest)
        gap = product / max(worth, 1e-300)
        # Residuals that are not small by then are rounding.
        if (gap <= tol and (rest <= tol or gap <= ROUNDING * tol)) or stop[0]:
            return step, gap
        # The matrix and its factor.
        for i in range(n):
            work[i] = soft + ridge
        for e in range(pairs):
            weight = p[e] / (s[e] + reg * p[e])
            work[left[e]] += weight
            work[right[e]] += weight
        for k in range(n):
            diagonal[k] = work[pattern.order[k]]
        for at in range(pairs):
            e = pattern.pair[at]
            value[at] = p[e] / (s[e] + reg * p[e])
        if not factorise(pattern.start, pattern.index, value, diagonal, factor):
            return step, gap
        # Predictor, then corrector.
        for e in range(pairs):
            c_rest[e] = -p[e] * s[e]
        _solve_step(left, right, p, s, reg, z_rest, s_rest, c_rest, pattern, factor, dz, dp, ds, work)
        part = _longest_step(p, dp, s, ds)
        after = 0.0
        for e in range(pairs):
            after += (p[e] + part * dp[e]) * (s[e] + part * ds[e])
        centre = (after / product) ** 3 * product / pairs
        for e in range(pairs):
            c_rest[e] = centre - p[e] * s[e] - dp[e] * ds[e]
        _solve_step(left, right, p, s, reg, z_rest, s_rest, c_rest, pattern, factor, dz, dp, ds, work)
        part = _longest_step(p, dp, s, ds)
        if part < 1.0:
            part *= 1.0 - min(0.01, max(gap, 1e-4))
        for i in range(n):
            z[i] += part * dz[i]
        for e in range(pairs):
            # That the step is cut short leaves this part; rounding may not.
            p[e] = max(p[e] + part * dp[e], 1e-5 * p[e])
            s[e] = max(s[e] + part * ds[e], 1e-5 * s[e])
    return most, gap
