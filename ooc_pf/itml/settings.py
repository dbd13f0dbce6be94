"""The numbers of metric learning."""

TILE = 256  # points on a side of a tile of pairs: a tile of float64 and its products stay in the second cache
LIST = 4096  # listed pairs read at a time
WAVE = 64  # tasks whose sums wait to be added up, in their order
CLOSE = 1e-4  # pairs nearer than this part of their squared norms are measured by their difference, against rounding
BOUND_PAIRS = 1_000_000  # pairs whose distances give the default bounds
PERCENTILES = (5.0, 95.0)  # of the squared distances: the default bounds

SAMPLE = 40_000  # pairs whose curvature stands for that of all
CURVATURE_TOL = 0.03  # conjugate gradients end at this part of the right-hand side
CURVATURE_STEPS = 60  # or after so many steps
MEMORY = 12  # corrections of the curvature that are kept (L-BFGS)
START_TOL = 1e-6  # relative gap at which the solve of the sample ends
FALL = 0.5  # a step is straight if no eigenvalue falls by more than this part of it
STRAIGHT = 0.3  # else it bends where an eigenvalue has fallen by this part
START_STEPS = 500  # or after so many steps
ARMIJO = 1e-4  # least part of the promised decrease
SHRINK = (0.1, 0.5)  # a step that was too long is cut to between these parts of it
MOST_TRIALS = 30  # steps tried along one direction
HALVINGS = 60  # of the interval in which the best mixture of multipliers lies
LEAST_VALUE = 1e-12  # for each dimension: a lower bound below it counts as this, when gaps are relative to it

SWEEPS = 20  # over the remembered pairs, after each look at all of them
LOOK_EVERY = 10  # steps; where pairs are drawn at random, all of them are looked at so often

BOUND_POINTS = 20_000  # ends of listed pairs whose distances give the default bounds
CONSTANT = 1e-24  # a column varies by no more than this part of its squares: constant, up to rounding
SINGULAR = 1e-12  # eigenvalues of a correlation matrix below this part of the largest count as zero

HELD = 1 << 30  # bytes of points or differences that a workspace holds
