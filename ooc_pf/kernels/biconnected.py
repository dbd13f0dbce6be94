"""Biconnected components of a graph, by one depth-first search (Hopcroft and Tarjan)."""

import numpy as np

from ..kernels import kernel

BRIDGE = -1


@kernel
def _edges_by_node(u, v, nodes):
    """Where each node starts in the list of all edges by their ends, and that list (a counting sort)."""
    start = np.zeros(nodes + 1, np.int64)
    for edge in range(len(u)):
        start[u[edge] + 1] += 1
        start[v[edge] + 1] += 1
    start = np.cumsum(start)
    following, listed = start[:-1].copy(), np.empty(2 * len(u), np.int32)
    for edge in range(len(u)):
        for node in (u[edge], v[edge]):
            listed[following[node]] = edge
            following[node] += 1
    return start, listed


@kernel
def _number_by_first_edge(component, count):
    """Number the components in the order of their first edges: the numbers then depend on the graph alone."""
    number, given = np.full(count, BRIDGE, np.int64), 0
    for edge in range(len(component)):
        if component[edge] != BRIDGE:
            if number[component[edge]] == BRIDGE:
                number[component[edge]] = given
                given += 1
            component[edge] = number[component[edge]]


@kernel
def find_components(u, v, nodes):
    """The biconnected component of each edge, int64[edges]; -1 for a bridge.

    Parameters
    ----------
    u, v : int64[edges]
        Ends, below ``nodes``, without self loops and repeated edges.
    """
    start, listed = _edges_by_node(u, v, nodes)
    following = start[:-1].copy()
    reached = np.zeros(nodes, np.int32)  # the how manieth node it was; 0: not yet
    lowest = np.zeros(nodes, np.int32)  # the first node that its subtree has an edge to
    entered = np.full(nodes, -1, np.int32)  # the edge it was reached by
    path, waiting = np.empty(nodes, np.int32), np.empty(len(u), np.int32)
    component = np.full(len(u), BRIDGE, np.int64)
    count = walked = held = 0
    for root in range(nodes):
        if reached[root]:
            continue
        depth, path[0] = 0, root
        walked += 1
        reached[root] = lowest[root] = walked
        while depth >= 0:
            node = path[depth]
            if following[node] < start[node + 1]:
                edge = listed[following[node]]
                following[node] += 1
                other = u[edge] + v[edge] - node
                if edge == entered[node] or reached[other] > reached[node]:
                    continue
                waiting[held] = edge
                held += 1
                if reached[other]:
                    lowest[node] = min(lowest[node], reached[other])
                    continue
                walked += 1
                reached[other] = lowest[other] = walked
                entered[other] = edge
                depth += 1
                path[depth] = other
                continue
            depth -= 1
            if depth < 0:
                continue
            above = path[depth]
            lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] >= reached[above]:  # nothing below leads past `above`: a component is complete
                first = held - 1
                while waiting[first] != entered[node]:
                    first -= 1
                if held - first > 1:
                    component[waiting[first:held]] = count
                    count += 1
                held = first
    _number_by_first_edge(component, count)
    return component
