"""The smooth problem in the matrix: quasi-Newton steps whose first guess at the curvature comes from a sample of pairs.

A step is that of L-BFGS, with the inverse of the sample's Hessian, by conjugate gradients, in place of a multiple of
the identity. Everything is seen from the present matrix A = RR': a change is R E R', a matrix M of the dual is R'MR.
There the divergence from the prior has the identity as its Hessian, and the losses have sum g (n'En) nn' over the pairs
with a loss, n the unit vector along R'v. So numbers stay of the size of the weights, however ill-conditioned A is.
"""

import contextlib
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from . import settings
from .pairs import Crew, ListedPairs, Source, Sums, squared_norms


def log_determinant(root: np.ndarray) -> float:
    """Of ``root @ root.T``, for a triangular root."""
    return 2.0 * float(np.sum(np.log(np.diag(root))))


def is_positive(matrix: np.ndarray) -> bool:
    """Whether a matrix is symmetric, up to rounding, and positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * float(np.abs(matrix).max()))


@dataclass(frozen=True)
class Place:
    """A matrix, and what a look at the pairs says there.

    Attributes
    ----------
    root : float64[d, d]
        Lower triangular; the matrix is ``root @ root.T``.
    value : float
        The objective.
    dual : float64[d, d]
        R'MR; the gradient is this less the identity.
    conjugate : float
        Of the losses, at the multipliers of this look.
    """

    root: np.ndarray
    value: float
    dual: np.ndarray
    conjugate: float

    @classmethod
    def at(cls, root: np.ndarray, sums: Sums) -> "Place":
        divergence = float(np.sum(root * root)) - log_determinant(root) - len(root)
        return cls(root, divergence + sums.loss, root.T @ root + sums.gradient, sums.conjugate)

    @property
    def gradient(self) -> np.ndarray:
        return self.dual - np.eye(len(self.dual))


@dataclass
class Bound:
    """The best dual bound known: R'MR, and a number that the conjugate there does not exceed.

    Multipliers may be mixed: M mixes with them, and the conjugate, being convex, is at most the mixture of its values.
    So looks whose own M is not positive definite raise the bound as well.
    """

    matrix: np.ndarray
    conjugate: float = 0.0
    value: float = 0.0

    def move(self, step: np.ndarray) -> None:
        """From R to R times ``step``."""
        self.matrix = step.T @ self.matrix @ step

    def raise_by(self, place: Place) -> None:
        """Go to the best mixture with the multipliers of another look.

        Rounding can leave a matrix that is nearly singular without a factor; the bound then stays as it is.
        """
        with contextlib.suppress(np.linalg.LinAlgError):
            self._mix(place)

    def _mix(self, place: Place) -> None:
        ratios = eigh(place.dual, self.matrix, eigvals_only=True) - 1.0
        rise = place.conjugate - self.conjugate

        def slope(part: float) -> float:
            return float(np.sum(ratios / (1.0 + part * ratios))) - rise

        low, high = 0.0, 1.0 if ratios[0] > -1.0 else -1.0 / ratios[0]
        if ratios[0] > -1.0 and slope(1.0) >= 0.0:
            low = 1.0
        elif slope(0.0) > 0.0:
            for _ in range(settings.HALVINGS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
        mixed = (1.0 - low) * self.matrix + low * place.dual
        conjugate = self.conjugate + low * rise
        value = log_determinant(cholesky(mixed, lower=True)) - log_determinant(place.root) - conjugate
        if value > self.value:
            self.matrix, self.conjugate, self.value = mixed, conjugate, float(value)


@dataclass
class Curvature:
    """An estimate of the inverse Hessian, from a sample of pairs and from the last steps (L-BFGS).

    Attributes
    ----------
    sample : ListedPairs
    exact : bool
        Whether the sample is all there is.
    steps : list of (step, change)
        The last steps, and how the gradient changed along them.
    """

    sample: ListedPairs
    exact: bool
    steps: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def move(self, step: np.ndarray) -> None:
        """From R to R times ``step``. Rounding may leave a step without curvature, and then there is nothing in it."""
        moved = ((_seen_from(step, change), step.T @ gradient @ step) for change, gradient in self.steps)
        self.steps = [pair for pair in moved if has_curvature(*pair)]

    def learn(self, change: np.ndarray, gradient: np.ndarray) -> None:
        """Keep a step. There is nothing to learn where the sample is all there is."""
        if not self.exact and has_curvature(change, gradient):
            self.steps = [*self.steps, (change, gradient)][-settings.MEMORY :]

    def direction(self, place: Place) -> np.ndarray:
        """Minus the inverse Hessian times the gradient: the two-loop recursion."""
        rest, parts = place.gradient, []
        for change, gradient in reversed(self.steps):
            part = float(np.sum(change * rest)) / float(np.sum(change * gradient))
            rest = rest - part * gradient
            parts.append(part)
        found = self._solve(place, rest)
        for (change, gradient), part in zip(self.steps, reversed(parts), strict=True):
            found += (part - float(np.sum(gradient * found)) / float(np.sum(change * gradient))) * change
        return -found

    def _solve(self, place: Place, right: np.ndarray) -> np.ndarray:
        """The inverse of the sample's Hessian times ``right``, by preconditioned conjugate gradients.

        Far from the optimum R'MR exceeds the identity, and along a `Path` that bends takes its place in the Hessian.
        """
        values, vectors = np.linalg.eigh(place.dual)
        values = np.maximum(values, 1.0)
        scale = (0.5 * (values[:, None] + values)).astype(np.float32)
        units, weight = self._active(place.root @ vectors)

        def apply(change: np.ndarray) -> np.ndarray:
            along = np.einsum("ij,ij->i", units @ change, units)
            along *= weight
            return scale * change + (units * along[:, None]).T @ units

        length = np.linalg.norm(right)
        residual = (vectors.T @ right @ vectors / length).astype(np.float32)
        found, towards = np.zeros_like(residual), residual / scale
        size = first = float(np.sum(residual * towards))
        for _ in range(settings.CURVATURE_STEPS):
            image = apply(towards)
            bend = float(np.sum(towards * image))
            if not bend > 0.0:  # nothing is left of it in single precision
                break
            part = size / bend
            found += part * towards
            residual -= part * image
            ahead = residual / scale
            size, before = float(np.sum(residual * ahead)), size
            if size <= settings.CURVATURE_TOL**2 * first:
                break
            towards = ahead + (size / before) * towards
        return 0.5 * length * (vectors @ (found + found.T).astype(np.float64) @ vectors.T)

    def _active(self, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors and weights of the pairs of the sample that have a loss."""
        upper, lower, near, far = self.sample.terms
        units, sign = self.sample.read(0, self.sample.size) @ root, self.sample.sign
        p = squared_norms(units)
        there = np.flatnonzero(((sign > 0) & (p > upper)) | ((sign < 0) & (p < lower) & (p > 0)))
        units = (units[there] / np.sqrt(p[there])[:, None]).astype(np.float32)
        return units, np.where(sign[there] > 0, near, far).astype(np.float32)


