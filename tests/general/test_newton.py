"""The model of a Newton step is maximised."""

import numpy as np

from ooc_pf.general.newton import maximise_by_cg, maximise_quadratic


def test_the_model_of_a_newton_step_is_maximised(rng):
    for size in (5, 40):
        root = rng.normal(size=(size, size // 2))
        matrix = root @ root.T + 0.1 * np.eye(size)
        scale = 1.0 / np.sqrt(np.diag(matrix))
        matrix = scale[:, None] * matrix * scale
        slope, z = rng.normal(size=size), np.maximum(rng.normal(size=size), 0.0)
        free = np.arange(size) < 2
        least = np.where(free, -np.inf, -z)
        for step in (maximise_quadratic(matrix, slope, z, free), maximise_by_cg(matrix.dot, slope, least, 500)):
            pull = slope - matrix @ step
            assert (step >= least - 1e-12).all()
            inside = free | (step > least + 1e-9)
            assert np.abs(pull[inside]).max() < 1e-6
            assert (pull[~inside] < 1e-6).all()
