"""The numbers of the cycle family, by what they do.

`Settings` shape the bits of an answer and are kept with a run. The other numbers are the same for every run. They are
read as ``settings.NAME``, so that a test can set them.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from ..storage.memory import MIB
from ..storage.records import read_record, require

CERTIFY, STREAM, HOT, DISJOINT = "certify", "stream", "hot", "disjoint"
MOST_HOPS, MOST_ROUNDS, MOST_PATHS, MOST_TREES = 64, 1 << 10, 1 << 10, 1 << 16  # stored settings beyond are damage


@dataclass(frozen=True)
class Stage:
    """A kind of pass over the sources.

    Attributes
    ----------
    hops : int
        How many arcs from its source a search goes; 0: no limit, -1: shortest-path trees instead of searches.
    waves : int
        In how many parts the sources are taken, with sweeps between. The stage "hot" takes as many at a time, but
        always those of the largest expected violation, until none is worth it.
    rounds : int
        Rounds of sweeps after a wave, at most.
    pays : float
        The stage is repeated while a pass raises the bound by more than this, relatively; the stage "disjoint" while it
        finds a row for more than this share of the closing edges.
    """

    name: str
    hops: int
    waves: int
    rounds: int
    pays: float


@dataclass(frozen=True)
class Settings:
    """How the oracle goes about it.

    Attributes
    ----------
    stages : tuple of Stage
        In their order. Each is repeated while it pays; the last one and "certify" take turns.
    keep_paths : int
        Shortest paths kept for each violated closing edge.
    most_blocks, most_rows : int
        Blocks of sources in a wave, and rows that a pass takes up, at most.
    promise : float or None
        "certify" follows the last stage once its violations are below this many times the tolerance.
    trees, penalty : int and float, or None
        Trees in a pass, and how much each arc of a path counts beside its length.
    share, calm : float or None
        A source is left alone when its expected violation is below this share of the worst, or of the tolerance.
    gamma, rise, most_gamma : float or None
        Of a linear program by proximal steps: how long they are at first, by what factor they grow with each pass of
        trees, and how long they get. None: `PROXIMAL_GAMMA`, and that stays.
    every : int or None
        A proximal step is taken once in so many passes of trees; in other passes always.
    shrink : int or None
        All distances are found by way of the contracted graph if that has fewer joins than arcs by this factor, and no
        more than a pass takes up rows.
    patience : int or None
        Passes of trees in which the bound may stand still before the next stage; None: one.
    best_first : bool or None
        Of the stages before "certify" the one goes next that promises to raise the bound most for its work, after each
        was tried once; None: they come in their order.
    """

    stages: tuple[Stage, ...]
    keep_paths: int
    most_rows: int
    most_blocks: int = 1 << 9
    promise: float | None = None
    trees: int | None = None
    penalty: float | None = None
    share: float | None = None
    calm: float | None = None
    gamma: float | None = None
    rise: float | None = None
    most_gamma: float | None = None
    every: int | None = None
    patience: int | None = None
    shrink: int | None = None
    best_first: bool | None = None

    def without(self, name: str) -> "Settings":
        """The same without one of the stages."""
        return replace(self, stages=tuple(stage for stage in self.stages if stage.name != name))

    def stored(self) -> dict[str, Any]:
        """As a manifest has them: stages as lists, and nothing that does not apply."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["stages"] = [[s.name, s.hops, s.waves, s.rounds, s.pays] for s in self.stages]
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def read(cls, stored: dict[str, Any], where: Any = "the settings") -> "Settings":
        """What `stored` gave; refuses what it could not have given, and names ``where`` it was found."""
        listed, names = stored.get("stages"), [field.name for field in fields(Stage)]
        for stage in listed if isinstance(listed, list) else [None]:
            require(isinstance(stage, list) and len(stage) == len(names), where, "the stages are not lists of settings")
        stages = [dict(zip(names, stage, strict=True)) for stage in listed or ()]
        rest = {name: value for name, value in stored.items() if name != "stages"}
        made = tuple(read_record(Stage, stage, where, "stage") for stage in stages)
        found = read_record(cls, rest, where, "settings", stages=made)
        require(found._are_sound(), where, "the settings are none that a run has")
        return found

    def _are_sound(self) -> bool:
        """Whether a schedule can go by these settings."""
        names, by_trees = [stage.name for stage in self.stages], any(stage.hops < 0 for stage in self.stages)
        counts = (self.keep_paths, self.most_rows, self.most_blocks, *(stage.waves for stage in self.stages))
        sizes = [self.promise, self.penalty, self.share, self.calm, *(stage.pays for stage in self.stages)]
        lengths = (self.gamma, self.rise, self.most_gamma, self.every, self.patience, self.shrink)
        return (
            len({*names, CERTIFY}) == len(set(names)) == len(names) > 1
            and names[-1] != CERTIFY
            and not (self.best_first and names[0] == CERTIFY)
            and (names[-1] == HOT or self.promise is not None)
            and not ((by_trees or self.shrink is not None) and (self.trees is None or self.penalty is None))
            and all(-1 <= stage.hops <= MOST_HOPS and 0 <= stage.rounds <= MOST_ROUNDS for stage in self.stages)
            and (self.rise is None or self.most_gamma is not None)
            and self.stages[names.index(CERTIFY)].hops == 0
            and all(1 <= count < 1 << 31 for count in counts)
            and self.keep_paths <= MOST_PATHS
            and (self.trees is None or 1 <= self.trees <= MOST_TREES)
            and all(size is None or size >= 0 for size in sizes)
            and all(length is None or 0 < length < 1e12 for length in lengths)
        )


