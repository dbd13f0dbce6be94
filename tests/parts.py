"""Parts of the package built by hand, for tests of what is made of them."""

import numpy as np

from ooc_pf.cycles.inputs import Edges
from ooc_pf.problems import rounding
from ooc_pf.storage.vectors import Vector
from ooc_pf.triangles.tiles import Tiles, Tiling


def as_edges(u, v, weight, nodes):
    """The graph as programs over cycles read it."""
    return Edges(Vector.of(u), Vector.of(v), Vector.of(weight), nodes, lambda x: x)


def laid_out(u, v, weight, nodes, base):
    """(Level, edge of each arc) as the rounding lays a signed graph out."""
    ends = np.asarray(u, np.int32), np.asarray(v, np.int32)
    return rounding._whole(*ends, weight, nodes, 0.0 if base is None else base)


SIDE = 4  # lines a tile


def as_tiles(matrix, side=SIDE, pool=None):
    """A square array cut into tiles."""
    tiling = Tiling(len(matrix), side)
    lines = (matrix[tiling.lines(i)] for i in range(tiling.across))
    return Tiles(tiling, pool).fill_lines(lines)
