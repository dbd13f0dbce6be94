"""Rows, multipliers and clusters of another run, taken over for a graph that is nearly the same.

A cycle of the one graph is a cycle of the other as long as its edges are there. Any multipliers z >= 0 of valid rows
prove a bound, so what is taken over proves as much as it can on the new numbers: y is computed from them afresh.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..engine.rows import Rows
from ..engine.store import read_blocks
from ..storage.arrays import read_labels
from ..storage.records import require
from ..storage.vectors import Pool, Vector
from ..storage.workspace import Workspace
from .inputs import Edges, load_edges
from .plan import CycleState
from .point import CyclePoint
from .program import CycleProgram, MakeProgram
from .stored import load_point, load_program
from .valid import are_valid

# Multipliers that move y by more than this many times the size of the numbers are cut down: they belong to other
# units, and what they leave in the last digits of y would outlive them.
FARTHEST = 10.0
MOST_CENTRE = 2.0  # x ends between 0 and 1
NOWHERE = -1  # the number of a node or pair that the new graph does not have


@dataclass(frozen=True)
class OtherRun:
    """What another run left, as a whole in memory.

    Attributes
    ----------
    name : str or Path
        Of its workspace.
    labels : array
        Of its nodes.
    ends : int64[variables, 2]
        Numbers of the two nodes of each pair that had a variable, the lower one first.
    repels : bool[variables]
        Of signed graphs: whether it repels.
    point : CyclePoint
        Where it stood.
    rows, dual : Rows and float64[rows]
        What it remembered.
    """

    name: str | Path
    labels: np.ndarray
    ends: np.ndarray
    repels: np.ndarray
    point: CyclePoint
    rows: Rows
    dual: np.ndarray

    @classmethod
    def read(cls, place: Workspace, make: MakeProgram) -> "OtherRun":
        pool = Pool()
        edges = load_edges(place, pool)
        point = load_point(load_program(place, make, edges, pool), place, pool)
        blocks = list(read_blocks(place.generation / "rows", point.y.size))
        rows = Rows.join([block.rows for block in blocks])
        dual = np.concatenate([np.empty(0), *(block.dual for block in blocks)])
        place.check_groups()
        return cls(place.name, read_labels(place.edges), *_variables(point.program, edges), point, rows, dual)


def take_over(state: CycleState, edges: Edges, labels: np.ndarray, other: OtherRun) -> None:
    """Begin a run with what another one left.

    Parameters
    ----------
    state : CycleState
        As a run begins.
    edges : Edges
        Of its graph, in memory.
    labels : array
        Of its nodes.
    other : OtherRun
    """
    point, node = state.point, matched(other.labels, labels)
    number = _number_pairs(point, edges, node[other.ends], other.rows)
    repels = _variables(point.program, edges)[1]
    rows, dual = _renumbered(other.rows, other.dual, number)
    if point.program.closing < 0.0:
        rows, dual = _turned(rows, dual, repels)
        _take_centre(point, other, number, repels)
    state.rows.fill(rows, _cut_down(rows, dual, point.program))
    for block in state.rows.blocks():
        # Whoever verifies the new run would refuse it.
        require(are_valid(block, edges, point.program), other.name, "a stored row is not a cycle of its graph")
    point.program.rebuild(((block, block.dual) for block in state.rows.blocks()), point.y)
    if other.point.labels is not None:
        point.labels = _carried(other.point.labels, node, edges.nodes)


def matched(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The number of each old label among the new ones, all different; numbers and text match by what they say."""
    if old.dtype.kind != new.dtype.kind:
        old, new = old.astype(str), new.astype(str)
    if not len(new):
        return np.full(len(old), NOWHERE, np.int64)
    order = np.argsort(new, kind="stable")
    at = order[np.minimum(np.searchsorted(new, old, sorter=order), len(new) - 1)]
    return np.where(new[at] == old, at, NOWHERE)


