"""Other programs that cluster signed graphs, each in a process of its own. None of them proves anything.

Leiden (igraph, CPM with resolution 0), the best of as many runs of it as fit in a time, greedy additive edge
contraction (GAEC), and GAEC followed by Kernighan-Lin with joins (both of bioimage-cpp): their objectives on signed
weights are the cost of clusters.
"""

import multiprocessing
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from common import SEED, Graph, Stopwatch, peak_mb

from ooc_pf.problems.rounding import clustering_cost


def leiden(graph: Graph, iterations: int = -1) -> np.ndarray:
    """Clusters by so many iterations, -1: until nothing changes."""
    random.seed(SEED)  # igraph draws from it
    return _leiden(_network(graph), graph[2], iterations)


def repeated_leiden(graph: Graph, processor_seconds: float) -> np.ndarray:
    """The best clusters of one run after the other, each with other random numbers, for so much processor time."""
    random.seed(SEED)
    watch, network, best, least = Stopwatch(), _network(graph), np.empty(0), np.inf
    while watch.processor() < processor_seconds or not best.size:
        labels = _leiden(network, graph[2], -1)
        cost = clustering_cost(*graph, labels)
        if cost < least:
            best, least = labels, cost
    return best


def _network(graph: Graph) -> Any:
    import igraph

    u, v, _ = graph
    return igraph.Graph(n=int(max(u.max(), v.max())) + 1, edges=np.column_stack((u, v)))


def _leiden(network: Any, weight: np.ndarray, iterations: int) -> np.ndarray:
    found = network.community_leiden("CPM", weights=weight, resolution=0.0, n_iterations=iterations)
    return np.array(found.membership)


def gaec(graph: Graph) -> np.ndarray:
    """Clusters by joining the pair with the largest weight between them, until that is negative."""
    from bioimage_cpp.graph.multicut import GreedyAdditiveMulticut

    return GreedyAdditiveMulticut().optimize(_objective(graph))


def kernighan_lin(graph: Graph) -> np.ndarray:
    """Clusters of GAEC, improved by moving chains of nodes and joining clusters."""
    from bioimage_cpp.graph.multicut import KernighanLinMulticut

    return KernighanLinMulticut().optimize(_objective(graph))  # begins with GAEC by itself


def _objective(graph: Graph) -> Any:
    from bioimage_cpp.graph import UndirectedGraph
    from bioimage_cpp.graph.multicut import MulticutObjective

    u, v, weight = graph
    edges = np.column_stack((u, v)).astype(np.uint64)
    return MulticutObjective(UndirectedGraph.from_edges(int(edges.max()) + 1, edges), weight)


OPPONENTS: dict[str, Callable[..., np.ndarray]] = {
    "Leiden": leiden,
    "repeated Leiden": repeated_leiden,
    "GAEC": gaec,
    "GAEC + Kernighan-Lin with joins": kernighan_lin,
}


def measure(name: str, graph: Graph, limit: float | None = None, **options: Any) -> dict[str, Any]:
    """Cost, seconds from arrays to labels, and peak memory; no cost where it was not done within the limit."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(_measure, (name, graph, options)).get(limit)
        except multiprocessing.TimeoutError:
            return {"cost": None, "seconds": limit, "processor_seconds": None, "peak_mb": None}
        except ImportError as error:
            raise SystemExit(f"{error} (pip install 'ooc_pf[bench]', or choose with --opponents)") from None


def _measure(name: str, graph: Graph, options: dict[str, Any]) -> dict[str, Any]:
    watch = Stopwatch()
    labels = OPPONENTS[name](graph, **options)
    facts = watch.facts()
    return {"cost": clustering_cost(*graph, labels), **facts, "peak_mb": peak_mb()}
