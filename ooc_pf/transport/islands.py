"""Potentials that a Newton step cannot find, as nothing in the present support tells how far away they are.

Along the support the dual is a parabola. But where a part of it hangs together with nothing else and has more mass in
rows than in columns, or a node has no pair at all, the dual only grows with its potentials until a new pair takes part.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from . import settings
from .costs import Support
from .crew import Crew
from .levels import Level


def find_lonely(support: Support, side: int, masses: np.ndarray, missing: float, nodes: int) -> np.ndarray:
    """Rows (``side`` 0) or columns (1) without pairs, those that matter, and no more than there is time for."""
    ends = support.right if side else support.left
    matters = masses > settings.LONELY * missing / nodes
    found = np.flatnonzero(matters & (np.bincount(ends, minlength=len(masses)) == 0))
    most = max(1, settings.WAKE // (nodes - len(masses)))
    return np.sort(found[np.argsort(-masses[found], kind="stable")[:most]])


def shift_islands(
    level: Level, z: np.ndarray, reg: float, support: Support, gradient: np.ndarray, crew: Crew
) -> np.ndarray | None:
    """Potentials with the worst islands of the support shifted to where they reach others; None if there are none."""
    n, nodes = len(level.a), len(z)
    ones = np.ones(len(support.left))
    graph = sparse.coo_array((ones, (support.left, support.right.astype(np.int64) + n)), shape=(nodes, nodes))
    count, island = connected_components(graph, directed=False)
    side = np.where(np.arange(nodes) < n, 1.0, -1.0)
    lack, sizes = np.bincount(island, gradient * side, count), np.bincount(island, minlength=count)
    apart = np.flatnonzero((sizes > 1) & (np.abs(lack) > settings.ISLAND * np.abs(gradient).sum()))
    if len(apart) == 0 or count == 1:
        return None
    z = z.copy()
    for each in apart[np.argsort(-np.abs(lack[apart]), kind="stable")][: settings.ISLANDS]:
        inside, towards = island == each, np.sign(lack[each])
        slack = nearest_slack(level, z, inside if towards > 0.0 else ~inside, crew)
        # Half of what one new pair would need to move all that is lacking, as there may be more of them.
        z[inside] += (towards * (slack + 0.5 * reg * abs(lack[each])) * side)[inside]
    return z


def nearest_slack(level: Level, z: np.ndarray, reaching: np.ndarray, crew: Crew) -> float:
    """The least slack C_ij - f_i - h_j between rows that are ``reaching`` and columns that are not."""
    n, ends = len(level.a), level.costs.ends
    size = max(abs(end) for end in ends) + 2.0 * float(np.abs(z).max())
    # Whatever else is so far down that the search need not look at it.
    f = np.where(reaching[:n], z[:n], -4.0 * size)
    h = np.where(reaching[n:], -4.0 * size, z[n:])
    worst = level.costs.search(f, h, 1, -1.5 * size, crew).worst
    return max(-worst, 0.0) if worst > -1.5 * size else 0.0
