"""Objectives for `project_and_forget` and `project_onto_sets`: Bregman functions, each given by a short record.

All have the form ``f(x) = h(x) - <t, x> + constant`` with h convex. For multipliers z of the rows the minimiser of the
Lagrangian is the point whose h-gradient is ``y = t - A'z``, so a state is a vector y and the start is ``y = t``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .errors import InputError
from .kernels import bregman
from .storage.arrays import digest

OWN, DENSE = -1, -2


@dataclass(frozen=True)
class Own:
    """A user's separable function: elementwise callables of x (or y) and the parameters."""

    gradient: Callable[..., np.ndarray]
    inverse_gradient: Callable[..., np.ndarray]
    value: Callable[..., np.ndarray]
    parameters: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Objective:
    """A Bregman function; made by the functions of this module.

    Attributes
    ----------
    name : str
        What messages call it.
    code : int
        Which separable function, for the kernels; OWN and DENSE are handled in Python.
    start : float64[n]
        y where no row has a multiplier.
    weight, shift, ridge : float64[n]
        Parameters of the separable functions.
    power : float
        Of a power.
    matrix, inverse : float64[n, n] or None
        Of a quadratic function with any positive definite matrix.
    peak : float
        Weight of the largest deviation, for l-infinity.
    domain : (float, float)
        Every variable is between these.
    smooth : bool
        Whether the gradient is unique everywhere, which general sets need.
    own : Own or None
        A function of the caller.
    offset : float
        Taken from the value, so that it is zero where it should be.
    """

    name: str
    code: int
    start: np.ndarray
    weight: np.ndarray
    shift: np.ndarray
    ridge: np.ndarray
    power: float = 2.0
    matrix: np.ndarray | None = None
    inverse: np.ndarray | None = None
    peak: float = 0.0
    own: Own | None = None
    domain: tuple[float, float] = (-np.inf, np.inf)
    smooth: bool = True
    offset: float = field(default=0.0)

    @property
    def size(self) -> int:
        return len(self.start)

    @property
    def parameters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.weight, self.shift, self.ridge

    @property
    def fingerprint(self) -> str:
        """Of all numbers; functions leave none."""
        extra = () if self.own is None else self.own.parameters
        dense = () if self.matrix is None else (self.matrix,)
        return digest(self.start, *self.parameters, np.array([self.power, self.peak, *self.domain]), *dense, *extra)

    def over(self, index: np.ndarray) -> "Objective":
        """The function of some of the variables alone, up to a constant; not for a dense matrix."""
        part = {name: getattr(self, name)[index] for name in ("start", "weight", "shift", "ridge")}
        own = self.own and replace(self.own, parameters=tuple(values[index] for values in self.own.parameters))
        return replace(self, **part, own=own, offset=0.0)

    def point(self, y: np.ndarray) -> np.ndarray:
        """The x whose gradient is y."""
        if self.own is not None:
            return np.asarray(self.own.inverse_gradient(y, *self.own.parameters), np.float64)
        if self.inverse is not None:
            return self.shift + self.inverse @ y
        return bregman.invert_gradient(self.code, y - self.absorbed(y), *self.parameters, self.power)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The y of an x inside the domain."""
        if self.own is not None:
            return np.asarray(self.own.gradient(x, *self.own.parameters), np.float64)
        if self.matrix is not None:
            return self.matrix @ (x - self.shift)
        return bregman.find_gradient(self.code, x, *self.parameters, self.power)

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        return self._height(x) - float(self.start @ (x - self.shift)) - self.offset

    def _height(self, x: np.ndarray) -> float:
        if self.own is not None:
            return float(np.sum(self.own.value(x, *self.own.parameters)))
        if self.matrix is not None:
            return 0.5 * float((x - self.shift) @ self.matrix @ (x - self.shift))
        height = float(bregman.sum_values(self.code, x, *self.parameters, self.power))
        return height + self.peak * float(np.abs(x - self.shift).max(initial=0.0)) if self.peak else height

    def curvature(self, y: np.ndarray) -> "Curvature":
        """How x moves with y."""
        if self.inverse is not None:
            return Curvature(np.diag(self.inverse), dense=self.inverse)
        if self.own is not None:
            # No second derivative is given; a step of this size loses half of the digits, enough for a direction.
            size = max(np.abs(self.start).max(initial=0.0), np.abs(y).max(initial=0.0))
            if size == 0.0:
                return Curvature(np.zeros(self.size))
            small = 1e-6 * size
            return Curvature((self.point(y + small) - self.point(y - small)) / (2.0 * small))
        taken = self.absorbed(y)
        slope = bregman.find_slope(self.code, y - taken, *self.parameters, self.power)
        if not self.peak or np.abs(y).sum() <= self.peak:
            return Curvature(np.zeros(self.size) if self.peak else slope)
        # The variables at the largest deviation move together, the others on their own.
        return Curvature(np.where(taken != 0.0, 0.0, slope), np.sign(taken) / np.sqrt(np.count_nonzero(taken) / slope))

    def absorbed(self, y: np.ndarray) -> np.ndarray | float:
        """The part of y that the largest deviation takes up: the nearest point of the l1 ball of its weight."""
        return project_l1_ball(y, self.peak) if self.peak else 0.0


@dataclass(frozen=True)
class Curvature:
    """The derivative of x by y: a diagonal and a symmetric product, or a dense matrix."""

    diagonal: np.ndarray
    product: np.ndarray | None = None
    dense: np.ndarray | None = None

    def times(self, v: np.ndarray) -> np.ndarray:
        if self.dense is not None:
            return self.dense @ v
        moved = self.diagonal * v
        return moved if self.product is None else moved + self.product * (self.product @ v)

    def between(self, rows: Any) -> np.ndarray:
        """The diagonal of the matrix between a scipy.sparse one and its transpose."""
        if self.dense is not None:
            return np.asarray(rows.multiply(rows @ self.dense).sum(axis=1)).ravel()
        plain = rows.power(2) @ self.diagonal
        return plain if self.product is None else plain + (rows @ self.product) ** 2

    def sandwiched(self, rows: Any) -> np.ndarray:
        """The matrix between a scipy.sparse one and its transpose, as a dense array."""
        if self.dense is not None:
            return rows @ (rows @ self.dense).T
        between = (rows.multiply(self.diagonal[None, :]) @ rows.T).toarray()
        if self.product is None:
            return between
        side = rows @ self.product
        return between + np.outer(side, side)


def project_l1_ball(y: np.ndarray, radius: float) -> np.ndarray:
    """The point nearest to y whose absolute values sum to at most ``radius``."""
    size = np.abs(y)
    if size.sum() <= radius:
        return y.copy()
    ordered = np.sort(size)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(y) + 1)
    cut = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.sign(y) * np.maximum(size - cut, 0.0)


# -- reading what the user gives ------------------------------------------------------------------------------------


def _vector(name: str, values: Any, size: int | None = None) -> np.ndarray:
    """A finite vector; a single number stands for all entries where the size is known."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, found {type(values).__name__}") from None
    if size is not None and found.ndim == 0:
        found = np.full(size, float(found))
    if found.ndim != 1 or (size is not None and len(found) != size):
        expected = "a vector" if size is None else f"a vector of {size} numbers, or one number"
        raise InputError(f"{name} must be {expected}, found shape {found.shape}")
    wrong = ~np.isfinite(found)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name}[{at}] is {found[at]}; it must be a finite number")
    return np.ascontiguousarray(found)


