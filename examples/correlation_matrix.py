"""The nearest correlation matrix: a projection onto two convex sets."""

import numpy as np

import ooc_pf as pf


def main() -> pf.Result:
    rng = np.random.default_rng(2)
    side = 20
    data = rng.normal(size=(30, side)) @ rng.normal(size=(side, side))
    estimated = np.corrcoef(data, rowvar=False) + 0.3 * np.triu(rng.normal(size=(side, side)), 1)
    estimated = (
        np.triu(estimated) + np.triu(estimated, 1).T
    )  # symmetric, ones on the diagonal, not a correlation matrix
    np.fill_diagonal(estimated, 1.0)

    diagonal = np.arange(side) * (side + 1)
    sets = [pf.sets.psd_cone(side), pf.sets.box(1.0, 1.0, on=diagonal)]
    result = pf.project_onto_sets(pf.objectives.quadratic(estimated.ravel()), sets, tol=1e-8)
    matrix = result.x.reshape(side, side)
    print(
        f"smallest eigenvalue {np.linalg.eigvalsh(estimated)[0]:.4f} before, {np.linalg.eigvalsh(matrix)[0]:.1e} after"
    )
    print(f"half the squared distance {result.objective:.8f}, proven to be at least {result.lower_bound:.8f}")
    print(f"{result.n_iter} iterations, {sum(r.get('projections', 0) for r in result.history)} projections")
    return result


if __name__ == "__main__":
    main()
