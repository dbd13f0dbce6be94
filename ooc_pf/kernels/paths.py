"""Shortest paths that close cycles: a bounded, resumable Dijkstra over paged arcs.

The searches of a block of sources advance through one small state machine. Arcs live in pages of ``2**PAGE_SHIFT``;
when a search touches a page that is not resident it stops, says which one, and goes on from the same arc once the
page is there. With every page resident there are no stops, and the order of work is the same, hence the same bits.
"""

import numpy as np

from . import kernel

PAGE_SHIFT = 16
UNLIMITED = 2**31 - 1  # as max_hops: a complete search

# Slots of the integer state of a worker.
SOURCE, PHASE, NODE, CURSOR, HEAP, TOUCHED, TARGET, ROWS, ENTRIES, RELAXED, KEPT, FIRST = range(12)
STATE_SIZE = 12
START, EXPAND, COLLECT, FINISH = range(4)
# What `advance` returns when it does not name a missing page.
DONE, FULL = -1, -2

UNSEEN, SETTLED = -1, -2


@kernel
def _before(dist, hops, a, b):
    return dist[a] < dist[b] or (dist[a] == dist[b] and hops[a] < hops[b])


@kernel
def _sift_up(heap, place, dist, hops, at):
    node = heap[at]
    while at > 0:
        up = (at - 1) >> 2
        if not _before(dist, hops, node, heap[up]):
            break
        heap[at] = heap[up]
        place[heap[at]] = at
        at = up
    heap[at] = node
    place[node] = at


@kernel
def _pop(heap, place, dist, hops, size):
    """Remove and return the nearest node of a four-way heap of ``size`` nodes; equal lengths prefer fewer hops."""
    top = heap[0]
    place[top] = SETTLED
    size -= 1
    if size == 0:
        return top
    node = heap[size]
    at = 0
    while True:
        child = (at << 2) + 1
        if child >= size:
            break
        best = child
        for other in range(child + 1, min(child + 4, size)):
            if _before(dist, hops, heap[other], heap[best]):
                best = other
        if not _before(dist, hops, heap[best], node):
            break
        heap[at] = heap[best]
        place[heap[at]] = at
        at = best
    heap[at] = node
    place[node] = at
    return top


@kernel
def _label(node, length, hop, via, edge, expand, dist, hops, parent, parent_edge, place, heap, touched, state):
    """Give ``node`` a better label, and queue it if it may still be expanded."""
    if dist[node] == np.inf:
        touched[state[TOUCHED]] = node
        state[TOUCHED] += 1
    dist[node] = length
    hops[node] = hop
    parent[node] = via
    parent_edge[node] = edge
    if place[node] >= 0:
        _sift_up(heap, place, dist, hops, place[node])
    elif expand:
        heap[state[HEAP]] = node
        state[HEAP] += 1
        _sift_up(heap, place, dist, hops, state[HEAP] - 1)


@kernel
def _radius(order, first, last, closer_node, limit, place, state):
    """The largest limit of a closing edge whose far end is not settled; the far ends come by falling limit."""
    at = state[TARGET]
    while at < last - first and place[closer_node[order[at]]] == SETTLED:
        at += 1
    state[TARGET] = at
    return limit[order[at]] if at < last - first else -np.inf


@kernel
def _relax(arc_node, arc_length, arc_edge, start, stop, node, radius, max_hops,
           dist, hops, parent, parent_edge, place, heap, touched, state):  # fmt: skip
    """Relax the resident arcs ``start:stop`` of ``node``."""
    base, hop = dist[node], hops[node] + 1
    for arc in range(start, stop):
        far = arc_node[arc]
        length = base + arc_length[arc]
        if length >= radius:
            continue
        shorter = length < dist[far] or (length == dist[far] and hop < hops[far])
        if shorter and place[far] != SETTLED:
            _label(far, length, hop, node, arc_edge[arc], hop < max_hops,
                   dist, hops, parent, parent_edge, place, heap, touched, state)  # fmt: skip


