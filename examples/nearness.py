"""Repair a table of dissimilarities so that it is a metric, and look at the proof of how good the repair is."""

import numpy as np

import ooc_pf as pf


def main() -> pf.Result:
    rng = np.random.default_rng(1)
    points = rng.random((40, 3))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    noise = np.triu(rng.uniform(0.6, 1.4, distances.shape), 1)
    measured = distances * (noise + noise.T)

    result = pf.metric_nearness(measured, tol=1e-8)
    worst = (result.x[:, None, :] - result.x[:, :, None] - result.x[None]).max()
    print(f"objective {result.objective:.6f}, proven lower bound {result.lower_bound:.6f}, gap {result.gap:.1e}")
    print(f"largest violation of a triangle inequality: {max(worst, 0.0):.1e}")
    print(f"{result.n_active} of {40 * 39 * 38 // 2} triangle inequalities were remembered")
    return result


if __name__ == "__main__":
    main()
