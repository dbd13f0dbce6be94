"""Your own problem: a probability vector near a prior, with known averages that must hold, to a certified answer."""

import numpy as np

import ooc_pf as pf


def main() -> pf.Result:
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(200))
    ages, heights = rng.uniform(18, 90, 200), rng.normal(170, 10, 200)

    objective = pf.objectives.entropy(prior)  # sum x log(x / prior) - x + prior

    def oracle(x):  # rows (indices, coefficients, right-hand side, equation?); those that hold do no harm
        everyone = np.arange(200)
        rows = [(everyone, np.ones(200), 1.0, True)]
        rows += [(everyone, ages, 40.0, True)]
        rows += [(everyone, heights, 168.0)]  # at most
        rows += [([i], [1.0], 0.02) for i in np.flatnonzero(x > 0.02)]  # found only where they matter
        return rows

    result = pf.project_and_forget(objective, oracle, tol=1e-9)
    print(f"{result.status}: divergence {result.objective:.8f}, proven to be at least {result.lower_bound:.8f}")
    print(f"sum {result.x.sum():.8f}, mean age {ages @ result.x:.6f}, mean height {heights @ result.x:.6f}")
    print(f"{len(result.duals)} rows matter; no entry above {result.x.max():.8f}")
    return result


if __name__ == "__main__":
    main()
