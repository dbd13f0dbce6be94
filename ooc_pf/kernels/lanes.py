"""Shortest paths from many sources at once, by scans over all arcs in their order.

Each source has a lane. The labels of a node lie side by side, so that an arc is relaxed for all lanes by a few vector
instructions, and the arcs are only ever read in order: from memory or from a file. Scans are repeated until no label
changes (Bellman-Ford); nodes whose labels did not change are skipped.

Labels are whole numbers. A unit of length stands above ``shift`` bits for the hops, so that of paths of one length the
one with fewest arcs is shortest, and every path is longer than the one to the node before. Sums are exact: labels are
the same in whatever order they were found. Lengths are rounded down to units, hence never above the distance.

A label has 64 bits, or 32 where few digits are enough: half the memory to go over, and twice the lanes in a vector
instruction. Narrow labels count at most `NARROW_HOPS` arcs. More count as so many: lengths stay right, but two nodes of
a path may then have the same label, and such paths are not to be walked back.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import inlined, kernel
from .paths import next_page

UNSEEN, LABELLED, FRESH = range(3)  # states of a node; fresh: its arcs must be relaxed (again)
WIDE, NARROW = np.int64, np.int32  # kinds of labels
SPARE_BITS = 3  # of a label: for its sign, for `far`, and so that the sum of two labels is still a number
NARROW_SHIFT = 8
NARROW_HOPS = (1 << NARROW_SHIFT) - 1
SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # multiplicative hashing (Knuth)
MOST_EXPONENT = 1023  # of a power of two that is a float


class Measure(NamedTuple):
    """What an arc adds to a label: its length in units above ``shift`` bits, and ``hop``.

    Some bits below ``noise``, which edge and ``seed`` decide, come on top, so that paths differ between seeds.
    """

    per_unit: float
    shift: int
    most: float
    hop: int
    noise: int
    seed: int


class Lanes(NamedTuple):
    """What a search writes.

    Attributes
    ----------
    limit : int64[lanes] or int32[lanes]
        Labels stay below.
    label : int64[nodes, lanes] or int32[nodes, lanes]
        `far` where no path leads that is short enough.
    state : uint8[nodes]
    parent, edge : int32[nodes, lanes], length : float32[nodes, lanes]
        The node before on the shortest path, -1 at the source and where none leads; the edge between, and how long.
    """

    limit: np.ndarray
    label: np.ndarray
    state: np.ndarray
    parent: np.ndarray
    edge: np.ndarray
    length: np.ndarray


def make_lanes(nodes: int, lanes: int, kind: type = WIDE) -> Lanes:
    """Room for a search with labels of this kind; what `begin` expects."""
    shape = nodes, lanes
    whole = [np.empty(shape, each) for each in (kind, np.int32, np.int32, np.float32)]
    return Lanes(np.empty(lanes, kind), whole[0], np.full(nodes, LABELLED, np.uint8), *whole[1:])


@inlined
def far(label):
    """The label of a node that no path leads to, for labels like these."""
    return np.iinfo(label.dtype).max // 2 + 1


def exact_measure(radius: float, nodes: int, kind: type = WIDE) -> Measure:
    """Shortest paths below ``radius``, of these the ones with fewest arcs.

    The unit is a power of two, so that lengths with few digits are not rounded at all.
    """
    shift = NARROW_SHIFT if kind is NARROW else max(1, int(nodes).bit_length())
    bits = _label_bits(kind) - shift
    return Measure(_units(radius, bits), shift, float(1 << bits), 1, 0, 0)


def tree_measure(radius: float, penalty: float, seed: int, kind: type = NARROW) -> Measure:
    """Short paths below ``radius``, where each arc costs one to two times ``penalty`` more than its length."""
    bits = _label_bits(kind)
    per_unit = _units(radius, bits)
    # A penalty far above the radius is no number of units; a length, a hop and its noise stay below `far` together.
    hop = max(1, int(min(penalty * per_unit, float(1 << bits - 1))))
    return Measure(per_unit, 0, float(1 << bits), hop, (1 << hop.bit_length() - 1) - 1, seed)


def _label_bits(kind: type) -> int:
    return np.iinfo(kind).bits - SPARE_BITS


def _units(radius: float, bits: int) -> float:
    """The power of two that takes ``radius`` to at most ``2**bits``, or the largest there is."""
    return float(np.ldexp(1.0, min(bits - int(np.frexp(radius)[1]), MOST_EXPONENT))) if radius > 0 else 1.0


def limit_of(radius: float, measure: Measure) -> int:
    """What labels of nodes nearer than ``radius`` stay below."""
    return (int(min(radius * measure.per_unit, measure.most)) + 1) << measure.shift


@inlined
def _cost(arc, per_unit, shift, most, noise, seed):
    """What an arc adds to a label beside the hop."""
    bits = np.int64(((np.uint64(arc.edge) ^ np.uint64(seed)) * SCRAMBLE) >> np.uint64(3))
    return (np.int64(min(arc.length * per_unit, most)) << shift) + (bits & noise)


@inlined
def _left(label, shift, hop):
    """The label with one hop more, if more hops can be counted."""
    counted = (np.int64(1) << shift) - 1
    return label + (0 if shift > 0 and label & counted == counted else hop)


@kernel
def begin(arc_start, roots, limit, lanes):
    """Give every root (int32[r], one for each lane at most) the label zero in its lane, and all else `far`."""
    label, state, parent = lanes.label, lanes.state, lanes.parent
    lanes.limit[:] = 0
    lanes.limit[: len(limit)] = limit
    for node in range(len(state)):
        if state[node] != UNSEEN:
            label[node] = far(label)
            parent[node] = -1
            state[node] = UNSEEN
    for lane in range(len(roots)):
        label[roots[lane], lane] = 0
        # Nobody would ever take up a node without arcs.
        state[roots[lane]] = FRESH if arc_start[roots[lane]] < arc_start[roots[lane] + 1] else LABELLED


@kernel
def relax_arcs(arc_start, first, arcs, measure, lanes):
    """Scan the arcs from number ``first`` on once, for all lanes.

    Parameters
    ----------
    arc_start : int64[nodes + 1]
    first : int, arcs : ARC[n]
        Any consecutive arcs.
    measure : Measure
    lanes : Lanes

    Returns
    -------
    int
        How many arcs were looked at.
    """
    limit, label, state = lanes.limit, lanes.label, lanes.state
    per_unit, shift, most, hop, noise, seed = measure
    width, kind = label.shape[1], label.dtype.type
    base = np.empty(width, label.dtype)
    relaxed, last = 0, first + len(arcs)
    node = np.searchsorted(arc_start, first, side="right") - 1
    while node < len(state) and arc_start[node] < last:
        if state[node] == FRESH:
            stop = min(arc_start[node + 1], last) - first
            for lane in range(width):
                base[lane] = _left(label[node, lane], shift, hop)
            for at in range(max(arc_start[node] - first, 0), stop):
                cost = kind(_cost(arcs[at], per_unit, shift, most, noise, seed))
                row, shorter = label[arcs[at].node], False
                for lane in range(width):
                    way, known = kind(base[lane] + cost), row[lane]
                    better = (way < known) & (way < limit[lane])
                    row[lane] = way if better else known
                    shorter |= better
                # Without a branch, which no processor could predict.
                state[arcs[at].node] = max(state[arcs[at].node], np.uint8(FRESH * shorter))
                relaxed += 1
            if arc_start[node + 1] <= last:
                state[node] = LABELLED
        node += 1
    return relaxed


@kernel
def is_fresh(state, first, last):
    """Whether one of the nodes ``first:last`` has arcs to relax."""
    fresh = False
    for node in range(first, last):
        fresh |= state[node] == FRESH
    return fresh


@kernel
def find_parents(arc_start, first, arcs, measure, lanes):
    """Once no label changes any more: walk one arc back from every node, the first of the shortest ways."""
    _, label, state, parent, edge, length = lanes
    per_unit, shift, most, hop, noise, seed = measure
    wanted, unreached = np.empty(label.shape[1], label.dtype), far(label)
    last = first + len(arcs)
    node = np.searchsorted(arc_start, first, side="right") - 1
    while node < len(state) and arc_start[node] < last:
        if state[node] != UNSEEN:
            left = 0
            for lane in range(len(wanted)):
                known = label[node, lane] == 0 or label[node, lane] == unreached or parent[node, lane] >= 0
                wanted[lane] = -1 if known else label[node, lane]
                left += not known
            at, stop = max(arc_start[node] - first, 0), min(arc_start[node + 1], last) - first
            while left and at < stop:
                cost = _cost(arcs[at], per_unit, shift, most, noise, seed)
                row, met = label[arcs[at].node], False
                for lane in range(len(wanted)):
                    met |= _left(row[lane], shift, hop) + cost == wanted[lane]
                if met:
                    for lane in range(len(wanted)):
                        if _left(row[lane], shift, hop) + cost == wanted[lane]:
                            wanted[lane] = -1
                            left -= 1
                            parent[node, lane] = arcs[at].node
                            edge[node, lane], length[node, lane] = arcs[at].edge, arcs[at].length
                at += 1
        node += 1


class Ends(NamedTuple):
    """Closing edges that a shorter path leads around.

    ``lane``, ``node`` and ``edge`` int32[c]: the lane of the end searched from, the far end, and the number; ``limit``
    float64[c]: what a path must stay below.
    """

    lane: np.ndarray
    node: np.ndarray
    edge: np.ndarray
    limit: np.ndarray


class Ways(NamedTuple):
    """The shortest ways into the far end of each closing edge, best first, as many as are to be kept.

    ``label`` int64[c, paths] is `NONE` where there are no more; ``near`` and ``edge`` int32[c, paths] are the last node
    before the far end, and the edge on; ``length`` float64[c, paths] the length of the whole path.
    """

    label: np.ndarray
    near: np.ndarray
    edge: np.ndarray
    length: np.ndarray


NONE = np.iinfo(np.int64).max  # as a label: no way


def make_ways(ends: int, paths: int) -> Ways:
    """Room for ways, none found yet."""
    shape = ends, paths
    nodes, edges = np.empty(shape, np.int32), np.empty(shape, np.int32)
    return Ways(np.full(shape, NONE), nodes, edges, np.empty(shape))


@inlined
def _keep(label, near, edge, length, k, way, node, arc_edge, size):
    """Enter a way among those kept for closing edge ``k``, by its label."""
    at = label.shape[1] - 1
    while at > 0 and label[k, at - 1] > way:
        label[k, at], near[k, at] = label[k, at - 1], near[k, at - 1]
        edge[k, at], length[k, at] = edge[k, at - 1], length[k, at - 1]
        at -= 1
    label[k, at], near[k, at], edge[k, at], length[k, at] = way, node, arc_edge, size


@kernel
def find_ways(arc_start, first, arcs, measure, lanes, ends, order, ways):
    """Collect the shortest ways into the far ends, over the arcs from number ``first`` on.

    A path through the far end itself has more arcs than the one to there, so that it is never the best one.

    Parameters
    ----------
    arc_start, first, arcs, measure, lanes
        As `relax_arcs` has them; arcs are sorted by length within the part of a page that one node has.
    ends : Ends
    order : int64[c]
        Which closing edge comes when, by far end.
    ways : Ways
        Out.
    """
    label = lanes.label
    lane_of, target, closing, limit = ends
    kept, kept_near, kept_edge, kept_length = ways
    per_unit, shift, most, hop, noise, seed = measure
    last, unreached = first + len(arcs), far(label)
    for k in order:
        node, lane, bar = target[k], lane_of[k], limit[k]
        at, stop = max(arc_start[node] - first, 0), min(arc_start[node + 1], last) - first
        while at < stop:
            arc = arcs[at]
            if arc.length >= bar:
                at = next_page(first + at) - first
                continue
            near, at = arc.node, at + 1
            if label[near, lane] == unreached or arc.edge == closing[k]:
                continue
            if _left(label[near, lane], shift, hop) == label[near, lane]:
                continue  # too many arcs to walk back
            length = float(label[near, lane] >> shift) / per_unit + arc.length
            way = _left(label[near, lane], shift, hop) + _cost(arc, per_unit, shift, most, noise, seed)
            if length < bar and way < kept[k, -1]:
                _keep(kept, kept_near, kept_edge, kept_length, k, way, near, arc.edge, length)


@kernel
def _hops(node, lane, avoid, parent):
    """Arcs from ``node`` back to the root of the lane, -1 if ``avoid`` is on the way."""
    hops = 0
    while node != avoid and parent[node, lane] >= 0:
        node, hops = parent[node, lane], hops + 1
    return -1 if node == avoid else hops


@kernel
def write_rows(ends, ways, slack, lanes, row_start, violation, entries):
    """Write the ways that are shorter than allowed by more than ``slack`` as rows, the closing edge first.

    With empty ``entries`` only counts. Returns how many rows and entries there are. Paths that meet the far end on the
    way are left out.
    """
    lane_of, target, closing, limit = ends
    parent, edge = lanes.parent, lanes.edge
    row = at = 0
    for k in range(len(target)):
        lane = lane_of[k]
        for path in range(ways.label.shape[1]):
            if ways.label[k, path] == NONE or not ways.length[k, path] < limit[k] - slack:
                break
            node = ways.near[k, path]
            hops = _hops(node, lane, target[k], parent)
            if hops < 0:
                continue
            if len(entries):
                entries[at], entries[at + 1] = closing[k], ways.edge[k, path]
                for step in range(hops):
                    entries[at + 2 + step], node = edge[node, lane], parent[node, lane]
                violation[row], row_start[row + 1] = limit[k] - ways.length[k, path], at + 2 + hops
            row, at = row + 1, at + 2 + hops
    return row, at