# -- one table for each case ----------------------------------------------------------------------------------------

MANY, MANY_OF_COMPLETE, MANY_ON_DISK = 1 << 21, 1 << 19, 1 << 16  # rows
MOST_ON_DISK, EDGES_OF_A_ROW = 1 << 20, 8  # a larger graph on disk takes up one row for so many edges, if not too many
FOUND_SHARE = 0.13  # of the memory, for rows that are taken up
FEW_TREES = 8  # in a pass on disk, at least

TRIANGLES = Stage("triangles", hops=1, waves=1, rounds=2, pays=1e-3)
SQUARES = Stage("squares", hops=2, waves=1, rounds=2, pays=1e-3)
THOROUGH = Stage(CERTIFY, hops=0, waves=1, rounds=10, pays=0.0)
QUICK = Stage(CERTIFY, hops=0, waves=1, rounds=3, pays=0.0)


def _stream(waves: int, rounds: int) -> Stage:
    return Stage(STREAM, hops=0, waves=waves, rounds=rounds, pays=0.0)


NEARNESS = Settings(
    (TRIANGLES, SQUARES, THOROUGH, Stage(HOT, hops=0, waves=8, rounds=10, pays=0.0)),
    keep_paths=3,
    most_rows=MANY,
    share=0.05,
    calm=0.35,
)
# On disk sources are searched from in their order: each page of arcs is read once a wave, and none here and there.
NEARNESS_ON_DISK = Settings(
    (TRIANGLES, SQUARES, THOROUGH, _stream(8, 10)), keep_paths=3, most_rows=MANY_ON_DISK, promise=100.0
)
# igraph knows no hops: it only makes complete passes.
NEARNESS_IGRAPH = Settings((THOROUGH, _stream(8, 10)), keep_paths=1, most_rows=MANY, promise=100.0)

SHORT = (TRIANGLES, Stage("squares", hops=2, waves=1, rounds=2, pays=1e-2))
TREES = Stage("trees", hops=-1, waves=1, rounds=1, pays=2e-5)
REVISITS = Stage(HOT, hops=0, waves=12, rounds=3, pays=0.0)

