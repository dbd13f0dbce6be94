"""Textbook transport: matrices of costs, all pairs at once, and an interior-point solver of somebody else."""

import clarabel
import numpy as np
from scipy import sparse


def costs(x, y, root=False):
    squares = np.array([[sum((p - q) ** 2 for p, q in zip(a, b)) for b in y] for a in x])
    return np.sqrt(squares) if root else squares


def largest_excesses(cost, f, h, k, limit):
    """The pairs among the k largest excesses above ``limit`` of their row or their column, as a set."""
    excess = f[:, None] + h - cost
    found = set()
    for i, line in enumerate(excess):
        found |= {(i, int(j)) for j in np.argsort(-line, kind="stable")[:k] if line[j] > limit}
    for j, line in enumerate(excess.T):
        found |= {(int(i), j) for i in np.argsort(-line, kind="stable")[:k] if line[i] > limit}
    return found


def incidence(shape):
    """A row for each row and column of a plan, a column for each of its entries."""
    n, m = shape
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye_array(m))
    return sparse.vstack([rows, columns]).tocsc()


def soft_value(a, b, cost, gamma, plan):
    rows, columns = a - plan.sum(axis=1), b - plan.sum(axis=0)
    return np.sum(cost * plan) + gamma / 2 * (rows @ rows + columns @ columns)


def soft_bound(a, b, gamma, f, h):
    return f @ a + h @ b - (f @ f + h @ h) / (2 * gamma)


def exact_value(cost, reg, plan):
    return np.sum(cost * plan) + reg / 2 * np.sum(plan**2)


def exact_bound(a, b, cost, reg, f, h):
    return f @ a + h @ b - np.sum(np.maximum(0, f[:, None] + h - cost) ** 2) / (2 * reg)


def _minimise(Q, q, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    return np.array(clarabel.DefaultSolver(sparse.triu(Q).tocsc(), q, A.tocsc(), b, cones, settings).solve().x)


def solve_soft(a, b, cost, gamma):
    """min <C, P> + gamma/2 (|a - P1|^2 + |b - P'1|^2) over P >= 0, with the marginals as further variables."""
    n, m = cost.shape
    B, pairs, nodes = incidence(cost.shape), n * m, n + m
    Q = sparse.block_diag([sparse.csc_array((pairs, pairs)), gamma * sparse.eye_array(nodes)]).tocsc()
    A = sparse.vstack(
        [
            sparse.hstack([B, sparse.eye_array(nodes)]),
            sparse.hstack([-sparse.eye_array(pairs), sparse.csc_array((pairs, nodes))]),
        ]
    )
    right = np.concatenate([a, b, np.zeros(pairs)])
    cones = [clarabel.ZeroConeT(nodes), clarabel.NonnegativeConeT(pairs)]
    found = _minimise(Q, np.concatenate([cost.ravel(), np.zeros(nodes)]), A, right, cones)
    return np.maximum(found[:pairs], 0).reshape(n, m)


def solve_exact(a, b, cost, reg):
    """min <C, P> + reg/2 |P|^2 over P >= 0 with P1 = a and P'1 = b."""
    pairs, nodes = cost.size, sum(cost.shape)
    A = sparse.vstack([incidence(cost.shape), -sparse.eye_array(pairs)])
    right = np.concatenate([a, b, np.zeros(pairs)])
    cones = [clarabel.ZeroConeT(nodes), clarabel.NonnegativeConeT(pairs)]
    return np.maximum(_minimise(reg * sparse.eye_array(pairs), cost.ravel(), A, right, cones), 0).reshape(cost.shape)


def forest_of(left, right, order, nodes):
    """The pairs that Kruskal takes, in that order."""
    tree, taken = list(range(nodes)), []
    for e in order:
        a, b = tree[left[e]], tree[right[e]]
        if a != b:
            tree = [b if each == a else each for each in tree]
            taken.append(int(e))
    return taken, np.array(tree)


def route_rests(left, right, order, rest):
    """Changes on a forest that give every node its rest, where each tree needs as much in rows as in columns."""
    taken, _ = forest_of(left, right, order, len(rest))
    ends = np.zeros((len(rest), len(taken)))
    for k, e in enumerate(taken):
        ends[left[e], k] = ends[right[e], k] = 1.0
    flow = np.zeros(len(left))
    flow[taken] = np.linalg.lstsq(ends, rest, rcond=None)[0]
    return flow
