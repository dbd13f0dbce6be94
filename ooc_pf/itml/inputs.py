"""What may be handed over to metric learning, and how it becomes a problem whose prior is the identity."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..kernels.itml import Terms
from . import settings
from .pairs import AllPairs, ListedPairs, count_pairs, squared_norms

Ends = tuple[np.ndarray, np.ndarray]


class Moments(NamedTuple):
    """Mean and covariance of points."""

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, blocks: Iterator[np.ndarray]) -> "Moments":
        """Over all blocks, each merged into those before (Chan, Golub and LeVeque)."""
        count, mean, scatter = 0, np.zeros(0), np.zeros((0, 0))
        for block in blocks:
            own = block.mean(axis=0)
            centred = block - own
            part = centred.T @ centred
            if count:
                shift, both = own - mean, count + len(block)
                scatter = scatter + part + np.outer(shift, shift) * (count * len(block) / both)
                mean = mean + shift * (len(block) / both)
            else:
                mean, scatter = own, part
            count += len(block)
        return cls(mean, scatter / max(count, 1))


def prior_root(prior: Any, standardize: bool, moments: Moments) -> np.ndarray:
    """A matrix L with LL' the prior: distances under the prior are Euclidean ones between points times L."""
    d = len(moments.mean)
    variance = np.diag(moments.covariance)
    constant = variance <= settings.CONSTANT * (variance + moments.mean**2)
    if isinstance(prior, str) and prior == "identity":
        spread = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
        return np.diag(1.0 / spread) if standardize else np.eye(d)
    if isinstance(prior, str) and prior == "covariance":
        return _inverse_root(moments.covariance, constant)
    if isinstance(prior, str):
        raise InputError(f'prior must be "identity", "covariance" or a square array, found {prior!r}')
    found = np.asarray(prior, np.float64)
    if found.shape != (d, d):
        raise InputError(f"prior must be {d} x {d}, as the points have {d} features; found shape {found.shape}")
    if not np.isfinite(found).all() or not np.allclose(found, found.T, rtol=1e-8, atol=1e-12 * abs(found).max()):
        raise InputError("prior must be finite and symmetric")
    try:
        return np.linalg.cholesky(found)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(found)[0]
        raise InputError(f"prior must be positive definite; its smallest eigenvalue is {least:.3g}") from None


def _inverse_root(covariance: np.ndarray, constant: np.ndarray) -> np.ndarray:
    scale = 1.0 / np.sqrt(np.where(constant, 1.0, np.diag(covariance)))
    values, vectors = np.linalg.eigh(scale[:, None] * covariance * scale)
    if values[0] <= settings.SINGULAR * values[-1]:
        rank = int(np.sum(values > settings.SINGULAR * values[-1]))
        named = ", ".join(map(str, np.flatnonzero(constant)))
        why = f"; column {named} is constant" if constant.any() else ""
        raise InputError(
            f"the covariance of the points has rank {rank} of {len(values)}{why}; drop dependent columns, or use "
            'prior="identity"'
        )
    return scale[:, None] * vectors / np.sqrt(values)


def read_bounds(bounds: Any) -> tuple[float, float] | None:
    """Bounds given by the caller: of squared distances, the lesser first."""
    if bounds is None:
        return None
    found = np.asarray(bounds, np.float64)
    if found.shape != (2,) or not np.isfinite(found).all() or not 0.0 < found[0] <= found[1]:
        raise InputError(f"bounds must be two squared distances, 0 < bounds[0] <= bounds[1]; found {bounds!r}")
    return float(found[0]), float(found[1])


def default_bounds(points: np.ndarray) -> tuple[float, float]:
    """Percentiles of the squared distances of different points, of many pairs or all.

    Which pairs these are depends on their number alone.
    """
    n = len(points)
    if n * (n - 1) // 2 <= settings.BOUND_PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        a, b = np.random.default_rng(0).integers(0, n, (2, settings.BOUND_PAIRS))
    p = np.concatenate(
        [
            squared_norms(points[a[k : k + settings.LIST]] - points[b[k : k + settings.LIST]])
            for k in range(0, len(a), settings.LIST)
        ]
        or [np.empty(0)]
    )
    p = p[p > 0.0]
    if not len(p):
        raise InputError("all points are equal, so there are no distances to learn from")
    low, high = np.percentile(p, settings.PERCENTILES)
    return float(low), float(high)


def read_gamma(gamma: Any) -> float:
    if not isinstance(gamma, Real) or not 0.0 < float(gamma) < np.inf:
        raise InputError(f"gamma must be a positive number, found {gamma!r}")
    return float(gamma)


def make_terms(bounds: tuple[float, float], gamma: float, d: int, similar: int, dissimilar: int) -> Terms:
    """The total weight gamma d, one half spread over the similar pairs and one over the dissimilar ones."""
    half = 0.5 * gamma * d
    return Terms(*bounds, half / max(similar, 1), half / max(dissimilar, 1))


@dataclass(frozen=True)
class Task:
    """A problem with the identity as prior, and the way back.

    Attributes
    ----------
    source : AllPairs or ListedPairs
    root : float64[d, d]
        L, with LL' the prior.
    dropped : int
        Pairs of equal points, which are left out.
    """

    source: AllPairs | ListedPairs
    root: np.ndarray
    dropped: int


