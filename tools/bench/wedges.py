"""Clustering of an unsigned graph as a complete one: ours beside a packing of open wedges with pivots, in one run.

python tools/bench/wedges.py EDGES [--columns A,B] [--memory 2GB] [--ratio 1.8] [--max-time 900] [--pivots 20]
python tools/bench/wedges.py --draws 100000 --nodes 20000

An edge attracts, every other pair repels, all with weight 1. Two edges at a node whose other ends are no edge are an
open wedge: every clustering has one of its three pairs wrong, so as many wedges without a common pair as there are is
what any clustering costs at least. The opponent packs them greedily, turns the three pairs of each around, and takes
the best of some pivot clusterings of the graph so made (match, flip and pivot). It is the fast combinatorial way.
"""

import argparse
from typing import Any

import numba
import numpy as np
from common import Graph, Stopwatch, peak_from_here, peak_mb, read_edges, signed_network, table

import ooc_pf as pf


@numba.njit(cache=True)
def _has(start, neighbour, a, b):
    """Whether a and b are an edge, in sorted CSR."""
    at = start[a] + np.searchsorted(neighbour[start[a] : start[a + 1]], b)
    return at < start[a + 1] and neighbour[at] == b


@numba.njit(cache=True)
def pack_wedges(start, neighbour, edge, edges, tries):
    """Open wedges without a common pair, greedily: (ends of the pair that is no edge, and which edges are used).

    At each node every free edge looks at so many other free ones.
    """
    used, taken = np.zeros(edges, np.bool_), set([(np.int64(-1), np.int64(-1))])
    ends = [(np.int64(0), np.int64(0))][:0]
    for middle in range(len(start) - 1):
        for i in range(start[middle], start[middle + 1]):
            if used[edge[i]]:
                continue
            looked = 0
            for j in range(i + 1, start[middle + 1]):
                if used[edge[j]]:
                    continue
                looked += 1
                if looked > tries:
                    break
                a, b = np.int64(neighbour[i]), np.int64(neighbour[j])
                if _has(start, neighbour, a, b) or (a, b) in taken:
                    continue
                used[edge[i]] = used[edge[j]] = True
                taken.add((a, b))
                ends.append((a, b))
                break
    return ends, used


@numba.njit(cache=True)
def pivot(start, neighbour, order):
    """Each node in turn, if nobody has it yet, takes its neighbours that nobody has."""
    label = np.full(len(start) - 1, -1, np.int64)
    for node in order:
        if label[node] < 0:
            label[node] = node
            for k in range(start[node], start[node + 1]):
                if label[neighbour[k]] < 0:
                    label[neighbour[k]] = node
    return label


def adjacency(u: np.ndarray, v: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR with sorted neighbours, and the number of the edge of each."""
    tail, head = np.concatenate((u, v)), np.concatenate((v, u))
    order = np.lexsort((head, tail))
    start = np.concatenate(([0], np.cumsum(np.bincount(tail, minlength=nodes))))
    return start, head[order].astype(np.int64), np.tile(np.arange(len(u)), 2)[order]


def cost_of(u: np.ndarray, v: np.ndarray, label: np.ndarray) -> int:
    """Edges between clusters, and pairs inside them that are no edge."""
    inside, size = int((label[u] == label[v]).sum()), np.unique(label, return_counts=True)[1]
    return len(u) - inside + int((size * (size - 1) // 2).sum()) - inside


def match_flip_pivot(u: np.ndarray, v: np.ndarray, nodes: int, pivots: int, tries: int = 64) -> dict[str, Any]:
    """Bound, cost and time of the opponent."""
    watch = Stopwatch()
    start, neighbour, edge = adjacency(u, v, nodes)
    ends, used = pack_wedges(start, neighbour, edge, len(u), tries)
    flipped = np.array(ends, np.int64).reshape(-1, 2)
    a, b = np.concatenate((u[~used], flipped[:, 0])), np.concatenate((v[~used], flipped[:, 1]))
    start, neighbour, _ = adjacency(a, b, nodes)
    rng, best = np.random.default_rng(0), len(u)  # every node by itself costs all edges
    for _ in range(pivots):
        best = min(best, cost_of(u, v, pivot(start, neighbour, rng.permutation(nodes))))
    found = {"cost": best, "bound": len(flipped), "ratio": best / max(len(flipped), 1)}
    return {**found, **watch.facts(), "peak_mb": peak_mb(), "remark": f"best of {pivots} pivots"}


def ours(graph: Graph, **options: Any) -> list[dict[str, Any]]:
    """What is known of our clusters each time the ratio has become clearly better, and at the end."""
    peak_from_here()
    watch, known = Stopwatch(), []

    def see(record: dict[str, Any]) -> None:
        if "ratio" in record and record["ratio"] <= 0.9 * (known[-1]["ratio"] if known else np.inf):
            found = {"cost": record["cost"], "bound": record["bound_of_clusterings"], "ratio": record["ratio"]}
            known.append({**found, **watch.facts(), "peak_mb": peak_mb(), "remark": f"iteration {record['iteration']}"})
            print(known[-1], flush=True)

    result = pf.correlation_clustering(graph, base=-1.0, callback=see, **options)
    end = {"cost": result.cost, "bound": result.lp_lower_bound, "ratio": result.certified_ratio}
    return [*known, {**end, **watch.facts(), "peak_mb": peak_mb(), "remark": result.status}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges", nargs="?")
    parser.add_argument("--columns")
    parser.add_argument("--draws", type=int, default=100_000, help="no file: edges of a generated network, and")
    parser.add_argument("--nodes", type=int, default=20_000, help="its nodes")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--ratio", type=float)
    parser.add_argument("--max-time", type=float, default=900.0)
    parser.add_argument("--pivots", type=int, default=20)
    args = parser.parse_args()
    if args.edges:
        u, v, _ = read_edges(args.edges, columns=args.columns, duplicates="sign")
    else:
        u, v, _ = signed_network(args.draws, args.nodes)
    nodes, graph = int(max(u.max(), v.max())) + 1, (u, v, np.ones(len(u)))
    match_flip_pivot(u[:9], v[:9], nodes, 1)  # compiles
    pf.correlation_clustering((u[:9], v[:9], np.ones(9)), base=-1.0)
    print(f"{nodes:,} nodes, {len(u):,} edges")
    rows = [{"solver": "wedges and pivots", **match_flip_pivot(u, v, nodes, args.pivots)}]
    print(rows[0], flush=True)
    limits = {"memory": args.memory, "ratio": args.ratio, "max_time": args.max_time}
    rows += [{"solver": "ooc_pf", **found} for found in ours(graph, tol=1e-3, **limits)]
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main()