CLUSTERING = Settings(
    (*SHORT, TREES, THOROUGH, REVISITS),
    keep_paths=6,
    most_rows=MANY,
    trees=32,
    penalty=0.03,
    share=0.05,
    calm=0.35,
    shrink=8,
    best_first=True,
)
CLUSTERING_ON_DISK = replace(
    CLUSTERING, stages=(TREES, THOROUGH, REVISITS), keep_paths=3, most_rows=MANY_ON_DISK, best_first=None
)
# On complete graphs few pairs are at a distance below 1: complete passes are cheap, and trees do not pay.
COMPLETE = Settings((*SHORT, QUICK, _stream(8, 2)), keep_paths=6, most_rows=MANY_OF_COMPLETE, promise=10.0)
# Short cycles are a good beginning, but trees soon pay more. Short proximal steps find the first multipliers soonest,
# long ones prove more. The rows of the solution are few, so that trees, which cost little, are kept up for long.
LINEAR = replace(
    CLUSTERING,
    stages=(
        Stage(DISJOINT, hops=5, waves=1, rounds=1, pays=0.5),
        Stage("trees", hops=-1, waves=1, rounds=1, pays=5e-5),
        QUICK,
        REVISITS,
    ),
    gamma=4.0,
    rise=1.05,
    most_gamma=40.0,
    every=4,
    patience=12,
    best_first=None,
)
# The first stage reads arcs here and there; where they do not fit the memory `budget.fit_to_disk` leaves it out.
LINEAR_ON_DISK = replace(LINEAR, keep_paths=3, most_rows=MANY_ON_DISK)

# On complete graphs proximal steps want all rows.
LINEAR_COMPLETE = Settings(
    (Stage(DISJOINT, hops=2, waves=1, rounds=1, pays=1.0), *SHORT, QUICK, _stream(1, 3)),
    keep_paths=6,
    most_rows=MANY_OF_COMPLETE,
    promise=10.0,
    gamma=8.0,
)


def igraph_clustering(*, complete: bool, linear: bool) -> Settings:
    """Clustering with complete passes only."""
    waves, rounds = (1, 3) if linear else (8, 2) if complete else (12, 3)
    stages = (QUICK if linear or complete else THOROUGH, _stream(waves, rounds))
    return Settings(stages, keep_paths=1, most_rows=MANY_OF_COMPLETE if complete else MANY, promise=3.0)


# -- shapes the bits, the same for every run ------------------------------------------------------------------------

BLOCK_SOURCES = 32  # sources of one task
SCOUTS, FAR_SHARE = 8, 6  # where so many sources look at one arc in six each, all are searched from together
FEW_ARCS, FEW_HOPS = 1 << 9, 2  # looked at for a path of so few hops; twice as many for each hop more
WEDGE_TRIES = 64  # other edges at a node that an edge is tried with, for a wedge of a complete graph
BATCH_DISJOINT = 1 << 10  # closing edges that are searched for against one state of the used edges
# Of the size of the numbers: rows violated by less are not looked for among disjoint ones; nor, where the rows of one
# pass were not all that there are, by the passes that go on with what no row has touched yet.
LEFT_OF_WORST, UNTOUCHED = 0.02, 0.9
# For which tolerance distances to six digits are enough; what a path of 255 arcs, each rounded down, may lack at most,
# of the size of the numbers.
COARSE_TOLERANCE, COARSE_ERROR = 1e-3, 2.5e-4
MET_BY_TREES = 0.5  # if trees find no violation as large as this part of the worst, its sources are searched from
MOST_LEFT = 4  # times as many new pairs as rows are taken up may be left out and still be counted at their distance
CROWDED = 1.5  # rows that come in are cut down when they are this many times what a pass takes up
LEAST_OF_TOLERANCE = 0.1  # rows violated by less than this part of the tolerance are left for later
LEFT_BY_SWEEPS = 0.5  # the part of a violation that is expected to be left after the sweeps
SETTLED_OF_WORST, SETTLED_OF_TOLERANCE = 0.02, 0.01  # sweeps end when they correct less than these parts
# Work in units of an arc that a bounded search looks at: an arc of a tree grown beside others, and a projection.
WORK_OF_TREE_ARC, WORK_OF_PROJECTION = 0.3, 2.0
RATE_LEFT = 0.25  # the part of what a stage raised the bound for its work that is expected of it one pass later
REVISIT_PASSES = 2  # passes' worth of revisits before every source is searched again
DISMISS_SHARE = 0.25  # unlisted pairs lose their variable once this share of them has no row
# A run without room for the pairs it needs is given up after so many iterations in which the bound did not rise by a
# part of itself: the larger one of this number, and of this number times the tolerance.
CROWDED_PATIENCE, LEAST_RISE, LEAST_RISE_OF_TOLERANCE = 24, 1e-5, 0.1
DEALT = 64  # sources are dealt out round-robin in this many hands
EXTERNAL_EDGES = 4_000_000  # graphs with more are laid out for disk unless the caller says otherwise
# Clusters are made again after this many times the iterations, and so many more; later where they had become better by
# less than this part of what the bound had risen by in the meantime.
ROUND_AGAIN, ROUND_LATER = 1.2, 8
ROUND_MUCH_LATER, ROUND_PAYS = 3, 0.1
PROXIMAL_GAMMA = 1.0  # of the proximal steps of a linear program, unless its settings say otherwise
MOST_PLANES = 60  # tangents tried for the best scaling of the multipliers