def all_pairs_task(
    x: np.ndarray, classes: np.ndarray, gamma: float, prior: Any, standardize: bool, bounds: Any
) -> Task:
    """All pairs of points with classes."""
    groups = np.unique(x, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    moments = Moments.of(x[k : k + settings.LIST] for k in range(0, len(x), settings.LIST))
    root = prior_root(prior, standardize, moments)
    points = np.ascontiguousarray((x - moments.mean) @ root)
    similar, dissimilar = count_pairs(classes, groups)
    limits = read_bounds(bounds) or default_bounds(points)
    terms = make_terms(limits, gamma, x.shape[1], similar, dissimilar)
    dropped = len(x) * (len(x) - 1) // 2 - similar - dissimilar
    return Task(AllPairs(points, classes.astype(np.int32), groups, terms), root, dropped)


def listed_pairs_task(
    ends: Callable[[int, int], Ends], sign: np.ndarray, gamma: float, prior: Any, standardize: bool, bounds: Any
) -> Task:
    """Listed pairs; ``ends(first, last)`` reads the two points of each pair of a part of the list."""
    sign, parts = sign.copy(), range(0, len(sign), settings.LIST)
    keep = np.random.default_rng(0).permutation(len(sign))[: settings.BOUND_POINTS // 2]
    kept: list[np.ndarray] = []

    def read(first: int) -> np.ndarray:
        last = min(first + settings.LIST, len(sign))
        a, b = ends(first, last)
        _check_finite(first, a, b)
        sign[first:last][(a == b).all(axis=1)] = 0
        chosen = keep[(keep >= first) & (keep < last)] - first
        kept.append(np.concatenate([a[chosen], b[chosen]]))
        return np.concatenate([a, b])

    moments = Moments.of(read(first) for first in parts)
    root = prior_root(prior, standardize, moments)
    similar, dissimilar = int(np.sum(sign > 0)), int(np.sum(sign < 0))
    if similar + dissimilar == 0:
        raise InputError(f"all {len(sign)} pairs are of equal points, so there are no distances to learn from")
    limits = read_bounds(bounds) or default_bounds(np.unique(np.concatenate(kept), axis=0) @ root)
    terms = make_terms(limits, gamma, len(root), similar, dissimilar)

    def differences(first: int, last: int) -> np.ndarray:
        a, b = ends(first, last)
        return (a - b) @ root

    return Task(ListedPairs(differences, sign, len(root), terms), root, len(sign) - similar - dissimilar)


def _check_finite(first: int, a: np.ndarray, b: np.ndarray) -> None:
    for end, points in enumerate((a, b)):
        wrong = np.argwhere(~np.isfinite(points))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"pairs[{first + row}, {end}, {column}] is {points[row, column]} (NaN or infinity); drop such pairs, "
                "or put numbers in their place"
            )


def read_pairs(pairs: Any, preprocessor: Any) -> tuple[Callable[[int, int], Ends], int, int]:
    """How to read the points of pairs, how many there are, and their features.

    Pairs are [n, 2, d], or [n, 2] numbers of points where a preprocessor, an array or a function, has the points.
    Whatever can be sliced will do: arrays, memory maps, zarr arrays.
    """
    if not hasattr(pairs, "shape"):
        pairs = np.asarray(pairs)
    if len(pairs.shape) not in (2, 3) or pairs.shape[1] != 2:
        raise InputError(f"pairs must be [n, 2, d], or [n, 2] with preprocessor=; found shape {list(pairs.shape)}")
    if pairs.shape[0] == 0:
        raise InputError("there are no pairs: found 0 sample(s) while a minimum of 1 is required")
    if len(pairs.shape) == 2 and preprocessor is None:
        raise InputError("pairs of shape [n, 2] are numbers of points; give the points as preprocessor=")
    if len(pairs.shape) == 3:

        def ends(first: int, last: int) -> Ends:
            part = np.asarray(pairs[first:last], np.float64)
            return part[:, 0], part[:, 1]

    else:
        fetch = preprocessor if callable(preprocessor) else _Rows(preprocessor)

        def ends(first: int, last: int) -> Ends:
            part = np.asarray(pairs[first:last])
            a, b = (np.asarray(fetch(part[:, end]), np.float64) for end in (0, 1))
            if a.ndim != 2 or len(a) != len(part):
                raise InputError(f"preprocessor must return [{len(part)}, d] points, found shape {list(a.shape)}")
            return a, b

    return ends, int(pairs.shape[0]), int(ends(0, 1)[0].shape[1])


@dataclass(frozen=True)
class _Rows:
    """A preprocessor that is an array: its rows by their numbers."""

    points: Any

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        if numbers.dtype.kind not in "iu":
            raise InputError(f"pairs of numbers of points must be whole numbers, found {numbers.dtype}")
        n = len(self.points)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < n):
            raise InputError(f"pairs name point {numbers.max()}, but preprocessor= has {n} points, from 0 on")
        return np.asarray(self.points)[numbers]


def read_signs(y: Any, n: int) -> np.ndarray:
    """Labels of pairs: +1 similar, -1 dissimilar."""
    found = np.asarray(y)
    if found.shape != (n,):
        raise InputError(f"y must have one label for each of the {n} pairs, found shape {list(found.shape)}")
    wrong = ~np.isin(found, (-1, 1))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"y must be +1 (similar) or -1 (dissimilar); y[{at}] is {found[at]}")
    return found.astype(np.int8)
