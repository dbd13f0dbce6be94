"""How a memory budget is shared out over a graph, before anything is allocated."""

from dataclasses import replace
from typing import Any

from ..errors import BudgetError
from ..kernels.paths import ARC, PAGE_SHIFT
from ..storage.memory import MIB, Budget, parse_memory, refuse_below
from . import settings as numbers
from .settings import Settings

ARC_PAGE = ARC.itemsize << PAGE_SHIFT  # bytes


def share_out(memory: Any, *, nodes: int, edges: int, workers: int, options: dict[str, Any]) -> Budget:
    """Divide ``memory`` for a run with these options, or refuse it with the least that will do.

    What fits stays in memory. A graph that was laid out for memory needs it; one laid out for disk needs some numbers a
    node, for every worker, and pages. How many pairs of a complete graph need a variable shows only
    later: those that fit get one.
    """
    if isinstance(memory, Budget):
        return memory
    budget = parse_memory(memory)
    if budget is None:
        return Budget()
    if options["external"]:
        return _for_disk(budget, memory, nodes, edges, workers, options["settings"])
    return _for_memory(budget, memory, nodes, edges, workers, options)


def fit_to_disk(settings: Settings, memory: Any, nodes: int, edges: int) -> Settings:
    """The settings of a run on disk for the size of its graph, and for the memory it begins with.

    A run keeps them when it goes on with other memory, and they do not depend on its workers: so its bits do not
    either. What is shared out already was meant for any run.
    """
    budget = None if isinstance(memory, Budget) else parse_memory(memory)
    most = numbers.MOST_ON_DISK if budget is None else int(numbers.FOUND_SHARE * budget) // (4 * numbers.PER_FOUND)
    rows = min(edges // numbers.EDGES_OF_A_ROW, most, numbers.MOST_ON_DISK)
    fitting = replace(settings, most_rows=rows) if rows > numbers.MANY_ON_DISK else settings
    if budget is None or fitting.trees is None:
        return fitting
    try:
        shared = _for_disk(budget, memory, nodes, edges, 1, fitting.stored())
    except BudgetError:
        return fitting  # the run itself is refused, with what its workers need
    # Trees that must be grown a few at a time cost more than they bring.
    if shared.lanes < min(numbers.BLOCK_SOURCES, numbers.TREE_LANES):
        fitting = replace(fitting, trees=min(fitting.trees, max(numbers.FEW_TREES, 2 * shared.lanes)))
    # Searches that go here and there are for arcs in memory.
    arcs = 2 * numbers.MOST_WALKED * edges * ARC.itemsize
    held = shared.slots is None or (shared.held + shared.slots) * ARC_PAGE >= arcs
    return fitting if held else fitting.without(numbers.DISJOINT)


def _for_disk(budget: int, memory: Any, nodes: int, edges: int, workers: int, settings: dict[str, Any]) -> Budget:
    # Rows that are held, rows that come, and both once more while they are joined.
    # A contracted graph has at most as many joins, and is gone before rows come.
    found = 4 * numbers.PER_FOUND * settings["most_rows"]
    fixed = numbers.FOR_ALL + found + workers * numbers.FOR_EACH_WORKER + _by_node(nodes, workers, 1)
    least = fixed + numbers.LEAST_POOL + numbers.LEAST_ROWS + workers * numbers.LEAST_SLOTS * ARC_PAGE
    refuse_below(least, budget, memory)
    left = budget - fixed
    lanes = _lanes(left, nodes, workers)
    left += _by_node(nodes, workers, 1) - _by_node(nodes, workers, lanes)
    if left >= numbers.PER_EDGE * edges + numbers.LEAST_ROWS:
        return Budget(rows=left - numbers.PER_EDGE * edges, build=left // 2, lanes=lanes)
    slots = max(numbers.LEAST_SLOTS, int(numbers.ARC_SHARE * left) // (workers * ARC_PAGE))
    slots = min(slots, 2 * ARC.itemsize * edges // ARC_PAGE + 1)
    left -= slots * workers * ARC_PAGE
    # Trees read all arcs in order: what is held of them serves every worker.
    held = (slots - numbers.LEAST_SLOTS) * workers if settings.get("trees") else 0
    slots -= held // workers
    return Budget(rows=left // 2, vectors=left // 2, slots=slots, held=held, build=left // 2, lanes=lanes)


def _for_memory(budget: int, memory: Any, nodes: int, edges: int, workers: int, options: dict[str, Any]) -> Budget:
    settings = options["settings"]
    each = (numbers.PER_NODE_AND_WORKER + numbers.PER_LANE + numbers.PER_VISIT) * nodes + numbers.FOR_EACH_WORKER
    if options["oracle"] == "igraph":
        each = numbers.IGRAPH_EDGE * edges + numbers.IGRAPH_NODE * nodes
    shared = numbers.PER_EDGE_WHOLE * edges + 8 * nodes
    found = numbers.PER_FOUND * min(4 * settings["most_rows"], settings["keep_paths"] * edges)
    fixed = shared + found + workers * each
    if not options.get("base"):
        refuse_below(fixed + 16 * MIB, budget, memory, "; external=True lays the graph out for disk and needs less")
        lanes = _lanes(budget - fixed, nodes, workers)
        return Budget(rows=budget - fixed - (lanes - 1) * numbers.PER_LANE * nodes * workers, lanes=lanes)
    fixed += numbers.PER_FOUND * max(numbers.BATCH_PAIRS, 64 * nodes)
    refuse_below(fixed + 32 * MIB, budget, memory)
    left = budget - fixed
    return Budget(rows=left // 2, pairs=edges + left // 2 // numbers.PER_PAIR)


def _by_node(nodes: int, workers: int, lanes: int) -> int:
    """Bytes by node of a graph on disk: a worker searches from one source or from many, or clusters are made."""
    search = max(numbers.PER_NODE_AND_WORKER, numbers.PER_LANE * lanes)
    return (numbers.PER_NODE + max(numbers.PER_NODE_ROUNDED, workers * search)) * nodes


def _lanes(left: int, nodes: int, workers: int) -> int:
    """How many sources a worker can search from at once, a power of two."""
    fit = int(numbers.LANE_SHARE * left) // max(1, numbers.PER_LANE * nodes * workers)
    return min(numbers.BLOCK_SOURCES, 1 << max(0, fit.bit_length() - 1))
