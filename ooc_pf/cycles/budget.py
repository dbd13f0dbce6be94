"""How a memory budget is shared out, before anything is allocated."""

from typing import Any

from ..kernels.paths import ARC, PAGE_SHIFT
from ..storage.memory import Budget, parse_memory, refuse_below

MIB = 1 << 20
ARC_PAGE = ARC.itemsize << PAGE_SHIFT  # bytes
BATCH_PAIRS = 1 << 20  # new pairs of a complete graph that come together, more or less
PER_EDGE = 132  # arcs with lengths, closing edges, and all vectors a run holds
PER_EDGE_WHOLE = 240  # the same while the graph is built in memory
PER_FOUND, PER_PAIR = 64, 200  # a row that a pass found; a pair of a complete graph that has a variable
IGRAPH_EDGE, IGRAPH_NODE = 90, 2400  # igraph has its own copy, and tables of distances from 32 sources
LEAST_POOL, LEAST_ROWS, LEAST_SLOTS = 6 * MIB, 12 * MIB, 32
# Of general rows: bytes a variable, for a scan and after it the Newton steps, and for the rows at least.
PER_VARIABLE, SCAN, LEAST_GENERAL = 160, 160 * MIB, 64 * MIB


def share_out(memory: Any, *, nodes: int, edges: int, workers: int, options: dict[str, Any]) -> Budget:
    """Divide ``memory`` for a run with these options, or refuse it with the least that will do.

    What fits stays in memory. A graph that was laid out for memory needs it; one laid out for disk needs some numbers a
    node, for every worker, and pages. How many pairs of a complete graph will need a variable shows only later.
    """
    budget = parse_memory(memory)
    if budget is None:
        return Budget()
    if not options["external"]:
        return _share_out_memory(budget, memory, nodes, edges, workers, options)
    # Rows that are held, rows that come, and both once more while they are joined.
    found = 4 * PER_FOUND * options["settings"]["most_rows"]
    fixed = 100 * nodes + workers * (48 * nodes + 2 * MIB) + 36 * MIB + found
    least = fixed + LEAST_POOL + LEAST_ROWS + workers * LEAST_SLOTS * ARC_PAGE
    refuse_below(least, budget, memory)
    left = budget - fixed
    if left >= PER_EDGE * edges + LEAST_ROWS:
        return Budget(rows=left - PER_EDGE * edges, build=left // 2)
    slots = max(LEAST_SLOTS, int(0.4 * left) // (workers * ARC_PAGE))
    slots = min(slots, 32 * edges // ARC_PAGE + 1)
    left -= slots * workers * ARC_PAGE
    return Budget(rows=left // 2, vectors=left // 2, slots=slots, build=left // 2)


def _share_out_memory(budget, memory, nodes, edges, workers, options) -> Budget:
    settings = options["settings"]
    each = 48 * nodes + 2 * MIB if options["oracle"] == "numba" else IGRAPH_EDGE * edges + IGRAPH_NODE * nodes
    shared = PER_EDGE_WHOLE * edges + (8 + 12 * settings.get("trees", 0)) * nodes
    found = PER_FOUND * min(4 * settings["most_rows"], settings["keep_paths"] * edges)
    fixed = shared + found + workers * each
    if not options.get("base"):
        refuse_below(fixed + 16 * MIB, budget, memory, "; external=True lays the graph out for disk and needs less")
        return Budget(rows=budget - fixed)
    fixed += PER_FOUND * max(BATCH_PAIRS, 64 * nodes)
    refuse_below(fixed + 32 * MIB, budget, memory)
    left = budget - fixed
    return Budget(rows=left // 2, pairs=edges + left // 2 // PER_PAIR)
