"""Violated cycles that have no edge in common: a bounded search from both ends of each closing edge.

The search is breadth first, so that cycles have few arcs, and goes on from the end with fewer nodes to go on from. Arcs
that the cycles before have used are closed to it. It is given up after so many arcs: what it misses is left to others.
Closing edges are searched for a few at a time against one state of the used edges, and then taken in their order
(`take_disjoint`), so that threads may share the searches. A search that comes to a page that is not resident stops,
says which one, and goes on from the same arc once the page is there.

Packing cycles without common edges is how Lange, Karrenbauer and Andres (2018) bound the cost of clusterings.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import inlined, kernel
from .paths import PAGE_MASK, PAGE_SHIFT

DONE = -1
NOTHING, TAKEN, IN_THE_WAY = range(3)
MOST_MARK = 1 << 30

# Slots of the state. There are two of BEGIN and of END, one for each side.
CLOSER, STARTED, LOOKED, VISITED, HOP, AT, FILL, ARC, BEGIN, END, STATE_SLOTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12
NODE = np.dtype((np.record, [("mark", np.int32), ("parent", np.int32), ("edge", np.int32), ("length", np.float32)]))


class Visits(NamedTuple):
    """What searches write: a record for each node, and the nodes each end has reached, in their order.

    ``mark`` int32[1] is that of the last search; a node belongs to the near end's side if it has it, to the far end's
    if it has one more. ``state`` int64[...] is where a search stands that waits for a page.
    """

    node: np.ndarray
    queue: np.ndarray
    mark: np.ndarray
    state: np.ndarray


class Closing(NamedTuple):
    """Closing edges and what became of them.

    Attributes
    ----------
    near, far, edge : int32[c]
    limit : float64[c]
        What a path must be shorter than.
    path : int32[c, hops]
        Out: the edges of the path found.
    hops : int32[c]
        Out: how many these are, 0 if none was found.
    """

    near: np.ndarray
    far: np.ndarray
    edge: np.ndarray
    limit: np.ndarray
    path: np.ndarray
    hops: np.ndarray


def make_visits(nodes: int, most_arcs: int) -> Visits:
    """Room for searches that look at so many arcs at most."""
    queue, state = np.empty((2, most_arcs + 2), np.int32), np.zeros(STATE_SLOTS, np.int64)
    return Visits(np.zeros(nodes, NODE), queue, np.zeros(1, np.int32), state)


def make_closing(near: np.ndarray, far: np.ndarray, edge: np.ndarray, limit: np.ndarray, hops: int) -> Closing:
    """Closing edges, with room for paths."""
    count = len(near)
    return Closing(near, far, edge, limit, np.empty((count, hops), np.int32), np.zeros(count, np.int32))


def make_bits(count: int) -> np.ndarray:
    """So many bits, none of them set."""
    return np.zeros((count + 7) >> 3, np.uint8)


@inlined
def _is_set(bits, k):
    return bits[k >> 3] >> (k & 7) & 1


@inlined
def _set(bits, k):
    bits[k >> 3] |= np.uint8(1 << (k & 7))


@kernel
def are_set(bits, index):
    """Which of the bits at ``index`` are set, bool[n]."""
    found = np.empty(len(index), np.bool_)
    for k in range(len(index)):
        found[k] = _is_set(bits, index[k]) != 0
    return found


@kernel
def _next_mark(visits):
    """A mark that no node has, nor the one behind it."""
    if visits.mark[0] >= MOST_MARK:
        for k in range(len(visits.node)):
            visits.node[k].mark = 0
        visits.mark[0] = 0
    visits.mark[0] += 2
    return visits.mark[0]


@kernel
def _begin(near, far, visits):
    """Put the two ends of a closing edge where its search begins; returns the mark of the near end's side."""
    mark, seen, state = _next_mark(visits), visits.node, visits.state
    for side in range(2):
        end = near if side == 0 else far
        seen[end].mark, seen[end].parent, seen[end].length = mark + side, -1, 0.0
        visits.queue[side, 0] = end
        state[BEGIN + side], state[END + side] = 0, 1
    state[STARTED], state[VISITED], state[HOP], state[AT] = 1, 0, 0, -1
    return mark


@kernel
def _write_path(node, parent_of, path, count):
    """Append the edges from ``node`` back to where its side began; returns how many there are then."""
    while parent_of[node].parent >= 0:
        path[count] = parent_of[node].edge
        node, count = parent_of[node].parent, count + 1
    return count


