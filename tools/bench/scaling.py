"""How the oracle and the sweeps scale with workers: the same run on one, two, ... of them, in threads and on a cluster.

python tools/bench/scaling.py EDGES [--workers 1,2] [--tol 1e-2] [--cluster] [--external] [--iterations 20]

EDGES has signs. With --external the graph is laid out for disk, which is where rows of different parts are swept side
by side. With --cluster each number of workers is also tried as that many processes of a dask cluster on
loopback. Fails if the answers differ in a single bit.
"""

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ooc_pf as pf


@contextlib.contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of so many worker processes, of one thread each."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield client


def measure(source: Path, **limits: Any) -> tuple[pf.Result, dict[str, float]]:
    """A run from the start, and seconds by kind of work."""
    began = time.perf_counter()
    result = pf.correlation_clustering(source, restart=True, **limits)
    spent = {"all": time.perf_counter() - began}
    for kind in ("oracle", "sweep", "disk"):
        spent[kind] = sum(record["seconds"].get(kind, 0.0) for record in result.history)
    return result, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--external", action="store_true")
    parser.add_argument("--iterations", type=int, help="stop after so many")
    args = parser.parse_args()

    def stop(record: dict[str, Any]) -> bool:
        return args.iterations is not None and record["iteration"] >= args.iterations

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pf"
        pf.convert(args.edges, path, kind="signed", duplicates="sign")
        options = {"tol": args.tol, "external": args.external or None, "callback": stop}
        first, _ = measure(path, **options)  # compiles what there is to compile
        print(f"{'workers':16s} {'all':>8s} {'oracle':>8s} {'sweep':>8s} {'disk':>8s}")
        for workers in map(int, args.workers.split(",")):
            kinds = {"threads": contextlib.nullcontext()} | ({"cluster": cluster_of(workers)} if args.cluster else {})
            for kind, place in kinds.items():
                with place as client:
                    result, spent = measure(path, workers=workers, client=client, **options)
                assert np.array_equal(first.x, result.x) and first.lower_bound == result.lower_bound
                print(f"{workers:2d} {kind:13s} " + " ".join(f"{seconds:8.1f}" for seconds in spent.values()))


if __name__ == "__main__":
    main()