@kernel
def settle(arc_start, dist, hops, place, heap, state):
    """Take the nearest node from the heap as the one to expand."""
    state[NODE] = _pop(heap, place, dist, hops, state[HEAP])
    state[HEAP] -= 1
    state[CURSOR] = arc_start[state[NODE]]


@kernel
def expand(arc_start, slot_of_page, arc_node, arc_length, arc_edge, radius, max_hops,
           dist, hops, parent, parent_edge, place, heap, touched, state):  # fmt: skip
    """Relax the arcs of the node under way.

    Returns DONE, or the number of a page that is not resident; then the next call goes on from the same arc.
    """
    mask = (1 << PAGE_SHIFT) - 1
    node = state[NODE]
    stop = arc_start[node + 1]
    while state[CURSOR] < stop:
        at = state[CURSOR]
        slot = slot_of_page[at >> PAGE_SHIFT]
        if slot < 0:
            return at >> PAGE_SHIFT
        span = min(stop - at, mask + 1 - (at & mask))
        begin = (slot << PAGE_SHIFT) | (at & mask)
        _relax(arc_node, arc_length, arc_edge, begin, begin + span, node, radius, max_hops,
               dist, hops, parent, parent_edge, place, heap, touched, state)  # fmt: skip
        state[RELAXED] += span
        state[CURSOR] += span
    state[NODE] = -1
    return DONE


@kernel
def _passes_through(node, avoid, parent):
    while node >= 0:
        if node == avoid:
            return True
        node = parent[node]
    return False


@kernel
def _collect(arc_node, arc_length, arc_edge, start, stop, closing, target, limit, paths,
             dist, parent, best_length, best_node, best_edge, state):  # fmt: skip
    """Keep the ``paths`` shortest ways into ``target`` over the resident arcs ``start:stop``, best first."""
    for arc in range(start, stop):
        near = arc_node[arc]
        length = dist[near] + arc_length[arc]
        if arc_edge[arc] == closing or length >= limit:
            continue
        if state[KEPT] == paths and length >= best_length[paths - 1]:
            continue
        if _passes_through(near, target, parent):
            continue
        at = min(state[KEPT], paths - 1)
        while at > 0 and best_length[at - 1] > length:
            best_length[at] = best_length[at - 1]
            best_node[at] = best_node[at - 1]
            best_edge[at] = best_edge[at - 1]
            at -= 1
        best_length[at] = length
        best_node[at] = near
        best_edge[at] = arc_edge[arc]
        state[KEPT] = min(state[KEPT] + 1, paths)


@kernel
def _emit(closing, limit, hops, parent, parent_edge, best_length, best_node, best_edge,
          row_end, row_violation, entries, state):  # fmt: skip
    """Write the kept paths as rows, the closing edge first; False when the buffers are full."""
    need = state[KEPT]
    for k in range(state[KEPT]):
        need += hops[best_node[k]] + 1
    if state[ROWS] + state[KEPT] > len(row_end) or state[ENTRIES] + need > len(entries):
        return False
    at = state[ENTRIES]
    for k in range(state[KEPT]):
        entries[at] = closing
        entries[at + 1] = best_edge[k]
        at += 2
        node = best_node[k]
        while parent[node] >= 0:
            entries[at] = parent_edge[node]
            at += 1
            node = parent[node]
        row_end[state[ROWS]] = at
        row_violation[state[ROWS]] = limit - best_length[k]
        state[ROWS] += 1
    state[ENTRIES] = at
    return True


