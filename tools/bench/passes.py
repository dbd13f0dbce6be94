"""Clusters of one graph laid out for memory and for disk, beside Leiden, in the same run.

python tools/bench/passes.py EDGES [--duplicates sign] [--columns A,B,VALUE] [--max-iter 12] [--memory SIZE]

Prints the cost of the first clusters and of the last, the bound, and the seconds spent on clusters on the way. The
budget is for the run on disk.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import opponents
from common import Stopwatch, random_grid, read_edges, total

import ooc_pf as pf


def solve(name: str, run: Path, **options: Any) -> None:
    shutil.rmtree(run.parent / "copy.pf", ignore_errors=True)
    path = shutil.copytree(run, run.parent / "copy.pf")
    watch = Stopwatch()
    result = pf.correlation_clustering(path, **options)
    seconds, cpu = watch.clock(), watch.processor()
    rounding = sum(record["seconds"].get("round", 0.0) for record in result.history)
    first = next(record["cost"] for record in result.history if "cost" in record)
    read = total(result.history, "read_bytes") / 1e6
    print(
        f"{name}: first clusters {first:.8g}, last {result.cost:.8g}, bound {result.lp_lower_bound:.8g}, "
        f"{result.n_iter} iterations, {seconds:.1f} s, {cpu:.1f} s of processor time, "
        f"clusters on the way {rounding:.1f} s, {read:,.0f} MB read from scratch files",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--duplicates", default="sign")
    parser.add_argument("--columns")
    parser.add_argument("--max-iter", type=int, default=12)
    parser.add_argument("--memory", default="2GB")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = random_grid(12)
        pf.correlation_clustering(small, max_iter=4)  # compiles
        pf.correlation_clustering(small, max_iter=4, external=True, workspace=Path(folder) / "small.pf")
        run = Path(folder) / "run.pf"
        pf.convert(args.edges, run, kind="signed", duplicates=args.duplicates, columns=args.columns)
        solve("laid out for memory", run, max_iter=args.max_iter, external=False)
        solve("laid out for disk", run, max_iter=args.max_iter, external=True, memory=args.memory)
    graph = read_edges(args.edges, duplicates=args.duplicates, columns=args.columns)
    for iterations in (2, 10):
        found = opponents.measure("Leiden", graph, iterations=iterations)
        print(f"Leiden, {iterations} iterations: {found['cost']:.8g}, {found['processor_seconds']} s of processor time")


if __name__ == "__main__":
    main()
