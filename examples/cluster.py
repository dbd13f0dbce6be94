"""Let the workers of a dask cluster search, here two processes of this machine; the answer has the same bits."""

import tempfile
from pathlib import Path

import numpy as np
from dask.distributed import Client, LocalCluster

import ooc_pf as pf


def main() -> pf.Result:
    rng = np.random.default_rng(2)
    u, v = np.triu_indices(200, 1)
    chosen = rng.random(len(u)) < 0.15
    u, v = u[chosen], v[chosen]
    trust = np.where((u % 3 == v % 3) ^ (rng.random(len(u)) < 0.1), 1.0, -1.0)  # three camps, one vote in ten is wrong
    graph = u, v, trust
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,  # or your own cluster
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        # All workers must see the workspace under this path.
        result = pf.correlation_clustering(graph, tol=1e-3, workspace=Path(folder) / "run.pf", client=client)
        print(f"{result.status}: cost {result.cost:.0f}, no clustering costs less than {result.lp_lower_bound:.1f}")
    alone = pf.correlation_clustering(graph, tol=1e-3)
    print(f"the same clusters as on one machine: {np.array_equal(result.labels, alone.labels)}")
    return result


if __name__ == "__main__":
    main()
