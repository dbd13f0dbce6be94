"""All pairs of points, or a list of pairs: one look at them gives value, gradient and a dual bound.

The problem, after the prior has been made the identity (p = v'Av, phi(t) = t - log t - 1):

    min tr A - logdet A - d + sum_similar near phi(max(1, p / upper)) + sum_dissimilar far phi(min(1, p / lower))

With w the derivative of the loss of a pair and M = I + sum w vv', the gradient is M - A^-1. Where M is positive
definite logdet M - sum g log t is a lower bound of the optimum. Sums are added in a fixed order, whatever the workers.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ..engine.parallel import run_short_tasks
from ..errors import SearchStopped
from ..kernels.itml import Terms, weigh, weigh_tile
from . import settings


class Sums(NamedTuple):
    """What the losses add up to at a matrix.

    Attributes
    ----------
    loss : float
    conjugate : float
        Of the losses, at the multipliers.
    gradient : float64[d, d]
        Of the losses by E, where the matrix is root (I + E) root': the sum of w zz', z the transformed differences.
        However large and small the matrix is in different directions, this is of the size of the weights.
    """

    loss: float
    conjugate: float
    gradient: np.ndarray


class Pairs(NamedTuple):
    """Some pairs: the differences of their points, and 1 for similar, -1 for dissimilar."""

    difference: np.ndarray
    sign: np.ndarray


class Source(Protocol):
    """Where pairs come from."""

    @property
    def terms(self) -> Terms: ...
    @property
    def size(self) -> int:
        """The number of pairs."""
        ...

    @property
    def dimension(self) -> int: ...
    def look(self, root: np.ndarray, crew: "Crew") -> Sums:
        """The losses at the matrix ``root @ root.T``."""
        ...

    def sample(self, count: int, rng: np.random.Generator) -> "ListedPairs":
        """At most ``count`` pairs that stand for all; all of them if they are not more."""
        ...

    def blocks(self) -> Iterator[tuple[np.ndarray, Pairs]]:
        """All pairs with their numbers, a part at a time, without those of equal points."""
        ...

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, Pairs]:
        """So many similar and so many dissimilar pairs, drawn at random, each once, with their numbers."""
        ...


@dataclass(frozen=True)
class Crew:
    """Threads, and the flag that stops them."""

    threads: Executor | None = None
    stop: np.ndarray = field(default_factory=lambda: np.zeros(1, np.uint8))

    def add_up(self, task: Callable[[int], Sums], tasks: int, d: int) -> Sums:
        """The sum over all tasks, in their order."""
        loss = conjugate = 0.0
        gradient = np.zeros((d, d))
        for first in range(0, tasks, settings.WAVE):
            calls = [(number,) for number in range(first, min(first + settings.WAVE, tasks))]
            for part in run_short_tasks(self.threads, self._unless_stopped(task), calls):
                loss, conjugate = loss + part.loss, conjugate + part.conjugate
                gradient += part.gradient
        return Sums(loss, conjugate, 0.5 * (gradient + gradient.T))

    def _unless_stopped(self, task: Callable[[int], Sums]) -> Callable[[int], Sums]:
        def run(number: int) -> Sums:
            if self.stop[0]:
                raise SearchStopped
            return task(number)

        return run


@dataclass(frozen=True)
class AllPairs:
    """All pairs of points; those of one class are similar.

    Attributes
    ----------
    points : float64[n, d]
        With the mean at the origin.
    classes, groups : int32[n]
        Class of each point, and a number that only equal points share.
    terms : Terms
    """

    points: np.ndarray
    classes: np.ndarray
    groups: np.ndarray
    terms: Terms

    @property
    def size(self) -> int:
        return len(self.points) * (len(self.points) - 1) // 2

    @property
    def dimension(self) -> int:
        return self.points.shape[1]

    def look(self, root: np.ndarray, crew: Crew) -> Sums:
        z = self.points @ root
        norms = np.einsum("ij,ij->i", z, z)
        spans = [slice(a, a + settings.TILE) for a in range(0, len(z), settings.TILE)]

        def line(number: int) -> Sums:
            """The tiles of one line, from the diagonal on."""
            loss = conjugate = 0.0
            gradient = np.zeros_like(root)
            for right in spans[number:]:
                linear, logs = self._tile(spans[number], right, z, norms, root, gradient)
                loss, conjugate = loss + (linear - logs), conjugate + logs
            return Sums(loss, conjugate, gradient)

        return crew.add_up(line, len(spans), self.dimension)

    def _tile(
        self, left: slice, right: slice, z: np.ndarray, norms: np.ndarray, root: np.ndarray, gradient: np.ndarray
    ) -> tuple[float, float]:
        a, b = z[left], z[right]
        gram, once = a @ b.T, np.zeros_like(root)
        row, column = np.empty(len(a)), np.empty(len(b))
        part = weigh_tile(
            gram, norms[left], norms[right], (self.points[left], self.points[right]),
            (self.classes[left], self.classes[right]), (self.groups[left], self.groups[right]),
            root, self.terms, settings.CLOSE, once, row, column,
        )  # fmt: skip
        # sum w (a - b)(a - b)' = a' diag(row) a + b' diag(column) b - a'wb - b'w'a; the caller makes it symmetric
        once += (a * row[:, None]).T @ a + (b * column[:, None]).T @ b - 2.0 * a.T @ (gram @ b)
        share = 0.5 if left == right else 1.0  # a tile on the diagonal has every pair twice
        gradient += share * once
        return share * part[0], share * part[1]

    def sample(self, count: int, rng: np.random.Generator) -> "ListedPairs":
        if self.size <= count:
            a, b = np.triu_indices(len(self.points), 1)
        else:
            a, b = draw_pairs(self.classes, count // 2, rng)
        keep = self.groups[a] != self.groups[b]
        a, b = a[keep], b[keep]
        sign = np.where(self.classes[a] == self.classes[b], 1, -1).astype(np.int8)
        totals = count_pairs(self.classes, self.groups)
        return ListedPairs.of(self.points[a] - self.points[b], sign, _spread(self.terms, totals, sign))

    def blocks(self) -> Iterator[tuple[np.ndarray, Pairs]]:
        n = len(self.points)
        for i in range(n - 1):
            others = np.flatnonzero(self.groups[i + 1 :] != self.groups[i]) + i + 1
            sign = np.where(self.classes[others] == self.classes[i], 1, -1).astype(np.int8)
            yield i * n + others, Pairs(self.points[i] - self.points[others], sign)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, Pairs]:
        n, (a, b) = len(self.points), draw_pairs(self.classes, count, rng)
        key = np.unique((np.minimum(a, b) * n + np.maximum(a, b))[self.groups[a] != self.groups[b]])
        a, b = key // n, key % n
        sign = np.where(self.classes[a] == self.classes[b], 1, -1).astype(np.int8)
        return key, Pairs(self.points[a] - self.points[b], sign)


@dataclass(frozen=True)
class ListedPairs:
    """Pairs from a list.

    Attributes
    ----------
    read : (first, last) -> float64[count, d]
        The differences of a part of the list; called by one thread at a time.
    sign : int8[n]
        1 similar, -1 dissimilar, 0 left out.
    d : int
    terms : Terms
    """

    read: Callable[[int, int], np.ndarray]
    sign: np.ndarray
    d: int
    terms: Terms
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, difference: np.ndarray, sign: np.ndarray, terms: Terms) -> "ListedPairs":
        return cls(lambda first, last: difference[first:last], sign, difference.shape[1], terms)

    @property
    def size(self) -> int:
        return len(self.sign)

    @property
    def dimension(self) -> int:
        return self.d

    def look(self, root: np.ndarray, crew: Crew) -> Sums:
        def part(number: int) -> Sums:
            first = number * settings.LIST
            difference, sign = self._part(first)
            z, weight = difference @ root, np.empty(len(sign))
            linear, logs = weigh(squared_norms(z), sign, self.terms, weight)
            return Sums(linear - logs, logs, (z * weight[:, None]).T @ z)

        return crew.add_up(part, -(-self.size // settings.LIST), self.d)

    def _part(self, first: int) -> Pairs:
        last = min(first + settings.LIST, self.size)
        with self.lock:
            return Pairs(self.read(first, last), self.sign[first:last])

    def sample(self, count: int, rng: np.random.Generator) -> "ListedPairs":
        chosen: list[np.ndarray] = []
        for kind, share in ((1, count // 2), (-1, count - count // 2)):
            there = np.flatnonzero(self.sign == kind)
            chosen.append(there if self.size <= count else rng.permutation(there)[:share])
        which = np.sort(np.concatenate(chosen))
        taken = [
            part.difference[which[(which >= first) & (which < first + settings.LIST)] - first]
            for first in range(0, self.size, settings.LIST)
            for part in [self._part(first)]
        ]
        sign = self.sign[which]
        totals = int(np.sum(self.sign > 0)), int(np.sum(self.sign < 0))
        return ListedPairs.of(np.concatenate(taken), sign, _spread(self.terms, totals, sign))

    def blocks(self) -> Iterator[tuple[np.ndarray, Pairs]]:
        for first in range(0, self.size, settings.LIST):
            difference, sign = self._part(first)
            there = np.flatnonzero(sign)
            yield first + there, Pairs(difference[there], sign[there])

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, Pairs]:
        kinds = [there for kind in (1, -1) if len(there := np.flatnonzero(self.sign == kind))]
        key = np.unique(np.concatenate([rng.choice(there, count) for there in kinds]))
        with self.lock:
            differences = [self.read(int(at), int(at) + 1) for at in key]
        return key, Pairs(np.concatenate(differences), self.sign[key])


def squared_norms(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)


def count_pairs(classes: np.ndarray, groups: np.ndarray) -> tuple[int, int]:
    """Similar and dissimilar pairs of points that are not equal."""
    similar = _within(classes) - _within(groups.astype(np.int64) * (int(classes.max(initial=0)) + 1) + classes)
    every = len(classes) * (len(classes) - 1) // 2 - _within(groups)
    return similar, every - similar


def _within(labels: np.ndarray) -> int:
    """Pairs with the same label."""
    counts = np.unique(labels, return_counts=True)[1].astype(np.int64)
    return int(np.sum(counts * (counts - 1) // 2))


def _spread(terms: Terms, totals: Iterable[int], sign: np.ndarray) -> Terms:
    """The same total weights on the pairs of a sample as on all."""
    similar, dissimilar = totals
    near = terms.near * similar / max(int(np.sum(sign > 0)), 1)
    far = terms.far * dissimilar / max(int(np.sum(sign < 0)), 1)
    return terms._replace(near=near, far=far)


def draw_pairs(
    classes: np.ndarray, count: int, rng: np.random.Generator | np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """``count`` random pairs within a class, then as many of two classes; pairs of a kind are equally likely."""
    n, order = len(classes), np.argsort(classes, kind="stable")
    _, first, sizes = np.unique(classes[order], return_index=True, return_counts=True)
    a, b = [], []
    for similar in (True, False):
        others = sizes - 1 if similar else n - sizes
        chances = sizes.astype(float) * others
        if not chances.any():
            continue
        chosen = rng.choice(len(sizes), count, p=chances / chances.sum())
        at, ahead = (rng.uniform(size=(2, count)) * [sizes[chosen], others[chosen]]).astype(np.int64)
        a.append(first[chosen] + at)
        if similar:
            b.append(first[chosen] + (at + 1 + ahead) % sizes[chosen])
        else:  # the points of other classes come after those of this one, if the order is read as a circle
            b.append((first[chosen] + sizes[chosen] + ahead) % n)
    return order[np.concatenate(a)], order[np.concatenate(b)]