def _positive(name: str, values: Any, size: int) -> np.ndarray:
    found = _vector(name, values, size)
    if (found <= 0).any():
        at = int(np.argmax(found <= 0))
        raise InputError(f"{name}[{at}] is {found[at]}; it must be positive")
    return found


def _inside(name: str, values: np.ndarray, low: float, high: float) -> None:
    wrong = ~((values > low) & (values < high))
    if wrong.any():
        at = int(np.argmax(wrong))
        where = f"above {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{name}[{at}] is {values[at]}, outside the domain: it must be {where}")


def _away(anchor: Any, center: np.ndarray) -> np.ndarray:
    """From the center to where the quadratic term pulls."""
    return np.zeros(len(center)) if anchor is None else _vector("anchor", anchor, len(center)) - center


def _distance_from(name: str, code: int, center: Any, weights: Any, low: float, high: float) -> Objective:
    """The Bregman distance from ``center`` of a separable function."""
    center = _vector("center", center)
    _inside("center", center, low, high)
    weight, zero = _positive("weights", weights, len(center)), np.zeros(len(center))
    plain = Objective(name, code, zero, weight, zero, zero, domain=(low, high))
    moved = replace(plain, start=plain.gradient(center))
    return replace(moved, offset=moved.value(center))


def _size_of_gradients(objective: Objective, x: np.ndarray) -> np.ndarray:
    """How much the gradient of each variable changes on the way from x to a point well away from it."""
    low, high = objective.domain
    if np.isfinite(low) and np.isfinite(high):
        away = 0.5 * (x + high)
    elif np.isfinite(low) or np.isfinite(high):
        away = x + (x - (low if np.isfinite(low) else high))
    else:
        away = np.where(x != 0.0, 2.0 * x, np.abs(x).max(initial=0.0) or 1.0)
    with np.errstate(all="ignore"):
        size = np.abs(objective.gradient(away) - objective.gradient(x))
    return np.where(np.isfinite(size), size, np.inf)


