"""Textbook metric learning: the objective by its definition, and cyclic projections in the LogDet divergence."""

import numpy as np


def objective(matrix, prior, differences, sign, upper, lower, near, far):
    """LogDet divergence from the prior plus the losses of the pairs."""
    product = matrix @ np.linalg.inv(prior)
    value = np.trace(product) - np.linalg.slogdet(product)[1] - len(matrix)
    for v, s in zip(differences, sign, strict=True):
        p = v @ matrix @ v
        t = max(1.0, p / upper) if s > 0 else min(1.0, p / lower)
        value += (near if s > 0 else far) * (t - np.log(t) - 1.0)
    return value


def project(matrix, v, s, dual, slack, gamma):
    """One projection with slack; returns the matrix, the multiplier and the slack."""
    p = v @ matrix @ v
    alpha = min(dual, s * gamma / (gamma + 1.0) * (1.0 / p - 1.0 / slack))
    beta = s * alpha / (1.0 - s * alpha * p)
    slack = gamma * slack / (gamma + s * alpha * slack)
    return matrix + beta * np.outer(matrix @ v, matrix @ v), dual - alpha, slack


def cyclic_projections(prior, differences, sign, upper, lower, near, far, sweeps):
    """Davis et al., Algorithm 1, with the step that is right for every gamma; returns the matrix and multipliers."""
    matrix, dual = np.array(prior, float), np.zeros(len(sign))
    slack = np.where(sign > 0, upper, lower).astype(float)
    for _ in range(sweeps):
        for k, (v, s) in enumerate(zip(differences, sign, strict=True)):
            if v.any():
                matrix, dual[k], slack[k] = project(matrix, v, s, dual[k], slack[k], near if s > 0 else far)
    return matrix, dual
