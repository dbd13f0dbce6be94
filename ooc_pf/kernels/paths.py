"""Shortest paths that close cycles: a bounded, resumable search over paged arcs.

Labels wait in the bucket queue of `kernels.queue`.

Arcs live in pages of ``2**PAGE_SHIFT``, sorted by length within the part of a page that belongs to one node, so that a
scan ends at the first arc that leads too far. When a search touches a page that is not resident it stops, says
which one, and goes on from the same arc once the page is there. With every page resident there are no stops, and the
order of work is the same, hence the same bits.
"""

import numpy as np

from ..kernels import inlined, kernel
from .queue import (
    BUCKET,
    BUCKETS,
    EDGE,
    HOPS,
    PARENT,
    QUEUE_SLOTS,
    QUEUED,
    TOUCHED,
    clear_labels,
    label_node,
    take_first,
)

PAGE_SHIFT = 12
UNLIMITED = 2**31 - 1  # as max_hops: a complete search

# Slots of the integer state of a search, behind those of the queue.
SOURCE, PHASE, NODE, CURSOR, TARGET, ROWS, ENTRIES, RELAXED, KEPT, FIRST = range(QUEUE_SLOTS, QUEUE_SLOTS + 10)
STATE_SIZE = QUEUE_SLOTS + 10
START, EXPAND, COLLECT = range(3)
# What `advance` returns when it does not name a missing page.
DONE, FULL, STOPPED = -1, -2, -3

# Length, head and edge of an arc side by side: a search pays for one cache line where three arrays would cost three.
ARC = np.dtype([("length", np.float64), ("node", np.int32), ("edge", np.int32)])


@kernel
def _after(arcs, a, b):
    """Whether arc ``a`` belongs behind arc ``b``: by length, then by head, so that there is one order only."""
    return arcs[a].length > arcs[b].length or (arcs[a].length == arcs[b].length and arcs[a].node > arcs[b].node)


@kernel
def _sort_afresh(arcs, begin, end):
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
    for arc in range(begin + 1, end):
        at = arc
        while at > begin and _after(arcs, at - 1, at):
            length, node, edge = arcs[at].length, arcs[at].node, arcs[at].edge
            arcs[at].length, arcs[at].node, arcs[at].edge = arcs[at - 1].length, arcs[at - 1].node, arcs[at - 1].edge
            arcs[at - 1].length, arcs[at - 1].node, arcs[at - 1].edge = length, node, edge
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
        if disorder > 8 + (end - begin) // 8:
            _sort_afresh(arcs, begin, end)
        elif disorder:
            _sort_by_insertion(arcs, begin, end)
        shortest[node] = min(shortest[node], arcs[begin].length)
        begin = end


@inlined
def next_page(arc):
    """The first arc of the next page: where arcs of the same node may be shorter again."""
    return ((arc >> PAGE_SHIFT) + 1) << PAGE_SHIFT


@inlined
def _radius(order, count, closer_node, need, dist, floor, state):
    """How far the search must still go: the largest need of a closing edge whose far end is not final yet."""
    at = state[TARGET]
    while at < count and dist[closer_node[order[at]]] < floor:
        at += 1
    state[TARGET] = at
    return need[order[at]] if at < count else -np.inf


@inlined
def _relax(arcs, start, stop, node, radius, max_hops, scale,
           dist, label, head, touched, state):  # fmt: skip
    """Relax the resident arcs ``start:stop`` of ``node``, shortest first, until they lead beyond the radius."""
    base, hop = dist[node], label[node, HOPS] + 1
    for arc in range(start, stop):
        length = base + arcs[arc].length
        if length >= radius:
            state[RELAXED] += arc - start
            return
        far = arcs[arc].node
        if length < dist[far] or (length == dist[far] and hop < label[far, HOPS]):
            label_node(far, length, hop, node, arcs[arc].edge, hop < max_hops, scale,
                   dist, label, head, touched, state)  # fmt: skip
    state[RELAXED] += stop - start


