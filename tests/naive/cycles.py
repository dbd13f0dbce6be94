"""Textbook versions of rows that are cycles of a graph: projections, and programs over all of them."""

import numpy as np

from .graphs import cycle_rows


def exact_step(y, inverse, row, closing, rhs, dual):
    """Change of one dual that maximises the dual function of min 1/2 sum (x-t)^2/inverse, x >= 0, by bisection."""
    sign = np.array([closing] + [-1.0] * (len(row) - 1))

    def excess(step):
        return sign @ np.maximum(y[row] - step * sign * inverse[row], 0.0) - rhs

    low, high = -dual, 1.0
    if excess(low) <= 0:
        return low
    while excess(high) > 0:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def project_rows(rows, dual, y, inverse, closing, rhs, sweeps):
    """Sweep over the rows with `exact_step`; changes ``dual`` and ``y``."""
    for _ in range(sweeps):
        for i, row in enumerate(rows):
            step = exact_step(y, inverse, row, closing, rhs, dual[i])
            sign = np.array([closing] + [-1.0] * (len(row) - 1))
            y[row] -= step * sign * inverse[row]
            dual[i] = max(dual[i] + step, 0.0)


def nearness(nodes, u, v, d, w):
    """Metric nearness with every cycle row and x >= 0, by an interior-point solver."""
    import clarabel
    from scipy import sparse

    rows = list(cycle_rows(nodes, u, v))
    edges = len(u)
    matrix = sparse.lil_matrix((len(rows) + edges, edges))
    for i, (e, path) in enumerate(rows):
        matrix[i, e] = 1.0
        matrix[i, path] = -1.0
    for e in range(edges):
        matrix[len(rows) + e, e] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    zeros = np.zeros(matrix.shape[0])
    solver = clarabel.DefaultSolver(
        sparse.diags(w).tocsc(), -w * d, matrix.tocsc(), zeros, [clarabel.NonnegativeConeT(len(zeros))], settings
    )
    x = np.array(solver.solve().x)
    return x, 0.5 * float(w @ (x - d) ** 2)


def conflicted_rows(nodes, u, v, weight):
    """Every (repulsive edge, path of attractive edges between its ends)."""
    repulsive = {e for e in range(len(u)) if weight[e] < 0}
    for e, path in cycle_rows(nodes, u, v, repulsive):
        if not repulsive & set(path):
            yield [e, *path]


def clustering_qp(nodes, u, v, weight, gamma):
    """min sum w f + (w/gamma) f^2, f >= 0, with every conflicted cycle, by an interior-point solver."""
    import clarabel
    from scipy import sparse

    w, edges = np.abs(weight), len(u)
    rows = list(conflicted_rows(nodes, u, v, weight))
    matrix = sparse.lil_matrix((len(rows) + edges, edges))
    for i, row in enumerate(rows):
        matrix[i, row] = -1.0
    for e in range(edges):
        matrix[len(rows) + e, e] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    rhs = np.concatenate((-np.ones(len(rows)), np.zeros(edges)))
    cone = [clarabel.NonnegativeConeT(len(rhs))]
    solver = clarabel.DefaultSolver(sparse.diags(2 * w / gamma).tocsc(), w, matrix.tocsc(), rhs, cone, settings)
    f = np.array(solver.solve().x)
    return f, float(w @ f + w @ (f * f) / gamma)


def clustering_lp(nodes, u, v, weight):
    """min sum w f, f >= 0, with every conflicted cycle, by HiGHS."""
    from scipy.optimize import linprog

    rows = list(conflicted_rows(nodes, u, v, weight))
    if not rows:
        return 0.0
    matrix = np.zeros((len(rows), len(u)))
    for i, row in enumerate(rows):
        matrix[i, row] = -1.0
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return float(linprog(np.abs(weight), A_ub=matrix, b_ub=-np.ones(len(rows)), bounds=(0, None), options=exact).fun)
