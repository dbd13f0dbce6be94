"""Textbook versions of clustering."""

import functools
import itertools

import numpy as np


def table(nodes, u, v, weight, base):
    """Signed weight of every pair as a symmetric matrix, zero on the diagonal."""
    w = np.full((nodes, nodes), 0.0 if base is None else base, np.float64)
    np.fill_diagonal(w, 0.0)
    w[u, v] = w[v, u] = weight
    return w


def cost(w, labels):
    """Sum over all pairs: attractive apart, repulsive together."""
    pairs = itertools.combinations(range(len(w)), 2)
    return sum(max(-w[i, j], 0.0) if labels[i] == labels[j] else max(w[i, j], 0.0) for i, j in pairs)


@functools.cache
def partitions(nodes):
    """Every partition, as rows of labels numbered by first appearance."""
    rows = [[0]]
    for _ in range(nodes - 1):
        rows = [[*row, label] for row in rows for label in range(max(row) + 2)]
    return np.array(rows)


def least_cost(w):
    """The optimum over all partitions: as savings, so that every partition is one product."""
    i, j = np.triu_indices(len(w), 1)
    labels = partitions(len(w))
    saved = (labels[:, i] == labels[:, j]) @ w[i, j]
    return float(np.maximum(w[i, j], 0.0).sum() - saved.max())


def join_greedily(w):
    """Join the two clusters with the largest positive sum between them, until none is left."""
    groups = [[i] for i in range(len(w))]
    while True:
        pairs = list(itertools.combinations(range(len(groups)), 2))
        gains = [w[np.ix_(groups[a], groups[b])].sum() for a, b in pairs]
        if not gains or max(gains) <= 0:
            return groups
        a, b = pairs[int(np.argmax(gains))]
        groups[a] += groups.pop(b)


def pivot(nodes, takes, order):
    """Clusters of pivots; ``takes`` is a set of ordered pairs (pivot, taken)."""
    free, groups = set(range(nodes)), []
    for centre in order:
        if centre in free:
            group = {centre} | {i for i in free if (centre, i) in takes}
            groups.append(group)
            free -= group
    return groups


def contract(edges, labels):
    """Sum of the weights between each cluster and each other one, as {tail: {head: weight}}."""
    sums = {}
    for a, b, weight in edges:
        for tail, head in ((labels[a], labels[b]), (labels[b], labels[a])):
            if tail != head:
                row = sums.setdefault(tail, {})
                row[head] = row.get(head, 0.0) + weight
    return sums


def move_in_order(w, labels, passes):
    """Each node in turn goes to where it saves most, alone if that is best; so many times, or until none moves."""
    labels = list(labels)
    for _ in range(passes):
        before = list(labels)
        for i in range(len(w)):
            pull = {label: sum(w[i, j] for j in range(len(w)) if j != i and labels[j] == label) for label in labels}
            best = max(pull, key=pull.get)
            if pull[best] > max(pull[labels[i]], 0.0):
                labels[i] = best
            elif pull[labels[i]] < 0:
                labels[i] = max(labels) + 1
        if labels == before:
            break
    return labels


def meet(one, other):
    """Groups of nodes that both clusterings keep together."""
    groups = {}
    for node, pair in enumerate(zip(one, other, strict=True)):
        groups.setdefault(pair, set()).add(node)
    return set(map(frozenset, groups.values()))


def best_move(w, labels):
    """The most any single move saves, to another cluster or out of all."""
    most = 0.0
    for i in range(len(w)):

        def pull(label, i=i):
            return sum(w[i, j] for j in range(len(w)) if j != i and labels[j] == label)

        here = pull(labels[i])
        most = max(most, -here, *(pull(label) - here for label in set(labels)))
    return most


def best_join(w, labels):
    """The most any join of two clusters saves."""
    groups = [np.flatnonzero(np.equal(labels, label)) for label in set(labels)]
    return max((w[np.ix_(a, b)].sum() for a, b in itertools.combinations(groups, 2)), default=0.0)


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