# -- the objectives -------------------------------------------------------------------------------------------------


def quadratic(center: Any, weights: Any = 1.0, *, Q: Any = None) -> Objective:
    """``1/2 sum w (x - center)^2``, or ``1/2 (x - center)' Q (x - center)`` with a positive definite Q.

    ``weights`` are the w, positive: one number, or one for each variable.
    A dense Q costs an n by n array, and n steps for each coefficient of a projection.
    """
    center = _vector("center", center)
    zero = np.zeros(len(center))
    if Q is None:
        weight = _positive("weights", weights, len(center))
        return Objective("quadratic", bregman.QUADRATIC, zero, weight, center, zero)
    matrix = np.ascontiguousarray(Q, np.float64)
    if matrix.shape != (len(center), len(center)):
        raise InputError(f"Q must have shape {(len(center), len(center))}, found {matrix.shape}")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise InputError("Q must be symmetric with finite entries")
    matrix = 0.5 * (matrix + matrix.T)
    try:
        inverse = cho_solve(cho_factor(matrix), np.eye(len(center)))
    except np.linalg.LinAlgError:
        raise InputError("Q is not positive definite") from None
    inverse = np.ascontiguousarray(0.5 * (inverse + inverse.T))
    return Objective("quadratic with Q", DENSE, zero, zero, center, zero, matrix=matrix, inverse=inverse)


def entropy(center: Any, weights: Any = 1.0) -> Objective:
    """``sum w (x log(x / center) - x + center)`` over x > 0: relative entropy. With center 1, ``x log x - x + 1``.

    ``weights`` are the w, positive: one number, or one for each variable.
    """
    return _distance_from("entropy", bregman.ENTROPY, center, weights, 0.0, np.inf)


def fermi_dirac(center: Any, weights: Any = 1.0) -> Objective:
    """``sum w (x log(x / center) + (1 - x) log((1 - x) / (1 - center)))`` over 0 < x < 1.

    With center 1/2 this is the Fermi-Dirac entropy plus log 2 for each variable.
    ``weights`` are the w, positive: one number, or one for each variable.
    """
    return _distance_from("fermi_dirac", bregman.FERMI_DIRAC, center, weights, 0.0, 1.0)


def hellinger(center: Any, weights: Any = 1.0) -> Objective:
    """``sum w (1 - x center - sqrt(1 - x^2) sqrt(1 - center^2)) / sqrt(1 - center^2)`` over -1 < x < 1.

    The Bregman distance of ``-sqrt(1 - x^2)``; with center 0, ``1 - sqrt(1 - x^2)``.
    ``weights`` are the w, positive: one number, or one for each variable.
    """
    return _distance_from("hellinger", bregman.HELLINGER, center, weights, -1.0, 1.0)


