"""The numbers of the family of support vector machines, by what they do.

They are the same for every run, and read as ``settings.NAME``, so that a test can set them.
"""

from ..storage.memory import MIB

# -- shapes the bits of an answer -------------------------------------------------------------------------------------

PART_ENTRIES = 1 << 21  # of a part of the rows, the work of one task; sums are added part by part, in order
TILE_ENTRIES = 1 << 16  # of a tile of a part: small enough for the cache of a core
DENSE_ENTRIES = 1 << 25  # of the Hessians of all classes; beyond that, conjugate gradients
FEW_ROWS = 64  # fewer changes of the active rows in a tile wait for those of other tiles
SAMPLES = (1 / 64, 1 / 4)  # the parts of the rows on which a start is found
ROWS_OF_SAMPLE = 20  # for each feature, at least; smaller samples are left out
CALM = 0.05  # of the active rows: when fewer change, a sample has served
RUNS = 8  # of consecutive rows, in each part, that make a sample
BINS = 4096  # points at which a line search knows the derivative
ARMIJO = 1e-4  # of the decrease that the slope promises: with less, a step is searched along
ROUNDING = 1e-13  # of the objective: a smaller increase is none
PATIENCE = 10  # iterations without a smaller gap before a run is given up
CG_STEPS = 500  # of conjugate gradients, at most, for one Newton step
CG_ACCURACY = 0.05  # of the gradient, at first; later the more accurate the closer
PROJECTIONS = 1_000_000  # of the stochastic method, at least, where max_iter is left open
MOST_EPOCHS = 1000
AVERAGED_FROM = 0.25  # the part of the projections after which iterates are averaged

# -- costs time or memory only ----------------------------------------------------------------------------------------

FIXED = 8 * MIB  # bytes for what cannot be counted: buffers of BLAS, lists, the interpreter's own
STRIP = 8  # columns of a Parquet file that are unpacked together
PAGE_BYTES = 5 * MIB // 2  # of a column of a Parquet file while it is read: a page of data and one of its dictionary