@inlined
def _expand(arc_start, slot_of_page, recent, arcs, radius, max_hops, scale,
            dist, label, head, touched, state):  # fmt: skip
    """Relax the arcs of the node under way; returns DONE, or the number of a page that is not resident."""
    mask = (1 << PAGE_SHIFT) - 1
    node = state[NODE]
    stop = arc_start[node + 1]
    while state[CURSOR] < stop:
        at = state[CURSOR]
        slot = slot_of_page[at >> PAGE_SHIFT]
        if slot < 0:
            return at >> PAGE_SHIFT
        recent[slot] = 1
        span = min(stop - at, mask + 1 - (at & mask))
        begin = (slot << PAGE_SHIFT) | (at & mask)
        _relax(arcs, begin, begin + span, node, radius, max_hops, scale,
               dist, label, head, touched, state)  # fmt: skip
        state[CURSOR] += span
    state[NODE] = -1
    return DONE


@kernel
def _passes_through(node, avoid, label):
    while node >= 0:
        if node == avoid:
            return True
        node = label[node, PARENT]
    return False


@kernel
def _collect(arcs, start, stop, closing, target, limit, paths,
             dist, label, best, best_arc, state):  # fmt: skip
    """Keep the ``paths`` shortest ways into ``target`` over the resident arcs ``start:stop``, best first."""
    for arc in range(start, stop):
        bar = best[paths - 1] if state[KEPT] == paths else limit
        if arcs[arc].length >= bar:
            break
        near = arcs[arc].node
        length = dist[near] + arcs[arc].length
        if length >= bar or arcs[arc].edge == closing or _passes_through(near, target, label):
            continue
        at = min(state[KEPT], paths - 1)
        while at > 0 and best[at - 1] > length:
            best[at] = best[at - 1]
            best_arc[0, at], best_arc[1, at] = best_arc[0, at - 1], best_arc[1, at - 1]
            at -= 1
        best[at] = length
        best_arc[0, at], best_arc[1, at] = near, arcs[arc].edge
        state[KEPT] = min(state[KEPT] + 1, paths)


@kernel
def _emit(closing, limit, slack, label, best, best_arc, row_end, row_violation, entries, state):
    """Write the kept paths that are shorter by more than ``slack`` as rows; False when the buffers are full."""
    count, need = 0, 0
    while count < state[KEPT] and best[count] < limit - slack:
        need += label[best_arc[0, count], HOPS] + 2
        count += 1
    if state[ROWS] + count > len(row_end) or state[ENTRIES] + need > len(entries):
        return False
    at = state[ENTRIES]
    for k in range(count):
        node = best_arc[0, k]
        entries[at], entries[at + 1] = closing, best_arc[1, k]
        at += 2
        while label[node, PARENT] >= 0:
            entries[at] = label[node, EDGE]
            at += 1
            node = label[node, PARENT]
        row_end[state[ROWS]] = at
        row_violation[state[ROWS]] = limit - best[k]
        state[ROWS] += 1
    state[ENTRIES] = at
    return True


@kernel
def _begin(source, first, last, limit, need, order, dist, label, head, touched, state):
    """Order the closing edges by falling need and queue the source."""
    by_need = np.argsort(-need[first:last])
    for k in range(last - first):
        order[k] = first + by_need[k]
    state[BUCKET] = state[QUEUED] = state[TOUCHED] = state[TARGET] = 0
    state[NODE] = -1
    label_node(source, 0.0, 0, -1, -1, True, 0.0, dist, label, head, touched, state)


