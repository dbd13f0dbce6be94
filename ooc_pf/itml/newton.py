"""The smooth problem in the matrix: quasi-Newton steps whose first guess at the curvature comes from a sample of pairs.

A step is that of L-BFGS, with the inverse of the sample's Hessian, by conjugate gradients, in place of a multiple of
the identity. Everything is seen from the present matrix A = RR': a change is R E R', a matrix M of the dual is R'MR.
There the divergence from the prior has the identity as its Hessian, and the losses have sum g (n'En) nn' over the pairs
with a loss, n the unit vector along R'v. So numbers stay of the size of the weights, however ill-conditioned A is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from ..errors import SearchStopped
from . import settings
from .pairs import Crew, ListedPairs, Source, Sums, squared_norms


def log_determinant(root: np.ndarray) -> float:
    """Of ``root @ root.T``, for a triangular root."""
    return 2.0 * float(np.sum(np.log(np.diag(root))))


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
        """Go to the best mixture with the multipliers of another look."""
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
            self.matrix, self.conjugate, self.value = mixed, conjugate, value


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
        """From R to R times ``step``."""
        self.steps = [(_seen_from(step, change), step.T @ gradient @ step) for change, gradient in self.steps]

    def learn(self, change: np.ndarray, gradient: np.ndarray) -> None:
        """Keep a step. There is nothing to learn where the sample is all there is."""
        if not self.exact and float(np.sum(change * gradient)) > 0.0:
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

        Far from the optimum R'MR exceeds the identity, and along a `Bend` takes its place in the Hessian.
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
            part = size / float(np.sum(towards * image))
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


def _seen_from(step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """A change of the matrix, seen from R times ``step`` instead of R."""
    half = solve_triangular(step, change, lower=True)
    return solve_triangular(step, half.T, lower=True)


@dataclass(frozen=True)
class Bend:
    """The path of positive definite matrices that starts at the identity in a given direction.

    An eigenvalue x of the direction becomes 1 + tx where it grows, and 1 / (1 - tx) where it falls: the inverse is
    straight there. A Newton step on a single similar pair, however far away, then ends at its minimum.
    """

    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, direction: np.ndarray) -> "Bend":
        return cls(*np.linalg.eigh(direction))

    def at(self, part: float) -> np.ndarray:
        return self._matrix(self._bent(part))

    def root(self, part: float) -> np.ndarray:
        """The lower triangular root of the matrix there."""
        upper = np.linalg.qr((self.vectors * np.sqrt(self._bent(part))).T, mode="r")
        return (upper * np.sign(np.diag(upper))[:, None]).T

    def _bent(self, part: float) -> np.ndarray:
        x = part * self.values
        return np.where(x > 0.0, 1.0 + x, 1.0 / (1.0 + abs(x)))

    def velocity(self, part: float) -> np.ndarray:
        x = part * self.values
        return self._matrix(self.values * np.where(x > 0.0, 1.0, 1.0 / (1.0 + abs(x)) ** 2))

    def _matrix(self, values: np.ndarray) -> np.ndarray:
        return (self.vectors * values) @ self.vectors.T


@dataclass
class Solved:
    """Where the steps ended.

    Attributes
    ----------
    place : Place
    bound : Bound
    status : str
        "converged", "iteration_limit", "stalled", or why the run was stopped.
    looks, steps : int
        Looks at all pairs, and steps made.
    """

    place: Place
    bound: Bound
    status: str = "running"
    looks: int = 1
    steps: int = 0

    @property
    def gap(self) -> float:
        """How much worse than the best the matrix may be, relatively."""
        excess = max(self.place.value - self.bound.value, 0.0)
        return excess / max(self.bound.value, settings.LEAST_VALUE * len(self.place.root))


def minimise(
    source: Source,
    sample: ListedPairs,
    root: np.ndarray,
    crew: Crew,
    *,
    tol: float,
    max_iter: float,
    watch: Callable[[Solved], str | None] = lambda solved: None,
    stop_reason: Callable[[], str | None] = lambda: None,
) -> Solved:
    """Step until the relative gap is at most ``tol``; ``watch`` sees each step, and may name a reason to stop."""
    try:
        place = Place.at(root, source.look(root, crew))
    except SearchStopped:
        blind = Place(root, np.inf, root.T @ root, 0.0)
        return Solved(blind, Bound(root.T @ root), stop_reason() or "interrupted")
    now, curvature = Solved(place, Bound(root.T @ root)), Curvature(sample, exact=source is sample)
    now.bound.raise_by(place)
    while now.status == "running":
        reason = watch(now)
        if now.gap <= tol:
            now.status = "converged"
        elif reason is not None:
            now.status = reason
        elif now.steps >= max_iter:
            now.status = "iteration_limit"
        else:
            try:
                found = _step(now, source, curvature, crew)
            except SearchStopped:
                now.status = stop_reason() or "interrupted"
            else:
                now.status = "running" if found else "stalled"
    return now


def _step(now: Solved, source: Source, curvature: Curvature, crew: Crew) -> bool:
    """One step with a line search; whether one was found that lowers the objective."""
    place = now.place
    direction = curvature.direction(place)
    slope = float(np.sum(place.gradient * direction))
    if not slope < 0.0:
        return False
    bend, part = Bend.of(direction), 1.0
    for _ in range(settings.MOST_TRIALS):
        step = bend.root(part)
        root = place.root @ step
        trial = Place.at(root, source.look(root, crew))
        now.looks += 1
        if trial.value <= place.value + settings.ARMIJO * part * slope:
            break
        # The secant through the slopes at both ends.
        end = float(np.sum(trial.gradient * _seen_from(step, bend.velocity(part))))
        part *= min(max(slope / (slope - end), settings.SHRINK[0]), settings.SHRINK[1])
    else:
        return False
    curvature.move(step)
    change = _seen_from(step, bend.at(part) - np.eye(len(step)))
    curvature.learn(change, trial.gradient - step.T @ place.gradient @ step)
    now.bound.move(step)
    now.bound.raise_by(trial)
    now.place, now.steps = trial, now.steps + 1
    return True


def solve_pairs(
    source: Source,
    crew: Crew,
    *,
    tol: float,
    max_iter: float,
    seed: int = 0,
    watch: Callable[[Solved], str | None] = lambda solved: None,
    stop_reason: Callable[[], str | None] = lambda: None,
) -> Solved:
    """Solve the sample first, from the prior on, then all pairs from there."""
    sample, root = source.sample(settings.SAMPLE, np.random.default_rng(seed)), np.eye(source.dimension)
    solve = partial(minimise, sample=sample, crew=crew, max_iter=max_iter, stop_reason=stop_reason)
    if source.size <= settings.SAMPLE:  # all of them are in it, but for pairs of equal points
        return solve(sample, root=root, tol=tol, watch=watch)
    root = solve(sample, root=root, tol=settings.START_TOL).place.root
    return solve(source, root=root, tol=tol, watch=watch)