def p_norm(center: Any, p: float, weights: Any = 1.0) -> Objective:
    """``1/p sum w |x - center|^p`` with 1 < p < infinity.

    ``weights`` are the w, positive: one number, or one for each variable.
    """
    center = _vector("center", center)
    if not (isinstance(p, int | float | np.number) and 1.0 < p < np.inf):
        raise InputError(f"p must be a number above 1, found {p!r}; for 1 and infinity there are l1 and linf")
    weight, zero = _positive("weights", weights, len(center)), np.zeros(len(center))
    return Objective("p_norm", bregman.POWER, zero, weight, center, zero, power=float(p))


def l1(center: Any, weights: Any = 1.0, *, ridge: Any = 1.0, anchor: Any = None) -> Objective:
    """``sum w |x - center| + 1/2 sum ridge (x - anchor)^2``; the anchor is the center if none is given.

    ``weights`` are the w, positive: one number, or one for each variable.
    """
    center = _vector("center", center)
    weight, stiff = _positive("weights", weights, len(center)), _positive("ridge", ridge, len(center))
    away = _away(anchor, center)
    return Objective(
        "l1", bregman.ABSOLUTE, stiff * away, weight, center, stiff, smooth=False, offset=-0.5 * float(stiff @ away**2)
    )


def linf(center: Any, weight: float = 1.0, *, ridge: float = 1.0, anchor: Any = None) -> Objective:
    """``weight max|x - center| + ridge/2 sum (x - anchor)^2``; the anchor is the center if none is given."""
    center = _vector("center", center)
    stiff, peak = _positive("ridge", ridge, len(center)), float(_positive("weight", weight, 1)[0])
    if (stiff != stiff[0]).any():
        raise InputError("ridge must be one number for linf")
    away = _away(anchor, center)
    return Objective(
        "linf",
        bregman.QUADRATIC,
        stiff * away,
        stiff,
        center,
        stiff,
        peak=peak,
        smooth=False,
        offset=-0.5 * float(stiff @ away**2),
    )


def separable(
    size: int,
    gradient: Callable[..., Any],
    inverse_gradient: Callable[..., Any],
    value: Callable[..., Any],
    *,
    parameters: tuple = (),
    center: Any = None,
    domain: tuple[float, float] = (-np.inf, np.inf),
) -> Objective:
    """Your own ``sum_j phi_j(x_j)``, strictly convex, from elementwise functions.

    Parameters
    ----------
    size : int
        Number of variables.
    gradient, inverse_gradient, value : callable
        Of an array of x (``inverse_gradient``: of gradients) and then of the parameters of the same entries; each
        returns an array.
    parameters : tuple of arrays
        One entry a variable, or single numbers.
    center : array, optional
        Take the Bregman distance from this point instead of the function itself.
    domain : (float, float)
        Where the function is defined.
    """
    zero = np.zeros(int(size))
    own = Own(gradient, inverse_gradient, value, tuple(_vector("a parameter", p, len(zero)) for p in parameters))
    plain = Objective("separable", OWN, zero, zero, zero, zero, own=own, domain=domain)
    if center is not None:
        center = _vector("center", center, len(zero))
        _inside("center", center, *domain)
        plain = replace(plain, start=_vector("gradient(center)", plain.gradient(center), len(zero)))
        plain = replace(plain, offset=plain.value(center))
    first = _vector("inverse_gradient at the start", plain.point(plain.start), len(zero))
    again = _vector("gradient at the start", plain.gradient(first), len(zero))
    wrong = np.abs(again - plain.start) > 1e-6 * (np.abs(plain.start) + _size_of_gradients(plain, first))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"gradient and inverse_gradient are not inverse to each other: variable {at} goes from gradient "
            f"{plain.start[at]} to x = {first[at]} and back to {again[at]}"
        )
    return plain