MOST_VISITED = 1 << 14  # arcs that a search from both ends looks at, at most


def rounds_of(most_hops: int) -> list[tuple[int, int]]:
    """(Hops, arcs looked at for one path) of the rounds of searches for disjoint cycles: short ones come first."""
    return [(hops, min(FEW_ARCS << (hops - FEW_HOPS), MOST_VISITED)) for hops in (2, 3, 5, 8) if hops <= most_hops]


# -- costs time or memory only --------------------------------------------------------------------------------------

CLOSING_SECONDS = 10.0  # the last look of a run that ends early may take, or as long as the run if that was longer
BATCH_BLOCKS, BATCH_CLOSERS = 128, 1 << 14  # handed over together: blocks, and closing edges among them, at most
SCAN_PAGES = 16  # read at a time when all arcs are read in order
GATHERED_PAGES = 64  # of arcs, that are given their lengths together
TREE_LANES = 16  # trees grown together: some for each core
LEAST_TREE_LANES = 4  # trees of a task for a cluster, at least: together they cost little more than one
BATCH_PAIRS = 1 << 20  # new pairs of a complete graph that come together, more or less
TASKS_EACH = 16  # tasks for each worker, of a batch
TREE_PARTS = 16  # tasks that look for rows in trees
CROWDED_TREES = 1.25  # rows that trees found are cut down to the best when they are this many times what is kept
CLUSTER_TASK_BLOCKS = 4  # blocks of a task for a cluster
ROW_BUFFER, ENTRY_BUFFER = 1 << 14, 1 << 17  # of a worker, at first
LAYOUT_ENTRY_BYTES = 160  # of an arc while its range of nodes is sorted

# Bytes, for sharing out a budget.
PER_EDGE = 220  # arcs with lengths, closing edges, all vectors a run holds, and what clusters are made of
PER_EDGE_WHOLE = 240  # the same while the graph is built in memory
PER_NODE, PER_NODE_ROUNDED, PER_NODE_AND_WORKER = 100, 30, 49
PER_VISIT = 16  # of a node and worker, in searches from both ends
MOST_WALKED = 0.7  # of the edges of a signed graph are walked over, as a rule
PER_LANE, LANE_SHARE = 20, 0.4  # of a node and worker; lanes take at most this share of what there is
PER_FOUND, PER_PAIR = 64, 200  # a row that a pass found; a pair of a complete graph that has a variable
IGRAPH_EDGE, IGRAPH_NODE = 90, 2400  # igraph has its own copy, and tables of distances from the sources of a block
LEAST_POOL, LEAST_ROWS, LEAST_SLOTS = 6 * MIB, 12 * MIB, 32
FOR_ALL, FOR_EACH_WORKER = 36 * MIB, 2 * MIB
ARC_SHARE = 0.4  # of what is left after all that is fixed, for pages of arcs

# -- rounding -------------------------------------------------------------------------------------------------------

ROUNDING = 1e-14  # of the largest number: violations below are rounding
BEST_SCALE = 1e-10  # how closely the best scaling of the multipliers is found, relatively
