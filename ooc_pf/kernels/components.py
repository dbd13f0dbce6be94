"""Connected components of edges that come in parts, by union-find with path halving."""

from ..kernels import inlined, kernel


@inlined
def root_of(node, parent):
    """The root of the tree that ``node`` is in, whose path gets shorter on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def join_ends(u, v, keep, parent):
    """Join the components of both ends of every edge with ``keep`` set; ``parent`` int32[nodes] begins as 0, 1, ..."""
    for edge in range(len(u)):
        if keep[edge]:
            a, b = root_of(u[edge], parent), root_of(v[edge], parent)
            # The lower number is the root, whatever the order of the edges.
            if a < b:
                parent[b] = a
            elif b < a:
                parent[a] = b


@kernel
def settle(parent):
    """Point every node at the root of its component."""
    for node in range(len(parent)):
        parent[node] = parent[parent[node]]
