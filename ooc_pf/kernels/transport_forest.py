"""The exact end of soft transport: multipliers on a forest of pairs, and pivots that keep them right.

The potentials z are the projection of the targets d onto the half-spaces z_i + z_j <= c_e of the pairs. Pairs that
hold with equality form a forest. On a tree the potentials are fixed by its costs up to one shift, along the signs
(1 on rows, -1 on columns); multipliers follow from the leaves. The pivots are those of the dual active-set method
(Goldfarb and Idnani): a violated pair gets a growing multiplier, and pairs whose own one comes to zero leave.
"""

from typing import NamedTuple

import numpy as np

from . import inlined, kernel


class Forest(NamedTuple):
    """Trees over the nodes, as linked lists: half-edge 2e of pair e is at its left end, 2e + 1 at its right end.

    Attributes
    ----------
    rows : int
        Nodes are numbered rows first.
    left, right : int64[pairs]
        A row, and a column.
    cost, p : float64[pairs]
        Multipliers are zero outside the forest.
    target, z : float64[nodes]
    member : bool[pairs]
    head : int64[nodes]
    after, before : int64[2 * pairs]
        Neighbours in the list of a node; -1 where it ends.
    """

    rows: int
    left: np.ndarray
    right: np.ndarray
    cost: np.ndarray
    p: np.ndarray
    target: np.ndarray
    z: np.ndarray
    member: np.ndarray
    head: np.ndarray
    after: np.ndarray
    before: np.ndarray


@inlined
def _link(half, node, head, after, before):
    after[half], before[half] = head[node], -1
    if head[node] >= 0:
        before[head[node]] = half
    head[node] = half


@inlined
def _unlink(half, node, head, after, before):
    if before[half] >= 0:
        after[before[half]] = after[half]
    else:
        head[node] = after[half]
    if after[half] >= 0:
        before[after[half]] = before[half]


@kernel
def add_pair(forest, e):
    """Let a pair join two trees."""
    _link(2 * e, forest.left[e], forest.head, forest.after, forest.before)
    _link(2 * e + 1, forest.right[e], forest.head, forest.after, forest.before)
    forest.member[e] = True


@kernel
def remove_pair(forest, e):
    """Cut a tree at a pair."""
    _unlink(2 * e, forest.left[e], forest.head, forest.after, forest.before)
    _unlink(2 * e + 1, forest.right[e], forest.head, forest.after, forest.before)
    forest.member[e], forest.p[e] = False, 0.0


@kernel
def _walk(root, forest, order, first, parent):
    """Write the nodes of a tree to ``order[first:]``, parents first, and the half-edge to its parent of each.

    Returns where it ended.
    """
    left, right, head, after = forest.left, forest.right, forest.head, forest.after
    order[first], parent[root] = root, -1
    at, end = first, first + 1
    while at < end:
        node = order[at]
        at += 1
        half = head[node]
        while half >= 0:
            if half != parent[node]:
                far = right[half >> 1] if half & 1 == 0 else left[half >> 1]
                order[end], parent[far] = far, half ^ 1
                end += 1
            half = after[half]
    return end


@kernel
def settle_trees(forest):
    """Potentials and multipliers of all trees from their costs and targets alone."""
    left, right, cost = forest.left, forest.right, forest.cost
    p, target, z = forest.p, forest.target, forest.z
    n = len(z)
    order, parent, done, rest = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.bool_), np.empty(n)
    for root in range(n):
        if done[root]:
            continue
        end = _walk(root, forest, order, 0, parent)
        # z is first found with 0 at the root, then shifted along the signs to the mean of what is left.
        z[root], shift = 0.0, target[root]
        rest[root] = 1.0  # the sign of the node, relative to the root's
        for k in range(1, end):
            node = order[k]
            e = parent[node] >> 1
            up = left[e] + right[e] - node
            z[node], rest[node] = cost[e] - z[up], -rest[up]
            shift += rest[node] * (target[node] - z[node])
        shift /= end
        for k in range(end):
            node = order[k]
            z[node] += shift * rest[node]
            rest[node], done[node] = target[node] - z[node], True
        for k in range(end - 1, 0, -1):
            node = order[k]
            e = parent[node] >> 1
            p[e] = rest[node]
            rest[left[e] + right[e] - node] -= rest[node]


@kernel
def drop_negative(forest):
    """Cut the forest wherever a multiplier is negative; returns how many pairs left."""
    dropped = 0
    for e in range(len(forest.p)):
        if forest.member[e] and forest.p[e] < 0.0:
            remove_pair(forest, e)
            dropped += 1
    return dropped


