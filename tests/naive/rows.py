"""Textbook versions for general rows and sets: values, steps by bisection, and interior-point solves."""

import numpy as np
from scipy import sparse

# Of each function: its value, its gradient and the inverse of that, for one variable with weight w.
FUNCTIONS = {
    "quadratic": (lambda x, w: w * x * x / 2, lambda x, w: w * x, lambda y, w: y / w),
    "entropy": (lambda x, w: w * (x * np.log(x) - x), lambda x, w: w * np.log(x), lambda y, w: np.exp(y / w)),
    "p_norm": (
        lambda x, w: w * abs(x) ** 3 / 3,
        lambda x, w: w * np.sign(x) * abs(x) ** 2,
        lambda y, w: np.sign(y) * np.sqrt(abs(y) / w),
    ),
    "fermi_dirac": (
        lambda x, w: w * (x * np.log(x) + (1 - x) * np.log(1 - x)),
        lambda x, w: w * np.log(x / (1 - x)),
        lambda y, w: 1 / (1 + np.exp(-y / w)),
    ),
    "hellinger": (
        lambda x, w: -w * np.sqrt(1 - x * x),
        lambda x, w: w * x / np.sqrt(1 - x * x),
        lambda y, w: (y / w) / np.sqrt(1 + (y / w) ** 2),
    ),
}


def exact_step(name, y, w, a, rhs, dual, equality):
    """The change of one dual after which ``<a, x> = rhs``, or the dual is zero, by bisection."""
    invert = FUNCTIONS[name][2]

    def excess(step):
        return float(a @ invert(y - step * a, w)) - rhs

    low, high = -1.0, 1.0
    while excess(low) < 0:
        low *= 2
    while excess(high) > 0:
        high *= 2
    if not equality:
        low = max(low, -dual)
        if excess(low) <= 0:
            return low
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def project_rows(name, rows, dual, y, w):
    """One sweep; rows are (index, a, rhs, equality); changes ``dual`` and ``y``."""
    for i, (index, a, rhs, equality) in enumerate(rows):
        step = exact_step(name, y[index], w[index], a, rhs, dual[i], equality)
        y[index] -= step * a
        dual[i] += step
        if not equality:
            dual[i] = max(dual[i], 0.0)


def _solve_cone(P, q, A, b, cones):
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, settings).solve()
    return np.array(solution.x)


def _with_rows(A, b, equality, extra):
    """Rows of the problem over x padded with ``extra`` more variables, equations first, and their cones."""
    import clarabel

    order = np.argsort(~equality, kind="stable")
    padded = sparse.hstack([sparse.csr_matrix(A[order]), sparse.csr_matrix((len(b), extra))])
    many = int(equality.sum())
    cones = [clarabel.ZeroConeT(many), clarabel.NonnegativeConeT(len(b) - many)]
    return padded, b[order], [cone for cone, size in zip(cones, (many, len(b) - many), strict=True) if size]


def solve_quadratic(Q, center, A, b, equality, *, l1=0.0, linf=0.0):
    """min 1/2 (x - c)' Q (x - c) + l1 |x - c|_1 + linf max|x - c| by an interior-point method."""
    import clarabel

    n = len(center)
    extra = n if l1 else (1 if linf else 0)
    rows, rhs, cones = _with_rows(A, b, equality, extra)
    q = np.concatenate((-Q @ center, np.full(extra, l1 or linf)))
    if extra:
        spread = np.eye(n) if l1 else np.ones((n, 1))
        bounds = sparse.csr_matrix(np.block([[np.eye(n), -spread], [-np.eye(n), -spread]]))
        rows, rhs = sparse.vstack([rows, bounds]), np.concatenate((rhs, center, -center))
        cones = [*cones, clarabel.NonnegativeConeT(2 * n)]
    P = sparse.block_diag([Q, np.zeros((extra, extra))]) if extra else Q
    return _solve_cone(P, q, rows, rhs, cones)[:n]


def nearest(A, b, center):
    """The point with A x <= b nearest to the center."""
    return solve_quadratic(np.eye(len(center)), center, A, b, np.zeros(len(b), bool))


def solve_conic(kind, center, A, b, equality, *, p=2.0):
    """min of a separable function by exponential, power or second-order cones, with one bound t_j a term.

    kind "entropy": x log(x / c) - x; "fermi_dirac": x log(x / c) + (1 - x) log((1 - x) / (1 - c));
    "hellinger" (plain, start 0): -sqrt(1 - x^2); "p_norm": |x - c|^p / p.
    """
    import clarabel

    n = len(center)
    terms = 2 * n if kind == "fermi_dirac" else n
    rows, rhs, cones = _with_rows(A, b, equality, terms)
    blocks, right = [rows], [rhs]

    def add(entries, constants, cone):
        """One three-dimensional cone that holds ``constants + entries``; entries are (row, column, value)."""
        block = sparse.lil_matrix((3, n + terms))
        for row, column, value in entries:
            block[row, column] = -value
        blocks.append(block)
        right.append(np.array(constants, float))
        cones.append(cone)

    for j in range(n):
        t, c = n + j, center[j]
        if kind in ("entropy", "fermi_dirac"):
            # The cone of s exp(r / s) <= u at (-t, x, c): x log(x / c) <= t.
            add([(0, t, -1.0), (1, j, 1.0)], (0.0, 0.0, c), clarabel.ExponentialConeT())
        if kind == "fermi_dirac":
            add([(0, t + n, -1.0), (1, j, -1.0)], (0.0, 1.0, 1.0 - c), clarabel.ExponentialConeT())
        if kind == "hellinger":
            add([(1, j, 1.0), (2, t, -1.0)], (1.0, 0.0, 0.0), clarabel.SecondOrderConeT(3))
        if kind == "p_norm":
            add([(0, t, 1.0), (2, j, 1.0)], (0.0, 1.0, -c), clarabel.PowerConeT(1.0 / p))
    q = np.concatenate(
        (np.full(n, -1.0 if kind == "entropy" else 0.0), np.full(terms, 1.0 / p if kind == "p_norm" else 1.0))
    )
    P = sparse.csc_matrix((n + terms, n + terms))
    return _solve_cone(P, q, sparse.vstack(blocks), np.concatenate(right), cones)[:n]


def nearest_correlation(matrix):
    """The nearest correlation matrix by an interior-point method over the upper triangle."""
    import clarabel

    n = len(matrix)
    # Clarabel's triangle: columns of the upper triangle, off-diagonal entries times sqrt(2).
    at = [(i, j) for j in range(n) for i in range(j + 1)]
    scale = np.array([1.0 if i == j else np.sqrt(2.0) for i, j in at])
    target = scale * np.array([matrix[i, j] for i, j in at])
    size = len(at)
    diagonal = [k for k, (i, j) in enumerate(at) if i == j]
    unit = sparse.csr_matrix((np.ones(n), (range(n), diagonal)), shape=(n, size))
    A = sparse.vstack([unit, -sparse.eye(size)])
    b = np.concatenate((np.ones(n), np.zeros(size)))
    v = _solve_cone(sparse.eye(size), -target, A, b, [clarabel.ZeroConeT(n), clarabel.PSDTriangleConeT(n)])
    answer = np.zeros((n, n))
    for k, (i, j) in enumerate(at):
        answer[i, j] = answer[j, i] = v[k] / scale[k]
    return answer
