"""The lengths of arcs at a point, and the order of arcs by length within a page."""

import numpy as np

from ..kernels import inlined, kernel
from .paths import PAGE_SHIFT


@kernel
def _after(arcs, a, b):
    """Whether arc ``a`` belongs behind arc ``b``: by length, then by head, so that there is one order only."""
    return arcs[a].length > arcs[b].length or (arcs[a].length == arcs[b].length and arcs[a].node > arcs[b].node)


@inlined
def _swap(arcs, a, b):
    length, node, edge = arcs[a].length, arcs[a].node, arcs[a].edge
    arcs[a].length, arcs[a].node, arcs[a].edge = arcs[b].length, arcs[b].node, arcs[b].edge
    arcs[b].length, arcs[b].node, arcs[b].edge = length, node, edge


@kernel
def _sort_afresh(arcs, begin, end):
    """Sort by two stable sorts, the less important key first."""
    part = arcs[begin:end].copy()
    length, node = np.empty(end - begin), np.empty(end - begin, np.int32)
    for k in range(end - begin):
        node[k] = part[k].node
    by_node = np.argsort(node)
    for k in range(end - begin):
        length[k] = part[by_node[k]].length
    by_length = np.argsort(length, kind="mergesort")
    for k in range(end - begin):
        arcs[begin + k] = part[by_node[by_length[k]]]


@kernel
def _sort_by_insertion(arcs, begin, end):
    """Insertion sort, for what is nearly in order."""
    for arc in range(begin + 1, end):
        at = arc
        while at > begin and _after(arcs, at - 1, at):
            _swap(arcs, at - 1, at)
            at -= 1


@kernel
def set_lengths(arc_start, page, length, arcs, shortest):
    """Give the arcs of a page their lengths and sort them by it, in each part of the page that one node has.

    Arcs that were sorted for lengths not far from these are nearly in order, and insertion then costs next to nothing.

    Parameters
    ----------
    arc_start : int64[nodes + 1], page : int
    length : float64[arcs of the page], arcs : ARC[arcs of the page]
        Lengths in the present order of the arcs.
    shortest : float64[nodes]
        Out: brought down to the shortest arc of each node that the page has arcs of.
    """
    offset = page << PAGE_SHIFT
    node = np.searchsorted(arc_start, offset, side="right") - 1
    begin = 0
    while begin < len(arcs):
        while arc_start[node + 1] <= offset + begin:
            node += 1
        end = min(arc_start[node + 1] - offset, len(arcs))
        disorder = 0
        for arc in range(begin, end):
            arcs[arc].length = length[arc]
            if arc > begin and _after(arcs, arc - 1, arc):
                disorder += 1
        if disorder > 8 + (end - begin) // 8:  # costs time only: there is one order
            _sort_afresh(arcs, begin, end)
        elif disorder:
            _sort_by_insertion(arcs, begin, end)
        shortest[node] = min(shortest[node], arcs[begin].length)
        begin = end