def _variables(program: CycleProgram, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    """Ends of all pairs with a variable, and which of them repel; those that are not listed do."""
    u, v, value = edges.u.whole, edges.v.whole, edges.value.whole
    assert u is not None and v is not None and value is not None
    ends = np.column_stack((u, v)) if program.pairs is None else program.pairs.ends
    repels = np.ones(len(ends), bool)
    repels[: len(value)] = value < 0.0
    return ends.astype(np.int64), repels


def _number_pairs(point: CyclePoint, edges: Edges, ends: np.ndarray, rows: Rows) -> np.ndarray:
    """The variable of each pair; in a complete graph those that close a row get one."""
    ends = np.sort(np.where((ends >= 0).all(axis=1)[:, None], ends, NOWHERE), axis=1)
    own = _variables(point.program, edges)[0]
    number = matched(ends[:, 0] << 32 | ends[:, 1], own[:, 0] << 32 | own[:, 1])
    if point.program.pairs is not None:
        closes = np.zeros(len(ends), bool)
        closes[rows.edges[rows.start[:-1]]] = True
        fresh = np.flatnonzero(closes & (number == NOWHERE) & (ends[:, 0] >= 0))
        number[fresh] = point.y.size + np.arange(len(fresh))
        point.admit(ends[fresh].astype(np.int32))
    return number


def _renumbered(rows: Rows, dual: np.ndarray, number: np.ndarray) -> tuple[Rows, np.ndarray]:
    """The rows over new numbers, without those that need a pair that is not there."""
    entries = number[rows.edges]
    keep = np.minimum.reduceat(entries, rows.start[:-1]) >= 0 if len(rows) else np.empty(0, bool)
    return replace(rows, edges=entries.astype(np.int32)).select(keep), dual[keep]


def _turned(rows: Rows, dual: np.ndarray, repels: np.ndarray) -> tuple[Rows, np.ndarray]:
    """The rows with exactly one repulsive pair, turned round so that it comes first: signs may have changed."""
    if not len(rows):
        return rows, dual
    keep = np.add.reduceat(repels[rows.edges], rows.start[:-1], dtype=np.int64) == 1
    rows = rows.select(keep)
    length = np.diff(rows.start)
    first = np.repeat(rows.start[:-1], length)
    turn = np.repeat(np.flatnonzero(repels[rows.edges]) - rows.start[:-1], length)
    at = first + (np.arange(len(first)) - first + turn) % np.repeat(length, length)
    return replace(rows, edges=rows.edges[at]), dual[keep]


def _cut_down(rows: Rows, dual: np.ndarray, program: CycleProgram) -> np.ndarray:
    """The multipliers, none so large that its row alone moves an edge too far."""
    if not len(rows):
        return dual
    inverse = program.inverse.whole
    assert inverse is not None
    return np.minimum(dual, FARTHEST * program.magnitude / np.maximum.reduceat(inverse[rows.edges], rows.start[:-1]))


def _take_centre(point: CyclePoint, other: OtherRun, number: np.ndarray, repels: np.ndarray) -> None:
    """Of two linear programs: go on with proximal steps from where the other one was, and as long ones."""
    before, program = other.point.program, point.program
    if before.step is None or program.step is None or (program.pairs is not None and before.step != program.step):
        return
    there = number >= 0
    centre, old = np.zeros(program.size), np.clip(before.target.whole[there] - before.step, 0.0, MOST_CENTRE)
    changed = other.repels[there] != repels[number[there]]
    centre[number[there]] = np.where(changed, np.maximum(1.0 - old, 0.0), old)
    target = Vector.of(centre + before.step)
    same = before.step == program.step
    point.program = replace(program, target=target) if same else program.stretched(before.step, target, None)


def _carried(clusters: np.ndarray, node: np.ndarray, nodes: int) -> np.ndarray:
    """Clusters by new node; a node that is new has one of its own."""
    found = len(clusters) + np.arange(nodes)
    found[node[node >= 0]] = clusters[node >= 0]
    return np.unique(found, return_inverse=True)[1].astype(np.int32)
