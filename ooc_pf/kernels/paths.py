"""Shortest paths that close cycles: a bounded, resumable search over paged arcs.

Labels wait in the bucket queue of `kernels.queue`.

Arcs live in pages of ``2**PAGE_SHIFT``, sorted by length within the part of a page that belongs to one node (see
`kernels.lengths`), so that a scan ends at the first arc that leads too far. When a search touches a page that is not
resident it stops, says which one, and goes on from the same arc once the page is there. With every page resident there
are no stops, and the order of work is the same, hence the same bits.
"""

from typing import NamedTuple

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
    clear_labels,
    label_node,
    take_first,
)

PAGE_SHIFT = 12  # shapes the bits: arcs are sorted within a page, and paths that tie are met in that order
PAGE_MASK = (1 << PAGE_SHIFT) - 1
UNLIMITED = 2**31 - 1  # as max_hops: a complete search

# Slots of the state, behind those of the queue.
SOURCE, PHASE, NODE, CURSOR, TARGET, ROWS, ENTRIES, RELAXED, KEPT, FIRST = range(QUEUE_SLOTS, QUEUE_SLOTS + 10)
START, SEARCH, CLOSE = range(3)
# What `advance` returns when it does not name a missing page.
DONE, FULL, STOPPED = -1, -2, -3

# Length, head and edge of an arc side by side: a search pays for one cache line where three arrays would cost three.
ARC = np.dtype((np.record, [("length", np.float64), ("node", np.int32), ("edge", np.int32)]))


class Closers(NamedTuple):
    """The closing edges of some sources: those of source i are ``start[i]:start[i + 1]``.

    Attributes
    ----------
    sources : int32[s], start : int64[s + 1]
    node, edge : int32[c]
        Far end and number of each closing edge.
    limit : float64[c]
        The length a path must stay below, by more than the slack, to be violated.
    need : float64[c]
        How far from the source the last node before the far end can be: limit less the shortest arc of the far end.
    reach : float64[c]
        Out: ``min(limit, distance)``; exact when ``max_hops`` does not bind.
    """

    sources: np.ndarray
    start: np.ndarray
    node: np.ndarray
    edge: np.ndarray
    limit: np.ndarray
    need: np.ndarray
    reach: np.ndarray


class Pages(NamedTuple):
    """Arcs in pages: arc p is ``arcs[slot_of_page[p >> PAGE_SHIFT] << PAGE_SHIFT | p & PAGE_MASK]``.

    Attributes
    ----------
    arc_start : int64[nodes + 1]
    slot_of_page : int32[pages]
        -1 where a page is not resident.
    recent : uint8[slots]
        Set where a slot is used.
    arcs : ARC[slots << PAGE_SHIFT]
    shortest : float64[nodes]
        Length of the shortest arc of each node: a search goes no further from where that one leads too far.
    """

    arc_start: np.ndarray
    slot_of_page: np.ndarray
    recent: np.ndarray
    arcs: np.ndarray
    shortest: np.ndarray


class Best(NamedTuple):
    """Scratch for the shortest paths to one far end: as many as are to be kept.

    ``length`` float64[paths]; ``node`` and ``edge`` int32[paths] are the last node before the far end, and the edge on.
    """

    length: np.ndarray
    node: np.ndarray
    edge: np.ndarray


class RowBuffer(NamedTuple):
    """Rows as ragged arrays, the closing edge first: row r ends before ``end[r]``.

    ``end`` int64[rows], ``violation`` float64[rows], ``entries`` int32[entries].
    """

    end: np.ndarray
    violation: np.ndarray
    entries: np.ndarray


def make_best(count: int) -> Best:
    """Room for ``count`` paths."""
    return Best(np.empty(count), np.empty(count, np.int32), np.empty(count, np.int32))


@inlined
def next_page(arc):
    """The first arc of the next page: where arcs of the same node may be shorter again."""
    return ((arc >> PAGE_SHIFT) + 1) << PAGE_SHIFT


@inlined
def _radius(closer_node, need, order, count, floor, dist, state):
    """How far the search must still go: the largest need of a closing edge whose far end is not final yet."""
    at = state[TARGET]
    while at < count and dist[closer_node[order[at]]] < floor:
        at += 1
    state[TARGET] = at
    return need[order[at]] if at < count else -np.inf


