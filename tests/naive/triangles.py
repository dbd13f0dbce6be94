"""Textbook versions of what the dense engine does by tiles."""

import itertools

import numpy as np


def triangle_rows(nodes):
    """Every (closing pair, two other pairs) of the complete graph."""
    for i, j, k in itertools.combinations(range(nodes), 3):
        sides = [(i, j), (i, k), (j, k)]
        for closing in range(3):
            yield sides[closing], [side for at, side in enumerate(sides) if at != closing]


def excess(x, row):
    """By how much a row is violated at the square array x (upper part); negative where it holds."""
    closing, others = row
    return x[closing] - sum(x[side] for side in others)


def project_row(x, dual, inverse, row):
    """One projection of the method: the row is made an equality unless its dual would fall below zero."""
    closing, others = row
    step = excess(x, row) / (inverse[closing] + sum(inverse[side] for side in others))
    step = max(step, -dual.get(row_key(row), 0.0))
    move_row(x, inverse, row, step)
    dual[row_key(row)] = dual.get(row_key(row), 0.0) + step


def move_row(x, inverse, row, step):
    """Let the dual of a row grow: the closing side shrinks, the others grow."""
    closing, others = row
    x[closing] -= step * inverse[closing]
    for side in others:
        x[side] += step * inverse[side]


def row_key(row):
    """Something to look a row up by."""
    return row[0], tuple(row[1])


def load(nodes, duals):
    """A'z as a square array, upper part."""
    total = np.zeros((nodes, nodes))
    for (closing, others), value in duals.items():
        total[closing] += value
        for side in others:
            total[side] -= value
    return total


def close(x):
    """The largest metric below a symmetric nonnegative array, by Floyd and Warshall."""
    x = x.copy()
    for k in range(len(x)):
        x = np.minimum(x, x[:, [k]] + x[[k], :])
    return x


def largest_violation(x):
    """Largest violation of a triangle inequality at a symmetric array."""
    return max((x[:, None, :] - x[:, :, None] - x[None]).max(initial=0.0), 0.0)


def nearness(d, w, lower, upper):
    """Metric nearness on the complete graph with every triangle and limit, by an interior-point solver; by edge."""
    import clarabel
    from scipy import sparse

    nodes = len(d)
    u, v = np.triu_indices(nodes, 1)
    edge = {pair: at for at, pair in enumerate(zip(u.tolist(), v.tolist(), strict=True))}
    rows = list(triangle_rows(nodes))
    matrix = sparse.lil_matrix((len(rows), len(u)))
    for at, (closing, others) in enumerate(rows):
        matrix[at, edge[closing]] = 1.0
        matrix[at, [edge[side] for side in others]] = -1.0
    lower, upper = np.maximum(np.broadcast_to(lower, len(u)), 0.0), np.broadcast_to(upper, len(u))
    capped = np.isfinite(upper)
    eye = sparse.eye(len(u)).tocsr()
    stacked = sparse.vstack([matrix.tocsr(), -eye, eye[capped]]).tocsc()
    rhs = np.concatenate((np.zeros(len(rows)), -lower, upper[capped]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cone = [clarabel.NonnegativeConeT(len(rhs))]
    x = clarabel.DefaultSolver(sparse.diags(w).tocsc(), -w * d[u, v], stacked, rhs, cone, settings).solve().x
    return np.array(x), 0.5 * float(w @ (np.array(x) - d[u, v]) ** 2)
