"""Textbook support vector machines: the objective, its dual, a quadratic program, and dual coordinate ascent."""

import numpy as np
from scipy import sparse


def signs(y):
    """1 for the second of two classes, -1 for the first."""
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


def objective(X, sign, s, C, w, b=0.0):
    """1/2 |w|^2 + C/2 sum s max(0, 1 - sign (X w + b))^2."""
    slack = np.maximum(0.0, 1.0 - sign * (X @ w + b))
    return 0.5 * w @ w + 0.5 * C * s @ slack**2


def optimum(X, sign, s, C, intercept=False):
    """(w, b, value) by an interior-point method."""
    import clarabel

    n, d = X.shape
    P = sparse.diags(np.concatenate((np.ones(d), [0.0], C * s))).tocsc()
    # Variables w, b, xi; sign (X w + b) >= 1 - xi, and b = 0 without an intercept.
    A = -np.hstack((sign[:, None] * X, sign[:, None], np.eye(n)))
    rhs, cones = -np.ones(n), [clarabel.NonnegativeConeT(n)]
    if not intercept:
        A, rhs = np.vstack((A, np.eye(d + 1 + n)[d])), np.append(rhs, 0.0)
        cones.append(clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    found = clarabel.DefaultSolver(P, np.zeros(d + 1 + n), sparse.csc_matrix(A), rhs, cones, settings).solve()
    x = np.array(found.x)
    return _polished(X, sign, s, C, x[:d], x[d], intercept)


def _polished(X, sign, s, C, w, b, intercept):
    """The point with the last digits that an interior-point method leaves open: exact for the rows with a slack."""
    best = objective(X, sign, s, C, w, b)
    for _ in range(5):
        weight = C * s * (1.0 - sign * (X @ w + b) > 0.0)
        full = np.hstack((X, np.ones((len(X), 1)))) if intercept else X
        ridge = np.ones(full.shape[1])
        ridge[X.shape[1] :] = 1e-300
        found = np.linalg.lstsq(
            np.diag(ridge) + full.T @ (weight[:, None] * full), full.T @ (weight * sign), rcond=None
        )[0]
        point = found[: X.shape[1]], found[-1] if intercept else 0.0
        value = objective(X, sign, s, C, *point)
        if value < best:
            (w, b), best = point, value
    return w, b, best


def ascend(X, sign, s, C, order, w, z):
    """Projections onto rows in the order given; returns w after each of them, and changes ``z``."""
    w, iterates = w.copy(), []
    for i in order:
        xi = z[i] / (C * s[i])
        theta = (sign[i] * (w @ X[i]) - 1.0 + xi) / (X[i] @ X[i] + 1.0 / (C * s[i]))
        step = max(-theta, -z[i])
        z[i] += step
        w = w + step * sign[i] * X[i]
        iterates.append(w)
    return iterates


def best_part(X, sign, s, C, base, step):
    """The part of a step, up to 1, that lowers the objective most, by bisection of the derivative."""

    def derivative(t):
        w = base + t * step
        slack = np.maximum(0.0, 1.0 - sign * (X @ w))
        return w @ step - C * (s * slack * sign) @ (X @ step)

    low, high = 0.0, 1.0
    if derivative(1.0) <= 0.0:
        return 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) < 0.0 else (low, middle)
    return low
