"""The numbers of transport, by what they do."""

# -- shapes the bits of an answer -------------------------------------------------------------------------------------

SAME_MASS = 1e-12  # of the mass: a smaller difference between the marginals is rounding
SAME_COST = 1e-12  # relative: a stored cost that differs by less is the same
STRIPES = 8  # parts of a search that threads share; each has its own list of the columns' best
BLOCK = 256  # rows and columns of a block of costs that are read, where there are no chunks
LEAST_BLOCK, LARGEST_BLOCK = 64, 1024  # of chunks taken as blocks
ROUNDING = 4e-15  # of the largest target or potential: a smaller violation is none

BEST = 4  # pairs taken up for every row and column
SAME_ORDER = 0.01  # of the pairs: while fewer come or go, the order of the nodes stays
FEW = 0.1  # of the rows: when fewer are violated, the restricted problem is solved to the end
ROUGH = 1e-3  # relative gap of restricted problems before that
FINE = 1e-10  # and then
STEPS = 80  # of an interior-point solve, at most
START = 0.1  # least slack and multiplier at its start, relative to the largest target
FORGET_PART = 1e-4  # a pair is forgotten whose multiplier is at most this part of its slack ...
FORGET_SLACK = 0.05  # ... and whose slack is at least this part of the largest target
PIVOTS = 1000  # for one pair to enter the forest, at most
WORK = 100  # nodes visited by the pivots of an iteration, for each node; beyond that the interior point is quicker
PATIENCE = 10  # iterations without a smaller gap before a run is given up

SLAB = 1 << 20  # costs read at a time for steps of whole rows

COARSEN = 4  # one row and column in so many make the next coarser problem ...
COARSE = 256  # ... until it has no more rows and columns than this
SHRINK = 8.0  # from one weight of the regulariser to the next smaller one
SUPPORT = 8.0  # pairs a row: with fewer, a coarse problem has served
LOOSE = 1e-2  # marginal error at which a weight or a coarse problem has served
CG_STEPS = 400  # of conjugate gradients; beyond that the equations are factored
CG_ACCURACY = 0.01  # of the right-hand side, at first; later the more accurate the closer
ARMIJO = 1e-4  # of the increase that the slope promises
OVERSHOOT = 0.9  # of the slope at its start that a step may have at its end, downwards
SHORTEN = 0.3  # from one trial of a step to the next
TRIALS = 40  # of a step, at most
SHORT = 0.2  # a step cut to less than this part asks for stiffer equations: ...
STIFF, STIFFER = 1e-3, 10.0  # ... so much is added to their diagonal at least, and so many times as much as before
SOFTER = 0.3  # and after a whole step so many times as much

SOFT_START, SOFTEN = 1e-2, 1e-7  # how much the interior-point method softens exact marginals, at first and at last
IDLE = 1e-8  # a pair whose multiplier is less than this part of its slack, in their units, carries nothing
FINEST = 1e-12  # relative gap and marginal error at the end
NEAR = 0.01  # pairs whose excess is above minus this part of the largest cost are its first candidates
DUST = 1e-14  # of a row's or column's mass: what is missing of it and less is rounding
CLOSE = 1e-3  # marginal error below which what is missing is routed along the plan's own pairs
LONELY = 1e-3  # of the marginal error, a node: a node without pairs that has less mass may stay without
WAKE = 1 << 26  # costs looked at in an iteration for the sake of nodes without pairs
SLOW = 2  # Newton steps that do not halve the marginal error; then islands of the support are looked for
ISLAND = 0.05  # of the marginal error: what an island lacks and less is left to Newton steps
ISLANDS = 4  # that are shifted in an iteration, at most
TURNS = 15  # Newton steps that do not halve the marginal error; then it is given up
ROUNDS = 50  # of searches and interior-point solves, at most

# -- costs time or memory only ----------------------------------------------------------------------------------------

FIXED = 8 << 20  # bytes for what cannot be counted: lists, the interpreter's own
NODE_BYTES = 400  # held for each row and column
PAIR_BYTES = 330  # for each pair that is remembered with soft marginals, with the fill of the equations
SUPPORT_BYTES = 120  # for each pair of the support with exact ones
LEAST_PAIRS = 12  # for each row and column; a budget for fewer is refused
HELD = 1 << 30  # bytes of a matrix of costs that a workspace holds; a larger one stays where it is
