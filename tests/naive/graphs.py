"""Textbook versions of what is asked of a graph."""

import numpy as np


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


def is_cycle(u, v):
    """Whether these edges make one simple cycle: two at each node, and no way to close it sooner."""
    at, left = u[0], set(range(len(u)))
    for _ in range(len(u)):
        here = [e for e in left if at in (u[e], v[e])]
        if not here or sum(int(u[e] == at) + int(v[e] == at) for e in range(len(u))) != 2:
            return False
        left.discard(here[0])
        at = v[here[0]] if u[here[0]] == at else u[here[0]]
    return at == u[0]


def is_bridge(nodes, u, v, edge):
    """Whether the ends of an edge fall apart without it."""
    return not any(True for _ in simple_paths(nodes, u, v, u[edge], v[edge], edge))


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
