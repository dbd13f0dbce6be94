"""The numbers of transport, by what they do."""

# -- shapes the bits of an answer -------------------------------------------------------------------------------------

STRIPES = 8  # parts of a search that threads share; each has its own list of the columns' best
BLOCK = 256  # rows and columns of a block of costs that are read, where there are no chunks
LEAST_BLOCK, LARGEST_BLOCK = 64, 1024  # of chunks taken as blocks
ROUNDING = 4e-15  # of the largest target: a smaller violation is none

BEST = 4  # pairs taken up for every row and column
FEW = 0.02  # of the rows: when fewer are violated, the restricted problem is solved to the end
ROUGH = 1e-3  # relative gap of restricted problems before that
FINE = 1e-10  # and then
STEPS = 80  # of an interior-point solve, at most
START = 0.1  # least slack and multiplier at its start, relative to the largest target
FORGET_PART = 1e-4  # a pair is forgotten whose multiplier is at most this part of its slack ...
FORGET_SLACK = 0.05  # ... and whose slack is at least this part of the largest target
PIVOTS = 1000  # for one pair to enter the forest, at most
WORK = 100  # nodes visited by the pivots of an iteration, for each node; beyond that the interior point is quicker
PATIENCE = 10  # iterations without a smaller gap before a run is given up

# -- costs time or memory only ----------------------------------------------------------------------------------------

NODE_BYTES = 400  # held for each row and column
PAIR_BYTES = 400  # held for each remembered pair, with the fill of the equations