@inlined
def _relax(arcs, shortest, start, stop, node, radius, max_hops, scale, dist, label, head, touched, state):
    """Relax the resident arcs ``start:stop`` of ``node``, shortest first, until they lead beyond the radius."""
    base, hop = dist[node], label[node, HOPS] + 1
    for arc in range(start, stop):
        length = base + arcs[arc].length
        if length >= radius:
            state[RELAXED] += arc - start
            return
        far = arcs[arc].node
        if length < dist[far] or (length == dist[far] and hop < label[far, HOPS]):
            waits = hop < max_hops and length + shortest[far] < radius
            label_node(far, length, hop, node, arcs[arc].edge, waits, scale, dist, label, head, touched, state)
    state[RELAXED] += stop - start


@inlined
def _expand(pages, radius, max_hops, scale, dist, label, head, touched, state):
    """Relax the arcs of the node under way; returns DONE, or the number of a page that is not resident."""
    arc_start, slot_of_page, recent, arcs, shortest = pages
    node = state[NODE]
    stop = arc_start[node + 1]
    while state[CURSOR] < stop:
        at = state[CURSOR]
        slot = slot_of_page[at >> PAGE_SHIFT]
        if slot < 0:
            return at >> PAGE_SHIFT
        recent[slot] = 1
        span = min(stop - at, PAGE_MASK + 1 - (at & PAGE_MASK))
        begin = (slot << PAGE_SHIFT) | (at & PAGE_MASK)
        _relax(arcs, shortest, begin, begin + span, node, radius, max_hops, scale, dist, label, head, touched, state)
        state[CURSOR] += span
    state[NODE] = -1
    return DONE


@kernel
def _begin(closers, order, labels):
    """Order the closing edges of the source by falling need, and queue the source."""
    dist, label, head, touched, state = labels
    first, last = closers.start[state[SOURCE]], closers.start[state[SOURCE] + 1]
    by_need = np.argsort(-closers.need[first:last])
    for k in range(last - first):
        order[k] = first + by_need[k]
    state[TARGET] = 0
    state[NODE] = -1
    label_node(closers.sources[state[SOURCE]], 0.0, 0, -1, -1, True, 0.0, dist, label, head, touched, state)


@kernel
def _search(closers, count, max_hops, pages, labels, order, stop):
    """Label the nodes the closing edges need; returns DONE, STOPPED, or the number of a page that is not resident."""
    dist, label, head, touched, state = labels
    closer_node, need = closers.node, closers.need
    widest = need[order[0]] if count else 0.0
    scale = BUCKETS / widest if widest > 0.0 else 0.0
    radius = _radius(closer_node, need, order, count, state[BUCKET] / scale if scale else 0.0, dist, state)
    while state[NODE] >= 0 or state[QUEUED] > 0:
        if stop[0]:
            return STOPPED
        if state[NODE] < 0:
            bucket = state[BUCKET]
            node = take_first(label, head, state)
            if state[BUCKET] > bucket:
                radius = _radius(closer_node, need, order, count, state[BUCKET] / scale, dist, state)
            if dist[node] >= radius:
                if state[BUCKET] >= radius * scale:
                    break
                continue
            state[NODE], state[CURSOR] = node, pages.arc_start[node]
        missing = _expand(pages, radius, max_hops, scale, dist, label, head, touched, state)
        if missing >= 0:
            return missing
    return DONE


@kernel
def _passes_through(node, avoid, label):
    """Whether the path to ``node`` has ``avoid`` on it."""
    while node >= 0:
        if node == avoid:
            return True
        node = label[node, PARENT]
    return False


@kernel
def _collect(arcs, start, stop, closing, target, limit, dist, label, best, state):
    """Keep the shortest ways into ``target`` over the resident arcs ``start:stop``, best first."""
    kept, kept_node, kept_edge = best
    paths = len(kept)
    for arc in range(start, stop):
        bar = kept[paths - 1] if state[KEPT] == paths else limit
        if arcs[arc].length >= bar:
            break
        near = arcs[arc].node
        length = dist[near] + arcs[arc].length
        if length >= bar or arcs[arc].edge == closing or _passes_through(near, target, label):
            continue
        at = min(state[KEPT], paths - 1)
        while at > 0 and kept[at - 1] > length:
            kept[at], kept_node[at], kept_edge[at] = kept[at - 1], kept_node[at - 1], kept_edge[at - 1]
            at -= 1
        kept[at], kept_node[at], kept_edge[at] = length, near, arcs[arc].edge
        state[KEPT] = min(state[KEPT] + 1, paths)