@kernel
def search_both_ends(closing, used, most_hops, most_arcs, pages, visits):
    """Search for a path around each closing edge, from where the last call stopped.

    Parameters
    ----------
    closing : Closing
    used : uint8[edges / 8]
        Bits of the edges that no path may have.
    most_hops, most_arcs : int
        Of a path, and looked at for one of them.
    pages : Pages
    visits : Visits
        Its ``state`` is zero at first; at the end its `LOOKED` is how many arcs were looked at in all.

    Returns
    -------
    int
        `DONE`, or the page that is missing.
    """
    arc_start, slot_of_page, recent, arcs, _ = pages
    near, far, _, limits, paths, hops_of = closing
    seen, queue, state = visits.node, visits.queue, visits.state
    while state[CLOSER] < len(near):
        k = state[CLOSER]
        limit, mark = limits[k], visits.mark[0] if state[STARTED] else _begin(near[k], far[k], visits)
        begin0, end0, begin1, end1 = state[BEGIN], state[END], state[BEGIN + 1], state[END + 1]
        looked, hops, at, fill, arc = state[VISITED], state[HOP], state[AT], state[FILL], state[ARC]
        met, on, last = -1, -1, -1
        while met < 0 and hops < most_hops and looked < most_arcs:
            side = 0 if end0 - begin0 <= end1 - begin1 else 1
            begin, end = (begin0, end0) if side == 0 else (begin1, end1)
            if begin == end:
                break
            if at < 0:
                at, fill, arc = begin, end, arc_start[queue[side, begin]]
            mine, other = mark + side, mark + 1 - side
            while at < end and met < 0 and looked < most_arcs:
                node = queue[side, at]
                so_far, stop = seen[node].length, arc_start[node + 1]
                while arc < stop and met < 0 and looked < most_arcs:
                    page = arc >> PAGE_SHIFT
                    slot = slot_of_page[page]
                    if slot < 0:
                        state[BEGIN], state[END], state[BEGIN + 1], state[END + 1] = begin0, end0, begin1, end1
                        state[VISITED], state[HOP], state[AT], state[FILL], state[ARC] = looked, hops, at, fill, arc
                        return page
                    recent[slot] = 1
                    upto = min(stop, (page + 1) << PAGE_SHIFT)
                    place = (np.int64(slot) << PAGE_SHIFT) + (arc & PAGE_MASK)
                    while arc < upto and looked < most_arcs:
                        step = arcs[place]
                        arc, place, looked = arc + 1, place + 1, looked + 1
                        length = so_far + step.length
                        if not length < limit:
                            arc = upto  # arcs are sorted by length within a page
                            break
                        found = seen[step.node].mark
                        if found == mine or _is_set(used, step.edge):
                            continue
                        if found == other:
                            if length + seen[step.node].length < limit:
                                met, on, last = node, step.node, step.edge
                                break
                            continue
                        seen[step.node].mark, seen[step.node].parent = mine, node
                        seen[step.node].edge, seen[step.node].length = step.edge, length
                        queue[side, fill] = step.node
                        fill += 1
                at += 1
                if at < end:
                    arc = arc_start[queue[side, at]]
            if side == 0:
                begin0, end0 = end, fill
            else:
                begin1, end1 = end, fill
            hops, at = hops + 1, -1
        hops_of[k] = 0
        if met >= 0:
            paths[k, 0] = last
            hops_of[k] = _write_path(on, seen, paths[k], _write_path(met, seen, paths[k], 1))
        state[LOOKED] += looked
        state[CLOSER], state[STARTED] = k + 1, 0
    return DONE


@kernel
def take_disjoint(closing, used, taken):
    """Take the cycles in their order that have no used edge, and mark their edges as used.

    ``taken`` uint8[c] becomes `TAKEN`, `IN_THE_WAY` where a cycle taken before it has one of its edges, or `NOTHING`.
    """
    _, _, edge, _, path, hops = closing
    for k in range(len(edge)):
        taken[k] = NOTHING
        if hops[k] == 0:
            continue
        free = _is_set(used, edge[k]) == 0
        for hop in range(hops[k]):
            free = free and _is_set(used, path[k, hop]) == 0
        taken[k] = TAKEN if free else IN_THE_WAY
        if free:
            _set(used, edge[k])
            for hop in range(hops[k]):
                _set(used, path[k, hop])
