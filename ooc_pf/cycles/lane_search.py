"""Searches in lanes: from the sources of a block at once; `tree_search` grows trees by the same labels."""

from dataclasses import replace

import numpy as np

from ..engine.rows import Rows
from ..kernels import lanes
from .arcs import Arcs, Scratch
from .frozen import SearchRules


def label_nodes(
    arcs: Arcs, made: lanes.Lanes, roots: np.ndarray, limit: np.ndarray, measure: lanes.Measure, stop: np.ndarray
) -> int | None:
    """Scan all arcs until no label changes; returns how many were looked at, or None if it was stopped.

    ``limit`` is, for each root, what labels stay below.
    """
    lanes.begin(arcs.start, roots, limit, made)
    relaxed, before = 0, -1
    while relaxed > before:
        before = relaxed
        for first, part in arcs.parts(made.state):
            if stop[0]:
                return None
            relaxed += lanes.relax_arcs(arcs.start, first, part, measure, made)
    return relaxed


def search_lanes(
    arcs: Arcs, scratch: Scratch, closers: lanes.Ends, sources: np.ndarray, rules: SearchRules, stop: np.ndarray
) -> tuple[Rows, np.ndarray, np.ndarray, int] | None:
    """Search from ``sources``, one in each lane, for paths shorter than the closing edges allow.

    Returns
    -------
    rows : Rows
        Those that ``rules`` keep of the shortest paths.
    violation : float64[rows]
    reach : float64[closing edges]
        ``min(limit, distance)``, up to a few units of the last digit below: of float64, or of labels of 32 bits where
        ``rules`` are coarse.
    relaxed : int
        None instead of all this if it was stopped.
    """
    kind = lanes.NARROW if rules.coarse else lanes.WIDE
    made, nodes = scratch.lanes(kind), len(arcs.start) - 1
    radius = np.zeros(len(sources))
    np.maximum.at(radius, closers.lane, closers.limit)
    measure = lanes.exact_measure(float(radius.max(initial=0.0)), nodes, kind)
    limit = np.array([lanes.limit_of(most, measure) for most in radius.tolist()], kind)
    relaxed = label_nodes(arcs, made, sources, limit, measure, stop)
    if relaxed is None:
        return None
    label, reach = made.label[closers.node, closers.lane], closers.limit.copy()
    short = (label != lanes.far(made.label)) & ((label >> measure.shift) / measure.per_unit < closers.limit)
    if rules.coarse and (label[short] & lanes.NARROW_HOPS == lanes.NARROW_HOPS).any():
        # Paths of so many arcs cannot be walked back.
        return search_lanes(arcs, scratch, closers, sources, replace(rules, coarse=False), stop)
    ends = lanes.Ends(*(part[short] for part in closers))
    ways = _ways(arcs, made, ends, rules.keep_paths, measure)
    best = (label[short] >> measure.shift) / measure.per_unit if rules.coarse else ways.length[:, 0]
    reach[short] = np.where(ways.label[:, 0] == lanes.NONE, ends.limit, best)
    rows, violation = _rows(made, ends, ways, rules.slack)
    return rows, violation, reach, relaxed


def _ways(arcs: Arcs, made: lanes.Lanes, ends: lanes.Ends, keep: int, measure: lanes.Measure) -> lanes.Ways:
    """The shortest ways into the far ends, and the parents of all nodes, in one more scan."""
    ways = lanes.make_ways(len(ends.node), keep)
    order = np.argsort(ends.node, kind="stable")
    targets = ends.node[order]
    for first, part in arcs.parts() if len(order) else ():
        lanes.find_parents(arcs.start, first, part, measure, made)
        nodes = np.searchsorted(arcs.start, (first, first + len(part)), side="right") - 1
        here = slice(*np.searchsorted(targets, (nodes[0], nodes[1] + 1)))
        lanes.find_ways(arcs.start, first, part, measure, made, ends, order[here], ways)
    return ways


def _rows(made: lanes.Lanes, ends: lanes.Ends, ways: lanes.Ways, slack: float) -> tuple[Rows, np.ndarray]:
    none = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    count, entries = lanes.write_rows(ends, ways, slack, made, *none)
    start, violation, edges = np.zeros(count + 1, np.int64), np.empty(count), np.empty(entries, np.int32)
    lanes.write_rows(ends, ways, slack, made, start, violation, edges)
    return Rows(start, edges), violation