@kernel
def _emit(closing, limit, slack, label, best, rows, state):
    """Write the kept paths that are shorter by more than ``slack`` as rows; False when the buffers are full."""
    kept, kept_node, kept_edge = best
    end, violation, entries = rows
    count, need = 0, 0
    while count < state[KEPT] and kept[count] < limit - slack:
        need += label[kept_node[count], HOPS] + 2
        count += 1
    if state[ROWS] + count > len(end) or state[ENTRIES] + need > len(entries):
        return False
    at = state[ENTRIES]
    for k in range(count):
        node = kept_node[k]
        entries[at], entries[at + 1] = closing, kept_edge[k]
        at += 2
        while label[node, PARENT] >= 0:
            entries[at] = label[node, EDGE]
            at += 1
            node = label[node, PARENT]
        end[state[ROWS]] = at
        violation[state[ROWS]] = limit - kept[k]
        state[ROWS] += 1
    state[ENTRIES] = at
    return True


@kernel
def _close(closers, count, slack, pages, labels, order, best, rows):
    """Write the rows of every closing edge; returns DONE, FULL, or the number of a page that is not resident."""
    dist, label, state = labels.dist, labels.label, labels.state
    arc_start, slot_of_page, recent, arcs, _ = pages
    node, edge, limit, reach = closers.node, closers.edge, closers.limit, closers.reach
    while state[TARGET] < count:
        closer = order[state[TARGET]]
        target = node[closer]
        if state[FIRST]:
            state[KEPT], state[FIRST], state[CURSOR] = 0, 0, arc_start[target]
        while state[CURSOR] < arc_start[target + 1]:
            at = state[CURSOR]
            slot = slot_of_page[at >> PAGE_SHIFT]
            if slot < 0:
                return at >> PAGE_SHIFT
            recent[slot] = 1
            span = min(arc_start[target + 1] - at, PAGE_MASK + 1 - (at & PAGE_MASK))
            begin = (slot << PAGE_SHIFT) | (at & PAGE_MASK)
            _collect(arcs, begin, begin + span, edge[closer], target, limit[closer], dist, label, best, state)
            state[CURSOR] += span
        reach[closer] = best.length[0] if state[KEPT] else limit[closer]
        if not _emit(edge[closer], limit[closer], slack, label, best, rows, state):
            return FULL
        state[FIRST] = 1
        state[TARGET] += 1
    return DONE


@kernel
def advance(closers, max_hops, slack, pages, labels, order, best, rows, stop):
    """Search from each source for paths shorter than the closing edges allow, and write the rows they make.

    Parameters
    ----------
    closers : Closers
        Its ``reach`` is written.
    max_hops : int
        Nodes this many arcs from the source are labelled but not expanded; rows have up to one path arc more.
    slack : float
        Rows violated by no more than this are left out.
    pages : Pages
    labels : Labels
        Scratch. Its state says how far the search is: zeros to begin with.
    order : int64[closers of a source], best : Best
        Scratch.
    rows : RowBuffer
        Out; ROWS and ENTRIES of the state say how much of it is used.
    stop : uint8[1]
        Set by someone else to end the search at once.

    Returns
    -------
    int
        DONE, FULL (empty the row buffers and call again), STOPPED (the scratch is of no more use), or the number of the
        page to load before calling again.
    """
    state = labels.state
    while state[SOURCE] < len(closers.sources):
        count = closers.start[state[SOURCE] + 1] - closers.start[state[SOURCE]]
        if state[PHASE] == START:
            _begin(closers, order, labels)
            state[PHASE] = SEARCH
        if state[PHASE] == SEARCH:
            code = _search(closers, count, max_hops, pages, labels, order, stop)
            if code != DONE:
                return code
            state[PHASE], state[TARGET], state[FIRST] = CLOSE, 0, 1
        code = _close(closers, count, slack, pages, labels, order, best, rows)
        if code != DONE:
            return code
        clear_labels(labels)
        state[SOURCE] += 1
        state[PHASE] = START
    return DONE
