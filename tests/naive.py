"""Textbook versions of what the package does fast. Nothing here imports the package."""

import itertools

import numpy as np


def random_graph(rng, nodes, edges):
    """A random simple graph, not necessarily connected, as (u, v) with u < v."""
    pairs = np.array(list(itertools.combinations(range(nodes), 2)))
    pick = rng.choice(len(pairs), size=min(edges, len(pairs)), replace=False)
    return pairs[pick, 0], pairs[pick, 1]


def distances(nodes, u, v, x):
    """All pairs by Floyd and Warshall."""
    dist = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(dist, 0.0)
    for a, b, length in zip(u, v, x, strict=True):
        dist[a, b] = dist[b, a] = min(dist[a, b], length)
    for k in range(nodes):
        for i in range(nodes):
            for j in range(nodes):
                dist[i, j] = min(dist[i, j], dist[i, k] + dist[k, j])
    return dist


def simple_paths(nodes, u, v, start, goal, banned):
    """Every simple path from start to goal that avoids the edge ``banned``, as lists of edges."""
    around = {i: [] for i in range(nodes)}
    for e, (a, b) in enumerate(zip(u, v, strict=True)):
        around[a].append((b, e))
        around[b].append((a, e))
    stack = [(start, (), frozenset([start]))]
    while stack:
        node, path, seen = stack.pop()
        if node == goal:
            yield list(path)
            continue
        for far, e in around[node]:
            if e != banned and far not in seen:
                stack.append((far, (*path, e), seen | {far}))


def cycle_rows(nodes, u, v, closing=None):
    """Every (closing edge, path) of the graph; ``closing`` restricts the closing edges."""
    for e, (a, b) in enumerate(zip(u, v, strict=True)):
        if closing is None or e in closing:
            for path in simple_paths(nodes, u, v, a, b, e):
                yield e, path


def shortest_with_hops(nodes, u, v, x, start, goal, banned, hops):
    """Length of the shortest simple path of at most ``hops`` edges that avoids ``banned``."""
    lengths = [sum(x[e] for e in path) for path in simple_paths(nodes, u, v, start, goal, banned) if len(path) <= hops]
    return min(lengths, default=np.inf)


def is_bridge(nodes, u, v, edge):
    """Whether the ends of an edge fall apart without it."""
    return not any(True for _ in simple_paths(nodes, u, v, u[edge], v[edge], edge))


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
    return float(linprog(np.abs(weight), A_ub=matrix, b_ub=-np.ones(len(rows)), bounds=(0, None)).fun)


def partitions(nodes):
    """Every way to label nodes 0..n-1, clusters numbered by first appearance."""
    labels = [[0]]
    for _ in range(nodes - 1):
        labels = [[*label, k] for label in labels for k in range(max(label) + 2)]
    return labels


def clustering_cost(u, v, weight, labels):
    """What a clustering costs, edge by edge."""
    cost = 0.0
    for a, b, w in zip(u, v, weight, strict=True):
        together = labels[a] == labels[b]
        if w > 0 and not together:
            cost += w
        if w < 0 and together:
            cost -= w
    return cost


def wang_weights(nodes, u, v):
    """Weight of every pair with a common neighbour, by the definition."""
    near = [set() for _ in range(nodes)]
    for a, b in zip(u, v, strict=True):
        near[a].add(int(b))
        near[b].add(int(a))
    found = {}
    for a in range(nodes):
        for b in range(a + 1, nodes):
            common = len(near[a] & near[b])
            if common:
                jaccard = common / len(near[a] | near[b])
                value = np.log((1 + jaccard - 0.05) / (1 - jaccard + 0.05))
                away = np.sign(value) or (1.0 if b in near[a] else -1.0)
                found[a, b] = value + 0.01 * away
    return found
