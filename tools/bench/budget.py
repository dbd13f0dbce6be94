"""What a memory budget costs where everything fits: the same runs with and without one, in turn.

python tools/bench/budget.py EDGES [--memory 1GB] [--rounds 5] [--tol 3e-2] [--kind clustering] [--gamma 1]

EDGES has signs; for nearness the targets are uniform in [0, 1] with seed 0 instead. Prints seconds of each run, of the
clock and of the processor, and the ratio of the medians. Fails if the answers differ in a single bit.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from common import SEED, Stopwatch, read_edges

import ooc_pf as pf

SOLVERS = {"clustering": pf.correlation_clustering, "nearness": pf.metric_nearness}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tol", type=float, default=3e-2)
    parser.add_argument("--gamma", type=float, help="the quadratic program instead of the linear one")
    parser.add_argument("--kind", choices=sorted(SOLVERS), default="clustering")
    args = parser.parse_args()
    spent: dict[str | None, list[tuple[float, float]]] = {None: [], args.memory: []}
    u, v, value = read_edges(args.edges, duplicates="sign")
    if args.kind == "nearness":
        value = np.random.default_rng(SEED).random(len(u))
    more = {"gamma": args.gamma} if args.kind == "clustering" else {}
    with tempfile.TemporaryDirectory() as folder:

        def solve(memory: str | None) -> pf.Result:
            return SOLVERS[args.kind]((u, v, value), workspace=Path(folder) / "run.pf", tol=args.tol, memory=memory,
                                      restart=True, **more)  # fmt: skip

        first = solve(None)  # compiles what there is to compile
        for _ in range(args.rounds):
            for memory, seconds in spent.items():
                watch = Stopwatch()
                result = solve(memory)
                seconds.append((watch.clock(), watch.processor()))
                assert np.array_equal(first.x, result.x) and first.lower_bound == result.lower_bound
    medians = []
    for memory, seconds in spent.items():
        medians.append([statistics.median(values) for values in zip(*seconds)])
        print(f"memory={memory}: " + ", ".join(f"{clock:.2f} s ({processor:.2f} s)" for clock, processor in seconds))
    print("with / without: {:.3f} of the clock, {:.3f} of the processor".format(*(b / a for a, b in zip(*medians))))


if __name__ == "__main__":
    main()
