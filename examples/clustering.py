"""Cluster a small trust network, and see how far from the best possible the clusters can be."""

import numpy as np

import ooc_pf as pf


def main() -> pf.Result:
    rng = np.random.default_rng(5)
    camp = rng.integers(0, 4, 300)
    u, v = rng.integers(0, 300, (2, 6000))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    same = camp[pairs[:, 0]] == camp[pairs[:, 1]]
    trust = np.where(same ^ (rng.random(len(pairs)) < 0.1), 1.0, -1.0)  # one vote in ten is wrong

    result = pf.correlation_clustering((pairs[:, 0], pairs[:, 1], trust), tol=1e-3)
    print(f"{len(np.unique(result.labels))} clusters, {result.cost:.0f} of {len(pairs)} votes go against them")
    print(f"proven: any clustering has at least {result.lp_lower_bound:.1f}, ratio {result.certified_ratio:.3f}")
    print(f"relaxation: objective {result.objective:.4f}, lower bound {result.lower_bound:.4f}, gap {result.gap:.1e}")
    return result


if __name__ == "__main__":
    main()
