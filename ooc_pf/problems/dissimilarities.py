"""Random tables of dissimilarities that are no metrics: the data on which the method was first measured."""

from numbers import Integral

import numpy as np

from ..errors import InputError

KINDS = ("I", "II", "III")


def random_dissimilarities(n: int, kind: str = "I", seed: int = 0) -> np.ndarray:
    """A symmetric n x n array with zero diagonal.

    Parameters
    ----------
    n : int
        Number of points.
    kind : {"I", "II", "III"}
        "I": standard normal numbers, so half of them negative. "II": 1 with probability 0.8, else 0. "III":
        ``ceil(1000 * u * v**2)`` with u uniform in [0, 1] and v standard normal.
    seed : int
        The same seed gives the same table.

    Returns
    -------
    float64[n, n]

    Examples
    --------
    >>> import ooc_pf as pf
    >>> table = pf.random_dissimilarities(50, "I", seed=0)
    >>> round(pf.metric_nearness(table, tol=1e-9).objective, 4)
    566.0744
    """
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n must be a positive whole number, found {n!r}")
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, found {kind!r}")
    if not isinstance(seed, Integral):
        raise InputError(f"seed must be a whole number, found {seed!r}")
    rng = np.random.default_rng(int(seed))
    if kind == "I":
        table = rng.standard_normal((n, n))
    elif kind == "II":
        table = (rng.random((n, n)) < 0.8).astype(np.float64)
    else:
        table = np.ceil(1000.0 * rng.random((n, n)) * rng.standard_normal((n, n)) ** 2)
    table = np.triu(table, 1)
    table += table.T
    return table
