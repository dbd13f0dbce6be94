"""Which rows hold for every point that is allowed: nothing is proven by any others."""

import numpy as np

from ..engine.rows import RowBlock
from .inputs import Edges
from .program import CycleProgram


def are_valid(block: RowBlock, edges: Edges, program: CycleProgram) -> bool:
    """Whether every row is a cycle; of signed graphs, one whose first edge repels and whose others attract.

    Every node of a row must have exactly two of its edges. That makes it a cycle, or several, of which one holds the
    closing edge; as x >= 0 its inequality is valid.
    """
    table, listed = block.table, len(edges.value)
    if program.pairs:
        low, high = program.pairs.ends[table].T
    else:
        low, high = edges.u.take(table), edges.v.take(table)
    row = np.repeat(np.arange(len(block.dual)), np.diff(block.start))
    visited = np.concatenate((low[block.index], high[block.index])).astype(np.int64)
    _, uses = np.unique(np.tile(row, 2) * np.int64(edges.nodes) + visited, return_counts=True)
    if not (uses == 2).all():
        return False
    if program.closing > 0.0:
        return True
    repels = np.ones(len(table), bool)  # as pairs that are not listed do
    repels[table < listed] = edges.value.take(table[table < listed]) < 0.0
    first = np.zeros(len(block.index), bool)
    first[block.start[:-1]] = True
    return np.array_equal(repels[block.index], first)
