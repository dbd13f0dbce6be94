"""The numbers of the family of general rows and sets, by what they do.

They are the same for every run, and read as ``settings.NAME``, so that a test can set them.
"""

from ..storage.memory import MIB

# -- shapes the bits of an answer -----------------------------------------------------------------------------------

SETTLED_OF_WORST, SETTLED_OF_TOLERANCE = 0.02, 0.01  # sweeps end when they correct less than these parts
ROUNDS, MOST_ROUNDS = 3, 100  # of sweeps between two looks at the oracle, at least and at most
LOOKS_PER_SWEEP = 8  # rows looked at that cost as much as a projection
SET_SWEEPS = 30  # sweeps over the remembered sets between two looks at all of them, at most
SET_DRAWS = 10  # iterations between two complete looks, where an oracle says which sets to look at
SET_PARTS = 64  # tasks in which sets are looked at
PATIENCE = 200  # passes without a smaller violation before a run is given up
FALLS = 0.99  # a violation counts as smaller if it is below this part of the least one
ROW_REACH, SET_REACH = 1e6, 100.0  # infeasibility is proven for points up to so many times the size of x
FOUND_ENTRIES, FOUND_ROWS = 1 << 20, 1 << 17  # a scan that found so much stops, and goes on after the sweeps
SCAN_TASKS = 16  # between two looks at the clock and at what was found

# Newton steps on the multipliers.
NEWTON_STEPS = 12  # in an iteration, at most
NEWTON_OF_SETTLED = 0.1  # they end when the multipliers are so much closer to optimal than sweeps would bring them
NEWTON_PARTS = (1.0, 0.5, 0.25, 0.1, 0.02)  # of a step, tried in turn
NEWTON_PROGRESS = 0.5  # where the objective is flat, the optimality condition must fall to this part
MOST_ENTRIES = 1 << 21  # of all rows together; beyond that, sweeps alone
MOST_DENSE = 600  # rows whose system is solved with the signs of the multipliers in it
LONGEST_STEP = 1e4  # times the multipliers: where nothing holds them back a larger step only loses digits
CG_STEPS, LEAST_CG_STEPS, CG_WORK = 1000, 20, 1 << 25  # conjugate gradient steps, and entries they may go through
CG_ACCURACY = 1e-9  # of the largest slope

# -- costs time or memory only --------------------------------------------------------------------------------------

# Bytes, for sharing out a budget: a variable, a scan and after it the Newton steps, and the rows at least.
PER_VARIABLE, SCAN, LEAST_ROWS = 160, 160 * MIB, 64 * MIB

# -- rounding -------------------------------------------------------------------------------------------------------

ROUNDING = 1e-14  # of the terms of a row, or of the length of x: a smaller violation is none
RIDGE = 1e-10  # relative, in Newton systems: rows may depend on each other
FLAT = 1e-13  # relative: dual objectives that differ by less are equal
GROWN = 1e-12  # relative: multipliers that differ by less did not grow
EXCLUDED = 1e-9  # of the sum of the terms: how clearly multipliers must exclude every point
PULL, PULL_MORE = 1e-9, 1e-15  # how much further than computed a point is moved towards an interior one
