"""Open wedges of a complete graph that have no pair in common.

Two attractive edges at a node whose other ends are a pair without a variable, which repels, are an open wedge: one of
its three pairs goes against every clustering.
"""

import numpy as np

from ..kernels import kernel


@kernel
def _is_known(start, upper, a, b):
    """Whether the pair has a variable; upper ends are sorted within those of one lower end."""
    low, high = min(a, b), max(a, b)
    first, last = start[low], start[low + 1]
    at = first + np.searchsorted(upper[first:last], high)
    return at < last and upper[at] == high


@kernel
def pack_wedges(arc_start, arcs, start, upper, edges, bar, tries, pair, reach, entries):
    """Open wedges without a common pair, greedily, node by node.

    Parameters
    ----------
    arc_start : int64[nodes + 1], arcs : ARC[arcs]
    start : int64[nodes + 1], upper : int32[known]
        The pairs that have a variable, by lower end, upper ends sorted.
    edges : int
        How many variables there are.
    bar : float
        What the two edges must be shorter than together.
    tries : int
        Other edges at the same node that each one is tried with, at most.
    pair : int32[rows, 2], reach : float64[rows], entries : int32[rows, 2]
        Out, as far as there is room: the ends of the third pair, lower one first, the way between them, its edges.

    Returns
    -------
    wedges, pairs of edges looked at : int
    """
    used, taken = np.zeros(edges, np.bool_), {np.int64(-1)}
    count, looked, nodes = 0, 0, len(arc_start) - 1
    for middle in range(nodes):
        for i in range(arc_start[middle], arc_start[middle + 1]):
            tried, j = 0, i + 1
            while count < len(pair) and j < arc_start[middle + 1] and tried < tries and not used[arcs[i].edge]:
                other, way = arcs[j], arcs[i].length + arcs[j].length
                j += 1
                if used[other.edge] or not way < bar:
                    continue
                low, high = min(arcs[i].node, other.node), max(arcs[i].node, other.node)
                code = np.int64(low) * nodes + high
                tried += 1
                if code in taken or _is_known(start, upper, low, high):
                    continue
                taken.add(code)
                used[arcs[i].edge] = used[other.edge] = True
                pair[count, 0], pair[count, 1], reach[count] = low, high, way
                entries[count, 0], entries[count, 1] = arcs[i].edge, other.edge
                count += 1
            looked += tried
    return count, looked
