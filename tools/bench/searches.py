"""The searches of a clustering run beside each other, at the point where its workspace stands.

python tools/bench/searches.py WORKSPACE [--blocks 20]

One source at a time, many in lanes, and all of them by way of the contracted graph; all say the same of every closing
edge, which is checked. Processor time of one core for each source, and arcs by second and lane beside what copying
memory would allow.
"""

import argparse
import time

import numpy as np

from ooc_pf.cycles import settings
from ooc_pf.cycles.frozen import Frozen, SearchRules
from ooc_pf.cycles.inputs import load_edges
from ooc_pf.cycles.passes import freeze
from ooc_pf.cycles.search import Block, NumbaOracle
from ooc_pf.cycles.stored import load_point, load_program
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.kernels.paths import UNLIMITED
from ooc_pf.problems.clustering import CLUSTERING
from ooc_pf.storage.vectors import Pool
from ooc_pf.storage.workspace import Workspace

NEVER = np.zeros(1, np.uint8)


def load(path: str) -> Frozen:
    """The point of a workspace."""
    workspace, pool = Workspace(path), Pool()
    make = CLUSTERING.program(workspace.manifest["problem"]["options"])
    point = load_point(load_program(workspace, make, load_edges(workspace, pool), pool), workspace, pool)
    return freeze(point.program, point.y)


def copied() -> float:
    """Bytes a second that memory gives and takes."""
    source = np.zeros(1 << 26, np.uint8)
    target = source.copy()
    began = time.process_time()
    for _ in range(8):
        np.copyto(target, source)
    return 16 * len(source) / (time.process_time() - began)


def compare(frozen: Frozen, oracle: NumbaOracle, blocks: int) -> None:
    graph, rules = frozen.graph, SearchRules(UNLIMITED, keep_paths=6, slack=1e-14)
    oracle.lay_out(frozen)
    size = settings.BLOCK_SOURCES
    chosen = np.random.default_rng(0).permutation(len(graph.sources) // size)[:blocks]
    parts = [Block.read(graph, range(k * size, (k + 1) * size)) for k in chosen]
    found = {}
    for name, search in (("one by one", oracle._search_each), ("in lanes", oracle._search_lanes)):
        search(oracle._all_scratch[0], frozen, parts[0], rules, NEVER)  # compiles
        began = time.process_time()
        found[name] = [search(oracle._all_scratch[0], frozen, part, rules, NEVER) for part in parts]
        seconds = time.process_time() - began
        arcs = sum(part.relaxed for part in found[name])
        print(f"{name:12s} {1e3 * seconds / (size * len(parts)):8.3f} ms a source, {arcs:14,d} arcs", end="")
        lanes = size if name == "in lanes" else 1
        print(f", {lanes * arcs / seconds / 1e9:6.2f} billion arcs by second and lane")
    pairs = zip(*found.values(), strict=True)
    print(f"largest difference {max(float(np.abs(a.reach - b.reach).max(initial=0.0)) for a, b in pairs):.1e}")


def contract(frozen: Frozen, oracle: NumbaOracle) -> None:
    oracle.survey(frozen, frozen.graph.arcs, tick=lambda: True, stop=NEVER)  # compiles
    began = time.process_time()
    survey = oracle.survey(frozen, frozen.graph.arcs, tick=lambda: True, stop=NEVER)
    assert survey is not None
    edges = sum(len(part.edge) for part in survey.batches())
    seconds = time.process_time() - began
    small, sources = survey._small.graph, len(frozen.graph.sources)
    print(
        f"contracted   {1e3 * seconds / sources:8.3f} ms a source, all {sources:,} in {seconds:.2f} s, {edges:,} edges:"
    )
    print(f"             {small.nodes:,} of {frozen.graph.nodes:,} nodes, {small.arcs:,} of {frozen.graph.arcs:,} arcs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", help="of a clustering run without base")
    parser.add_argument("--blocks", type=int, default=20, help="of sources, searched from both ways")
    args = parser.parse_args()
    frozen = load(args.workspace)
    with worker_pool(1, processes=False) as pool:
        oracle = NumbaOracle(frozen.graph, pool, 1)
        compare(frozen, oracle, args.blocks)
        contract(frozen, oracle)
    print(f"memory copies {copied() / 1e9:.1f} GB a second; a lane is 8 bytes, read and written")


if __name__ == "__main__":
    main()