def has_curvature(change: np.ndarray, gradient: np.ndarray) -> bool:
    """Whether the gradient rises along a step, as that of a convex function does."""
    return float(np.sum(change * gradient)) > 0.0


def _seen_from(step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """A change of the matrix, seen from R times ``step`` instead of R."""
    half = solve_triangular(step, change, lower=True)
    return solve_triangular(step, half.T, lower=True)


@dataclass(frozen=True)
class Path:
    """A path of positive definite matrices that starts at the identity in a given direction.

    An eigenvalue x of the direction becomes 1 + tx: the path is straight, and the objective convex along it. Where tx
    falls below ``-straight`` it goes on, without a kink, as 1 / (c - k tx): the inverse is straight there. So a step
    may be as long as it wants, as one on a single similar pair that is far away does. But such a path has a curvature
    of its own, R'MR times x^2, which is large where weights are.
    """

    values: np.ndarray
    vectors: np.ndarray
    straight: float = 1.0

    @classmethod
    def of(cls, direction: np.ndarray) -> "Path":
        """Straight if all of it is positive definite."""
        values, vectors = np.linalg.eigh(direction)
        return cls(values, vectors, 1.0 if -values[0] <= settings.FALL else settings.STRAIGHT)

    @property
    def bends(self) -> bool:
        return self.straight < 1.0

    def straightened(self) -> tuple["Path", float]:
        """The straight path, and how far it goes."""
        return Path(self.values, self.vectors), settings.FALL / -self.values[0]

    def at(self, part: float) -> np.ndarray:
        return self._matrix(self._bent(part))

    def root(self, part: float) -> np.ndarray:
        """The lower triangular root of the matrix there."""
        upper = np.linalg.qr((self.vectors * np.sqrt(self._bent(part))).T, mode="r")
        return (upper * np.sign(np.diag(upper))[:, None]).T

    def _bent(self, part: float) -> np.ndarray:
        x = part * self.values
        return 1.0 + x if not self.bends else np.where(x > -self.straight, 1.0 + x, 1.0 / self._inverse(x))

    def velocity(self, part: float) -> np.ndarray:
        x = part * self.values
        bent = self._slope / self._inverse(x) ** 2 if self.bends else 1.0
        return self._matrix(self.values * np.where(x > -self.straight, 1.0, bent))

    @property
    def _slope(self) -> float:
        """Of the inverse where it begins to be straight, but for the sign."""
        return 1.0 / (1.0 - self.straight) ** 2

    def _inverse(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 - self.straight) + self._slope * (np.abs(x) - self.straight)

    def _matrix(self, values: np.ndarray) -> np.ndarray:
        return (self.vectors * values) @ self.vectors.T


@dataclass
class Solved:
    """Where the steps stand.

    Attributes
    ----------
    place : Place
    bound : Bound
    looks, steps : int
        Looks at all pairs, and steps made.
    """

    place: Place
    bound: Bound
    looks: int = 1
    steps: int = 0

    @property
    def gap(self) -> float:
        """How much worse than the best the matrix may be, relatively."""
        excess = max(self.place.value - self.bound.value, 0.0)
        return excess / max(self.bound.value, settings.LEAST_VALUE * len(self.place.root))


def first_place(source: Source, root: np.ndarray, crew: Crew) -> Solved:
    """A look at all pairs from where steps begin."""
    place = Place.at(root, source.look(root, crew))
    now = Solved(place, Bound(root.T @ root))
    now.bound.raise_by(place)
    return now


def solve_sample(sample: ListedPairs, root: np.ndarray, crew: Crew) -> np.ndarray:
    """Solve a sample of the pairs by itself: a root from which few steps are left."""
    now, curvature = first_place(sample, root, crew), Curvature(sample, exact=True)
    while now.gap > settings.START_TOL and now.steps < settings.START_STEPS and step(now, sample, curvature, crew):
        pass
    return now.place.root


def step(now: Solved, source: Source, curvature: Curvature, crew: Crew) -> bool:
    """One step with a line search; whether one was found that lowers the objective."""
    place = now.place
    direction = curvature.direction(place)
    slope = float(np.sum(place.gradient * direction))
    if not -np.inf < slope < 0.0:
        return False
    path, part = Path.of(direction), 1.0
    for _ in range(settings.MOST_TRIALS):
        step = path.root(part)
        if not np.isfinite(step).all():
            return False
        root = place.root @ step
        trial = Place.at(root, source.look(root, crew))
        now.looks += 1
        if trial.value <= place.value + settings.ARMIJO * part * slope:
            break
        if path.bends:
            path, part = path.straightened()
            continue
        # The secant through the slopes at both ends.
        end = float(np.sum(trial.gradient * _seen_from(step, path.velocity(part))))
        part *= min(max(slope / (slope - end), settings.SHRINK[0]), settings.SHRINK[1])
    else:
        return False
    curvature.move(step)
    change = _seen_from(step, path.at(part) - np.eye(len(step)))
    curvature.learn(change, trial.gradient - step.T @ place.gradient @ step)
    now.bound.move(step)
    now.bound.raise_by(trial)
    now.place, now.steps = trial, now.steps + 1
    return True