@kernel
def advance(sources, closer_start, closer_node, closer_edge, limit, reach, max_hops, paths, slack,
            indptr, slot_of_page, arc_node, arc_length, arc_edge,
            dist, hops, parent, parent_edge, place, heap, touched, order,
            best_length, best_node, best_edge, row_end, row_violation, entries, state):  # fmt: skip
    """Search from each source for paths shorter than the closing edges allow, and write the rows they make.

    Parameters
    ----------
    sources : int32[s], closer_start : int64[s + 1]
        Closing edges of source i are ``closer_start[i]:closer_start[i + 1]`` of the closer arrays.
    closer_node, closer_edge : int32[c], limit : float64[c]
        Far end, edge id, and the length a path must stay below (by more than ``slack``) to be violated.
    reach : float64[c]
        Out: ``min(limit, distance)``; exact when ``max_hops`` does not bind.
    max_hops : int
        Nodes this many arcs from the source are labelled but not expanded; rows have up to one path arc more.
    indptr, slot_of_page, arc_node, arc_length, arc_edge
        Paged arcs: arc p is at ``slot_of_page[p >> PAGE_SHIFT] << PAGE_SHIFT | p & mask``; slot -1 is not resident.
    dist, hops, parent, parent_edge, place, heap, touched, order, best_length, best_node, best_edge, state
        Scratch of the worker, see `oracle`.
    row_end, row_violation, entries
        Out: rows as ragged arrays, closing edge first.

    Returns
    -------
    int
        DONE, FULL (empty the row buffers and call again), or the number of the page to load before calling again.
    """
    mask = (1 << PAGE_SHIFT) - 1
    while state[SOURCE] < len(sources):
        source = sources[state[SOURCE]]
        first, last = closer_start[state[SOURCE]], closer_start[state[SOURCE] + 1]
        if state[PHASE] == START:
            by_limit = np.argsort(-limit[first:last])
            for k in range(last - first):
                order[k] = first + by_limit[k]
            state[HEAP] = state[TOUCHED] = state[TARGET] = 0
            state[NODE] = -1
            _label(source, 0.0, 0, -1, -1, True, dist, hops, parent, parent_edge, place, heap, touched, state)
            state[PHASE] = EXPAND
        if state[PHASE] == EXPAND:
            radius = _radius(order, first, last, closer_node, limit, place, state)
            while True:
                if state[NODE] < 0:
                    if state[HEAP] == 0 or dist[heap[0]] >= radius:
                        break
                    settle(indptr, dist, hops, place, heap, state)
                    radius = _radius(order, first, last, closer_node, limit, place, state)
                missing = expand(indptr, slot_of_page, arc_node, arc_length, arc_edge, radius, max_hops,
                                 dist, hops, parent, parent_edge, place, heap, touched, state)  # fmt: skip
                if missing >= 0:
                    return missing
            state[PHASE] = COLLECT
            state[TARGET] = 0
            state[FIRST] = 1
        while state[PHASE] == COLLECT and state[TARGET] < last - first:
            closer = order[state[TARGET]]
            target = closer_node[closer]
            if state[FIRST]:
                reach[closer] = min(limit[closer], dist[target])
                state[KEPT] = 0
                state[CURSOR] = indptr[target]
                state[FIRST] = 0
            # After a complete search the label of the far end is its distance, so a look at it decides.
            if max_hops < UNLIMITED or dist[target] < limit[closer] - slack:
                while state[CURSOR] < indptr[target + 1]:
                    at = state[CURSOR]
                    slot = slot_of_page[at >> PAGE_SHIFT]
                    if slot < 0:
                        return at >> PAGE_SHIFT
                    span = min(indptr[target + 1] - at, mask + 1 - (at & mask))
                    begin = (slot << PAGE_SHIFT) | (at & mask)
                    _collect(arc_node, arc_length, arc_edge, begin, begin + span, closer_edge[closer], target,
                             limit[closer] - slack, paths, dist, parent,
                             best_length, best_node, best_edge, state)  # fmt: skip
                    state[RELAXED] += span
                    state[CURSOR] += span
            if not _emit(closer_edge[closer], limit[closer], hops, parent, parent_edge,
                         best_length, best_node, best_edge, row_end, row_violation, entries, state):  # fmt: skip
                return FULL
            state[FIRST] = 1
            state[TARGET] += 1
        for k in range(state[TOUCHED]):
            node = touched[k]
            dist[node] = np.inf
            place[node] = UNSEEN
        state[SOURCE] += 1
        state[PHASE] = START
    return DONE