@kernel
def advance(sources, closer_start, closer_node, closer_edge, limit, need, reach, max_hops, paths, slack,
            arc_start, slot_of_page, recent, arcs,
            dist, label, head, touched, order, best, best_arc, row_end, row_violation, entries, state,
            stop):  # fmt: skip
    """Search from each source for paths shorter than the closing edges allow, and write the rows they make.

    Parameters
    ----------
    sources : int32[s], closer_start : int64[s + 1]
        Closing edges of source i are ``closer_start[i]:closer_start[i + 1]`` of the closer arrays.
    closer_node, closer_edge : int32[c], limit : float64[c]
        Far end, edge id, and the length a path must stay below (by more than ``slack``) to be violated.
    need : float64[c]
        How far from the source the last node before the far end can be: limit less the shortest arc of the far end.
    reach : float64[c]
        Out: ``min(limit, distance)``; exact when ``max_hops`` does not bind.
    max_hops : int
        Nodes this many arcs from the source are labelled but not expanded; rows have up to one path arc more.
    arc_start, slot_of_page, recent, arcs
        Paged arcs (ARC): arc p is at ``slot_of_page[p >> PAGE_SHIFT] << PAGE_SHIFT | p & mask``; slot -1: not here.
        ``recent`` (uint8[slots]) is set where a slot is used.
    dist : float64[nodes], label : int32[nodes, LABEL_SIZE], head : int32[2, BUCKETS],
    touched : int32[nodes], order : int64[closers of a source], best : float64[paths], best_arc : int32[2, paths]
        Scratch; head holds the first and last node of each bucket.
    row_end, row_violation, entries
        Out: rows as ragged arrays, closing edge first.
    stop : uint8[1]
        Set by someone else to end the search at once.

    Returns
    -------
    int
        DONE, FULL (empty the row buffers and call again), STOPPED (the scratch is of no more use), or the number of the
        page to load before calling again.
    """
    mask = (1 << PAGE_SHIFT) - 1
    while state[SOURCE] < len(sources):
        first, last = closer_start[state[SOURCE]], closer_start[state[SOURCE] + 1]
        count = last - first
        if state[PHASE] == START:
            _begin(sources[state[SOURCE]], first, last, limit, need, order, dist, label, head, touched, state)
            state[PHASE] = EXPAND
        if state[PHASE] == EXPAND:
            widest = need[order[0]] if count else 0.0
            scale = BUCKETS / widest if widest > 0.0 else 0.0
            radius = _radius(order, count, closer_node, need, dist, state[BUCKET] / scale if scale else 0.0, state)
            while state[NODE] >= 0 or state[QUEUED] > 0:
                if stop[0]:
                    return STOPPED
                if state[NODE] < 0:
                    bucket = state[BUCKET]
                    node = take_first(label, head, state)
                    if state[BUCKET] > bucket:
                        radius = _radius(order, count, closer_node, need, dist, state[BUCKET] / scale, state)
                    if dist[node] >= radius:
                        if state[BUCKET] >= radius * scale:
                            break
                        continue
                    state[NODE], state[CURSOR] = node, arc_start[node]
                missing = _expand(arc_start, slot_of_page, recent, arcs,
                                  radius, max_hops, scale, dist, label, head, touched, state)  # fmt: skip
                if missing >= 0:
                    return missing
            state[PHASE], state[TARGET], state[FIRST] = COLLECT, 0, 1
        while state[TARGET] < count:
            closer = order[state[TARGET]]
            target = closer_node[closer]
            if state[FIRST]:
                state[KEPT], state[FIRST], state[CURSOR] = 0, 0, arc_start[target]
            while state[CURSOR] < arc_start[target + 1]:
                at = state[CURSOR]
                slot = slot_of_page[at >> PAGE_SHIFT]
                if slot < 0:
                    return at >> PAGE_SHIFT
                recent[slot] = 1
                span = min(arc_start[target + 1] - at, mask + 1 - (at & mask))
                begin = (slot << PAGE_SHIFT) | (at & mask)
                _collect(arcs, begin, begin + span, closer_edge[closer], target,
                         limit[closer], paths, dist, label, best, best_arc, state)  # fmt: skip
                state[CURSOR] += span
            reach[closer] = best[0] if state[KEPT] else limit[closer]
            if not _emit(closer_edge[closer], limit[closer], slack, label, best, best_arc,
                         row_end, row_violation, entries, state):  # fmt: skip
                return FULL
            state[FIRST] = 1
            state[TARGET] += 1
        clear_labels(dist, label, head, touched, state)
        state[SOURCE] += 1
        state[PHASE] = START
    return DONE