@kernel
def spanning_forest(forest, chosen):
    """Take up the ``chosen`` pairs in turn, but those that would close a cycle (Kruskal)."""
    n = len(forest.z)
    up = np.arange(n)
    for e in chosen:
        a, b = forest.left[e], forest.right[e]
        while up[a] != a:
            up[a] = up[up[a]]
            a = up[a]
        while up[b] != b:
            up[b] = up[up[b]]
            b = up[b]
        if a != b:
            up[a] = b
            add_pair(forest, e)


@inlined
def _flows(first, last, order, parent, left, right, flow, need):
    """Flows on the edges of a tree that give each node what it needs; the root balances. Leaves first."""
    for k in range(last - 1, first, -1):
        node = order[k]
        e = parent[node] >> 1
        flow[e] = need[node]
        need[left[e] + right[e] - node] -= need[node]


@inlined
def _turn_cycle(q, forest, parent):
    """Change multipliers by turns along the cycle that q closes, until one is zero: that pair leaves."""
    left, right, p = forest.left, forest.right, forest.p
    i, j = left[q], right[q]
    length, leaving, node, falls = np.inf, -1, j, True
    while node != i:
        e = parent[node] >> 1
        if falls and p[e] < length:
            length, leaving = p[e], e
        node, falls = left[e] + right[e] - node, not falls
    node, falls = j, True
    while node != i:
        e = parent[node] >> 1
        p[e] += -length if falls else length
        node, falls = left[e] + right[e] - node, not falls
    p[q] += length
    remove_pair(forest, leaving)


@inlined
def _join_trees(q, forest, parent, order, middle, end, flow, need):
    """Let the multiplier of q grow, and the two trees move, until q holds with equality or a pair has to leave.

    Returns whether q holds.
    """
    left, right, cost, p, z, rows = forest.left, forest.right, forest.cost, forest.p, forest.z, forest.rows
    i, j = left[q], right[q]
    one, two = 1.0 / middle, 1.0 / (end - middle)
    for k in range(end):
        node = order[k]
        part = one if k < middle else -two
        need[node] = -part if node < rows else part
    need[i] += 1.0
    need[j] += 1.0
    _flows(0, middle, order, parent, left, right, flow, need)
    _flows(middle, end, order, parent, left, right, flow, need)
    length, leaving = max(z[i] + z[j] - cost[q], 0.0) / (one + two), -1
    for k in range(end):
        half = parent[order[k]]
        if half >= 0 and flow[half >> 1] > 0.0 and p[half >> 1] < length * flow[half >> 1]:
            length, leaving = max(p[half >> 1], 0.0) / flow[half >> 1], half >> 1
    for k in range(end):
        node = order[k]
        part = one if k < middle else -two
        z[node] -= length * part if node < rows else -length * part
        if parent[node] >= 0:
            p[parent[node] >> 1] -= length * flow[parent[node] >> 1]
    p[q] += length
    if leaving >= 0:
        remove_pair(forest, leaving)
        return False
    add_pair(forest, q)
    return True


@kernel
def enter_pair(q, forest, order, parent, flow, need, most):
    """Pivot until pair q holds with equality; returns how many nodes were visited, or -1 after ``most`` pivots.

    ``order``, ``parent``, ``need`` (by node) and ``flow`` (by pair) are scratch.
    """
    i, j = forest.left[q], forest.right[q]
    visited = 0
    for _ in range(most):
        middle = _walk(i, forest, order, 0, parent)
        joined = False
        for k in range(middle):
            joined = joined or order[k] == j
        if joined:
            visited += middle
            _turn_cycle(q, forest, parent)
            continue
        end = _walk(j, forest, order, middle, parent)
        visited += end
        if _join_trees(q, forest, parent, order, middle, end, flow, need):
            return visited
    return -1


@kernel
def pivot(forest, limit, most, work, stop):
    """Let violated pairs enter, the most violated of a pass first, until none is violated by more than ``limit``.

    At most ``most`` pivots are made for a pair, and ``work`` nodes visited in all. Returns whether all pairs hold, and
    how many nodes were visited.
    """
    left, right, cost, z = forest.left, forest.right, forest.cost, forest.z
    n = len(z)
    order, parent, need = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    flow, excess = np.empty(len(cost)), np.empty(len(cost))
    visited = 0
    while True:
        for e in range(len(cost)):
            excess[e] = 0.0 if forest.member[e] else z[left[e]] + z[right[e]] - cost[e]
        violated = np.flatnonzero(excess > limit)
        if len(violated) == 0:
            return True, visited
        for q in violated[np.argsort(-excess[violated], kind="mergesort")]:
            if visited > work or stop[0]:
                return False, visited
            if not forest.member[q] and z[left[q]] + z[right[q]] - cost[q] > limit:
                spent = enter_pair(q, forest, order, parent, flow, need, most)
                if spent < 0:
                    return False, visited
                visited += spent
